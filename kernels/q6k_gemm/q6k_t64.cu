/*
 * q6k_t64: q6k_wide with 64 tokens a block and two blocks an SM.
 */
#include "kernels/q6k_gemm/q6k.cuh"

namespace
{
struct q6k_t64_knobs : q6k::knobs {
    enum { TOKENS = 64 };
};
} // namespace

#define Q6K_T64(KD)                                                                                \
    Q6K_RUNG(q6k_t64, KD, q6k_t64_knobs, 2, "q6k_wide",                                            \
             "q6k_wide with 64 tokens a block: two blocks/SM, half the accumulators")

Q6K_T64(4);
Q6K_T64(8);
