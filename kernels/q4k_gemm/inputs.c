/*
 * Inputs of the Q4_K GEMM for checking: deterministic in (shape, kind, seed), made directly in the
 * quantised formats. Every kind keeps the formats' rules (sa = sum of q, 6-bit scales), so that a
 * kernel can't be excused by malformed data.
 */
#include "kernels/bf16_class.h"
#include "kernels/q4k_gemm/family_priv.h"
#include "kernels/q4k_gemm/ref.h"

#include <stdlib.h>

/* splitmix64: a counter-based generator, so that every block is drawn independently. */
static uint64_t mix(uint64_t *s)
{
    uint64_t z = (*s += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A positive f16 with 2^lo <= v < 2^hi. */
static uint16_t draw_f16(uint64_t *s, int lo, int hi)
{
    uint64_t r = mix(s);
    int exp = lo + (int)(r % (uint64_t)(hi - lo));
    return (uint16_t)((unsigned)(exp + 15) << 10 | (r >> 32 & 0x3ffu));
}

static void fill_block(uint8_t *b, enum input_kind kind, uint64_t *s)
{
    memset(b, 0, Q4K_BLOCK_BYTES);
    if (kind == INPUT_ZERO && mix(s) % 2) return;
    uint8_t sc[8], m[8];
    bool extreme = kind == INPUT_EXTREME;
    for (int j = 0; j < 8; j++) {
        uint64_t r = mix(s);
        sc[j] = extreme ? 63 : r & 63;
        m[j] = extreme ? 63 : r >> 8 & 63;
    }
    q4k_pack_scales(b + Q4K_SCALES, sc, m);
    /* Largest finite halves in the extreme kind: 65504 = 0x7bff. */
    f16_store(b, extreme ? 0x7bff : draw_f16(s, -13, -8));
    f16_store(b + 2, extreme ? 0x7bff : draw_f16(s, -13, -8));
    if (kind == INPUT_NO_MIN) f16_store(b + 2, 0);
    for (int i = Q4K_NIBBLES; i < Q4K_BLOCK_BYTES; i += 8) {
        uint64_t r = mix(s);
        if (extreme) r |= 0xf0f0f0f0f0f0f0f0u >> (r & 4);
        memcpy(b + i, &r, 8);
    }
}

static int8_t draw_q(enum input_kind kind, uint64_t *s)
{
    uint64_t r = mix(s);
    if (kind == INPUT_NEGATIVE) return -127;
    if (kind == INPUT_EXTREME) return r & 1 ? 127 : -127;
    return (int8_t)((int)(r % 255) - 127);
}

static void fill_chunk(uint8_t *c, enum input_kind kind, uint64_t *s)
{
    int8_t q[Q8_CHUNK];
    for (int i = 0; i < Q8_CHUNK; i++) q[i] = draw_q(kind, s);
    uint16_t da = kind == INPUT_EXTREME ? 0x7bff : draw_f16(s, -9, -3);
    if (kind == INPUT_ZERO && mix(s) % 3 == 0) {
        da = 0;
        memset(q, 0, sizeof q);
    }
    q8_put_chunk(c, da, q);
}

enum status q4k_make_inputs(const struct shape *s, enum input_kind kind, uint64_t seed,
                            struct family_inputs *out)
{
    *out = (struct family_inputs){0};
    size_t blocks = (size_t)s->m * (size_t)(s->k / Q4K_BLOCK);
    size_t per_token = (size_t)(s->k / Q8_CHUNK), chunks = (size_t)s->n * per_token;
    out->b_bytes = blocks * Q4K_BLOCK_BYTES;
    out->a_bytes = chunks * Q8_CHUNK_BYTES;
    out->a = malloc(out->a_bytes);
    out->b = malloc(out->b_bytes);
    if (!out->a || !out->b) {
        family_inputs_free(out);
        return err_set(ERR_NOMEM, "no memory for the inputs of %dx%dx%d", s->m, s->n, s->k);
    }
    for (size_t i = 0; i < blocks; i++) {
        uint64_t state = seed ^ (i + 1) * 0xd1342543de82ef95u;
        fill_block(out->b + i * Q4K_BLOCK_BYTES, kind, &state);
    }
    for (size_t i = 0; i < chunks; i++) {
        size_t draw = kind == INPUT_ALIKE ? i % per_token : i;
        uint64_t state = ~seed ^ (draw + 1) * 0xaf251af3b0f025b5u;
        fill_chunk(out->a + i * Q8_CHUNK_BYTES, kind, &state);
    }
    return OK;
}

void q4k_widen(const struct shape *s, const struct family_inputs *in, int token, int row,
               struct reference_value *ref)
{
    const uint8_t *w = in->b + (size_t)row * q4k_row_bytes(s->k);
    const uint8_t *c = in->a + (size_t)token * q8_row_bytes(s->k);
    for (int b = 0; b < s->k / Q4K_BLOCK; b++, w += Q4K_BLOCK_BYTES) {
        double d = f16_to_f32(f16_load(w)), dmin = f16_to_f32(f16_load(w + 2));
        for (int j = 0; j < Q4K_SUBS; j++, c += Q8_CHUNK_BYTES) {
            int sc, m, q[Q8_CHUNK];
            q4k_scale_min(w + Q4K_SCALES, j, &sc, &m);
            const uint8_t *from = w + Q4K_NIBBLES + (j >> 1) * 32;
            for (int i = 0; i < Q8_CHUNK; i++) q[i] = from[i] >> (j & 1) * 4 & 15;
            bf16_add_terms(q, (const int8_t *)c + Q8_QUANTS, Q8_CHUNK, d * sc, -dmin * m,
                           f16_to_f32(f16_load(c)), ref);
        }
    }
}
