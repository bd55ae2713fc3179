/*
 * Stand-in kernels of a token loop for tests/gpu/schedule.c: one that keeps the tensor pipe and the
 * schedulers busy, one that only moves memory, one too short for any sampling period.
 */
#include <stdint.h>

extern "C" __global__ void __launch_bounds__(256) sched_busy(const int *seed, int *out, int iters)
{
    __shared__ int tile[2048];
    for (int i = threadIdx.x; i < 2048; i += 256) tile[i] = seed[i] * (blockIdx.x + 1);
    __syncthreads();
    int acc[3][4] = {};
    int at = threadIdx.x * 5;
    for (int k = 0; k < iters; k++) {
        int a0 = tile[at & 2047], a1 = tile[(at + 64) & 2047];
        int b0 = tile[(at + 128) & 2047], b1 = a0 ^ k;
        for (int c = 0; c < 3; c++)
            asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+r"(acc[c][0]), "+r"(acc[c][1]), "+r"(acc[c][2]), "+r"(acc[c][3])
                         : "r"(a0), "r"(a1), "r"(b0), "r"(b1 + c), "r"(b1), "r"(a0 + c));
        at += 33;
    }
    int sum = 0;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 4; i++) sum += acc[c][i];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}

extern "C" __global__ void sched_copy(const uint4 *from, uint4 *to, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) to[i] = from[i];
}

extern "C" __global__ void sched_tiny(int *p)
{
    p[threadIdx.x] += 1;
}
