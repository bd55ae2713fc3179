/*
 * A pair's rotation, as rope.cu and attn_one.cu make it. Angles are reduced to one turn in double,
 * as f32 would be off by 1e-4 at position 2000; sine and cosine are f32.
 */
#ifndef KERNELS_OPS_ROPE_CUH
#define KERNELS_OPS_ROPE_CUH

#include "kernels/ops/common.cuh"

namespace ops
{

/* What every layer reads, and weights would push out of the L2 in between. */
static __device__ __forceinline__ uint64_t keep_policy()
{
    uint64_t p;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p));
    return p;
}

static __device__ __forceinline__ double load_kept(const double *p)
{
    double v;
    asm volatile("ld.global.L2::cache_hint.f64 %0, [%1], %2;"
                 : "=d"(v)
                 : "l"(p), "l"(keep_policy()));
    return v;
}

static __device__ __forceinline__ uint32_t load_kept(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;"
                 : "=r"(v)
                 : "l"(p), "l"(keep_policy()));
    return v;
}

/* {sine, cosine} of a pair's angle. */
static __device__ __forceinline__ float2 rope_angle(double freq, uint32_t pos)
{
    double turns = (double)pos * freq * 0.15915494309189535;
    float s, c;
    sincospif(2.0f * (float)(turns - rint(turns)), &s, &c);
    return make_float2(s, c);
}

static __device__ __forceinline__ float2 rope_rotate(float a, float b, float2 by)
{
    return make_float2(__fsub_rn(__fmul_rn(a, by.y), __fmul_rn(b, by.x)),
                       __fadd_rn(__fmul_rn(a, by.x), __fmul_rn(b, by.y)));
}

} // namespace ops

#endif
