/*
 * The Q4_K GEMM's contract: y[n][m] f32 = w[m][k] (Q4_K) x a[n][k] (q8 chunks).
 *
 * Two terms a chunk, da*dsv*clow and da*sa*dmv; dsv = d*sc and dmv = -dmin*m are exact. The limits:
 * kernels/gemm_contract.h.
 *
 * To add a variant: one .cu file in this folder. To add a layout of the weights: a case in
 * prepare.c.
 */
#include "kernels/q4k_gemm/family_priv.h"

#include "kernels/bf16_class.h"
#include "kernels/gemm_contract.h"
#include "kernels/q4k_gemm/ref.h"

/* Model shapes are sampled; the small ones are checked in full. Ragged in m, n and both, single
 * rows and tokens, one and many super-blocks, tile edges +- 1 of every tile size here. */
static const struct shape shapes[] = {
    {1, 1, 256},       {64, 64, 256},     {128, 128, 512},    {128, 64, 1024},
    {63, 65, 512},     {129, 127, 768},   {1, 200, 1024},     {200, 1, 1024},
    {255, 33, 2048},   {257, 129, 256},   {640, 96, 640 * 4}, {96, 17, 14336},
    {1024, 512, 4096}, {4096, 512, 4096}, {4096, 77, 14336},  {14336, 128, 4096},
};

static struct reference_value reference(const struct shape *s, const struct family_inputs *in,
                                        int token, int row)
{
    struct reference_value r;
    r.v = q4k_dot_exact(in->b + (size_t)row * q4k_row_bytes(s->k),
                        in->a + (size_t)token * q8_row_bytes(s->k), s->k, &r.mag);
    return r;
}

static struct tolerance tolerance(const struct variant_desc *d, const struct shape *s,
                                  const struct reference_value *ref)
{
    return gemm_tolerance(d, s, ref, 2);
}

/* Tokens first: neighbouring blocks then share a tile of weights, which is the larger operand. */
static void geometry(const struct variant_desc *d, const struct shape *s, uint32_t grid[3])
{
    uint32_t cluster = d->cluster_m ? d->cluster_m : 1;
    grid[0] = gemm_tiles(s->n, d->tile_n);
    grid[1] = (gemm_tiles(s->m, d->tile_m) + cluster - 1) / cluster * cluster;
    grid[2] = 1;
    if (d->grid) {
        grid[0] = d->grid;
        grid[1] = 1;
    }
}

static size_t b_bytes(const struct shape *s)
{
    return (size_t)s->m * q4k_row_bytes(s->k);
}

static double bytes(const struct shape *s)
{
    return (double)gemm_a_bytes(s) + (double)b_bytes(s) + (double)gemm_y_bytes(s);
}

extern const struct kernel_family q4k_gemm_family;
const struct kernel_family q4k_gemm_family = {
    .name = "q4k_gemm",
    .title = "Q4_K GEMM, quantised activations",
    .shapes = shapes,
    .n_shapes = sizeof shapes / sizeof *shapes,
    .check_shape = gemm_check_shape,
    .make_inputs = q4k_make_inputs,
    .reference = reference,
    .widen = q4k_widen,
    .tolerance = tolerance,
    .prepare = q4k_prepare,
    .prepare_a = bf16_prepare_a,
    .geometry = geometry,
    .macs = gemm_macs,
    .bytes = bytes,
    .a_bytes = gemm_a_bytes,
    .b_bytes = b_bytes,
    .y_bytes = gemm_y_bytes,
};
