/*
 * Inputs of the Q4_K GEMM for checking: deterministic in (shape, kind, seed), made directly in the
 * quantised formats. Every kind keeps the formats' rules (sa = sum of q, 6-bit scales), so that a
 * kernel can't be excused by malformed data.
 */
#include "kernels/inputs.h"
#include "kernels/bf16_class.h"
#include "kernels/q4k_gemm/family_priv.h"
#include "kernels/q4k_gemm/ref.h"

static void fill_block(uint8_t *b, enum input_kind kind, uint64_t *s)
{
    memset(b, 0, Q4K_BLOCK_BYTES);
    if (kind == INPUT_ZERO && inputs_draw(s) % 2) return;
    uint8_t sc[8], m[8];
    bool extreme = kind == INPUT_EXTREME;
    for (int j = 0; j < 8; j++) {
        uint64_t r = inputs_draw(s);
        sc[j] = extreme ? 63 : r & 63;
        m[j] = extreme ? 63 : r >> 8 & 63;
    }
    q4k_pack_scales(b + Q4K_SCALES, sc, m);
    /* Largest finite halves in the extreme kind: 65504 = 0x7bff. */
    f16_store(b, extreme ? 0x7bff : inputs_f16(s, -13, -8));
    f16_store(b + 2, extreme ? 0x7bff : inputs_f16(s, -13, -8));
    if (kind == INPUT_NO_MIN) f16_store(b + 2, 0);
    for (int i = Q4K_NIBBLES; i < Q4K_BLOCK_BYTES; i += 8) {
        uint64_t r = inputs_draw(s);
        if (extreme) r |= 0xf0f0f0f0f0f0f0f0u >> (r & 4);
        memcpy(b + i, &r, 8);
    }
}

enum status q4k_make_inputs(const struct shape *s, enum input_kind kind, uint64_t seed,
                            struct family_inputs *out)
{
    size_t blocks = (size_t)s->m * (size_t)(s->k / Q4K_BLOCK);
    enum status st = inputs_make(s, kind, seed, blocks * Q4K_BLOCK_BYTES, out);
    for (size_t i = 0; st == OK && i < blocks; i++) {
        uint64_t state = seed ^ (i + 1) * 0xd1342543de82ef95u;
        fill_block(out->b + i * Q4K_BLOCK_BYTES, kind, &state);
    }
    return st;
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
