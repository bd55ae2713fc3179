/*
 * Sums. add: y = x + x2 over `count` values, y may be either input. add_bias: y[n][m] += b[m].
 * Arguments: const float *x, const float *x2, float *y, int count; float *y, const float *b, int m,
 * int count.
 */
#include "kernels/ops/common.cuh"

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    add(const float *x, const float *x2, float *y, int count)
{
    int i = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i < count) y[i] = x[i] + x2[i];
}
OPS_DESC(add, "ops", "sum of two activations (the residual stream)", "f32", "f32", "", OPS_FLAT);

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    add_bias(float *y, const float *b, int m, int count)
{
    int i = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i < count) y[i] += b[i % m];
}
OPS_DESC(add_bias, "ops", "bias of a product, added to each token's row", "f32", "f32", "f32",
         OPS_FLAT);
