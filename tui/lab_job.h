/*
 * An experiment that runs beside the screen: `sasstop ab` as a child that hands its frames over a
 * pipe. The frames join the live session and its recording. One at a time; one thread. Only the
 * child that was started here is ever signalled.
 */
#ifndef TUI_LAB_JOB_H
#define TUI_LAB_JOB_H

#include "tui/app.h"

struct lab_job;

/* What the form asks for; the strings are copied into the child's arguments at once. */
struct lab_wish {
    const char *bar, *a, *b, *hypothesis, *claim;
};

/* Starts it and pauses the engine, which would be measured along. ERR_USAGE when one runs. */
enum status lab_job_start(struct app *a, const struct lab_wish *w);
bool lab_job_runs(const struct app *a);
/* Asks it to stop: it closes its experiment as INVALID and leaves. */
void lab_job_stop(struct app *a);
/* Takes what it has; ends it when it is through. */
enum status lab_job_pull(struct app *a);
/* Ends it at once: the application leaves. */
void lab_job_end(struct app *a);

#endif
