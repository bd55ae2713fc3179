/*
 * Timed rounds in a process of their own.
 *
 * Kernel activity, once it has been on in a process, leaves about 0.4 us on each of its launches,
 * also when it is off again: some hundred launches a token then decode 7 % slower than they would
 * (docs/MEASUREMENTS.md). So where CUPTI is opened, the rounds that enter tokens/s run in a second
 * engine that never opens it: the same program, with the same model and work (timer_child.h). It
 * loads beside this one, runs a round when it is told to, and what was selected here since its last
 * one is told to it before (timer_sync.c).
 *
 * Where that can't be (memory for a second copy of the weights, a process that doesn't come up, or
 * died twice), rounds are timed here, which a SOURCE frame named "timer" says, and ROUND. The
 * rounds of a generation are all timed in one place: a change of place starts a generation.
 *
 * A fault of the timing process is one of this engine: it fails as if the round had run here. It
 * sends PROGRESS, which is passed on, and nothing is sent in its name: whoever watches for a hang
 * sees one. Launching thread.
 */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

#include "session/proto.h"

struct engine;
struct timer;

/* Starts the process when --timer asks for it, or is auto and CUPTI is open: e->timer, which stays
 * NULL otherwise. The backend is open, the model is not. */
void timer_open(struct engine *e);

/* All is loaded here: whether the GPU holds it a second time is known now. */
void timer_load(struct engine *e);

/* Whether timed rounds are the process's. */
bool timer_runs(const struct engine *e);

/* A timed round there; *out has the figures. ERR_AGAIN: given up, as in rounds_run(), or the place
 * has changed: timer_runs() is false then, and a generation may have begun. Other errors are what a
 * round here would have ended with. */
enum status timer_round(struct engine *e, struct msg_round *out);

/* Gives it up for good: rounds are timed here from now on. `why` is one clause. */
void timer_drop(struct engine *e, const char *why);

/* Auto's choice for a shape; mnk NULL: none of the family holds any more. Before timer_open() too;
 * without a process it is of no use and does no harm. */
void timer_note_choice(struct engine *e, const char *family, const uint32_t mnk[3],
                       const char *variant, uint32_t kd);

/* Ends the process. NULL is fine. */
void timer_close(struct engine *e);

#endif
