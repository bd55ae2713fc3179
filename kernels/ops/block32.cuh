/*
 * The three formats with one scale for 32 values (Q4_1, Q5_0, Q8_0), as the products want them.
 *
 * A struct a type. BYTES a block; scale(): {d, m}, where a value is d * q + m and q is a signed
 * byte; WORDS words of quants, word j of which gives one or two words of four values:
 * part(block, j, v) fills v[0] with values 4j..4j+3 and, for nibbles (HALVES), v[1] with those 16
 * further on. To add a type: a struct here, and a line in block32_gemv.cu and block32_gemm.cu.
 */
#ifndef KERNELS_OPS_BLOCK32_CUH
#define KERNELS_OPS_BLOCK32_CUH

#include "kernels/ops/common.cuh"

namespace ops
{

struct q4_1 {
    enum { BYTES = 20, WORDS = 4, HALVES = 1, HAS_MIN = 1 };
    static __device__ __forceinline__ float2 scale(const uint8_t *b)
    {
        return make_float2(half_bits(load_u16(b)), half_bits(load_u16(b + 2)));
    }
    static __device__ __forceinline__ void part(const uint8_t *b, int j, uint32_t v[2])
    {
        uint32_t q = load_u32(b + 4 + 4 * j);
        v[0] = q & 0x0f0f0f0f;
        v[1] = q >> 4 & 0x0f0f0f0f;
    }
};

/* The four low bits of x, one in bit 4 of each byte. */
static __device__ __forceinline__ uint32_t spread_fifth(uint32_t x)
{
    return (x & 1) << 4 | (x & 2) << 11 | (x & 4) << 18 | (x & 8) << 25;
}

struct q5_0 {
    enum { BYTES = 22, WORDS = 4, HALVES = 1, HAS_MIN = 0 };
    static __device__ __forceinline__ float2 scale(const uint8_t *b)
    {
        return make_float2(half_bits(load_u16(b)), 0.0f);
    }
    /* Five bits minus 16 as a signed byte: bit 7 set keeps the subtraction inside each byte. */
    static __device__ __forceinline__ uint32_t centred(uint32_t low, uint32_t fifth)
    {
        return ((low & 0x0f0f0f0f | spread_fifth(fifth) | 0x80808080) - 0x10101010) ^ 0x80808080;
    }
    static __device__ __forceinline__ void part(const uint8_t *b, int j, uint32_t v[2])
    {
        uint32_t q = load_u32(b + 6 + 4 * j), h = load_u32(b + 2);
        v[0] = centred(q, h >> 4 * j);
        v[1] = centred(q >> 4, h >> (16 + 4 * j));
    }
};

struct q8_0 {
    enum { BYTES = 34, WORDS = 8, HALVES = 0, HAS_MIN = 0 };
    static __device__ __forceinline__ float2 scale(const uint8_t *b)
    {
        return make_float2(half_bits(load_u16(b)), 0.0f);
    }
    static __device__ __forceinline__ void part(const uint8_t *b, int j, uint32_t v[2])
    {
        v[0] = load_u32(b + 2 + 4 * j);
    }
};

} // namespace ops

#endif
