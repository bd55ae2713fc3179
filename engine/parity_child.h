/* Parity by kcheck in a scratch child: a fault or an endless loop there harms nobody here. */
#ifndef ENGINE_PARITY_CHILD_H
#define ENGINE_PARITY_CHILD_H

#include "engine/engine.h"

enum {
    PARITY_CHILD_S = 120, /* then the child is killed and the state is "hang" */
    PARITY_CHILD_SHAPES = 16,
};

/* Checks p[0..n-1], all of one variant and KD, and fills in state, nmse, worst and text. Sends
 * PROGRESS while it waits. Launching thread. */
void parity_child(struct engine *e, struct msg_parity *p, unsigned n);

#endif
