/*
 * Q6_K as a format of the hopper_* kernels; see kernels/q4k_gemm/hopper.cuh. A super-block of 256
 * is 210 bytes: 128 of low nibbles, 64 of high pairs of bits, 16 signed scales, d f16; weight = d *
 * scale
 * * (q - 32). Bytes 64*h + 32*b + l of the first (h, b = 0, 1; l < 32) hold value 128*h + 32*b + l
 * in the low nibble and 64 further on in the high one; byte 32*h + l of the second the high bits of
 * values 128*h + l + 0, 32, 64, 96.
 *
 * A block starts at a multiple of 2: the 240 bytes from the multiple of 16 before it are copied, so
 * words are put together from two. Up to 30 bytes past the last block are read.
 */
#ifndef KERNELS_Q6K_GEMM_HOPPER_Q6K_CUH
#define KERNELS_Q6K_GEMM_HOPPER_Q6K_CUH

#include "kernels/q4k_gemm/hopper_q4k.cuh"

namespace hopper
{

struct q6k {
    enum { BLOCK = 210, ROW = 240, HIGH = 128, SCALES = 192, D = 208, FEW = 0 };

    static __device__ __forceinline__ uint32_t at(uint32_t offset)
    {
        return offset & ~15u;
    }

    struct head {
        int start[2];                 /* of the block in its copy, rows L/4 and L/4 + 8 */
        uint32_t s[2][2];             /* d * scale 4*(lane%4) + 0, 1 and 2, 3, times 2^UP */
        uint32_t v[2][4], high[2][2]; /* a half's bytes: two steps use them */

        __device__ __forceinline__ explicit head(const args &) {}

        /* The word at any multiple of 2. */
        static __device__ __forceinline__ uint32_t word(const uint8_t *p)
        {
            const uint32_t at = smem_at(p) & 2;
            const uint32_t *q = (const uint32_t *)(p - at);
            return __funnelshift_r(q[0], q[1], at * 8);
        }

        __device__ __forceinline__ void load(const args &g, const uint8_t *w, int row, int sb,
                                             int lane)
        {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                /* Only the offset's low bits count: they don't change with a multiple of 64 rows.
                 */
                const uint32_t blocks = g.k / 256;
                start[r] = (min(row + r * 8, g.m - 1) * blocks + sb) * BLOCK & 15;
                const uint8_t *b = w + r * 8 * ROW + start[r];
                const uint32_t sc = word(b + SCALES + (lane & 3) * 4);
                const float d =
                    power(UP) * __half2float(__ushort_as_half(*(const unsigned short *)(b + D)));
#pragma unroll
                for (int i = 0; i < 2; i++)
                    s[r][i] =
                        bits_of(__floats2bfloat162_rn(d * (float)(int8_t)(sc >> i * 16),
                                                      d * (float)(int8_t)(sc >> (i * 16 + 8))));
            }
        }

        __device__ __forceinline__ void fetch(const uint8_t *w, int half, int lane)
        {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint8_t *b = w + r * 8 * ROW + start[r] + (lane & 3) * 4;
#pragma unroll
                for (int i = 0; i < 4; i++) v[r][i] = word(b + half * 64 + i * 16);
#pragma unroll
                for (int i = 0; i < 2; i++) high[r][i] = word(b + HIGH + half * 32 + i * 16);
            }
        }

        static __device__ __forceinline__ uint32_t shifted(uint32_t v, int right)
        {
            return right >= 0 ? v >> right : v << -right;
        }

        __device__ __forceinline__ void step(uint32_t (&a)[4][4], const uint8_t *w, int p, int lane)
        {
            if (!(p & 1)) fetch(w, p >> 1, lane);
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const uint32_t two = __shfl_sync(~0u, s[r][i >> 1], p, 4);
                    const __nv_bfloat162 sc = twice(two, i & 1);
                    /* -32 * 2^-133: exact, as is what comes of it. */
                    const __nv_bfloat162 off = __hmul2(sc, pair_of(0x80208020u));
                    const int low = (p & 1) * 4, up = (p & 1) * 4 + (i >> 1) * 2 - 4;
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const uint32_t bits = (shifted(high[r][i & 1], up + e * 8) & 0x00300030u) |
                                              (v[r][i] >> (low + e * 8) & 0x000f000fu);
                        a[i][e * 2 + r] = bits_of(__hfma2(pair_of(bits), sc, off));
                    }
                }
        }
    };
};

} // namespace hopper

#endif
