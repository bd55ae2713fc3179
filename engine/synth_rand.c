/*
 * Philox4x32-10 and Gaussian values from it.
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC'11): ten
 * rounds of two 32x32 products, the key bumped by two constants each round; the tests hold the
 * paper's known answers. Invariant: a value depends on (stream, index) alone.
 */
#include "engine/synth.h"

#include "engine/synth_priv.h"

#include <math.h>

void synth_philox(const uint32_t ctr[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = ctr[0], c1 = ctr[1], c2 = ctr[2], c3 = ctr[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Two uniforms to two Gaussians. The first is never 0: (w + 1) / 2^32. */
static void box_muller(uint32_t w0, uint32_t w1, float *a, float *b)
{
    float r = sqrtf(-2 * logf(((float)(w0 >> 8) + 1) * 0x1p-24f));
    float t = 6.2831853f * ((float)(w1 >> 8) * 0x1p-24f);
    *a = r * cosf(t);
    *b = r * sinf(t);
}

void synth_gauss(uint64_t stream, uint64_t index, float *out, size_t n)
{
    const uint32_t key[2] = {(uint32_t)stream, SYNTH_KEY_GAUSS};
    float v[4];
    for (size_t i = 0; i < n; i++) {
        uint64_t at = index + i;
        if (i == 0 || at % 4 == 0) {
            const uint32_t ctr[4] = {(uint32_t)(at / 4), (uint32_t)(at / 4 >> 32),
                                     (uint32_t)(stream >> 32), 0};
            uint32_t w[4];
            synth_philox(ctr, key, w);
            box_muller(w[0], w[1], &v[0], &v[1]);
            box_muller(w[2], w[3], &v[2], &v[3]);
        }
        out[i] = v[at % 4];
    }
}
