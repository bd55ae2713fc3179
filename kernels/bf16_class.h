/*
 * The numeric class "bf16", shared by the families that have kernels of it: activations and
 * expanded weights are rounded to bf16, products are added in f32 by the tensor cores.
 *
 * Tolerance. u = 2^-8 is the relative rounding of bf16. A weight is s*q + o with both parts rounded
 * (two roundings), then their sum (one); an activation is rounded once. With each rounding at most
 * u, |product - exact| <= ((1 + u)^3 - 1) (|s q| + |o|) |a|, and the sum over k of that is the
 * limit of the worst element, plus the additions: at most k of them at 2^-22 of the sum of
 * magnitudes each (the tensor cores truncate instead of rounding). No slack factor.
 *
 * Expected square: a rounding's relative error has a mean square of u^2/6 and is shared by all
 * values that it touches: s and o by a sub-block's 32 (or 16) values, an activation's by one value,
 * or by a whole chunk where all are alike. So E <= u^2/6 * (sum over sub-blocks of t1^2 + t2^2 +
 * (t1 + t2)^2 and twice the sum over values of (w a)^2), t1 and t2 the sub-block's parts of the
 * sum. Roundings of a row's scales are shared by all its tokens, so few of them decide a small
 * shape: the limit is 24 times E, five standard deviations for a single output.
 */
#ifndef KERNELS_BF16_CLASS_H
#define KERNELS_BF16_CLASS_H

#include "kernels/family.h"

/* Limits from ref->abs and ref->square, which widen() filled. */
struct tolerance bf16_tolerance(const struct shape *s, const struct reference_value *ref);

/* See struct kernel_family.prepare_a; canonical = q8 chunks. Layouts: q8_chunk40 (as they are) and
 * bf16 (kernels/bf16.h). */
enum status bf16_prepare_a(const struct variant_desc *d, const struct shape *s,
                           const uint8_t *canonical, uint8_t **out, size_t *out_bytes);

/* Adds one sub-block of `len` values to the sums: weights s*q[i] + o, activations da*x[i]. */
void bf16_add_terms(const int *q, const int8_t *x, int len, double s, double o, double da,
                    struct reference_value *ref);

#endif
