/*
 * hopper_sync: the first form: one stage, so that copies and products take turns.
 */
#include "kernels/q4k_gemm/hopper.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_sync_kd8, q4k, 128, 2, 1, 1, 1,
              1) = HOPPER_DESC(hopper_sync_kd8, "q4k_gemm",
                               "weights unpacked to bf16 in registers, straight into wgmma; one "
                               "stage, copies and products in turn",
                               "", "q4_k", 128, 1, 1, 1);
#endif
