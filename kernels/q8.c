/* Activation chunks; see q8.h for the format and the rule that the GPU kernel must match. */
#include "kernels/q8.h"

#include "kernels/f16.h"

#include <math.h>
#include <string.h>

static const float F16_MAX = 65504.0f;

void q8_put_chunk(uint8_t *chunk, uint16_t da, const int8_t q[Q8_CHUNK])
{
    int32_t sum = 0;
    for (int i = 0; i < Q8_CHUNK; i++) sum += q[i];
    f16_store(chunk, da);
    chunk[2] = chunk[3] = 0;
    memcpy(chunk + Q8_QUANTS, q, Q8_CHUNK);
    memcpy(chunk + Q8_SUM, &sum, 4);
}

static void quantize_chunk(const float *x, uint8_t *chunk)
{
    float amax = 0;
    for (int i = 0; i < Q8_CHUNK; i++) {
        float a = fabsf(x[i]);
        if (a > amax) amax = a; /* a NaN compares false */
    }
    float scale = amax / 127.0f;
    if (scale > F16_MAX) scale = F16_MAX;
    uint16_t h = f32_to_f16(scale);
    float da = f16_to_f32(h);
    int8_t q[Q8_CHUNK] = {0};
    for (int i = 0; i < Q8_CHUNK && da > 0; i++) {
        float v = rintf(x[i] / da);
        if (!(v >= -127.0f)) v = isnan(v) ? 0.0f : -127.0f;
        if (v > 127.0f) v = 127.0f;
        q[i] = (int8_t)v;
    }
    q8_put_chunk(chunk, h, q);
}

void q8_quantize_row(const float *x, int k, uint8_t *chunks)
{
    for (int c = 0; c < k / Q8_CHUNK; c++)
        quantize_chunk(x + (size_t)c * Q8_CHUNK, chunks + (size_t)c * Q8_CHUNK_BYTES);
}

void q8_dequantize_row(const uint8_t *chunks, int k, float *x)
{
    for (int i = 0; i < k; i++) {
        const uint8_t *chunk = chunks + (size_t)(i / Q8_CHUNK) * Q8_CHUNK_BYTES;
        x[i] = f16_to_f32(f16_load(chunk)) * (float)(int8_t)chunk[Q8_QUANTS + i % Q8_CHUNK];
    }
}
