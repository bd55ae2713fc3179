/*
 * wide_lds: wide with the B fragments read by plain 4-byte shared loads, before ldmatrix and
 * before the fold.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{
struct wide_lds_knobs : q4k::wide::knobs {
    static const bool LDSM_B = false, FOLD = false;
};
} // namespace

#define WIDE_LDS(KD)                                                                               \
    WIDE_RUNG(wide_lds, KD, wide_lds_knobs, "q4_k", "r12", "wide_r7",                              \
              "landed: one buffer fits 99 KB",                                                     \
              "wide with the B fragments by plain 4-byte shared loads, before ldmatrix and "       \
              "fold")

WIDE_LDS(4);
WIDE_LDS(8);
