/*
 * Names and sizes of tensor types, and rows to floats; see quant.h for the layouts.
 *
 * Invariants: one row of `kinds` describes a type; the loops below do what its layout comment says
 * with the products taken in ggml's order (scale first), so that values agree to the bit. To add a
 * type: a number in quant.h, a row here, a dequantiser, and a quantiser in quant_encode.c.
 */
#include "engine/quant.h"

#include "base/f16.h"

#include <string.h>

struct kind {
    size_t len, bytes;
    void (*dequant)(const void *row, float *out, size_t n);
};

static void dequant_f32(const void *row, float *out, size_t n)
{
    memcpy(out, row, n * sizeof *out);
}

static void dequant_f16(const void *row, float *out, size_t n)
{
    const uint16_t *in = row;
    for (size_t i = 0; i < n; i++) out[i] = f16_to_f32(in[i]);
}

static void dequant_q4_1(const void *row, float *out, size_t n)
{
    const struct q4_1_block *b = row;
    for (const float *end = out + n; out != end; b++, out += QK) {
        float d = f16_to_f32(b->d), m = f16_to_f32(b->m);
        for (int j = 0; j < QK / 2; j++) {
            out[j] = d * (float)(b->qs[j] & 15) + m;
            out[j + QK / 2] = d * (float)(b->qs[j] >> 4) + m;
        }
    }
}

static void dequant_q5_0(const void *row, float *out, size_t n)
{
    const struct q5_0_block *b = row;
    for (const float *end = out + n; out != end; b++, out += QK) {
        float d = f16_to_f32(b->d);
        uint32_t qh;
        memcpy(&qh, b->qh, sizeof qh);
        for (int j = 0; j < QK / 2; j++) {
            int lo = (b->qs[j] & 15) | (int)(qh >> j & 1) << 4;
            int hi = b->qs[j] >> 4 | (int)(qh >> (j + 16) & 1) << 4;
            out[j] = (float)(lo - 16) * d;
            out[j + QK / 2] = (float)(hi - 16) * d;
        }
    }
}

static void dequant_q8_0(const void *row, float *out, size_t n)
{
    const struct q8_0_block *b = row;
    for (const float *end = out + n; out != end; b++, out += QK) {
        float d = f16_to_f32(b->d);
        for (int j = 0; j < QK; j++) out[j] = (float)b->qs[j] * d;
    }
}

static void dequant_q4_k(const void *row, float *out, size_t n)
{
    const struct q4_k_block *b = row;
    for (const float *end = out + n; out != end; b++, out += QK_K) {
        float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++) {
            const uint8_t *q = b->qs + 32 * (j / 2);
            int shift = 4 * (j & 1);
            uint8_t sc, m;
            q4_k_scale_min(b->scales, j, &sc, &m);
            float scale = d * (float)sc, min = dmin * (float)m;
            for (int l = 0; l < 32; l++)
                out[32 * j + l] = scale * (float)(q[l] >> shift & 15) - min;
        }
    }
}

static void dequant_q6_k(const void *row, float *out, size_t n)
{
    const struct q6_k_block *b = row;
    for (const float *end = out + n; out != end; b++, out += QK_K) {
        float d = f16_to_f32(b->d);
        for (int i = 0; i < QK_K; i++) {
            int half = i / 128, part = i % 128 / 32, l = i % 32;
            int lo = b->ql[64 * half + 32 * (part & 1) + l] >> 4 * (part >> 1) & 15;
            int hi = b->qh[32 * half + l] >> 2 * part & 3;
            out[i] = d * (float)b->scales[i / 16] * (float)((lo | hi << 4) - 32);
        }
    }
}

static const struct kind kinds[] = {
    [QUANT_F32] = {1, 4, dequant_f32},
    [QUANT_F16] = {1, 2, dequant_f16},
    [QUANT_Q4_1] = {QK, sizeof(struct q4_1_block), dequant_q4_1},
    [QUANT_Q5_0] = {QK, sizeof(struct q5_0_block), dequant_q5_0},
    [QUANT_Q8_0] = {QK, sizeof(struct q8_0_block), dequant_q8_0},
    [QUANT_Q4_K] = {QK_K, sizeof(struct q4_k_block), dequant_q4_k},
    [QUANT_Q6_K] = {QK_K, sizeof(struct q6_k_block), dequant_q6_k},
};

bool quant_known(uint32_t id)
{
    return id < sizeof kinds / sizeof *kinds && kinds[id].len;
}

const char *quant_name(uint32_t id)
{
    /* ggml's numbering; ids that were withdrawn there stay empty. */
    static const char *const names[] = {
        [0] = "F32",     [1] = "F16",      [2] = "Q4_0",   [3] = "Q4_1",    [6] = "Q5_0",
        [7] = "Q5_1",    [8] = "Q8_0",     [9] = "Q8_1",   [10] = "Q2_K",   [11] = "Q3_K",
        [12] = "Q4_K",   [13] = "Q5_K",    [14] = "Q6_K",  [15] = "Q8_K",   [16] = "IQ2_XXS",
        [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S", [20] = "IQ4_NL", [21] = "IQ3_S",
        [22] = "IQ2_S",  [23] = "IQ4_XS",  [24] = "I8",    [25] = "I16",    [26] = "I32",
        [27] = "I64",    [28] = "F64",     [29] = "IQ1_M", [30] = "BF16",   [34] = "TQ1_0",
        [35] = "TQ2_0",  [39] = "MXFP4",
    };
    const char *name = id < sizeof names / sizeof *names ? names[id] : NULL;
    return name ? name : "unknown";
}

size_t quant_block_len(enum quant_type t)
{
    return kinds[t].len;
}

size_t quant_block_bytes(enum quant_type t)
{
    return kinds[t].bytes;
}

size_t quant_row_bytes(enum quant_type t, uint64_t n)
{
    const struct kind *k = &kinds[t];
    size_t bytes;
    if (n % k->len || __builtin_mul_overflow(n / k->len, k->bytes, &bytes)) return 0;
    return bytes;
}

void quant_dequant_row(enum quant_type t, const void *row, float *out, size_t n)
{
    kinds[t].dequant(row, out, n);
}
