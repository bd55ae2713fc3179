/* See gemm_contract.h. */
#include "kernels/gemm_contract.h"

#include "kernels/bf16_class.h"
#include "kernels/q8.h"

#include <string.h>

static const double U = 0x1p-24;

enum status gemm_check_shape(const struct shape *s)
{
    if (s->m < 1 || s->n < 1 || s->k < GEMM_BLOCK || s->k % GEMM_BLOCK)
        return err_set(ERR_USAGE,
                       "shape m=%d n=%d k=%d: m and n must be at least 1, k a multiple of %d", s->m,
                       s->n, s->k, GEMM_BLOCK);
    if (s->m > 1 << 22 || s->n > 1 << 20 || s->k > 1 << 20)
        return err_set(ERR_USAGE, "shape m=%d n=%d k=%d: at most m 4194304, n 1048576, k 1048576",
                       s->m, s->n, s->k);
    return OK;
}

struct tolerance gemm_tolerance(const struct variant_desc *d, const struct shape *s,
                                const struct reference_value *ref, int terms)
{
    if (!strcmp(d->numeric, "bf16")) return bf16_tolerance(s, ref);
    double roundings = (double)terms * s->k / Q8_CHUNK + 3, unit = U * ref->mag;
    return (struct tolerance){.worst = roundings * unit / (1 - roundings * U),
                              .mean_square = roundings * unit * unit};
}

uint32_t gemm_tiles(int n, uint32_t tile)
{
    return tile ? ((uint32_t)n + tile - 1) / tile : 1;
}

double gemm_macs(const struct shape *s)
{
    return (double)s->m * s->n * s->k;
}

size_t gemm_a_bytes(const struct shape *s)
{
    return (size_t)s->n * q8_row_bytes(s->k);
}

size_t gemm_y_bytes(const struct shape *s)
{
    return (size_t)s->m * (size_t)s->n * sizeof(float);
}
