/*
 * nb_rolled: nb with the loop over staged chunks rolled: chunks 2p and 2p + 1 use the same words of
 * nibbles, but in different iterations, so each reads them itself.
 */
#include "kernels/q4k_gemm/nb.cuh"

namespace
{
struct nb_rolled_knobs : q4k::nb::knobs {
    static const bool UNROLL = false;
};
} // namespace

#define NB_ROLLED(KD)                                                                              \
    NB_RUNG(nb_rolled, KD, nb_rolled_knobs, "r28", "wide", "landed: 2 blocks/SM",                  \
            "nb with the KD loop rolled: each chunk reads its own nibble words")

NB_ROLLED(4);
NB_ROLLED(8);
