/*
 * narrow: direct reads of raw 40-byte activation chunks, with the min term folded once per token
 * row. The control of every experiment and what the launcher falls back to.
 */
#include "kernels/q4k_gemm/narrow.cuh"

#define NARROW(KD)                                                                                 \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
        narrow_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)           \
    {                                                                                              \
        q4k::narrow::body<KD, true>(q4k::args{w, a, y, m, n, k});                                  \
    }                                                                                              \
    VARIANT_DESC(narrow_kd##KD) = {VARIANT_HEAD(narrow_kd##KD),                                    \
                                   .family = "q4k_gemm",                                           \
                                   .note = "direct reads of raw 40-byte chunks, da*sa folded "     \
                                           "once per token row; fallback and control",             \
                                   .parent = "narrow_prefold",                                     \
                                   .step = "r16",                                                  \
                                   .numeric = "q8",                                                \
                                   .layout_a = "q8_chunk40",                                       \
                                   .layout_b = "q4_k",                                             \
                                   .tile_m = 64,                                                   \
                                   .tile_n = 64,                                                   \
                                   .tile_k = 256,                                                  \
                                   .kd = KD,                                                       \
                                   .threads = 256,                                                 \
                                   .min_blocks = 2,                                                \
                                   .min_sm = 80,                                                   \
                                   .flags = VARIANT_FALLBACK,                                      \
                                   NARROW_BUFFERS(KD),                                             \
                                   .verdict = "landed: control valid again"}

NARROW(4);
NARROW(8);
