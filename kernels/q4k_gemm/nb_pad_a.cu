/*
 * nb_pad_a: nb_pad with the rows of activations 48 bytes apart instead of 32 as well. Eight rows of
 * 16 bytes that an ldmatrix reads at once then lie on all 32 banks once; 32 bytes apart they meet
 * each bank twice, which is what is left of nb_pad's conflicts.
 */
#include "kernels/q4k_gemm/nb.cuh"

namespace
{
struct nb_pad_a_knobs : q4k::nb::knobs {
    enum { STRIDE = 144, A_STRIDE = 48 };
};
} // namespace

#define NB_PAD_A(KD)                                                                               \
    NB_RUNG(nb_pad_a, KD, nb_pad_a_knobs, "", "nb_pad", "",                                        \
            "nb_pad with the activations' rows 48 bytes apart too: no read of a fragment meets "   \
            "a bank twice")

NB_PAD_A(4);
NB_PAD_A(8);
