/*
 * Ceilings of the GPU they run on, for rooflines: bytes from and to DRAM, multiply-adds by mma.sync
 * on int8 and bf16, warp instructions issued. Each does one thing alone, as fast as it can be
 * asked for; data are pseudo-random, since zeros draw less power and would raise the clock.
 *
 * ceiling_read(const uint4 *p, uint64_t n, unsigned *sink)             n = 16-byte words
 * ceiling_copy(const uint4 *from, uint64_t n, uint4 *to)
 * ceiling_s8, ceiling_bf16, ceiling_issue(int rounds, unsigned *sink)
 *     a warp and round: CEILING_MMAS products of 16x8x32 (s8) or 16x8x16 (bf16), or CEILING_FMAS
 *     instructions
 */
#include "kernels/ops/common.cuh"

enum { AHEAD = 8, CEILING_MMAS = 8, CEILING_FMAS = 256 };

static __device__ __forceinline__ unsigned scramble(unsigned x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

static __device__ __forceinline__ unsigned fold(uint4 v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

extern "C" __global__ void __launch_bounds__(512)
    ceiling_read(const uint4 *p, unsigned long long n, unsigned *sink)
{
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (; i + (AHEAD - 1) * step < n; i += AHEAD * step) {
        uint4 v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) v[k] = __ldcs(p + i + k * step);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) sum ^= fold(v[k]);
    }
    for (; i < n; i += step) sum ^= fold(__ldcs(p + i));
    if (sum == 0x13572468u) *sink = sum; /* keeps the loads */
}
OPS_DESC(ceiling_read, "ops", "reads memory: the DRAM ceiling", "", "", "", 512);

extern "C" __global__ void __launch_bounds__(512)
    ceiling_copy(const uint4 *from, unsigned long long n, uint4 *to)
{
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + (AHEAD - 1) * step < n; i += AHEAD * step) {
        uint4 v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) v[k] = __ldcs(from + i + k * step);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) __stcs(to + i + k * step, v[k]);
    }
    for (; i < n; i += step) __stcs(to + i, __ldcs(from + i));
}
OPS_DESC(ceiling_copy, "ops", "copies memory: the DRAM ceiling with writes", "", "", "", 512);

extern "C" __global__ void __launch_bounds__(256) ceiling_s8(int rounds, unsigned *sink)
{
    const unsigned seed = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a[4], b[CEILING_MMAS][2];
    int c[CEILING_MMAS][4] = {};
    for (int i = 0; i < 4; i++) a[i] = scramble(seed * 31 + i);
#pragma unroll
    for (int j = 0; j < CEILING_MMAS; j++)
        for (int i = 0; i < 2; i++) b[j][i] = scramble(seed * 37 + j * 2 + i + 99);
#pragma unroll 1
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int j = 0; j < CEILING_MMAS; j++)
            asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                         "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+r"(c[j][0]), "+r"(c[j][1]), "+r"(c[j][2]), "+r"(c[j][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[j][0]), "r"(b[j][1]));
    int sum = 0;
#pragma unroll
    for (int j = 0; j < CEILING_MMAS; j++) sum ^= c[j][0] ^ c[j][1] ^ c[j][2] ^ c[j][3];
    if (sum == 0x13572468) *sink = (unsigned)sum;
}
OPS_DESC(ceiling_s8, "ops", "int8 products by mma.sync alone", "", "", "", 256);

/* Two bf16 between 0.5 and 2 with signs. */
static __device__ __forceinline__ unsigned bf16_pair(unsigned x)
{
    return (scramble(x) & 0x80ff80ffu) | 0x3f003f00u;
}

extern "C" __global__ void __launch_bounds__(256) ceiling_bf16(int rounds, unsigned *sink)
{
    const unsigned seed = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a[4], b[CEILING_MMAS][2];
    float c[CEILING_MMAS][4] = {};
    for (int i = 0; i < 4; i++) a[i] = bf16_pair(seed * 31 + i);
#pragma unroll
    for (int j = 0; j < CEILING_MMAS; j++)
        for (int i = 0; i < 2; i++) b[j][i] = bf16_pair(seed * 37 + j * 2 + i + 99);
#pragma unroll 1
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int j = 0; j < CEILING_MMAS; j++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                         "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[j][0]), "r"(b[j][1]));
    float sum = 0;
#pragma unroll
    for (int j = 0; j < CEILING_MMAS; j++) sum += c[j][0] + c[j][1] + c[j][2] + c[j][3];
    if (sum == 1.2345e30f) *sink = 1;
}
OPS_DESC(ceiling_bf16, "ops", "bf16 products by mma.sync alone", "", "", "", 256);

extern "C" __global__ void __launch_bounds__(256) ceiling_issue(int rounds, unsigned *sink)
{
    const unsigned seed = blockIdx.x * blockDim.x + threadIdx.x;
    enum { CHAINS = 16 };
    float c[CHAINS], x = 1.0f + (float)(scramble(seed) & 0xffff) * 1e-9f, y = x * 1e-7f;
#pragma unroll
    for (int j = 0; j < CHAINS; j++) c[j] = x + (float)j;
#pragma unroll 1
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int j = 0; j < CEILING_FMAS; j++)
            asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(c[j % CHAINS]) : "f"(x), "f"(y));
    float sum = 0;
#pragma unroll
    for (int j = 0; j < CHAINS; j++) sum += c[j];
    if (sum == 1.2345e30f) *sink = 1;
}
OPS_DESC(ceiling_issue, "ops", "independent FFMA alone: what schedulers can issue", "", "", "", 256);
