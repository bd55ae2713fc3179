/*
 * hopper_q6k_n128: 128 tokens a tile, three warpgroups.
 */
#include "kernels/q6k_gemm/hopper_q6k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_q6k_n128_kd8, q6k, 3, 128, 6, 2, 2,
              66) = HOPPER_DESC(hopper_q6k_n128_kd8, "q6k_gemm",
                                "hopper_q6k_n256 with 128 tokens a tile and three warpgroups",
                                "hopper_q6k_n256", "q6_k", 128, 2, 66,
                                "landed: n 128 59.7 -> 48.9 us");
#endif
