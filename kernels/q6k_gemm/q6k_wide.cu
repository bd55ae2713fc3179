/*
 * q6k_wide: q6k_prefold with the fold: sums start at -32 times the sum of a token's 16 values, once
 * a token row, so that nothing is taken off the weights.
 */
#include "kernels/q6k_gemm/q6k.cuh"

#define Q6K_WIDE(KD)                                                                               \
    Q6K_RUNG(q6k_wide, KD, q6k::knobs, 1, "q6k_prefold",                                           \
             "the fold for Q6_K: sums start at -32 times the token's sum, so nothing is "          \
             "taken off each weight")

Q6K_WIDE(4);
Q6K_WIDE(8);
