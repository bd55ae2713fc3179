/*
 * The loops: one with a terminal (one poll over tty, source, signals), one without, and one driven
 * by a script. Each returns when the user quits, time is up or the script ends. One thread.
 */
#ifndef TUI_LOOP_H
#define TUI_LOOP_H

#include "tui/app.h"

/* Takes the terminal over, gives it back on every way out. */
enum status loop_terminal(struct app *a);
/* Lets a live session run for `seconds`, or until SIGINT/SIGTERM, with nothing on the screen; up to
 * `patience` seconds as long as no round has given a figure (a slow machine). */
enum status loop_headless(struct app *a, double seconds, double patience);
/* Runs a script (script.c) on a recording (virtual time) or on a live session. Screens go to
 * stdout. ERR_FAILED when an `expect` isn't met. */
enum status loop_script(struct app *a, const char *path);

/* Waits at most `ms` for the source, a signal, or a key when `tty`; then pulls. */
enum status loop_wait(struct app *a, int ms, bool tty);

/* Blocks the signals that the loops read; before anything is started. */
enum status loop_signals(void);

/* Ends the engine in order: asks it to quit and takes its last frames. */
void loop_finish(struct app *a);

#endif
