/*
 * The terminal: shows a canvas, reads keys. screen_curses.c is the only file that includes curses.
 * One screen a process, one thread. After screen_close() (also on every way out of the program)
 * the terminal is as it was.
 */
#ifndef TUI_SCREEN_H
#define TUI_SCREEN_H

#include "tui/canvas.h"

/* Takes the terminal over. ERR_UNAVAILABLE when stdin and stdout are no terminal, or $TERM is
 * unknown. */
enum status screen_open(void);
void screen_close(void); /* harmless when not open */

/* Asks the terminal for its size (after SIGWINCH) and writes it. */
void screen_size(int *w, int *h);
/* Sends what changed since the last call; `all` repaints everything. */
void screen_show(const struct canvas *c, bool all);
/* The next key that waits, or KEY_NONE (keys.h). Never blocks. */
int screen_key(void);

/* Whether only ASCII may be drawn: the locale isn't UTF-8, or TERM is linux, dumb or vt100. */
bool screen_ascii(void);

#endif
