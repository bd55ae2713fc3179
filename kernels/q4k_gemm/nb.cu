/*
 * nb: the weights stay raw nibbles in shared memory and are unpacked in registers, two blocks an
 * SM, with the loop over staged chunks fully unrolled.
 */
#include "kernels/q4k_gemm/nb.cuh"

#define NB(KD)                                                                                     \
    NB_RUNG(nb, KD, q4k::nb::knobs, "r29", "nb_rolled", "landed: +2.80%, int ALU -25%",            \
            "B stays raw nibbles in shared memory, unpacked in registers, KD loop "                \
            "unrolled; 2 blocks/SM")

NB(4);
NB(8);
