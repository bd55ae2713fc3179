/*
 * The other side of timer.h: an engine that runs rounds when its parent says so (--timer-of PID).
 *
 * Frames out: HELLO, PROGRESS, TEXT, LOG, ROUND, REPLY, FAULT, BYE. Commands in, each answered by a
 * REPLY of its verb: `load` (the weights may be taken to the device; "ready" is the answer, once
 * all is open), `select` family variant kd, `choose` family variant kd "M,N,K" (auto's choice for a
 * shape; without one: forget them), `blocks`, `prompt`, `round`, `stop` (ends a round that runs).
 * Nothing is checked here: the parent has. Launching thread.
 */
#ifndef ENGINE_TIMER_CHILD_H
#define ENGINE_TIMER_CHILD_H

#include "engine/engine.h"

/* First thing in the process: it is killed when the thread of `parent` that started it ends.
 * ERR_UNAVAILABLE: that has happened already. */
enum status timer_child_bind(uint32_t parent);

/* Waits until the parent lets it load. ERR_AGAIN: told to leave. */
enum status timer_child_wait(struct engine *e);

/* Says that it is ready and serves until told to leave; the error that ended a round. */
enum status timer_child_run(struct engine *e);

#endif
