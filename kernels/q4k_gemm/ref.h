/*
 * Q4_K times q8 chunks on the CPU: the format, the integer dots, and the sum they enter.
 *
 * Header-only so that the CPU engine compiles the same arithmetic at its own optimisation level.
 * Pure; any thread. Format: a super-block of 256 weights is 144 bytes: d f16,
 * dmin f16, 12 bytes with eight 6-bit scales and eight 6-bit mins, 128 bytes of nibbles; bytes
 * 32p..32p+31 hold sub-block 2p in their low and 2p+1 in their high halves.
 * weight = d * sc * q - dmin * m.
 *
 * Per chunk (32 values):  da*dsv*clow + da*sa*dmv,  dsv = d*sc, dmv = -dmin*m, clow the integer
 * dot. dsv and dmv are exact in f32 (11-bit times 6-bit significands).
 */
#ifndef KERNELS_Q4K_GEMM_REF_H
#define KERNELS_Q4K_GEMM_REF_H

#include "kernels/f16.h"
#include "kernels/q8.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { Q4K_BLOCK = 256, Q4K_BLOCK_BYTES = 144, Q4K_SUBS = 8, Q4K_SCALES = 4, Q4K_NIBBLES = 16 };

static inline size_t q4k_row_bytes(int k)
{
    return (size_t)(k / Q4K_BLOCK) * Q4K_BLOCK_BYTES;
}

/* The 6-bit scale and min of sub-block j from the 12 packed bytes. */
static inline void q4k_scale_min(const uint8_t *packed, int j, int *sc, int *m)
{
    if (j < 4) {
        *sc = packed[j] & 63;
        *m = packed[j + 4] & 63;
    } else {
        *sc = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
        *m = packed[j + 4] >> 4 | (packed[j] >> 6) << 4;
    }
}

/* Packs eight scales and eight mins (0..63) into 12 bytes: the inverse of q4k_scale_min. */
static inline void q4k_pack_scales(uint8_t *packed, const uint8_t sc[8], const uint8_t m[8])
{
    for (int j = 0; j < 4; j++) {
        packed[j] = (uint8_t)((sc[j] & 63) | (sc[j + 4] >> 4 & 3) << 6);
        packed[j + 4] = (uint8_t)((m[j] & 63) | (m[j + 4] >> 4 & 3) << 6);
        packed[j + 8] = (uint8_t)((sc[j + 4] & 15) | (m[j + 4] & 15) << 4);
    }
}

/* Integer dot of sub-block j (32 nibbles of a super-block) with a chunk's 32 int8 values. */
static inline int32_t q4k_dot_sub(const uint8_t *nibbles, int j, const uint8_t *chunk)
{
    const uint8_t *w = nibbles + (j >> 1) * 32;
    const int8_t *q = (const int8_t *)chunk + Q8_QUANTS;
    int shift = (j & 1) * 4;
    int32_t sum = 0;
    for (int i = 0; i < 32; i++) sum += (w[i] >> shift & 15) * q[i];
    return sum;
}

/* One output element in f32, chunk by chunk, in the kernels' order. Weights of one row
 * (q4k_row_bytes(k)), activations of one token (q8_row_bytes(k)), k a multiple of 256. */
static inline float q4k_dot_chunked(const uint8_t *row, const uint8_t *chunks, int k)
{
    float sum = 0;
    for (int b = 0; b < k / Q4K_BLOCK; b++, row += Q4K_BLOCK_BYTES) {
        float d = f16_to_f32(f16_load(row)), dmin = f16_to_f32(f16_load(row + 2));
        for (int j = 0; j < Q4K_SUBS; j++, chunks += Q8_CHUNK_BYTES) {
            int sc, m;
            int32_t sa;
            q4k_scale_min(row + Q4K_SCALES, j, &sc, &m);
            memcpy(&sa, chunks + Q8_SUM, 4);
            float da = f16_to_f32(f16_load(chunks));
            float clow = (float)q4k_dot_sub(row + Q4K_NIBBLES, j, chunks);
            sum += da * (d * (float)sc) * clow;
            sum += da * (float)sa * -(dmin * (float)m);
        }
    }
    return sum;
}

/* The same integer dots combined in double; *mag gets the sum of the terms' absolute values.
 * `mag` may be NULL. */
static inline double q4k_dot_exact(const uint8_t *row, const uint8_t *chunks, int k, double *mag)
{
    double sum = 0, abs_sum = 0;
    for (int b = 0; b < k / Q4K_BLOCK; b++, row += Q4K_BLOCK_BYTES) {
        double d = f16_to_f32(f16_load(row)), dmin = f16_to_f32(f16_load(row + 2));
        for (int j = 0; j < Q4K_SUBS; j++, chunks += Q8_CHUNK_BYTES) {
            int sc, m;
            int32_t sa;
            q4k_scale_min(row + Q4K_SCALES, j, &sc, &m);
            memcpy(&sa, chunks + Q8_SUM, 4);
            double da = f16_to_f32(f16_load(chunks));
            double t1 = da * d * sc * q4k_dot_sub(row + Q4K_NIBBLES, j, chunks);
            double t2 = -(da * sa * dmin * m);
            sum += t1 + t2;
            abs_sum += (t1 < 0 ? -t1 : t1) + (t2 < 0 ? -t2 : t2);
        }
    }
    if (mag) *mag = abs_sum;
    return sum;
}

/* One super-block's weights as floats. */
static inline void q4k_dequantize_block(const uint8_t *block, float out[Q4K_BLOCK])
{
    float d = f16_to_f32(f16_load(block)), dmin = f16_to_f32(f16_load(block + 2));
    for (int j = 0; j < Q4K_SUBS; j++) {
        int sc, m;
        q4k_scale_min(block + Q4K_SCALES, j, &sc, &m);
        const uint8_t *w = block + Q4K_NIBBLES + (j >> 1) * 32;
        for (int i = 0; i < 32; i++)
            out[j * 32 + i] = d * (float)sc * (float)(w[i] >> ((j & 1) * 4) & 15) - dmin * (float)m;
    }
}

#endif
