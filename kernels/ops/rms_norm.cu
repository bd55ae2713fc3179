/*
 * RMSNorm: y = x / sqrt(mean(x^2) + eps) * w over groups of `dim` values; y may be x.
 * rms_norm: a block a group (a token's row). rms_norm_head: a warp a group (a head of q or k).
 * Arguments: const float *x, const float *w, float *y, int groups, int dim, float eps.
 * rms_norm_q8: rms_norm, and the row's q8 chunks; dim a multiple of 32, at most OPS_NORM_Q8_DIM.
 * One more argument: uint8_t *chunks.
 */
#include "kernels/ops/quantise.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    rms_norm(const float *x, const float *w, float *y, int groups, int dim, float eps)
{
    __shared__ float part[32];
    const float *in = x + (size_t)blockIdx.x * dim;
    float *out = y + (size_t)blockIdx.x * dim;
    float sum = 0;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) sum += in[i] * in[i];
    float r = ops::inverse_rms(ops::block_sum(sum, part), dim, eps);
    for (int i = threadIdx.x; i < dim; i += blockDim.x) out[i] = in[i] * r * w[i];
}
OPS_DESC(rms_norm, "ops", "RMSNorm of a token's row, one block a row", "f32", "f32", "f32", 1024);

extern "C" __global__ void __launch_bounds__(OPS_NORM_Q8)
    rms_norm_q8(const float *x, const float *w, float *y, int groups, int dim, float eps,
                uint8_t *chunks)
{
    enum { EACH = OPS_NORM_Q8_DIM / 4 / OPS_NORM_Q8 }; /* fours a thread */
    __shared__ float part[32];
    const float4 *in = (const float4 *)(x + (size_t)blockIdx.x * dim), *ww = (const float4 *)w;
    float4 *out = (float4 *)(y + (size_t)blockIdx.x * dim), v[EACH], f[EACH];
    uint8_t *to = chunks + (size_t)blockIdx.x * (dim / 32) * ops::CHUNK_BYTES;
    int fours = dim / 4;
    float sum = 0;
    early_release();
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        int i = threadIdx.x + j * blockDim.x;
        f[j] = i < fours ? ww[i] : make_float4(0, 0, 0, 0);
    }
    early_wait();
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        int i = threadIdx.x + j * blockDim.x;
        v[j] = i < fours ? in[i] : make_float4(0, 0, 0, 0);
        sum += v[j].x * v[j].x + v[j].y * v[j].y + v[j].z * v[j].z + v[j].w * v[j].w;
    }
    float r = ops::inverse_rms(ops::block_sum(sum, part), dim, eps);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        int i = threadIdx.x + j * blockDim.x;
        bool inside = i < fours;
        if (j * blockDim.x >= fours) break;
        float4 o = make_float4(v[j].x * r * f[j].x, v[j].y * r * f[j].y, v[j].z * r * f[j].z,
                               v[j].w * r * f[j].w);
        if (inside) out[i] = o;
        ops::quantise_eight(o, i & 7, inside, to + (size_t)(i >> 3) * ops::CHUNK_BYTES);
    }
}
OPS_DESC_EARLY(rms_norm_q8, "ops", "RMSNorm of a token's row and its q8 chunks, one block a row",
               "f32", "f32", "f32", OPS_NORM_Q8);

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    rms_norm_head(const float *x, const float *w, float *y, int groups, int dim, float eps)
{
    int lane = threadIdx.x & 31, g = blockIdx.x * (OPS_FLAT / 32) + (threadIdx.x >> 5);
    if (g >= groups) return;
    const float *in = x + (size_t)g * dim;
    float *out = y + (size_t)g * dim;
    float sum = 0;
    for (int i = lane; i < dim; i += 32) sum += in[i] * in[i];
    float r = ops::inverse_rms(ops::warp_sum(sum), dim, eps);
    for (int i = lane; i < dim; i += 32) out[i] = in[i] * r * w[i];
}
OPS_DESC(rms_norm_head, "ops", "RMSNorm of each head, one warp a head", "f32", "f32", "f32",
         OPS_FLAT);
