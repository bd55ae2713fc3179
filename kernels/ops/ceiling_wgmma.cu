/*
 * Ceilings of sm_90a's warpgroup products, for rooflines: 64x128x32 on int8, 64x128x16 on bf16, A
 * in registers, B in shared memory, CEILING_WGMMAS a warpgroup and round. Elsewhere the file is
 * empty.
 *
 * ceiling_wgmma_s8, ceiling_wgmma_bf16(int rounds, unsigned *sink)
 */
#include "kernels/ops/common.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "kernels/q4k_gemm/hopper_prims.cuh"

enum { CEILING_WGMMAS = 16, ACCUMULATORS = 64, B_BYTES = 128 * 128 };

static __device__ __forceinline__ unsigned scramble(unsigned x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* 128 rows of 128 bytes, swizzled as b_descriptor() has it; what is in them only has to differ. */
static __device__ void fill(unsigned *b, unsigned keep, unsigned set)
{
    for (unsigned i = threadIdx.x; i < B_BYTES / 4; i += blockDim.x)
        b[i] = (scramble(i + 7919 * blockIdx.x) & keep) | set;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(128) ceiling_wgmma_bf16(int rounds, unsigned *sink)
{
    __shared__ __align__(1024) unsigned b[B_BYTES / 4];
    float c[ACCUMULATORS] = {};
    uint32_t a[4];
    fill(b, 0x80ff80ffu, 0x3f003f00u);
    for (int i = 0; i < 4; i++)
        a[i] = (scramble(threadIdx.x * 31 + i) & 0x80ff80ffu) | 0x3f003f00u;
    const uint64_t at = hopper::b_descriptor(hopper::b_place(hopper::smem_at(b)));
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        hopper::fence();
#pragma unroll
        for (int j = 0; j < CEILING_WGMMAS; j++)
            hopper::mma<128>::step(c, a, at + (uint64_t)((j & 3) * 2)); /* 32 bytes of k on */
        hopper::commit();
        hopper::wait<0>();
    }
    float sum = 0;
#pragma unroll
    for (int j = 0; j < ACCUMULATORS; j++) sum += c[j];
    if (sum == 1.2345e30f) *sink = 1;
}
OPS_DESC(ceiling_wgmma_bf16, "ops", "bf16 products by wgmma alone", "", "", "", 128);

#define C4(i)  "+r"(c[i]), "+r"(c[i + 1]), "+r"(c[i + 2]), "+r"(c[i + 3])
#define C16(i) C4(i), C4(i + 4), C4(i + 8), C4(i + 12)

extern "C" __global__ void __launch_bounds__(128) ceiling_wgmma_s8(int rounds, unsigned *sink)
{
    __shared__ __align__(1024) unsigned b[B_BYTES / 4];
    int c[ACCUMULATORS] = {};
    uint32_t a[4];
    fill(b, 0xffffffffu, 0);
    for (int i = 0; i < 4; i++) a[i] = scramble(threadIdx.x * 31 + i);
    const uint64_t at = hopper::b_descriptor(hopper::b_place(hopper::smem_at(b)));
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        hopper::fence();
#pragma unroll
        for (int j = 0; j < CEILING_WGMMAS; j++)
            asm volatile(
                "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
                "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
                "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
                "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
                "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                "{%64, %65, %66, %67}, %68, 1;\n"
                : C16(0), C16(16), C16(32), C16(48)
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(at + (uint64_t)((j & 3) * 2)));
        hopper::commit();
        hopper::wait<0>();
    }
    int sum = 0;
#pragma unroll
    for (int j = 0; j < ACCUMULATORS; j++) sum ^= c[j];
    if (sum == 0x13572468) *sink = (unsigned)sum;
}
OPS_DESC(ceiling_wgmma_s8, "ops", "int8 products by wgmma alone", "", "", "", 128);
#endif
