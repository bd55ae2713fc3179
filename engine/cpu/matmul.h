/*
 * Matrix products on the CPU: y[n][m] = x[n][k] * W[m][k]^T.
 *
 * Quantised weights meet q8 activations (kernels/q8.h): the same integer dots as on the GPU, one
 * for each chunk of 32 values, combined in f32 chunk by chunk in rising order: y += (da * s) * dot;
 * y += (da * sa) * mn   (types with a minimum) with Q4_K: s = d*sc, mn = -dmin*m, Q4_1: s = d, mn =
 * m, others mn = 0. Q6_K multiplies its two 8-bit scales into the integers, which stays exact. So
 * every schedule below gives the same bits.
 *
 * Two schedules: "rows" takes one weight row past all tokens; "tiles" takes 8 rows past 32 tokens.
 * KD = chunks unpacked at once, 4 or 8. Plain functions on the caller's memory; a pool shares out
 * the rows.
 */
#ifndef ENGINE_CPU_MATMUL_H
#define ENGINE_CPU_MATMUL_H

#include "engine/cpu/pool.h"
#include "engine/quant.h"

#include <stdbool.h>
#include <stddef.h>

enum { CPU_TILE_ROWS = 8, CPU_TILE_TOKENS = 32, CPU_KD_MAX = 8 };

/* Activations of n tokens as q8 chunks, taken apart: values [n][k], scale da and da*sa of each
 * chunk [n][k/32]. Owned by the caller; cpu_acts_reserve() grows it. */
struct cpu_acts {
    int8_t *q;
    float *da, *dma;
    size_t cap; /* values */
    uint32_t n, k;
};

enum status cpu_acts_reserve(struct cpu_acts *a, uint32_t n, uint32_t k);
void cpu_acts_free(struct cpu_acts *a);

/* x[n][k] -> acts; k a multiple of 32. */
void cpu_quantize(struct pool *p, struct cpu_acts *a, const float *x, uint32_t n, uint32_t k);

/* Takes apart chunks that are there already (kernels/q8.h), n rows. */
void cpu_acts_from_chunks(struct cpu_acts *a, const uint8_t *chunks, uint32_t n, uint32_t k);

enum cpu_schedule { CPU_ROWS, CPU_TILES };

struct cpu_product {
    enum quant_type type; /* any but F32 and F16 */
    const void *w;
    uint32_t m;
    const struct cpu_acts *acts;
    float *y;
    uint32_t kd;
};

/* Quantised weights. */
void cpu_matmul_q(struct pool *p, enum cpu_schedule s, const struct cpu_product *c);

/* F32 or F16 weights on f32 activations; sums in 8 lanes, added in a fixed order. `rows` is room
 * for k floats a thread. */
void cpu_matmul_f(struct pool *p, enum quant_type type, const void *w, uint32_t m, const float *x,
                  uint32_t n, uint32_t k, float *y, float *rows);

/* The 8-lane dot, as used by attention too. */
float cpu_dot(const float *a, const float *b, uint32_t n);

#endif
