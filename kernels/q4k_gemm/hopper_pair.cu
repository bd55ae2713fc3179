/*
 * hopper_pair: two blocks of neighbouring rows share the activations, each fetching half for both.
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_pair_kd8, q4k, 2, 128, 8, 4, 2, 0) =
    HOPPER_DESC(hopper_pair_kd8, "q4k_gemm",
                "hopper_ring in clusters of two that share the activations by multicast",
                "hopper_ring", "q4_k", 128, 2, 0, "landed");
#endif
