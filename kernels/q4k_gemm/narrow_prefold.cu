/*
 * narrow_prefold: narrow before the fold; the min term da*dmv*sa is multiplied out for every C
 * value. The parent that shows what the fold takes away.
 */
#include "kernels/q4k_gemm/narrow.cuh"

#define NARROW_PREFOLD(KD)                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
        narrow_prefold_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)   \
    {                                                                                              \
        q4k::narrow::body<KD, false>(q4k::args{w, a, y, m, n, k});                                 \
    }                                                                                              \
    VARIANT_DESC(narrow_prefold_kd##KD) = {                                                        \
        VARIANT_HEAD(narrow_prefold_kd##KD),                                                       \
        .family = "q4k_gemm",                                                                      \
        .note = "narrow before the fold: da*dmv*sa is multiplied out for every C value",           \
        .parent = "mmq_r1",                                                                        \
        .step = "r15",                                                                             \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = "q4_k",                                                                        \
        .tile_m = 64,                                                                              \
        .tile_n = 64,                                                                              \
        .tile_k = 256,                                                                             \
        .kd = KD,                                                                                  \
        .threads = 256,                                                                            \
        .min_blocks = 2,                                                                           \
        .min_sm = 80,                                                                              \
        NARROW_BUFFERS(KD),                                                                        \
        .verdict = "superseded by narrow"}

NARROW_PREFOLD(4);
NARROW_PREFOLD(8);
