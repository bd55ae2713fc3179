/*
 * One value of a weight row as f32, for the embedding lookup: the arithmetic of
 * engine/quant.c's quant_dequant_row(). A struct a type: LEN values in BYTES, get(block, i).
 */
#ifndef KERNELS_OPS_DEQUANT_CUH
#define KERNELS_OPS_DEQUANT_CUH

#include "kernels/ops/common.cuh"

namespace ops
{

struct deq_f32 {
    enum { LEN = 1, BYTES = 4 };
    static __device__ float get(const uint8_t *b, int)
    {
        return *(const float *)b;
    }
};

struct deq_f16 {
    enum { LEN = 1, BYTES = 2 };
    static __device__ float get(const uint8_t *b, int)
    {
        return half_bits(load_u16(b));
    }
};

/* d, m, 16 bytes: byte j holds value j low and j + 16 high. */
struct deq_q4_1 {
    enum { LEN = 32, BYTES = 20 };
    static __device__ float get(const uint8_t *b, int i)
    {
        int q = (b[4 + (i & 15)] >> (i >> 4) * 4) & 15;
        return __fadd_rn(__fmul_rn(half_bits(load_u16(b)), (float)q), half_bits(load_u16(b + 2)));
    }
};

/* d, 32 fifth bits, 16 bytes of nibbles. */
struct deq_q5_0 {
    enum { LEN = 32, BYTES = 22 };
    static __device__ float get(const uint8_t *b, int i)
    {
        int q = (b[6 + (i & 15)] >> (i >> 4) * 4) & 15;
        q |= ((b[2 + (i >> 3)] >> (i & 7)) & 1) << 4;
        return half_bits(load_u16(b)) * (float)(q - 16);
    }
};

struct deq_q8_0 {
    enum { LEN = 32, BYTES = 34 };
    static __device__ float get(const uint8_t *b, int i)
    {
        return half_bits(load_u16(b)) * (float)(int8_t)b[2 + i];
    }
};

/* The 6-bit scale and min of sub-block j, see q4_k_scale_min() in engine/quant.h. */
static __device__ __forceinline__ void q4k_scale_min(const uint8_t *s, int j, int *sc, int *m)
{
    if (j < 4) {
        *sc = s[j] & 63;
        *m = s[j + 4] & 63;
    } else {
        *sc = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        *m = (s[j + 4] >> 4) | (s[j] >> 6) << 4;
    }
}

struct deq_q4_k {
    enum { LEN = 256, BYTES = 144 };
    static __device__ float get(const uint8_t *b, int i)
    {
        int j = i >> 5, sc, m;
        q4k_scale_min(b + 4, j, &sc, &m);
        int q = (b[16 + (j >> 1) * 32 + (i & 31)] >> (j & 1) * 4) & 15;
        float d = __fmul_rn(half_bits(load_u16(b)), (float)sc);
        float min = __fmul_rn(half_bits(load_u16(b + 2)), (float)m);
        return __fsub_rn(__fmul_rn(d, (float)q), min);
    }
};

struct deq_q6_k {
    enum { LEN = 256, BYTES = 210 };
    static __device__ float get(const uint8_t *b, int i)
    {
        int h = i >> 7, part = (i >> 5) & 3, l = i & 31;
        int q = (b[h * 64 + (part & 1) * 32 + l] >> (part >> 1) * 4) & 15;
        q |= ((b[128 + h * 32 + l] >> part * 2) & 3) << 4;
        float d = __fmul_rn(half_bits(load_u16(b + 208)), (float)(int8_t)b[192 + (i >> 4)]);
        return d * (float)(q - 32);
    }
};

} // namespace ops

#endif
