/*
 * wide_32x64: wide with each warp on 32 rows x 64 tokens instead of 16 x 128: 4 A and 2 B
 * ldmatrix.x4 a chunk instead of 8 and 1, the same 16 chains.
 */
#include "kernels/q4k_gemm/wide.cuh"

#define WIDE_32X64(KD)                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 1)                                           \
        wide_32x64_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)       \
    {                                                                                              \
        q4k::wide::body<KD, 4, 2, true, true>(q4k::args{w, a, y, m, n, k});                        \
    }                                                                                              \
    VARIANT_DESC(wide_32x64_kd##KD) = {VARIANT_HEAD(wide_32x64_kd##KD),                            \
                                       .family = "q4k_gemm",                                       \
                                       .note =                                                     \
                                           "wide with warps of 32 rows x 64 tokens: LDSM.x4 72 "   \
                                           "-> 48 per block and chunk, nothing else changes",      \
                                       .parent = "wide",                                           \
                                       .step = "r17",                                              \
                                       .numeric = "q8",                                            \
                                       .layout_a = "q8_chunk40",                                   \
                                       .layout_b = "q4_k",                                         \
                                       .tile_m = 128,                                              \
                                       .tile_n = 128,                                              \
                                       .tile_k = 256,                                              \
                                       .kd = KD,                                                   \
                                       .threads = 256,                                             \
                                       .min_blocks = 1,                                            \
                                       .min_sm = 80,                                               \
                                       WIDE_BUFFERS(KD)}

WIDE_32X64(4);
WIDE_32X64(8);
