/*
 * Gated linear units: y = act(x) * x2, act = silu or gelu (tanh form); y may be either input.
 * Arguments: const float *x, const float *x2, float *y, int count.
 */
#include "kernels/ops/activation.cuh"
#include "kernels/ops/common.cuh"

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    glu_silu(const float *x, const float *x2, float *y, int count)
{
    int i = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i < count) y[i] = ops::act_silu(x[i]) * x2[i];
}
OPS_DESC(glu_silu, "ops", "SwiGLU: silu(gate) * up", "f32", "f32", "", OPS_FLAT);

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    glu_gelu(const float *x, const float *x2, float *y, int count)
{
    int i = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i < count) y[i] = ops::act_gelu(x[i]) * x2[i];
}
OPS_DESC(glu_gelu, "ops", "GeGLU: gelu(gate) * up, tanh form", "f32", "f32", "", OPS_FLAT);
