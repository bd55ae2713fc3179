/*
 * Q4_K as a format of the hopper_* kernels, and what formats share: quantised values to bf16 in
 * registers. See hopper.cuh.
 */
#ifndef KERNELS_Q4K_GEMM_HOPPER_Q4K_CUH
#define KERNELS_Q4K_GEMM_HOPPER_Q4K_CUH

#include "kernels/q4k_gemm/hopper.cuh"

#include <cuda_fp16.h>

namespace hopper
{

/* Constants that the compiler must keep in registers: as immediates they cost an instruction each
 * time, since LOP3 takes one of them and HADD2 none twice. `never` is negative in no launch. */
struct constants {
    uint32_t mask, magic, bias;
    __device__ __forceinline__ constants(int never, uint32_t mask_, uint32_t bias_)
        : mask(mask_ | (uint32_t)never >> 31), magic(0x43004300u | (uint32_t)never >> 31),
          bias(bias_ | (uint32_t)never >> 31)
    {
    }
};

/* The two values of `v` under the mask, 16 bits apart and at most 7 bits, as bf16: 128 + q is q in
 * the mantissa of 128, so taking the bias (128 and the format's own) off again is exact. */
__device__ __forceinline__ __nv_bfloat162 exact_pair(uint32_t v, const constants &k)
{
    uint32_t bits;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(bits) : "r"(v), "r"(k.mask), "r"(k.magic));
    return __hsub2(*(const __nv_bfloat162 *)&bits, *(const __nv_bfloat162 *)&k.bias);
}

__device__ __forceinline__ uint32_t bits_of(__nv_bfloat162 v)
{
    return *(const uint32_t *)&v;
}

__device__ __forceinline__ __nv_bfloat162 pair_of(uint32_t v)
{
    return *(const __nv_bfloat162 *)&v;
}

/* The low or the high half of v, twice. */
__device__ __forceinline__ __nv_bfloat162 twice(uint32_t v, bool high)
{
    return pair_of(__byte_perm(v, 0, high ? 0x3232 : 0x1010));
}

/* Q4_K; the format in kernels/q4k_gemm/ref.h. */
struct q4k {
    enum { BLOCK = 144, ROW = 144 };

    static __device__ __forceinline__ uint32_t at(uint32_t offset)
    {
        return offset;
    }

    struct head {
        constants k;
        uint32_t s[2]
                  [2]; /* {d*sc, -dmin*m} of sub-blocks 2*(lane%4) + 0, 1, rows L/4 and L/4 + 8 */

        __device__ __forceinline__ explicit head(const args &g) : k(g.m, 0x000f000fu, 0x43004300u)
        {
        }

        __device__ __forceinline__ void load(const args &, const uint8_t *w, int, int, int lane)
        {
            const bool high = lane & 2;
            const int at = (lane & 1) * 16;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint4 v = *(const uint4 *)(w + r * 8 * ROW);
                const float d = __half2float(__ushort_as_half((unsigned short)v.x));
                const float dmin = -__half2float(__ushort_as_half((unsigned short)(v.x >> 16)));
                uint32_t sc = v.y & 0x3f3f3f3fu, m = v.z & 0x3f3f3f3fu;
                const uint32_t sc4 = (v.w & 0x0f0f0f0fu) | (v.y >> 2 & 0x30303030u);
                const uint32_t m4 = (v.w >> 4 & 0x0f0f0f0fu) | (v.z >> 2 & 0x30303030u);
                sc = (high ? sc4 : sc) >> at;
                m = (high ? m4 : m) >> at;
#pragma unroll
                for (int i = 0; i < 2; i++)
                    s[r][i] = bits_of(__floats2bfloat162_rn(d * (float)(sc >> i * 8 & 0xff),
                                                            dmin * (float)(m >> i * 8 & 0xff)));
            }
        }

        /* Nibbles of 32 bytes: low ones sub-block 2*p, high ones 2*p + 1; 16 values a k16 step. */
        __device__ __forceinline__ void step(uint32_t (&a)[4][4], const uint8_t *w, int p,
                                             int lane) const
        {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint8_t *q = w + r * 8 * ROW + 16 + p * 32 + (lane & 3) * 4;
                const uint32_t v[2] = {*(const uint32_t *)q, *(const uint32_t *)(q + 16)};
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const uint32_t so = __shfl_sync(~0u, s[r][j], p, 4);
                    const __nv_bfloat162 sc = twice(so, false), off = twice(so, true);
#pragma unroll
                    for (int i = 0; i < 2; i++)
#pragma unroll
                        for (int e = 0; e < 2; e++)
                            a[j * 2 + i][e * 2 + r] =
                                bits_of(__hfma2(exact_pair(v[i] >> (j * 4 + e * 8), k), sc, off));
                }
            }
        }
    };
};

} // namespace hopper

#endif
