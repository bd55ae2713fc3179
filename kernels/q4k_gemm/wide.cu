/*
 * wide: 128 x 128 tile with the weights expanded to int8 in shared memory; B fragments by one
 * ldmatrix.x4, and the min term folded once per token row.
 */
#include "kernels/q4k_gemm/wide.cuh"

#define WIDE(KD)                                                                                   \
    extern "C" __global__ void __launch_bounds__(256, 1)                                           \
        wide_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)             \
    {                                                                                              \
        q4k::wide::body<KD, 8, 1, true, true>(q4k::args{w, a, y, m, n, k});                        \
    }                                                                                              \
    VARIANT_DESC(wide_kd##KD) = {VARIANT_HEAD(wide_kd##KD),                                        \
                                 .family = "q4k_gemm",                                             \
                                 .note = "128x128 tile, B expanded to int8, B fragments by one "   \
                                         "ldmatrix.x4, da*sa folded per token row",                \
                                 .parent = "wide_prefold",                                         \
                                 .step = "r15",                                                    \
                                 .numeric = "q8",                                                  \
                                 .layout_a = "q8_chunk40",                                         \
                                 .layout_b = "q4_k",                                               \
                                 .tile_m = 128,                                                    \
                                 .tile_n = 128,                                                    \
                                 .tile_k = 256,                                                    \
                                 .kd = KD,                                                         \
                                 .threads = 256,                                                   \
                                 .min_blocks = 1,                                                  \
                                 .min_sm = 80,                                                     \
                                 WIDE_BUFFERS(KD)}

WIDE(4);
WIDE(8);
