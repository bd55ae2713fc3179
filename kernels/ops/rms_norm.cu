/*
 * RMSNorm: y = x / sqrt(mean(x^2) + eps) * w over groups of `dim` values; y may be x.
 * rms_norm: a block a group (a token's row). rms_norm_head: a warp a group (a head of q or k).
 * Arguments: const float *x, const float *w, float *y, int groups, int dim, float eps.
 */
#include "kernels/ops/common.cuh"

static __device__ __forceinline__ float inverse_rms(float sum, int dim, float eps)
{
    return __fdiv_rn(1.0f, __fsqrt_rn(sum / (float)dim + eps));
}

extern "C" __global__ void __launch_bounds__(1024)
    rms_norm(const float *x, const float *w, float *y, int groups, int dim, float eps)
{
    __shared__ float part[32];
    const float *in = x + (size_t)blockIdx.x * dim;
    float *out = y + (size_t)blockIdx.x * dim;
    float sum = 0;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) sum += in[i] * in[i];
    float r = inverse_rms(ops::block_sum(sum, part), dim, eps);
    for (int i = threadIdx.x; i < dim; i += blockDim.x) out[i] = in[i] * r * w[i];
}
OPS_DESC(rms_norm, "ops", "RMSNorm of a token's row, one block a row", "f32", "f32", "f32", 1024);

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    rms_norm_head(const float *x, const float *w, float *y, int groups, int dim, float eps)
{
    int lane = threadIdx.x & 31, g = blockIdx.x * (OPS_FLAT / 32) + (threadIdx.x >> 5);
    if (g >= groups) return;
    const float *in = x + (size_t)g * dim;
    float *out = y + (size_t)g * dim;
    float sum = 0;
    for (int i = lane; i < dim; i += 32) sum += in[i] * in[i];
    float r = inverse_rms(ops::warp_sum(sum), dim, eps);
    for (int i = lane; i < dim; i += 32) out[i] = in[i] * r * w[i];
}
OPS_DESC(rms_norm_head, "ops", "RMSNorm of each head, one warp a head", "f32", "f32", "f32",
         OPS_FLAT);
