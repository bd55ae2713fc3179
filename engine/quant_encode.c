/*
 * Quantisers: floats into blocks.
 *
 * Job: make blocks as good as a careful encoder would, since synthetic models and tests are built
 * of them. Invariants: every code is in range whatever the (finite) input; a scale is narrowed to
 * f16 (or 6 bits, int8) before values are coded with it, so the coded value answers what the reader
 * will compute. The search of the K types: for each sub-block try several grids around the plain
 * one, for each take the values' codes and then the scale (and min) that fit those codes best in
 * least squares, keep the least error. To add a type, see quant.c.
 */
#include "engine/quant.h"

#include "base/f16.h"

#include <math.h>
#include <string.h>

static int clamp_int(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* v as a code: nearest integer in lo..hi; v may be infinite when a scale underflowed. */
static int code(float v, int lo, int hi)
{
    if (!(v > (float)lo)) return lo;
    return v >= (float)hi ? hi : clamp_int((int)lrintf(v), lo, hi);
}

static float inverse(float d)
{
    return d != 0 ? 1 / d : 0;
}

static void encode_f32(const float *in, void *row, size_t n)
{
    memcpy(row, in, n * sizeof *in);
}

static void encode_f16(const float *in, void *row, size_t n)
{
    uint16_t *out = row;
    for (size_t i = 0; i < n; i++) out[i] = f32_to_f16(in[i]);
}

static void encode_q4_1(const float *in, void *row, size_t n)
{
    struct q4_1_block *b = row;
    for (const float *end = in + n; in != end; in += QK, b++) {
        float lo = in[0], hi = in[0];
        for (int j = 1; j < QK; j++) {
            lo = fminf(lo, in[j]);
            hi = fmaxf(hi, in[j]);
        }
        b->d = f32_to_f16((hi - lo) / 15);
        b->m = f32_to_f16(lo);
        float id = inverse(f16_to_f32(b->d)), m = f16_to_f32(b->m);
        for (int j = 0; j < QK / 2; j++)
            b->qs[j] = (uint8_t)(code((in[j] - m) * id, 0, 15) |
                                 code((in[j + QK / 2] - m) * id, 0, 15) << 4);
    }
}

/* The value of largest magnitude, with its sign. */
static float extreme(const float *x, int n)
{
    float best = 0;
    for (int j = 0; j < n; j++)
        if (fabsf(x[j]) > fabsf(best)) best = x[j];
    return best;
}

static void encode_q5_0(const float *in, void *row, size_t n)
{
    struct q5_0_block *b = row;
    for (const float *end = in + n; in != end; in += QK, b++) {
        uint32_t qh = 0;
        /* The extreme value takes code 0 (-16), the only one of that magnitude. */
        b->d = f32_to_f16(extreme(in, QK) / -16);
        float id = inverse(f16_to_f32(b->d));
        for (int j = 0; j < QK / 2; j++) {
            int lo = code(in[j] * id, -16, 15) + 16, hi = code(in[j + QK / 2] * id, -16, 15) + 16;
            b->qs[j] = (uint8_t)((lo & 15) | (hi & 15) << 4);
            qh |= (uint32_t)(lo >> 4) << j | (uint32_t)(hi >> 4) << (j + 16);
        }
        memcpy(b->qh, &qh, sizeof qh);
    }
}

static void encode_q8_0(const float *in, void *row, size_t n)
{
    struct q8_0_block *b = row;
    for (const float *end = in + n; in != end; in += QK, b++) {
        b->d = f32_to_f16(fabsf(extreme(in, QK)) / 127);
        float id = inverse(f16_to_f32(b->d));
        for (int j = 0; j < QK; j++) b->qs[j] = (int8_t)code(in[j] * id, -127, 127);
    }
}

struct affine {
    float scale, min; /* value = scale * q - min, both >= 0 */
};

/* The scale and min that fit codes q to x best; false when the codes don't determine them. */
static bool fit_affine(const float *x, const uint8_t *q, int n, struct affine *out)
{
    float sq = 0, sqq = 0, sx = 0, sxq = 0;
    for (int i = 0; i < n; i++) {
        float v = q[i];
        sq += v;
        sqq += v * v;
        sx += x[i];
        sxq += x[i] * v;
    }
    float det = (float)n * sqq - sq * sq;
    if (det <= 0) return false;
    out->scale = ((float)n * sxq - sq * sx) / det;
    out->min = (sq * sxq - sqq * sx) / det;
    if (out->min < 0) {
        out->min = 0;
        out->scale = sxq / sqq;
    }
    return out->scale > 0;
}

static float affine_error(const float *x, const uint8_t *q, int n, struct affine a)
{
    float err = 0;
    for (int i = 0; i < n; i++) {
        float e = a.scale * (float)q[i] - a.min - x[i];
        err += e * e;
    }
    return err;
}

static void affine_codes(const float *x, int n, struct affine a, int max, uint8_t *q)
{
    float id = inverse(a.scale);
    for (int i = 0; i < n; i++) q[i] = (uint8_t)code((x[i] + a.min) * id, 0, max);
}

/* Best scale and min for a sub-block of n <= 32 values with codes 0..15. */
static struct affine search_affine(const float *x, int n)
{
    enum { STEPS = 12, CODE_MAX = 15 };
    uint8_t q[32];
    float lo = 0, hi = x[0];
    for (int i = 0; i < n; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    if (!(hi > lo)) return (struct affine){0, -lo};
    struct affine best = {(hi - lo) / CODE_MAX, -lo};
    affine_codes(x, n, best, CODE_MAX, q);
    float best_err = affine_error(x, q, n, best);
    for (int step = 0; step <= STEPS; step++) {
        /* Grids of 14.2 to 16.6 steps over the range: wider ones clip outliers. */
        struct affine grid = {(hi - lo) / (14.2f + 0.2f * (float)step), -lo}, fit;
        affine_codes(x, n, grid, CODE_MAX, q);
        if (!fit_affine(x, q, n, &fit)) continue;
        float err = affine_error(x, q, n, fit);
        if (err < best_err) {
            best = fit;
            best_err = err;
        }
    }
    return best;
}

static void pack_scales(uint8_t out[12], const uint8_t sc[8], const uint8_t m[8])
{
    for (int j = 0; j < 4; j++) {
        out[j] = (uint8_t)(sc[j] | (sc[j + 4] >> 4) << 6);
        out[j + 4] = (uint8_t)(m[j] | (m[j + 4] >> 4) << 6);
        out[j + 8] = (uint8_t)((sc[j + 4] & 15) | (m[j + 4] & 15) << 4);
    }
}

static void encode_q4_k_block(const float *in, struct q4_k_block *b)
{
    struct affine a[8];
    float max_scale = 0, max_min = 0;
    uint8_t sc[8], m[8], q[QK_K];

    for (int j = 0; j < 8; j++) {
        a[j] = search_affine(in + 32 * j, 32);
        max_scale = fmaxf(max_scale, a[j].scale);
        max_min = fmaxf(max_min, a[j].min);
    }
    b->d = f32_to_f16(max_scale / 63);
    b->dmin = f32_to_f16(max_min / 63);
    float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
    for (int j = 0; j < 8; j++) {
        sc[j] = (uint8_t)code(a[j].scale * inverse(d), 0, 63);
        m[j] = (uint8_t)code(a[j].min * inverse(dmin), 0, 63);
        struct affine stored = {d * (float)sc[j], dmin * (float)m[j]};
        affine_codes(in + 32 * j, 32, stored, 15, q + 32 * j);
    }
    pack_scales(b->scales, sc, m);
    for (int j = 0; j < 8; j += 2)
        for (int l = 0; l < 32; l++)
            b->qs[16 * j + l] = (uint8_t)(q[32 * j + l] | q[32 * j + 32 + l] << 4);
}

/* Best scale (of either sign) for 16 values with codes -32..31. */
static float search_symmetric(const float *x)
{
    enum { STEPS = 10, N = 16 };
    float top = extreme(x, N), best = 0, gain = 0;
    if (top == 0) return 0;
    for (int step = -STEPS; step <= STEPS; step++) {
        /* The extreme value goes to about -32; least squares for those codes gives the scale, and
         * what it takes off the error is sxq^2 / sqq. */
        float id = -(32 + 0.1f * (float)step) / top, sxq = 0, sqq = 0;
        for (int i = 0; i < N; i++) {
            float q = (float)code(x[i] * id, -32, 31);
            sxq += x[i] * q;
            sqq += q * q;
        }
        if (sqq > 0 && sxq * sxq > gain * sqq) {
            gain = sxq * sxq / sqq;
            best = sxq / sqq;
        }
    }
    return best;
}

static void encode_q6_k_block(const float *in, struct q6_k_block *b)
{
    float scale[16];
    uint8_t q[QK_K];

    for (int j = 0; j < 16; j++) scale[j] = search_symmetric(in + 16 * j);
    b->d = f32_to_f16(extreme(scale, 16) / -128);
    float d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++) {
        b->scales[j] = (int8_t)code(scale[j] * inverse(d), -128, 127);
        float id = inverse(d * (float)b->scales[j]);
        for (int i = 16 * j; i < 16 * j + 16; i++) q[i] = (uint8_t)(code(in[i] * id, -32, 31) + 32);
    }
    for (int h = 0; h < 2; h++)
        for (int l = 0; l < 32; l++) {
            const uint8_t *p = q + 128 * h + l;
            b->ql[64 * h + l] = (uint8_t)((p[0] & 15) | (p[64] & 15) << 4);
            b->ql[64 * h + 32 + l] = (uint8_t)((p[32] & 15) | (p[96] & 15) << 4);
            b->qh[32 * h + l] =
                (uint8_t)(p[0] >> 4 | (p[32] >> 4) << 2 | (p[64] >> 4) << 4 | (p[96] >> 4) << 6);
        }
}

static void encode_q4_k(const float *in, void *row, size_t n)
{
    struct q4_k_block *b = row;
    for (size_t i = 0; i < n; i += QK_K) encode_q4_k_block(in + i, b++);
}

static void encode_q6_k(const float *in, void *row, size_t n)
{
    struct q6_k_block *b = row;
    for (size_t i = 0; i < n; i += QK_K) encode_q6_k_block(in + i, b++);
}

void quant_quantize_row(enum quant_type t, const float *in, void *row, size_t n)
{
    static void (*const encoders[])(const float *in, void *row, size_t n) = {
        [QUANT_F32] = encode_f32,   [QUANT_F16] = encode_f16,   [QUANT_Q4_1] = encode_q4_1,
        [QUANT_Q5_0] = encode_q5_0, [QUANT_Q8_0] = encode_q8_0, [QUANT_Q4_K] = encode_q4_k,
        [QUANT_Q6_K] = encode_q6_k,
    };
    encoders[t](in, row, n);
}
