/*
 * hopper_q6k_n32: 32 tokens a tile, four warpgroups.
 */
#include "kernels/q6k_gemm/hopper_q6k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_q6k_n32_kd8, q6k, 4, 32, 8, 3, 2,
              66) = HOPPER_DESC(hopper_q6k_n32_kd8, "q6k_gemm",
                                "hopper_q6k_n128 with 32 tokens a tile and four warpgroups",
                                "hopper_q6k_n128", "q6_k", 32, 2, 66,
                                "landed: n 32 56.0 -> 35.6 us");
#endif
