/*
 * wide_prefold: wide with one ldmatrix.x4 for the B fragments of 16 rows, and the min term still
 * multiplied out for every C value.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{
struct wide_prefold_knobs : q4k::wide::knobs {
    static const bool FOLD = false;
};
} // namespace

#define WIDE_PREFOLD(KD)                                                                           \
    WIDE_RUNG(wide_prefold, KD, wide_prefold_knobs, "q4_k", "r14", "wide_lds",                     \
              "landed: +18.5 to 30% on GB10",                                                      \
              "wide before the fold: the min term is multiplied out for every C value")

WIDE_PREFOLD(4);
WIDE_PREFOLD(8);
