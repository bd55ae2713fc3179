/* Limits and inputs of the bf16 kernels; see bf16_class.h. */
#include "kernels/bf16_class.h"

#include "kernels/bf16.h"
#include "kernels/q8.h"

#include <stdlib.h>
#include <string.h>

static const double U = 0x1p-8, ADD = 0x1p-22;

struct tolerance bf16_tolerance(const struct shape *s, const struct reference_value *ref)
{
    double product = (1 + U) * (1 + U) * (1 + U);
    double worst = (product - 1 + s->k * ADD * product) * ref->abs;
    return (struct tolerance){.worst = worst, .mean_square = 24 * U * U / 6 * ref->square};
}

void bf16_add_terms(const int *q, const int8_t *x, int len, double s, double o, double da,
                    struct reference_value *ref)
{
    /* Integer sums first: all that the loop over values needs. */
    int qx = 0, sx = 0, q_abs = 0, x_abs = 0;
    int64_t qqxx = 0, qxx = 0, xx = 0;
    for (int i = 0; i < len; i++) {
        int a = x[i] < 0 ? -x[i] : x[i], p = q[i] < 0 ? -q[i] : q[i];
        qx += q[i] * x[i];
        sx += x[i];
        q_abs += p * a;
        x_abs += a;
        qqxx += p * p * a * a;
        qxx += q[i] * a * a;
        xx += a * a;
    }
    double t1 = s * da * qx, t2 = o * da * sx, both = t1 + t2;
    double squares = s * s * (double)qqxx + 2 * s * o * (double)qxx + o * o * (double)xx;
    ref->abs += da * ((s < 0 ? -s : s) * q_abs + (o < 0 ? -o : o) * x_abs);
    ref->square += t1 * t1 + t2 * t2 + both * both + 2 * da * da * squares;
}

enum status bf16_prepare_a(const struct variant_desc *d, const struct shape *s,
                           const uint8_t *canonical, uint8_t **out, size_t *out_bytes)
{
    *out = NULL;
    *out_bytes = 0;
    if (!strcmp(d->layout_a, "q8_chunk40")) return OK;
    if (strcmp(d->layout_a, "bf16"))
        return err_set(ERR_UNAVAILABLE,
                       "%s wants activations in the layout \"%s\", which isn't known here", d->name,
                       d->layout_a);
    float *x = malloc((size_t)s->k * sizeof *x);
    uint8_t *a = calloc(1, bf16_bytes(s->n, s->k));
    if (!x || !a) {
        free(x);
        free(a);
        return err_set(ERR_NOMEM, "no memory for the activations of %dx%d", s->n, s->k);
    }
    for (int t = 0; t < s->n; t++) {
        q8_dequantize_row(canonical + (size_t)t * q8_row_bytes(s->k), s->k, x);
        bf16_put_row(x, s->n, t, s->k, a);
    }
    free(x);
    *out = a;
    *out_bytes = bf16_bytes(s->n, s->k);
    return OK;
}
