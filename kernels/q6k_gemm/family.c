/*
 * The Q6_K GEMM's contract: y[n][m] f32 = w[m][k] (Q6_K) x a[n][k] (q8 chunks).
 *
 * Format, a super-block of 256 weights in 210 bytes: 128 bytes of low nibbles, 64 of high pairs of
 * bits, 16 signed scales, d f16; weight = d * scale * (q - 32). See engine/quant.h for the places.
 *
 * One term a chunk, the exact integer s0*dot0 + s1*dot1 (below 2^24) times d and da; in the class
 * bf16 a weight has one part, of two roundings. The limits: kernels/gemm_contract.h.
 *
 * To add a variant: one .cu file in this folder.
 */
#include "kernels/bf16_class.h"
#include "kernels/f16.h"
#include "kernels/gemm_contract.h"
#include "kernels/inputs.h"
#include "kernels/q8.h"

#include <string.h>

enum { BLOCK = 256, BLOCK_BYTES = 210, HIGH = 128, SCALES = 192, SCALE = 208, PART = 16 };

static const struct shape shapes[] = {
    {1, 1, 256},       {64, 64, 256},     {128, 128, 512},   {63, 65, 512},   {129, 127, 768},
    {1, 200, 1024},    {200, 1, 1024},    {255, 33, 2048},   {257, 129, 256}, {96, 17, 14336},
    {1024, 512, 4096}, {4096, 77, 14336}, {1024, 128, 4096},
};

static size_t row_bytes(int k)
{
    return (size_t)(k / BLOCK) * BLOCK_BYTES;
}

static enum status make_inputs(const struct shape *s, enum input_kind kind, uint64_t seed,
                               struct family_inputs *out)
{
    size_t blocks = (size_t)s->m * (size_t)(s->k / BLOCK);
    enum status st = inputs_make(s, kind, seed, blocks * BLOCK_BYTES, out);
    for (size_t i = 0; st == OK && i < blocks; i++) {
        uint64_t state = seed ^ (i + 1) * 0xd1342543de82ef95u;
        uint8_t *b = out->b + i * BLOCK_BYTES;
        if (kind == INPUT_ZERO && inputs_draw(&state) % 2) {
            memset(b, 0, BLOCK_BYTES);
            continue;
        }
        for (int at = 0; at < SCALE; at += 8) {
            uint64_t r = inputs_draw(&state);
            memcpy(b + at, &r, 8);
        }
        for (int j = 0; kind == INPUT_EXTREME && j < 16; j++)
            b[SCALES + j] = b[SCALES + j] & 1 ? 127 : 128;
        f16_store(b + SCALE, kind == INPUT_EXTREME ? 0x7bff : inputs_f16(&state, -14, -9));
    }
    return st;
}

/* Values j*16 .. j*16 + 15 of a block, less 32. */
static void part_values(const uint8_t *b, int j, int q[PART])
{
    int half = j >> 3, quarter = j >> 1 & 3;
    const uint8_t *low = b + half * 64 + (quarter & 1) * 32 + (j & 1) * PART;
    const uint8_t *high = b + HIGH + half * 32 + (j & 1) * PART;
    for (int i = 0; i < PART; i++)
        q[i] = (low[i] >> (quarter >> 1) * 4 & 15) + ((high[i] >> quarter * 2 & 3) << 4) - 32;
}

static struct reference_value reference(const struct shape *s, const struct family_inputs *in,
                                        int token, int row)
{
    struct reference_value r = {0};
    const uint8_t *b = in->b + (size_t)row * row_bytes(s->k);
    const uint8_t *c = in->a + (size_t)token * q8_row_bytes(s->k);
    for (int i = 0; i < s->k / Q8_CHUNK; i++, c += Q8_CHUNK_BYTES) {
        int q[PART], sum = 0;
        for (int half = 0; half < 2; half++) {
            int j = i % 8 * 2 + half, dot = 0;
            const int8_t *x = (const int8_t *)c + Q8_QUANTS + half * PART;
            part_values(b, j, q);
            for (int v = 0; v < PART; v++) dot += q[v] * x[v];
            sum += (int8_t)b[SCALES + j] * dot;
        }
        double term = (double)f16_to_f32(f16_load(c)) * f16_to_f32(f16_load(b + SCALE)) * sum;
        r.v += term;
        r.mag += term < 0 ? -term : term;
        if (i % 8 == 7) b += BLOCK_BYTES;
    }
    return r;
}

static void widen(const struct shape *s, const struct family_inputs *in, int token, int row,
                  struct reference_value *ref)
{
    const uint8_t *b = in->b + (size_t)row * row_bytes(s->k);
    const uint8_t *c = in->a + (size_t)token * q8_row_bytes(s->k);
    for (int i = 0; i < s->k / PART; i++) {
        int q[PART], j = i % 16;
        part_values(b, j, q);
        double d = f16_to_f32(f16_load(b + SCALE));
        bf16_add_terms(q, (const int8_t *)c + Q8_QUANTS + (i & 1) * PART, PART,
                       d * (int8_t)b[SCALES + j], 0, f16_to_f32(f16_load(c)), ref);
        if (j == 15) b += BLOCK_BYTES;
        if (i & 1) c += Q8_CHUNK_BYTES;
    }
}

static struct tolerance tolerance(const struct variant_desc *d, const struct shape *s,
                                  const struct reference_value *ref)
{
    return gemm_tolerance(d, s, ref, 1);
}

static enum status prepare(const struct variant_desc *d, const struct shape *s,
                           const uint8_t *canonical, uint8_t **out, size_t *out_bytes)
{
    (void)s;
    (void)canonical;
    *out = NULL;
    *out_bytes = 0;
    if (!strcmp(d->layout_b, "q6_k")) return OK;
    return err_set(ERR_UNAVAILABLE, "%s wants weights in the layout \"%s\", which isn't known here",
                   d->name, d->layout_b);
}

/* Rows first, as kernels/ops/qgemm.cuh counts them; the bf16 kernels share all tiles. */
static void geometry(const struct variant_desc *d, const struct shape *s, uint32_t grid[3])
{
    grid[0] = d->grid ? d->grid : gemm_tiles(s->m, d->tile_m);
    grid[1] = d->grid ? 1 : gemm_tiles(s->n, d->tile_n);
    grid[2] = 1;
}

static size_t b_bytes(const struct shape *s)
{
    return (size_t)s->m * row_bytes(s->k);
}

static double bytes(const struct shape *s)
{
    return (double)gemm_a_bytes(s) + (double)b_bytes(s) + (double)gemm_y_bytes(s);
}

extern const struct kernel_family q6k_gemm_family;
const struct kernel_family q6k_gemm_family = {
    .name = "q6k_gemm",
    .title = "Q6_K GEMM",
    .shapes = shapes,
    .n_shapes = sizeof shapes / sizeof *shapes,
    .check_shape = gemm_check_shape,
    .make_inputs = make_inputs,
    .reference = reference,
    .widen = widen,
    .tolerance = tolerance,
    .prepare = prepare,
    .prepare_a = bf16_prepare_a,
    .geometry = geometry,
    .macs = gemm_macs,
    .bytes = bytes,
    .a_bytes = gemm_a_bytes,
    .b_bytes = b_bytes,
    .y_bytes = gemm_y_bytes,
};
