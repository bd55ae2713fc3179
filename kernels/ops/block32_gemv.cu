/*
 * block32_gemv: Q4_1, Q5_0 and Q8_0 weights against up to eight tokens by dp4a. A warp a row, a
 * lane a word of quants, so that a warp reads four (Q8_0) or eight blocks at once without gaps.
 * Arguments: const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k.
 */
#include "kernels/ops/block32.cuh"

enum { WARPS = 4 };

template <class T>
static __device__ __forceinline__ float dot(const uint32_t v[2], float2 ds, int j,
                                            const uint32_t *chunk)
{
    int c = __dp4a((int)v[0], (int)chunk[1 + j], 0);
    if (T::HALVES) c = __dp4a((int)v[1], (int)chunk[1 + 4 + j], c);
    float da = ops::half_bits(chunk[0] & 0xffff), sum = da * ds.x * (float)c;
    if (T::HAS_MIN && j == 0) sum += da * (float)(int)chunk[9] * ds.y;
    return sum;
}

template <class T>
static __device__ __forceinline__ void body(const uint8_t *__restrict__ w,
                                            const uint8_t *__restrict__ chunks,
                                            float *__restrict__ y, int m, int n, int k)
{
    int lane = threadIdx.x & 31, row = blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (row >= m) return;
    int j = lane % T::WORDS, blocks = k / 32;
    const uint8_t *wr = w + (size_t)row * blocks * T::BYTES;
    const uint32_t *a = (const uint32_t *)chunks;
    float acc[OPS_GEMV_MAX] = {};
    for (int b = lane / T::WORDS; b < blocks; b += 32 / T::WORDS) {
        uint32_t v[2];
        T::part(wr + (size_t)b * T::BYTES, j, v);
        float2 ds = T::scale(wr + (size_t)b * T::BYTES);
#pragma unroll
        for (int t = 0; t < OPS_GEMV_MAX; t++) {
            if (t >= n) break;
            acc[t] += dot<T>(v, ds, j, a + ((size_t)t * blocks + b) * ops::CHUNK_WORDS);
        }
    }
#pragma unroll
    for (int t = 0; t < OPS_GEMV_MAX; t++) {
        float sum = ops::warp_sum(acc[t]);
        if (lane == 0 && t < n) y[(size_t)t * m + row] = sum;
    }
}

#define GEMV(TYPE)                                                                                 \
    extern "C" __global__ void __launch_bounds__(WARPS * 32) block32_gemv_##TYPE(                  \
        const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k)                    \
    {                                                                                              \
        body<ops::TYPE>(w, chunks, y, m, n, k);                                                    \
    }                                                                                              \
    VARIANT_DESC(block32_gemv_##TYPE) = {                                                          \
        VARIANT_HEAD(block32_gemv_##TYPE),                                                         \
        .family = "ops",                                                                           \
        .note = "dp4a, a warp a row, a lane a word of quants, up to 8 tokens",                     \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = #TYPE,                                                                         \
        .tile_m = WARPS,                                                                           \
        .tile_n = OPS_GEMV_MAX,                                                                    \
        .threads = WARPS * 32,                                                                     \
        .min_sm = 80}

GEMV(q4_1);
GEMV(q5_0);
GEMV(q8_0);
