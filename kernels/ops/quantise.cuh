/*
 * Quantising inside other kernels: byte for byte what kernels/q8.c makes.
 */
#ifndef KERNELS_OPS_QUANTISE_CUH
#define KERNELS_OPS_QUANTISE_CUH

#include "kernels/ops/common.cuh"

namespace ops
{

static __device__ __forceinline__ int quant_one(float x, float da)
{
    float v = rintf(__fdiv_rn(x, da));
    if (!(v >= -127.0f)) v = isnan(v) ? 0.0f : -127.0f;
    if (v > 127.0f) v = 127.0f;
    return (int)v;
}

/* f16 bits of a chunk's scale. */
static __device__ __forceinline__ unsigned short quant_scale(float amax)
{
    return __half_as_ushort(__float2half_rn(fminf(__fdiv_rn(amax, 127.0f), 65504.0f)));
}

/* fmaxf passes the number when the other is a NaN: a NaN counts as 0, as in the reference. */
static __device__ __forceinline__ float abs_max(float4 v)
{
    float a = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    return fmaxf(a, 0.0f);
}

/* A lane's share of a chunk that eight lanes make: its four values; f16 bits of the scale; the sums
 * of the half that the lane is in and of the whole. */
struct quantised {
    uint32_t q;
    unsigned short scale;
    int half, sum;
};

/* Eight lanes a chunk, four values a lane. All 32 lanes of a warp call this. */
static __device__ __forceinline__ quantised quantise_four(float4 v)
{
    quantised r = {0, 0, 0, 0};
    float a = abs_max(v);
    for (int o = 4; o; o >>= 1) a = fmaxf(a, __shfl_xor_sync(~0u, a, o));
    r.scale = quant_scale(a);
    float da = half_bits(r.scale);
    if (da > 0) {
        r.q = (quant_one(v.x, da) & 255) | (quant_one(v.y, da) & 255) << 8 |
              (quant_one(v.z, da) & 255) << 16 | (uint32_t)(quant_one(v.w, da) & 255) << 24;
    }
    r.half = __dp4a((int)r.q, 0x01010101, 0);
    for (int o = 1; o < 4; o <<= 1) r.half += __shfl_xor_sync(~0u, r.half, o);
    r.sum = r.half + __shfl_xor_sync(~0u, r.half, 4);
    return r;
}

/* The same into a chunk; `part`: 0..7 of it; `in`: it is stored. */
static __device__ __forceinline__ void quantise_eight(float4 v, int part, bool in, uint8_t *chunk)
{
    const quantised r = quantise_four(v);
    if (!in) return;
    uint32_t *out = (uint32_t *)chunk;
    out[1 + part] = r.q;
    if (part == 0) out[0] = r.scale;
    if (part == 7) out[9] = (uint32_t)r.sum;
}

/* A lane a value. */
static __device__ __forceinline__ void quantise_warp(float v, uint8_t *chunk)
{
    int lane = threadIdx.x & 31;
    /* Bits of floats that aren't negative are in the order of the floats. */
    float a = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(fmaxf(fabsf(v), 0.0f))));
    unsigned short h = quant_scale(a);
    float da = half_bits(h);
    int q = da > 0 ? quant_one(v, da) : 0, sum = __reduce_add_sync(~0u, q);
    chunk[4 + lane] = (uint8_t)q;
    if (lane == 0) *(uint32_t *)chunk = h;
    if (lane == 1) *(uint32_t *)(chunk + 36) = (uint32_t)sum;
}

} // namespace ops

#endif
