/*
 * broken_barrier: wrong on purpose. No barrier between staging and reading shared memory:
 * results differ from run to run.
 */
#include "kernels/q4k_gemm/narrow.cuh"

namespace
{
struct broken : q4k::sound {
    static __device__ __forceinline__ void barrier() {}
};
} // namespace

extern "C" __global__ void __launch_bounds__(256, 2)
    broken_barrier_kd8(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)
{
    q4k::narrow::body<8, true, broken>(q4k::args{w, a, y, m, n, k});
}

VARIANT_DESC(broken_barrier_kd8) = {VARIANT_HEAD(broken_barrier_kd8),
                                    .family = "q4k_gemm",
                                    .note = "no barrier between staging and reading shared memory",
                                    .parent = "narrow",
                                    .step = "",
                                    .numeric = "q8",
                                    .layout_a = "q8_chunk40",
                                    .layout_b = "q4_k",
                                    .expect = "race",
                                    .tile_m = 64,
                                    .tile_n = 64,
                                    .tile_k = 256,
                                    .kd = 8,
                                    .threads = 256,
                                    .min_blocks = 2,
                                    .min_sm = 80,
                                    .flags = VARIANT_BROKEN,
                                    NARROW_BUFFERS(8)};
