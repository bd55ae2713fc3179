/*
 * q6k_prefold: 128 x 128 tile as the Q4_K family's wide, with the 32 taken off every weight as it
 * is expanded. What the fold starts from.
 */
#include "kernels/q6k_gemm/q6k.cuh"

namespace
{
struct q6k_prefold_knobs : q6k::knobs {
    static const bool FOLD = false;
};
} // namespace

#define Q6K_PREFOLD(KD)                                                                            \
    Q6K_RUNG(q6k_prefold, KD, q6k_prefold_knobs, 1, "q6k_gemm",                                    \
             "128x128 tile, B expanded to int8 with the 32 taken off every weight, before "        \
             "the fold")

Q6K_PREFOLD(4);
Q6K_PREFOLD(8);
