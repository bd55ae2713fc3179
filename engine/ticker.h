/*
 * A sign of life while one long call runs: PROGRESS frames of a phase, once a second, from a thread
 * of its own. Start and stop on the launching thread.
 */
#ifndef ENGINE_TICKER_H
#define ENGINE_TICKER_H

#include "engine/emit.h"

struct ticker;

/* NULL when there is no thread to be had: then there are no signs. `phase` is static. */
struct ticker *ticker_start(struct emit *emit, const char *phase);
void ticker_stop(struct ticker *t); /* NULL is fine */

#endif
