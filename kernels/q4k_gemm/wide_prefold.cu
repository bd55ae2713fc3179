/*
 * wide_prefold: wide with one ldmatrix.x4 for the B fragments of 16 rows, and the min term still
 * multiplied out for every C value.
 */
#include "kernels/q4k_gemm/wide.cuh"

#define WIDE_PREFOLD(KD)                                                                           \
    extern "C" __global__ void __launch_bounds__(256, 1)                                           \
        wide_prefold_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)     \
    {                                                                                              \
        q4k::wide::body<KD, 8, 1, true, false>(q4k::args{w, a, y, m, n, k});                       \
    }                                                                                              \
    VARIANT_DESC(wide_prefold_kd##KD) = {                                                          \
        VARIANT_HEAD(wide_prefold_kd##KD),                                                         \
        .family = "q4k_gemm",                                                                      \
        .note = "wide before the fold: the min term is multiplied out for every C value",          \
        .parent = "wide_lds",                                                                      \
        .step = "r14",                                                                             \
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

WIDE_PREFOLD(4);
WIDE_PREFOLD(8);
