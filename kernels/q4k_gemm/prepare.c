/*
 * Layouts of the weights other than Q4_K as it comes. To add one: a row in LAYOUTS.
 *
 * q4_k_int8: per super-block the 16 bytes of the header, then its 256 values as bytes in their
 * order: 272 bytes.
 */
#include "kernels/q4k_gemm/family_priv.h"
#include "kernels/q4k_gemm/ref.h"

#include <stdlib.h>

enum { INT8_BLOCK_BYTES = Q4K_NIBBLES + Q4K_BLOCK };

static void to_int8(const uint8_t *block, uint8_t *out)
{
    memcpy(out, block, Q4K_NIBBLES);
    for (int i = 0; i < Q4K_BLOCK; i++) {
        int sub = i / 32, byte = Q4K_NIBBLES + (sub >> 1) * 32 + i % 32;
        out[Q4K_NIBBLES + i] = block[byte] >> (sub & 1) * 4 & 15;
    }
}

static const struct layout {
    const char *name;
    size_t block_bytes;
    void (*convert)(const uint8_t *block, uint8_t *out); /* NULL: the canonical bytes */
} LAYOUTS[] = {
    {"q4_k", Q4K_BLOCK_BYTES, NULL},
    {"q4_k_int8", INT8_BLOCK_BYTES, to_int8},
};

enum status q4k_prepare(const struct variant_desc *d, const struct shape *s,
                        const uint8_t *canonical, uint8_t **out, size_t *out_bytes)
{
    const struct layout *l = NULL;
    *out = NULL;
    *out_bytes = 0;
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof LAYOUTS[0]; i++)
        if (!strcmp(d->layout_b, LAYOUTS[i].name)) l = &LAYOUTS[i];
    if (!l)
        return err_set(ERR_UNAVAILABLE,
                       "%s wants weights in the layout \"%s\", which isn't known here", d->name,
                       d->layout_b);
    if (!l->convert) return OK;
    size_t blocks = (size_t)s->m * (size_t)(s->k / Q4K_BLOCK);
    *out = malloc(blocks * l->block_bytes);
    if (!*out) return err_set(ERR_NOMEM, "no memory for weights in the layout %s", l->name);
    *out_bytes = blocks * l->block_bytes;
    for (size_t i = 0; i < blocks; i++)
        l->convert(canonical + i * Q4K_BLOCK_BYTES, *out + i * l->block_bytes);
    return OK;
}
