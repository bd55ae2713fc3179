/*
 * hopper_n128: three warpgroups of 64 rows: two keep the tensor cores busy while one unpacks.
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_n128_kd8, q4k, 3, 128, 6, 4, 2, 66) =
    HOPPER_DESC(hopper_n128_kd8, "q4k_gemm",
                "hopper_even with three warpgroups, so that two multiply while one unpacks",
                "hopper_even", "q4_k", 128, 2, 66, "reverted: n 128 37.2 -> 44.8");
#endif
