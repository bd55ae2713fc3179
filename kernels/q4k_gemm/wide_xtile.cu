/*
 * wide_xtile: 256 tokens x 128 rows a block: weights are read half as often. 32 accumulator chains
 * a warp instead of 16. KD 8 needs 139,264 bytes of shared memory.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{
struct wide_xtile_knobs : q4k::wide::knobs {
    enum { TOKENS = 256, PAIRS = 2 };
};
} // namespace

#define WIDE_XTILE(KD)                                                                             \
    WIDE_RUNG(wide_xtile, KD, wide_xtile_knobs, "q4_k", "", "wide",                                \
              "vetoed: traffic isn't the cost",                                                    \
              "256 tokens x 128 rows a block: each weight byte fetched half as often, 32 "         \
              "chains a warp")

WIDE_XTILE(4);
WIDE_XTILE(8);
