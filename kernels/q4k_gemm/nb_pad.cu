/*
 * nb_pad: nb with the rows of nibbles 144 bytes apart instead of 128: the eight rows of a
 * fragment then lie on eight different banks, where nb predicts an 8-way conflict on each read.
 */
#include "kernels/q4k_gemm/nb.cuh"

namespace
{
struct nb_pad_knobs : q4k::nb::knobs {
    enum { STRIDE = 144 };
};
} // namespace

#define NB_PAD(KD)                                                                                 \
    NB_RUNG(nb_pad, KD, nb_pad_knobs, "", "nb", "",                                                \
            "nb with the rows of nibbles 144 bytes apart, so that a fragment meets eight "         \
            "banks instead of one")

NB_PAD(4);
NB_PAD(8);
