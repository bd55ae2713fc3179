/*
 * nb_qmajor: nb with the activations' scales repacked: a token pair's scales of all staged chunks
 * lie side by side, so that one 16-byte read serves two chunks.
 */
#include "kernels/q4k_gemm/nb.cuh"

namespace
{
struct nb_qmajor_knobs : q4k::nb::knobs {
    static const bool Q_MAJOR = true;
};
} // namespace

#define NB_QMAJOR(KD)                                                                              \
    NB_RUNG(nb_qmajor, KD, nb_qmajor_knobs, "r31", "nb", "",                                       \
            "nb with a token pair's scales of all chunks side by side: one 16-byte read "          \
            "serves two chunks")

NB_QMAJOR(4);
NB_QMAJOR(8);
