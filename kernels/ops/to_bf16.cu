/*
 * to_bf16: f32 activations -> the layout of kernels/bf16.h, byte for byte what kernels/bf16.c
 * makes. A warp takes 256 values of a token, a block the 8 tokens of a group: it writes four whole
 * tiles. Arguments: const float *x, uint8_t *out, int n, int k (a multiple of 256). Grid {k / 256,
 * ceil(n / 8)}.
 */
#include "kernels/ops/common.cuh"

#include <cuda_bf16.h>

static __device__ __forceinline__ uint32_t pair(float a, float b)
{
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *(const uint32_t *)&v;
}

/* Lane L has values 4*(L%4).. of a run of 16: the even ones go to the run's first piece, the odd
 * ones to its second. */
static __device__ __forceinline__ void put(uint8_t *tile, int token, int run, float4 v)
{
    const int part = threadIdx.x & 3;
    uint32_t even = pair(v.x, v.z), odd = pair(v.y, v.w);
    /* Two lanes swap halves, so that each stores 8 bytes. */
    const bool low = !(part & 1);
    const uint32_t other = __shfl_xor_sync(~0u, low ? odd : even, 1);
    const uint2 both = low ? make_uint2(even, other) : make_uint2(other, odd);
    const int piece = run * 2 + (part & 1);
    *(uint2 *)(tile + token * 128 + ((piece ^ token) * 16) + (part >> 1) * 8) = both;
}

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    to_bf16(const float *x, uint8_t *out, int n, int k)
{
    const int row = threadIdx.x >> 5, lane = threadIdx.x & 31, token = blockIdx.y * 8 + row;
    const int groups = (n + 7) / 8;
    float4 v[2] = {};
    early_release();
    early_wait();
    if (token < n) {
        const float4 *p = (const float4 *)(x + (size_t)token * k + (size_t)blockIdx.x * 256);
        v[0] = __ldcg(p + lane);
        v[1] = __ldcg(p + 32 + lane);
    }
    for (int i = 0; i < 2; i++) {
        const int step = blockIdx.x * 4 + i * 2 + (lane >> 4);
        put(out + ((size_t)step * groups + blockIdx.y) * 1024, row, lane >> 2 & 3, v[i]);
    }
}
OPS_DESC_EARLY(to_bf16, "ops", "f32 activations to bf16 in the order that wgmma reads", "bf16",
               "f32", "", OPS_FLAT);
