/*
 * hopper_even: 66 clusters share the super-blocks of all tiles evenly, partial sums added in a
 * fixed order.
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_even_kd8, q4k, 2, 128, 8, 4, 2, 66) = HOPPER_DESC(
    hopper_even_kd8, "q4k_gemm",
    "hopper_pair with the work dealt out evenly to 66 clusters, split tiles added in a fixed order",
    "hopper_pair", "q4_k", 128, 2, 66, "landed: n 128 94.3 -> 37.2 us");
#endif
