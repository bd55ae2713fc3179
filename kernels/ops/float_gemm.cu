/*
 * float_gemm: F32 or F16 weights with many tokens, f32 math: 64 x 64 tiles, 16 values of k a step,
 * 4 x 4 outputs a thread. For the rare unquantised matrix, so plain.
 * Arguments: const T *w, const float *x, float *y, int m, int n, int k.
 * Grid {ceil(m / 64), ceil(n / 64)}.
 */
#include "kernels/ops/common.cuh"

enum { THREADS = 256, TILE = OPS_FGEMM_TILE, STEP = 16 };

static __device__ __forceinline__ float widen(float v)
{
    return v;
}

static __device__ __forceinline__ float widen(__half v)
{
    return __half2float(v);
}

/* 64 rows x 16 values of a row-major matrix, transposed; what lies outside is zero. */
template <class T>
static __device__ __forceinline__ void load_tile(float (*to)[TILE + 4], const T *from, int row0,
                                                 int rows, int k0, int k)
{
    for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
        int r = i / STEP, c = i % STEP;
        bool in = row0 + r < rows && k0 + c < k;
        to[c][r] = in ? widen(from[(size_t)(row0 + r) * k + k0 + c]) : 0.0f;
    }
}

template <class T>
static __device__ __forceinline__ void body(const T *__restrict__ w, const float *__restrict__ x,
                                            float *__restrict__ y, int m, int n, int k)
{
    __shared__ __align__(16) float a[STEP][TILE + 4], b[STEP][TILE + 4];
    int tr = threadIdx.x % 16 * 4, tt = threadIdx.x / 16 * 4;
    int row0 = blockIdx.x * TILE, token0 = blockIdx.y * TILE;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < k; k0 += STEP) {
        if (k0) __syncthreads();
        load_tile(a, x, token0, n, k0, k);
        load_tile(b, w, row0, m, k0, k);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            float4 u = *(const float4 *)&a[i][tt], v = *(const float4 *)&b[i][tr];
            float ua[4] = {u.x, u.y, u.z, u.w}, va[4] = {v.x, v.y, v.z, v.w};
            for (int t = 0; t < 4; t++) {
                for (int r = 0; r < 4; r++) sum[t][r] = fmaf(ua[t], va[r], sum[t][r]);
            }
        }
    }
    for (int t = 0; t < 4; t++) {
        for (int r = 0; r < 4; r++) {
            if (token0 + tt + t < n && row0 + tr + r < m)
                y[(size_t)(token0 + tt + t) * m + row0 + tr + r] = sum[t][r];
        }
    }
}

#define GEMM(NAME, T)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        float_gemm_##NAME(const T *w, const float *x, float *y, int m, int n, int k)               \
    {                                                                                              \
        body<T>(w, x, y, m, n, k);                                                                 \
    }                                                                                              \
    OPS_DESC(float_gemm_##NAME, "ops", "f32 products, 64 x 64 tiles", "f32", "f32", #NAME, THREADS)

GEMM(f32, float);
GEMM(f16, __half);
