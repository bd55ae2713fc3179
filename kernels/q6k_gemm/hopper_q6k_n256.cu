/*
 * hopper_q6k_n256: 256 tokens a tile; see kernels/q4k_gemm/hopper.cuh.
 */
#include "kernels/q6k_gemm/hopper_q6k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_q6k_n256_kd8, q6k, 2, 256, 4, 3, 2, 66) = HOPPER_DESC(
    hopper_q6k_n256_kd8, "q6k_gemm",
    "Q6_K unpacked to bf16 in registers, straight into wgmma; work dealt out evenly to 66 clusters",
    "", "q6_k", 256, 2, 66, "landed");
#endif
