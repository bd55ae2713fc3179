/*
 * hopper_n64: 64 tokens a tile.
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_n64_kd8, q4k, 3, 64, 8, 5, 2,
              66) = HOPPER_DESC(hopper_n64_kd8, "q4k_gemm", "hopper_n128 with 64 tokens a tile",
                                "hopper_n128", "q4_k", 64, 2, 66, "reverted: n 128 37.2 -> 49.0");
#endif
