/*
 * hopper_n32: 32 tokens a tile, k in eight parts, two blocks an SM.
 */
#include "kernels/q4k_gemm/hopper.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_n32_kd8, q4k, 32, 8, 4, 1, 8, 2) =
    HOPPER_DESC(hopper_n32_kd8, "q4k_gemm",
                "hopper_s4 with 32 tokens a tile, k in eight parts, two blocks an SM", "hopper_s4",
                "q4_k", 32, 1, 8, 2);
#endif
