/*
 * float_gemv: F32 or F16 weights with up to eight tokens of f32 activations, f32 sums; a warp a
 * row. Arguments: const T *w, const float *x, float *y, int m, int n, int k.
 */
#include "kernels/ops/common.cuh"

enum { WARPS = 4 };

static __device__ __forceinline__ float widen(float v)
{
    return v;
}

static __device__ __forceinline__ float widen(__half v)
{
    return __half2float(v);
}

template <class T>
static __device__ __forceinline__ void body(const T *__restrict__ w, const float *__restrict__ x,
                                            float *__restrict__ y, int m, int n, int k)
{
    int lane = threadIdx.x & 31, row = blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (row >= m) return;
    float acc[OPS_GEMV_MAX] = {};
    for (int i = lane; i < k; i += 32) {
        float v = widen(w[(size_t)row * k + i]);
#pragma unroll
        for (int t = 0; t < OPS_GEMV_MAX; t++) {
            if (t < n) acc[t] = fmaf(v, x[(size_t)t * k + i], acc[t]);
        }
    }
#pragma unroll
    for (int t = 0; t < OPS_GEMV_MAX; t++) {
        float sum = ops::warp_sum(acc[t]);
        if (lane == 0 && t < n) y[(size_t)t * m + row] = sum;
    }
}

#define GEMV(NAME, T)                                                                              \
    extern "C" __global__ void __launch_bounds__(WARPS * 32)                                       \
        float_gemv_##NAME(const T *w, const float *x, float *y, int m, int n, int k)               \
    {                                                                                              \
        body<T>(w, x, y, m, n, k);                                                                 \
    }                                                                                              \
    OPS_DESC(float_gemv_##NAME, "ops", "f32 sums, a warp a row, up to 8 tokens", "f32", "f32",     \
             #NAME, WARPS * 32)

GEMV(f32, float);
GEMV(f16, __half);
