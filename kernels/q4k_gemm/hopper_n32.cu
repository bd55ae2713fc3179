/*
 * hopper_n32: 32 tokens a tile, four warpgroups: unpacking is all that counts here.
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_n32_kd8, q4k, 4, 32, 8, 5, 2, 66) = HOPPER_DESC(
    hopper_n32_kd8, "q4k_gemm",
    "hopper_n64 with 32 tokens a tile and four warpgroups: unpacking is what counts here",
    "hopper_n64", "q4_k", 32, 2, 66, "landed: n 32 33.6 -> 26.8 us");
#endif
