/* See inputs.h. */
#include "kernels/inputs.h"

#include "kernels/q8.h"

#include <stdlib.h>
#include <string.h>

uint64_t inputs_draw(uint64_t *s)
{
    uint64_t z = (*s += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint16_t inputs_f16(uint64_t *s, int lo, int hi)
{
    uint64_t r = inputs_draw(s);
    int exp = lo + (int)(r % (uint64_t)(hi - lo));
    return (uint16_t)((unsigned)(exp + 15) << 10 | (r >> 32 & 0x3ffu));
}

static int8_t draw_q(enum input_kind kind, uint64_t *s)
{
    uint64_t r = inputs_draw(s);
    if (kind == INPUT_NEGATIVE) return -127;
    if (kind == INPUT_EXTREME) return r & 1 ? 127 : -127;
    return (int8_t)((int)(r % 255) - 127);
}

static void fill_chunk(uint8_t *c, enum input_kind kind, uint64_t *s)
{
    int8_t q[Q8_CHUNK];
    for (int i = 0; i < Q8_CHUNK; i++) q[i] = draw_q(kind, s);
    uint16_t da = kind == INPUT_EXTREME ? 0x7bff : inputs_f16(s, -9, -3);
    if (kind == INPUT_ZERO && inputs_draw(s) % 3 == 0) {
        da = 0;
        memset(q, 0, sizeof q);
    }
    q8_put_chunk(c, da, q);
}

enum status inputs_make(const struct shape *s, enum input_kind kind, uint64_t seed, size_t b_bytes,
                        struct family_inputs *out)
{
    *out = (struct family_inputs){0};
    size_t per_token = (size_t)(s->k / Q8_CHUNK), chunks = (size_t)s->n * per_token;
    out->b_bytes = b_bytes;
    out->a_bytes = chunks * Q8_CHUNK_BYTES;
    out->a = malloc(out->a_bytes);
    out->b = malloc(out->b_bytes);
    if (!out->a || !out->b) {
        family_inputs_free(out);
        return err_set(ERR_NOMEM, "no memory for the inputs of %dx%dx%d", s->m, s->n, s->k);
    }
    for (size_t i = 0; i < chunks; i++) {
        size_t draw = kind == INPUT_ALIKE ? i % per_token : i;
        uint64_t state = ~seed ^ (draw + 1) * 0xaf251af3b0f025b5u;
        fill_chunk(out->a + i * Q8_CHUNK_BYTES, kind, &state);
    }
    return OK;
}
