/*
 * Half precision (IEEE 754 binary16, stored as uint16_t) to and from float, the only copy here.
 *
 * Pure functions, any thread. Exact: widening keeps every value, NaN payload included; narrowing
 * rounds to nearest even, overflows to infinity, keeps subnormals, and keeps a NaN a NaN. The bits
 * are the same as those of the GPU's own conversions (cvt.f32.f16, cvt.rn.f16.f32).
 */
#ifndef BASE_F16_H
#define BASE_F16_H

#include <stdint.h>
#include <string.h>

static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 31u, man = h & 0x3ffu, bits;
    float f;

    if (exp == 31) {
        bits = sign | 0x7f800000u | man << 13;
    } else if (exp) {
        bits = sign | (exp + 112) << 23 | man << 13;
    } else {
        /* Subnormal: man * 2^-24, exact in float. */
        f = (float)man * 0x1p-24f;
        memcpy(&bits, &f, sizeof bits);
        bits |= sign;
    }
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint16_t f32_to_f16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    bits &= 0x7fffffffu;

    if (bits > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (bits >> 13 & 0x3ffu));
    if (bits >= 0x477ff000u) return sign | 0x7c00u; /* 65520 and above round to infinity */
    if (bits < 0x38800000u) {
        /* Below 2^-14: adding 0.5 puts the result's unit (2^-24) at the last bit of the float, so
         * that the addition rounds to nearest even. */
        float v;
        memcpy(&v, &bits, sizeof v);
        v += 0.5f;
        memcpy(&bits, &v, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    bits += 0xfffu + (bits >> 13 & 1u);
    return (uint16_t)(sign | ((bits - 0x38000000u) >> 13));
}

#endif
