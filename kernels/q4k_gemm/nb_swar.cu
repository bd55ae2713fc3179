/*
 * nb_swar: nb with the sharing of words written out: an even chunk reads a word of nibbles, uses
 * the low ones and carries the high ones to the odd chunk.
 */
#include "kernels/q4k_gemm/nb.cuh"

namespace
{
struct nb_swar_knobs : q4k::nb::knobs {
    static const bool CARRY = true;
};
} // namespace

#define NB_SWAR(KD)                                                                                \
    NB_RUNG(nb_swar, KD, nb_swar_knobs, "r30", "nb", "reverted: noise; SASS had it",               \
            "nb with the word sharing written out: even chunks read a word and carry its "         \
            "high nibbles to the odd chunk")

NB_SWAR(4);
NB_SWAR(8);
