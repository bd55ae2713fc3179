/*
 * Weights of one row, a few chunks of 32 at a time, as int16 with their scales and minimums. Pure.
 */
#ifndef ENGINE_CPU_UNPACK_H
#define ENGINE_CPU_UNPACK_H

#include "engine/quant.h"

/* Compiled for AVX2 and for the base instruction set, chosen when the program starts. Integers are
 * exact either way, and float sums keep their order: results are the same bits. (ThreadSanitizer is
 * not ready yet when the choice is made.) */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__)
#define CPU_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CPU_CLONES
#endif

/* Unpacks chunks c0 .. c0 + chunks - 1 of `row`: w[chunks * 32], s[chunks], mn[chunks] (types with
 * a minimum only). For the 256-value types the chunks must lie in one super-block. */
void cpu_unpack(enum quant_type t, const void *row, uint32_t c0, uint32_t chunks, int16_t *w,
                float *s, float *mn);

/* Whether the type has a minimum: Q4_K, Q4_1. */
static inline bool cpu_has_min(enum quant_type t)
{
    return t == QUANT_Q4_K || t == QUANT_Q4_1;
}

#endif
