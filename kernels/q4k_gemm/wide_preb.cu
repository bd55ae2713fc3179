/*
 * wide_preb: the weights are expanded to int8 once, when they are loaded: 272 bytes a super-block
 * in memory instead of 144, and staging is a copy. The engine expands them by q4k_expand.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{
struct wide_preb_knobs : q4k::wide::knobs {
    static const bool INT8_B = true;
};
} // namespace

#define WIDE_PREB(KD)                                                                              \
    WIDE_RUNG(wide_preb, KD, wide_preb_knobs, "q4_k_int8", "r18", "wide", "",                      \
              "weights expanded to int8 once at load: no unpacking, 1.9 times the bytes "          \
              "from memory")

WIDE_PREB(4);
WIDE_PREB(8);
