/*
 * Unpacking of weight blocks into int16; layouts in engine/quant.h. To add a type: a function here,
 * a case below.
 */
#include "engine/cpu/unpack.h"

#include "kernels/f16.h"

/* Inlined into the clones of cpu_unpack(), so that they are compiled for each instruction set. */
#define INLINE static inline __attribute__((always_inline))

INLINE void unpack_q4_k(const struct q4_k_block *b, uint32_t j, int16_t *w, float *s, float *mn)
{
    uint8_t sc, m;
    const uint8_t *q = b->qs + (j >> 1) * 32;
    q4_k_scale_min(b->scales, (int)j, &sc, &m);
    *s = f16_to_f32(b->d) * (float)sc;
    *mn = -(f16_to_f32(b->dmin) * (float)m);
    if (j & 1)
        for (int i = 0; i < 32; i++) w[i] = q[i] >> 4;
    else
        for (int i = 0; i < 32; i++) w[i] = q[i] & 15;
}

/* Chunk j of 8: half j/4, quarter j%4. Scales times values fit: 128 * 32 = 4096. */
INLINE void unpack_q6_k(const struct q6_k_block *b, uint32_t j, int16_t *w, float *s)
{
    uint32_t half = j >> 2, quarter = j & 3;
    const uint8_t *ql = b->ql + 64 * half + 32 * (quarter & 1), *qh = b->qh + 32 * half;
    const int8_t *sc = b->scales + 8 * half + 2 * quarter;
    int low = quarter < 2 ? 0 : 4, high = 2 * (int)quarter;
    *s = f16_to_f32(b->d);
    for (int part = 0; part < 2; part++, w += 16, ql += 16, qh += 16)
        for (int i = 0; i < 16; i++) {
            int q = (ql[i] >> low & 15) | (qh[i] >> high & 3) << 4;
            w[i] = (int16_t)((q - 32) * sc[part]);
        }
}

INLINE void unpack_q8_0(const struct q8_0_block *b, int16_t *w, float *s)
{
    *s = f16_to_f32(b->d);
    for (int i = 0; i < 32; i++) w[i] = b->qs[i];
}

INLINE void unpack_q5_0(const struct q5_0_block *b, int16_t *w, float *s)
{
    uint32_t h = (uint32_t)b->qh[0] | (uint32_t)b->qh[1] << 8 | (uint32_t)b->qh[2] << 16 |
                 (uint32_t)b->qh[3] << 24;
    *s = f16_to_f32(b->d);
    for (int i = 0; i < 16; i++) {
        w[i] = (int16_t)((int)((b->qs[i] & 15u) | (h >> i & 1u) << 4) - 16);
        w[i + 16] = (int16_t)((int)(b->qs[i] >> 4u | (h >> (i + 16) & 1u) << 4) - 16);
    }
}

INLINE void unpack_q4_1(const struct q4_1_block *b, int16_t *w, float *s, float *mn)
{
    *s = f16_to_f32(b->d);
    *mn = f16_to_f32(b->m);
    for (int i = 0; i < 16; i++) {
        w[i] = b->qs[i] & 15;
        w[i + 16] = b->qs[i] >> 4;
    }
}

CPU_CLONES void cpu_unpack(enum quant_type t, const void *row, uint32_t c0, uint32_t chunks,
                           int16_t *w, float *s, float *mn)
{
    for (uint32_t i = 0; i < chunks; i++, w += 32) {
        uint32_t c = c0 + i;
        switch (t) {
        case QUANT_Q4_K:
            unpack_q4_k((const struct q4_k_block *)row + c / 8, c % 8, w, s + i, mn + i);
            break;
        case QUANT_Q6_K:
            unpack_q6_k((const struct q6_k_block *)row + c / 8, c % 8, w, s + i);
            break;
        case QUANT_Q8_0:
            unpack_q8_0((const struct q8_0_block *)row + c, w, s + i);
            break;
        case QUANT_Q5_0:
            unpack_q5_0((const struct q5_0_block *)row + c, w, s + i);
            break;
        case QUANT_Q4_1:
            unpack_q4_1((const struct q4_1_block *)row + c, w, s + i, mn + i);
            break;
        case QUANT_F32:
        case QUANT_F16:
            break; /* not quantised: never asked for */
        }
    }
}
