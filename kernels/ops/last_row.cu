/*
 * last_row: the last token's row of x[n][dim], since a prefill needs one row of logits.
 * Arguments: const float *x, float *y, int n, int dim.
 */
#include "kernels/ops/common.cuh"

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    last_row(const float *x, float *y, int n, int dim)
{
    int i = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (i < dim) y[i] = x[(size_t)(n - 1) * dim + i];
}
OPS_DESC(last_row, "ops", "copies the last token's row", "f32", "f32", "", OPS_FLAT);
