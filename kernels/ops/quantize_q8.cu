/*
 * quantize_q8: f32 activations -> q8 chunks, byte for byte what kernels/q8.c makes.
 * Eight lanes a chunk, four values a lane. Arguments: const float *x, uint8_t *chunks, int
 * n_chunks.
 */
#include "kernels/ops/common.cuh"

static __device__ __forceinline__ int quant_one(float x, float da)
{
    float v = rintf(__fdiv_rn(x, da));
    if (!(v >= -127.0f)) v = isnan(v) ? 0.0f : -127.0f;
    if (v > 127.0f) v = 127.0f;
    return (int)v;
}

/* fmaxf passes the number when the other is a NaN: a NaN counts as 0, as in the reference. */
static __device__ __forceinline__ float chunk_max(float4 v)
{
    float a = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    a = fmaxf(a, 0.0f);
    for (int o = 4; o; o >>= 1) a = fmaxf(a, __shfl_xor_sync(~0u, a, o));
    return a;
}

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    quantize_q8(const float *x, uint8_t *chunks, int n_chunks)
{
    int part = threadIdx.x & 7, c = blockIdx.x * (OPS_FLAT / 8) + (threadIdx.x >> 3);
    bool in = c < n_chunks;
    float4 v = make_float4(0, 0, 0, 0);
    if (in) v = ((const float4 *)x)[(size_t)c * 8 + part];

    unsigned short h =
        __half_as_ushort(__float2half_rn(fminf(__fdiv_rn(chunk_max(v), 127.0f), 65504.0f)));
    float da = ops::half_bits(h);
    uint32_t q = 0;
    if (da > 0) {
        q = (quant_one(v.x, da) & 255) | (quant_one(v.y, da) & 255) << 8 |
            (quant_one(v.z, da) & 255) << 16 | (uint32_t)(quant_one(v.w, da) & 255) << 24;
    }
    int sum = __dp4a((int)q, 0x01010101, 0);
    for (int o = 4; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (!in) return;
    uint32_t *out = (uint32_t *)(chunks + (size_t)c * ops::CHUNK_BYTES);
    out[1 + part] = q;
    if (part == 0) out[0] = h;
    if (part == 7) out[9] = (uint32_t)sum;
}
OPS_DESC(quantize_q8, "ops", "f32 activations to 40-byte q8 chunks, eight lanes a chunk", "q8",
         "f32", "", OPS_FLAT);
