/*
 * hopper_s4: four blocks of a cluster take a quarter of k each and add their sums through shared
 * memory.
 */
#include "kernels/q4k_gemm/hopper.cuh"

#ifdef HOPPER_KERNEL
HOPPER_KERNEL(hopper_s4_kd8, q4k, 128, 8, 4, 1, 4,
              1) = HOPPER_DESC(hopper_s4_kd8, "q4k_gemm",
                               "hopper_ring with k split over a cluster of four, for few tokens",
                               "hopper_ring", "q4_k", 128, 1, 4, 1);
#endif
