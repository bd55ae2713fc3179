/*
 * hopper_n256: 256 tokens a tile: a weight is unpacked half as often.
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_n256_kd8, q4k, 2, 256, 4, 4, 2, 66) =
    HOPPER_DESC(hopper_n256_kd8, "q4k_gemm",
                "hopper_even with 256 tokens a tile: each weight is unpacked half as often",
                "hopper_even", "q4_k", 256, 2, 66, "landed: n 512 114 -> 103 us");
#endif
