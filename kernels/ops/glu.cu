/*
 * Gated linear units: y = act(x) * x2, act = silu or gelu (tanh form); y may be either input.
 * Arguments: const float *x, const float *x2, float *y, int count.
 */
#include "kernels/ops/common.cuh"

static __device__ __forceinline__ float silu(float v)
{
    return __fdiv_rn(v, 1.0f + expf(-v));
}

static __device__ __forceinline__ float gelu(float v)
{
    const float root_2_over_pi = 0.79788456080286535588f;
    return 0.5f * v * (1.0f + tanhf(root_2_over_pi * v * (1.0f + 0.044715f * v * v)));
}

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    glu_silu(const float *x, const float *x2, float *y, int count)
{
    int i = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i < count) y[i] = silu(x[i]) * x2[i];
}
OPS_DESC(glu_silu, "ops", "SwiGLU: silu(gate) * up", "f32", "f32", "", OPS_FLAT);

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    glu_gelu(const float *x, const float *x2, float *y, int count)
{
    int i = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i < count) y[i] = gelu(x[i]) * x2[i];
}
OPS_DESC(glu_gelu, "ops", "GeGLU: gelu(gate) * up, tanh form", "f32", "f32", "", OPS_FLAT);
