/*
 * What families share in making inputs for a check: the generator, and the activations.
 *
 * Deterministic in (shape, kind, seed); the memory is the family_inputs'. Pure but for it.
 */
#ifndef KERNELS_INPUTS_H
#define KERNELS_INPUTS_H

#include "kernels/family.h"

/* splitmix64: a counter-based generator, so that every block is drawn independently. */
uint64_t inputs_draw(uint64_t *state);

/* A positive f16 with 2^lo <= v < 2^hi. */
uint16_t inputs_f16(uint64_t *state, int lo, int hi);

/* Activations as q8 chunks in out->a, and room for b_bytes of weights in out->b, not filled.
 * ERR_NOMEM leaves nothing behind. */
enum status inputs_make(const struct shape *s, enum input_kind kind, uint64_t seed, size_t b_bytes,
                        struct family_inputs *out);

#endif
