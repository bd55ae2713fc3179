/*
 * block32_gemm: Q4_1, Q5_0 and Q8_0 weights against many tokens on int8 tensor cores.
 * Arguments: const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k.
 */
#include "kernels/ops/block32.cuh"
#include "kernels/ops/qgemm.cuh"

/* The format of ops/block32.cuh as qgemm wants it. */
template <class T> struct whole {
    enum { SPLIT = 0, HAS_MIN = T::HAS_MIN };
    static __device__ __forceinline__ float2 expand(const uint8_t *w, size_t row, int chunk,
                                                    int row_chunks, uint32_t v[8])
    {
        const uint8_t *b = w + (row * row_chunks + chunk) * T::BYTES;
#pragma unroll
        for (int j = 0; j < T::WORDS; j++) {
            uint32_t q[2];
            T::part(b, j, q);
            v[j] = q[0];
            if (T::HALVES) v[j + 4] = q[1];
        }
        return T::scale(b);
    }
};

#define GEMM(TYPE)                                                                                 \
    extern "C" __global__ void __launch_bounds__(ops::QG_THREADS) block32_gemm_##TYPE(             \
        const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k)                    \
    {                                                                                              \
        ops::qgemm<whole<ops::TYPE>>(w, chunks, y, m, n, k);                                       \
    }                                                                                              \
    VARIANT_DESC(block32_gemm_##TYPE) = {                                                          \
        VARIANT_HEAD(block32_gemm_##TYPE),                                                         \
        .family = "ops",                                                                           \
        .note = "int8 tensor cores, 64 x 64 tiles, weights expanded in shared memory",             \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = #TYPE,                                                                         \
        .tile_m = OPS_GEMM_TILE,                                                                   \
        .tile_n = OPS_GEMM_TILE,                                                                   \
        .tile_k = 128,                                                                             \
        .threads = ops::QG_THREADS,                                                                \
        .min_sm = 80}

GEMM(q4_1);
GEMM(q5_0);
GEMM(q8_0);
