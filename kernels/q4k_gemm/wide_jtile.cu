/*
 * wide_jtile: 128 tokens x 256 rows a block: activations are read half as often. Only KD sub-blocks
 * of the weights are staged at once, so that KD 4 fits in 99 KB; KD 8 needs 155,648 bytes.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{
struct wide_jtile_knobs : q4k::wide::knobs {
    enum { ROWS = 256, PAIRS = 2 };
    static const bool B_WHOLE = false;
};
} // namespace

#define WIDE_JTILE(KD)                                                                             \
    WIDE_RUNG(wide_jtile, KD, wide_jtile_knobs, "q4_k", "", "wide",                                \
              "vetoed: traffic isn't the cost",                                                    \
              "128 tokens x 256 rows a block: each activation fetched half as often, 32 "          \
              "chains a warp")

WIDE_JTILE(4);
WIDE_JTILE(8);
