/*
 * hopper_sync: the first form: two stages of 64 values and one super-block, so that copies and
 * products mostly take turns.
 */
#include "kernels/q4k_gemm/hopper_q4k.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_sync_kd8, q4k, 2, 128, 2, 1, 1,
              0) = HOPPER_DESC(hopper_sync_kd8, "q4k_gemm",
                               "weights unpacked to bf16 in registers, straight into wgmma; copies "
                               "and products mostly in turn",
                               "", "q4_k", 128, 1, 0, "");
#endif
