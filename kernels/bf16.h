/*
 * bf16 activations in the order that wgmma reads them: the input of the hopper_* kernels.
 *
 * [k/64][ceil(n/8)][8 tokens][64 values], so that the 64 values of k of any run of tokens are one
 * run of bytes. A token's 64 values are 128 bytes; of each 16 values the even ones come first, then
 * the odd ones (a weight's neighbours in the A operand are then two nibbles 16 bits apart); piece c
 * of 8 values lies at c ^ (token % 8), the 128-byte swizzle. Tokens past n are zeros.
 *
 * bf16 = the upper half of an f32, rounded to nearest even; relative error at most 2^-8 of a normal
 * number. Pure functions, any thread.
 */
#ifndef KERNELS_BF16_H
#define KERNELS_BF16_H

#include <stddef.h>
#include <stdint.h>

enum { BF16_GROUP = 8, BF16_STEP = 64 };

/* Bytes of n tokens of k values; k a multiple of 64. */
static inline size_t bf16_bytes(int n, int k)
{
    size_t groups = ((size_t)n + BF16_GROUP - 1) / BF16_GROUP;
    return groups * BF16_GROUP * (size_t)k * 2;
}

/* Offset in bytes of a token's value `at` (0 .. k - 1). */
static inline size_t bf16_offset(int n, int token, int at)
{
    size_t groups = ((size_t)n + BF16_GROUP - 1) / BF16_GROUP;
    size_t group = (size_t)(at / BF16_STEP) * groups + (size_t)(token / BF16_GROUP);
    int row = token % BF16_GROUP, in = at % BF16_STEP;
    int piece = in / 16 * 2 + (in & 1), place = in % 16 / 2;
    return (group * BF16_GROUP + (size_t)row) * 128 + (size_t)((piece ^ row) * 16 + place * 2);
}

/* NaN stays NaN. */
uint16_t f32_to_bf16(float f);
float bf16_to_f32(uint16_t h);

/* x[k] of one token into its places of out[bf16_bytes(n, k)]. */
void bf16_put_row(const float *x, int n, int token, int k, uint8_t *out);

#endif
