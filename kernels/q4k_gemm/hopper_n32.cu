/*
 * hopper_n32: 32 tokens a tile, four warpgroups: unpacking is all that counts here. No pairs: the
 * activations are few, and blocks of their own start sooner (23.3 us instead of 24.4).
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_n32_kd8, q4k, 4, 32, 8, 5, 1, 132) = HOPPER_DESC(
    hopper_n32_kd8, "q4k_gemm",
    "hopper_n64 with 32 tokens a tile, four warpgroups and no pairs: unpacking is what counts here",
    "hopper_n64", "q4_k", 32, 1, 132, "landed: n 32 33.6 -> 23.3 us");
#endif
