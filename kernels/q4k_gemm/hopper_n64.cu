/*
 * hopper_n64: 64 tokens a tile.
 */
#include "kernels/q4k_gemm/hopper.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_n64_kd8, q4k, 64, 8, 4, 1, 4,
              1) = HOPPER_DESC(hopper_n64_kd8, "q4k_gemm", "hopper_s4 with 64 tokens a tile",
                               "hopper_s4", "q4_k", 64, 1, 4, 1);
#endif
