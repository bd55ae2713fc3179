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
    enum { BLOCK = 144, ROW = 144, FEW = 1 };

    static __device__ __forceinline__ uint32_t at(uint32_t offset)
    {
        return offset;
    }

    struct head {
        /* d*sc twice and -dmin*m twice, of sub-blocks 2*(lane%4) + 0, 1, rows L/4 and L/4 + 8. High
         * nibbles are taken where they are, 16 times too large. */
        uint32_t sc[2][2], off[2][2];

        /* The bytes of a lane's two scales are in words 1 and 3 from bit `at`, of its two minimums
         * in 2 and 3. The first four sub-blocks have 6 bits of theirs in word 1 or 2, the others 4
         * in word 3, the minimums 4 further up, and 2 at the top of the bytes of word 1 or 2. */
        uint32_t at_m, in_low; /* where in its word the minimum starts; the bits from there */
        uint32_t word;         /* the lane's first word of nibbles */

        __device__ __forceinline__ explicit head(const args &)
        {
            const uint32_t lane = threadIdx.x & 3;
            at_m = kept((lane & 1) * 16 + (lane & 2) * 2);
            in_low = kept(lane & 2 ? 0x0f0f : 0x3f3f);
            word = kept(16 + lane * 4);
        }

        /* The low six bits of bytes 0 and 1; the others are whatever. */
        __device__ __forceinline__ uint32_t two(uint32_t low, uint32_t top) const
        {
            return (low & in_low) | (top & ~in_low);
        }

        __device__ __forceinline__ void load(const args &, const uint8_t *w, int, int, int)
        {
            const bool high = at_m & 4;
            const uint32_t at = at_m & 16;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint4 v = *(const uint4 *)(w + r * 8 * ROW);
                const float d = __half2float(__ushort_as_half((unsigned short)v.x));
                const float dmin = __half2float(__ushort_as_half((unsigned short)(v.x >> 16)));
                const uint32_t s = two((high ? v.w : v.y) >> at, v.y >> at + 2);
                const uint32_t m = two((high ? v.w : v.z) >> at_m, v.z >> at + 2);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    /* Byte 1 is left where it is: 256 times too large. */
                    const uint32_t mask = i ? 0x3f00 : 0x3f;
                    const float x = d * power(UP - i * 12) * (float)(s & mask);
                    const float o = dmin * -power(-DOWN - i * 8) * (float)(m & mask);
                    sc[r][i] = bits_of(__floats2bfloat162_rn(x, x));
                    off[r][i] = bits_of(__floats2bfloat162_rn(o, o));
                }
            }
        }

        /* Nibbles of 32 bytes: low ones sub-block 2*p, high ones 2*p + 1; 16 values a k16 step. */
        __device__ __forceinline__ void step(uint32_t (&a)[4][4], const uint8_t *w, int p,
                                             int lane) const
        {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint8_t *q = w + r * 8 * ROW + p * 32 + word;
                const uint32_t v[2] = {*(const uint32_t *)q, *(const uint32_t *)(q + 16)};
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const uint32_t s = __shfl_sync(~0u, sc[r][j], p, 4);
                    const uint32_t o = __shfl_sync(~0u, off[r][j], p, 4);
                    const uint32_t mask = j ? 0x00f000f0u : 0x000f000fu;
#pragma unroll
                    for (int i = 0; i < 2; i++)
#pragma unroll
                        for (int e = 0; e < 2; e++)
                            a[j * 2 + i][e * 2 + r] = bits_of(
                                __hfma2(pair_of(v[i] >> e * 8 & mask), pair_of(s), pair_of(o)));
                }
            }
        }
    };
};

} // namespace hopper

#endif
