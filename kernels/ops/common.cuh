/*
 * What the operator kernels share: warp sums, f16 and unaligned reads, the descriptor's common
 * part.
 *
 * Blocks of 20 (Q4_1), 22 (Q5_0), 34 (Q8_0) and 210 (Q6_K) bytes lie at multiples of 2 or 4, so
 * wider reads go through load_u32(): two aligned words, shifted together. It may touch up to 3
 * bytes past the value: OPS_PAD bytes follow every tensor.
 */
#ifndef KERNELS_OPS_COMMON_CUH
#define KERNELS_OPS_COMMON_CUH

#include "kernels/early.cuh"
#include "kernels/ops/ops.h"
#include "kernels/variant.h"

#include <cuda_fp16.h>

namespace ops
{

enum { WARP = 32, CHUNK_BYTES = 40, CHUNK_WORDS = 10 };

static __device__ __forceinline__ float warp_sum(float v)
{
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

static __device__ __forceinline__ float warp_max(float v)
{
    for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    return v;
}

static __device__ __forceinline__ float half_bits(uint32_t h)
{
    return __half2float(__ushort_as_half((unsigned short)h));
}

static __device__ __forceinline__ uint32_t load_u16(const uint8_t *p)
{
    return *(const uint16_t *)p;
}

/* Four bytes at a multiple of 2. */
static __device__ __forceinline__ uint32_t load_u32(const uint8_t *p)
{
    const uint32_t *w = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3);
    return ((uintptr_t)p & 2) ? __funnelshift_r(w[0], w[1], 16) : w[0];
}

/* Sum over a block of up to 1024 threads, for every thread; `part` has room for 32 floats. */
static __device__ __forceinline__ float block_sum(float v, float *part)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
    v = warp_sum(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = lane < warps ? part[lane] : 0.0f;
    return warp_sum(v);
}

/* Ends a group of this thread's cp.async, and waits until all groups but the last LEFT are there. */
static __device__ __forceinline__ void copies_end()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> static __device__ __forceinline__ void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* What RMSNorm multiplies by: `sum` of dim squares. */
static __device__ __forceinline__ float inverse_rms(float sum, int dim, float eps)
{
    return __fdiv_rn(1.0f, __fsqrt_rn(sum / (float)dim + eps));
}

} // namespace ops

/* A descriptor with the fields that every operator fills; EARLY: the kernel keeps the rules of
 * kernels/early.cuh. */
#define OPS_DESC_FULL(NAME, FAMILY, NOTE, NUMERIC, LAYOUT_A, LAYOUT_B, THREADS, FEATURES)          \
    VARIANT_DESC(NAME) = {VARIANT_HEAD(NAME), .family = FAMILY,     .note = NOTE,                  \
                          .numeric = NUMERIC, .layout_a = LAYOUT_A, .layout_b = LAYOUT_B,          \
                          .threads = THREADS, .min_sm = 80,         .features = FEATURES}
#define OPS_DESC(NAME, FAMILY, NOTE, NUMERIC, LAYOUT_A, LAYOUT_B, THREADS)                         \
    OPS_DESC_FULL(NAME, FAMILY, NOTE, NUMERIC, LAYOUT_A, LAYOUT_B, THREADS, 0)
#define OPS_DESC_EARLY(NAME, FAMILY, NOTE, NUMERIC, LAYOUT_A, LAYOUT_B, THREADS)                   \
    OPS_DESC_FULL(NAME, FAMILY, NOTE, NUMERIC, LAYOUT_A, LAYOUT_B, THREADS, VARIANT_EARLY)

#endif
