/*
 * nb_rolled: nb with the loop over staged chunks left rolled, so that each chunk reads its own
 * words of nibbles.
 */
#include "kernels/q4k_gemm/nb.cuh"

#define NB_ROLLED(KD)                                                                              \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
        nb_rolled_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)        \
    {                                                                                              \
        q4k::nb::body<KD, false>(q4k::args{w, a, y, m, n, k});                                     \
    }                                                                                              \
    VARIANT_DESC(nb_rolled_kd##KD) = {                                                             \
        VARIANT_HEAD(nb_rolled_kd##KD),                                                            \
        .family = "q4k_gemm",                                                                      \
        .note = "nb with the KD loop rolled: each chunk reads its own nibble words",               \
        .parent = "wide",                                                                          \
        .step = "r28",                                                                             \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = "q4_k",                                                                        \
        .tile_m = 128,                                                                             \
        .tile_n = 64,                                                                              \
        .tile_k = 256,                                                                             \
        .kd = KD,                                                                                  \
        .threads = 256,                                                                            \
        .min_blocks = 2,                                                                           \
        .min_sm = 80,                                                                              \
        NB_BUFFERS(KD)}

NB_ROLLED(4);
NB_ROLLED(8);
