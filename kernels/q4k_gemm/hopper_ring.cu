/*
 * hopper_ring: eight stages of activations and four of weights, filled while the tensor cores work.
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_ring_kd8, q4k, 2, 128, 8, 4, 1, 0) =
    HOPPER_DESC(hopper_ring_kd8, "q4k_gemm",
                "hopper_sync with stages enough that copies run beside the tensor cores",
                "hopper_sync", "q4_k", 128, 1, 0, "landed");
#endif
