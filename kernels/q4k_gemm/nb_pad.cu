/*
 * nb_pad: nb with the rows of nibbles 144 bytes apart instead of 128: the eight rows of a
 * fragment then lie on eight different banks, where nb predicts an 8-way conflict on each read.
 */
#include "kernels/q4k_gemm/nb.cuh"

#define NB_PAD(KD)                                                                                 \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
        nb_pad_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)           \
    {                                                                                              \
        q4k::nb::body<KD, true, 144>(q4k::args{w, a, y, m, n, k});                                 \
    }                                                                                              \
    VARIANT_DESC(nb_pad_kd##KD) = {VARIANT_HEAD(nb_pad_kd##KD),                                    \
                                   .family = "q4k_gemm",                                           \
                                   .note = "nb with the rows of nibbles 144 bytes apart, so that " \
                                           "a fragment meets eight banks instead of one",          \
                                   .parent = "nb",                                                 \
                                   .step = "",                                                     \
                                   .numeric = "q8",                                                \
                                   .layout_a = "q8_chunk40",                                       \
                                   .layout_b = "q4_k",                                             \
                                   .tile_m = 128,                                                  \
                                   .tile_n = 64,                                                   \
                                   .tile_k = 256,                                                  \
                                   .kd = KD,                                                       \
                                   .threads = 256,                                                 \
                                   .min_blocks = 2,                                                \
                                   .min_sm = 80,                                                   \
                                   NB_BUFFERS_AT(KD, 144)}

NB_PAD(4);
NB_PAD(8);
