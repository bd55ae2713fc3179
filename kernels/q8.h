/*
 * Quantised activations: raw q8 chunks, the input of every q8 kernel and of the CPU engine.
 *
 * A chunk is 40 bytes for 32 values, little endian: f16 scale `da` at 0, two zero bytes, int8
 * values at 4..35, int32 sum of the values at 36. A row of k values (k a multiple of 32) is k/32
 * chunks one after the other. Pure functions, any thread.
 *
 * The scale is rounded to f16 before the values are made, so that dequantising with the stored
 * scale has no second error:
 *   da = f16(amax / 127), q = rint(x / da) clamped to +-127, sa = sum of q.
 * The GPU kernel does the same in f32 (IEEE division, round to nearest even): equal bytes.
 */
#ifndef KERNELS_Q8_H
#define KERNELS_Q8_H

#include <stddef.h>
#include <stdint.h>

enum { Q8_CHUNK = 32, Q8_CHUNK_BYTES = 40, Q8_QUANTS = 4, Q8_SUM = 36 };

/* Bytes of a row of k values. */
static inline size_t q8_row_bytes(int k)
{
    return (size_t)(k / Q8_CHUNK) * Q8_CHUNK_BYTES;
}

/* x[k] -> chunks[q8_row_bytes(k)]; k a multiple of 32. Infinities count as the largest f16 scale,
 * NaNs as 0. A chunk whose scale rounds to 0 holds zeros. */
void q8_quantize_row(const float *x, int k, uint8_t *chunks);

/* chunks -> x[k], da * q. */
void q8_dequantize_row(const uint8_t *chunks, int k, float *x);

/* Writes one chunk from its parts; the sum is computed. */
void q8_put_chunk(uint8_t *chunk, uint16_t da, const int8_t q[Q8_CHUNK]);

#endif
