/*
 * The Q4_K GEMM's contract: y[n][m] f32 = w[m][k] (Q4_K) x a[n][k] (q8 chunks).
 *
 * Tolerance. Per output the kernels add T = 2 * k/32 terms in f32 (u = 2^-24). The integer dots,
 * dsv and dmv are exact; a term takes at most 3 roundings (da*dsv or da*sa, its product, the
 * conversion of clow being exact below 2^24), and reaches the result through at most T additions.
 * So with N = T + 3 the standard bound is |y - exact| <= N u / (1 - N u) sum|terms|, whatever the
 * order of addition: that is the limit of the worst element, with no slack factor. Errors of a
 * sound kernel behave like a random walk, so the expected square is at most N u^2 (sum|terms|)^2:
 * summed over elements and divided by the sum of squares it is the NMSE limit. All-zero terms must
 * give exactly 0.
 *
 * To add a variant: one .cu file in this folder. To add a layout of the weights: a case in
 * prepare.c.
 */
#include "kernels/q4k_gemm/family_priv.h"

#include "kernels/bf16_class.h"
#include "kernels/q4k_gemm/ref.h"

static const double U = 0x1p-24;

/* Model shapes are sampled; the small ones are checked in full. Ragged in m, n and both, single
 * rows and tokens, one and many super-blocks, tile edges +- 1 of every tile size here. */
static const struct shape shapes[] = {
    {1, 1, 256},       {64, 64, 256},     {128, 128, 512},    {128, 64, 1024},
    {63, 65, 512},     {129, 127, 768},   {1, 200, 1024},     {200, 1, 1024},
    {255, 33, 2048},   {257, 129, 256},   {640, 96, 640 * 4}, {96, 17, 14336},
    {1024, 512, 4096}, {4096, 512, 4096}, {4096, 77, 14336},  {14336, 128, 4096},
};

static enum status check_shape(const struct shape *s)
{
    if (s->m < 1 || s->n < 1 || s->k < Q4K_BLOCK || s->k % Q4K_BLOCK)
        return err_set(ERR_USAGE,
                       "shape m=%d n=%d k=%d: m and n must be at least 1, k a multiple of %d", s->m,
                       s->n, s->k, Q4K_BLOCK);
    /* Indices inside a kernel are int for rows and tokens, 64-bit for bytes. */
    if (s->m > 1 << 22 || s->n > 1 << 20 || s->k > 1 << 20)
        return err_set(ERR_USAGE, "shape m=%d n=%d k=%d: at most m 4194304, n 1048576, k 1048576",
                       s->m, s->n, s->k);
    return OK;
}

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
    if (!strcmp(d->numeric, "bf16")) return bf16_tolerance(s, ref);
    double roundings = 2.0 * s->k / Q8_CHUNK + 3;
    double unit = U * ref->mag;
    return (struct tolerance){.worst = roundings * unit / (1 - roundings * U),
                              .mean_square = roundings * unit * unit};
}

static uint32_t tiles(int n, uint32_t tile)
{
    return tile ? ((uint32_t)n + tile - 1) / tile : 1;
}

/* Tokens first: neighbouring blocks then share a tile of weights, which is the larger operand. */
static void geometry(const struct variant_desc *d, const struct shape *s, uint32_t grid[3])
{
    uint32_t cluster = d->cluster_m ? d->cluster_m : 1;
    grid[0] = tiles(s->n, d->tile_n);
    grid[1] = (tiles(s->m, d->tile_m) + cluster - 1) / cluster * cluster;
    grid[2] = 1;
    if (d->grid) {
        grid[0] = d->grid;
        grid[1] = 1;
    }
}

static double macs(const struct shape *s)
{
    return (double)s->m * s->n * s->k;
}

static size_t a_bytes(const struct shape *s)
{
    return (size_t)s->n * q8_row_bytes(s->k);
}

static size_t b_bytes(const struct shape *s)
{
    return (size_t)s->m * q4k_row_bytes(s->k);
}

static size_t y_bytes(const struct shape *s)
{
    return (size_t)s->m * (size_t)s->n * sizeof(float);
}

static double bytes(const struct shape *s)
{
    return (double)a_bytes(s) + (double)b_bytes(s) + (double)y_bytes(s);
}

extern const struct kernel_family q4k_gemm_family;
const struct kernel_family q4k_gemm_family = {
    .name = "q4k_gemm",
    .title = "Q4_K GEMM, quantised activations",
    .shapes = shapes,
    .n_shapes = sizeof shapes / sizeof *shapes,
    .check_shape = check_shape,
    .make_inputs = q4k_make_inputs,
    .reference = reference,
    .widen = q4k_widen,
    .tolerance = tolerance,
    .prepare = q4k_prepare,
    .prepare_a = bf16_prepare_a,
    .geometry = geometry,
    .macs = macs,
    .bytes = bytes,
    .a_bytes = a_bytes,
    .b_bytes = b_bytes,
    .y_bytes = y_bytes,
};
