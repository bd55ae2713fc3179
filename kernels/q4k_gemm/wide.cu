/*
 * wide: 128 x 128 tile with the weights expanded to int8 in shared memory; B fragments by one
 * ldmatrix.x4, and the min term folded once per token row.
 */
#include "kernels/q4k_gemm/wide.cuh"

#define WIDE(KD)                                                                                   \
    WIDE_RUNG(wide, KD, q4k::wide::knobs, "q4_k", "r15", "wide_prefold",                           \
              "landed: inst/GMAC 9.45 -> 8.69",                                                    \
              "128x128 tile, B expanded to int8, B fragments by one ldmatrix.x4, da*sa "           \
              "folded per token row")

WIDE(4);
WIDE(8);
