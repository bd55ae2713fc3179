/*
 * nb: the weights stay raw nibbles in shared memory and are unpacked in registers, two blocks an
 * SM, with the loop over staged chunks fully unrolled.
 */
#include "kernels/q4k_gemm/nb.cuh"

#define NB(KD)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
        nb_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)               \
    {                                                                                              \
        q4k::nb::body<KD, true>(q4k::args{w, a, y, m, n, k});                                      \
    }                                                                                              \
    VARIANT_DESC(nb_kd##KD) = {VARIANT_HEAD(nb_kd##KD),                                            \
                               .family = "q4k_gemm",                                               \
                               .note = "B stays raw nibbles in shared memory, unpacked in "        \
                                       "registers, KD loop unrolled; 2 blocks/SM",                 \
                               .parent = "nb_rolled",                                              \
                               .step = "r29",                                                      \
                               .numeric = "q8",                                                    \
                               .layout_a = "q8_chunk40",                                           \
                               .layout_b = "q4_k",                                                 \
                               .tile_m = 128,                                                      \
                               .tile_n = 64,                                                       \
                               .tile_k = 256,                                                      \
                               .kd = KD,                                                           \
                               .threads = 256,                                                     \
                               .min_blocks = 2,                                                    \
                               .min_sm = 80,                                                       \
                               NB_BUFFERS(KD)}

NB(4);
NB(8);
