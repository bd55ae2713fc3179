/*
 * The gate of a flip: a variant is held against its family's reference on the shapes in use before
 * it may run. Where a faulty variant could take the process along (cuda), kcheck does it in a
 * scratch child with a time limit; the CPU backend does it in place. Every shape's outcome is sent
 * as a PARITY frame. Outcomes are kept: flipping back costs nothing. Launching thread.
 */
#ifndef ENGINE_PARITY_H
#define ENGINE_PARITY_H

#include "engine/engine.h"

enum {
    PARITY_SHAPES = 16,                   /* different shapes of a model */
    PARITY_KEPT = 128,                    /* outcomes kept */
};

/* Whether the variant may run; `why` gets the reason when not, else what was checked. */
bool parity_gate(struct engine *e, const char *family, const char *variant, uint32_t kd, char *why,
                 size_t size);

#endif
