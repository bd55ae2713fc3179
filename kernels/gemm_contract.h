/*
 * What the contracts of the quantised GEMM families have in common: y[n][m] f32 = w[m][k] x
 * a[n][k], weights in super-blocks of 256, activations as q8 chunks (kernels/q8.h). Pure.
 */
#ifndef KERNELS_GEMM_CONTRACT_H
#define KERNELS_GEMM_CONTRACT_H

#include "kernels/family.h"

enum { GEMM_BLOCK = 256 };

/* m and n from 1, k a multiple of GEMM_BLOCK. Indices inside a kernel are int for rows and tokens,
 * 64-bit for bytes: the upper limits. ERR_USAGE. */
enum status gemm_check_shape(const struct shape *s);

/*
 * Limits of the class "bf16" (kernels/bf16_class.h), else of q8: per output the kernels add T =
 * terms * k/32 terms in f32 (u = 2^-24). The integer dots and the products of scales are exact; a
 * term takes at most 3 roundings (da*dsv or da*sa, its product, the conversion of the dot being
 * exact below 2^24), and reaches the result through at most T additions. So with N = T + 3 the
 * standard bound is |y - exact| <= N u / (1 - N u) sum|terms|, whatever the order of addition: that
 * is the limit of the worst element, with no slack factor. Errors of a sound kernel behave like a
 * random walk, so the expected square is at most N u^2 (sum|terms|)^2: summed over elements and
 * divided by the sum of squares it is the NMSE limit. All-zero terms must give exactly 0.
 */
struct tolerance gemm_tolerance(const struct variant_desc *d, const struct shape *s,
                                const struct reference_value *ref, int terms);

/* Tiles that cover n; 1 when the variant names no tile. */
uint32_t gemm_tiles(int n, uint32_t tile);

double gemm_macs(const struct shape *s);
size_t gemm_a_bytes(const struct shape *s);
size_t gemm_y_bytes(const struct shape *s);

#endif
