/*
 * IEEE half precision in plain C: exact widening, narrowing with round to nearest even.
 * Pure; any thread.
 */
#ifndef KERNELS_F16_H
#define KERNELS_F16_H

#include <stdint.h>
#include <string.h>

static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 31u, man = h & 0x3ffu, bits;
    if (exp == 31)
        bits = sign | 0x7f800000u | man << 13;
    else if (exp)
        bits = sign | (exp + 112) << 23 | man << 13;
    else {
        /* Subnormal or zero: man * 2^-24 is exact in f32. */
        float v = (float)man * 0x1p-24f;
        memcpy(&bits, &v, 4);
        bits |= sign;
    }
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

static inline uint16_t f32_to_f16(float f)
{
    uint32_t x;
    memcpy(&x, &f, 4);
    uint32_t sign = x >> 16 & 0x8000u, mag = x & 0x7fffffffu;
    if (mag > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);  /* NaN */
    if (mag >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and up round to infinity */
    if (mag < 0x38800000u) {
        /* Below 2^-14: adding 0.5 puts the result's ulp at 2^-24, and rounds to even. */
        float v;
        memcpy(&v, &mag, 4);
        v += 0.5f;
        uint32_t bits;
        memcpy(&bits, &v, 4);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    uint32_t odd = mag >> 13 & 1u;
    return (uint16_t)(sign | (mag + 0xc8000fffu + odd) >> 13);
}

static inline uint16_t f16_load(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline void f16_store(uint8_t *p, uint16_t h)
{
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

#endif
