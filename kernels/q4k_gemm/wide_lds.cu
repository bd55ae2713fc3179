/*
 * wide_lds: wide with the B fragments read by plain 4-byte shared loads, before ldmatrix and
 * before the fold.
 */
#include "kernels/q4k_gemm/wide.cuh"

#define WIDE_LDS(KD)                                                                               \
    extern "C" __global__ void __launch_bounds__(256, 1)                                           \
        wide_lds_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)         \
    {                                                                                              \
        q4k::wide::body<KD, 8, 1, false, false>(q4k::args{w, a, y, m, n, k});                      \
    }                                                                                              \
    VARIANT_DESC(wide_lds_kd##KD) = {                                                              \
        VARIANT_HEAD(wide_lds_kd##KD),                                                             \
        .family = "q4k_gemm",                                                                      \
        .note =                                                                                    \
            "wide with the B fragments by plain 4-byte shared loads, before ldmatrix and fold",    \
        .parent = "",                                                                              \
        .step = "r12",                                                                             \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = "q4_k",                                                                        \
        .tile_m = 128,                                                                             \
        .tile_n = 128,                                                                             \
        .tile_k = 256,                                                                             \
        .kd = KD,                                                                                  \
        .threads = 256,                                                                            \
        .min_blocks = 1,                                                                           \
        .min_sm = 80,                                                                              \
        WIDE_BUFFERS(KD)}

WIDE_LDS(4);
WIDE_LDS(8);
