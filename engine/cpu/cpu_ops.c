/* Operators but products and attention; see cpu_ops.h. To add one: a function here, a case in
 * backend.c. */
#include "engine/cpu/cpu_ops.h"

#include "engine/quant.h"

#include <math.h>
#include <string.h>

static void *at(const struct buffer *b)
{
    return (void *)(uintptr_t)b->addr;
}

void cpu_embed(const struct op *op, const uint32_t *tokens, float *y)
{
    enum quant_type type = (enum quant_type)op->w->type;
    size_t bytes = quant_row_bytes(type, op->w->k);
    for (uint32_t t = 0; t < op->n; t++, y += op->w->k) {
        quant_dequant_row(type, (const uint8_t *)at(&op->w->data) + tokens[t] * bytes, y, op->w->k);
        for (uint32_t i = 0; i < op->w->k; i++) y[i] *= op->scale;
    }
}

struct norm_job {
    const struct op *op;
    const float *x, *w;
    float *y;
};

static void norm_groups(void *ctx, uint32_t first, uint32_t end, unsigned thread)
{
    const struct norm_job *j = ctx;
    uint32_t dim = j->op->dim;
    (void)thread;
    for (uint32_t g = first; g < end; g++) {
        const float *x = j->x + (size_t)g * dim;
        float *y = j->y + (size_t)g * dim;
        double sum = 0;
        for (uint32_t i = 0; i < dim; i++) sum += (double)x[i] * x[i];
        float r = (float)(1.0 / sqrt(sum / dim + (double)j->op->eps));
        for (uint32_t i = 0; i < dim; i++) y[i] = x[i] * r * j->w[i];
    }
}

void cpu_norm(struct pool *p, const struct op *op, const float *x, float *y)
{
    struct norm_job j = {op, x, at(&op->w->data), y};
    /* Groups of a token: 1, or heads for q and k norms. */
    uint32_t groups = op->n * (op->heads ? op->heads : 1);
    pool_run(p, groups, 2.0 * op->dim, norm_groups, &j);
}

/* The angle's sine and cosine of pair i at position pos. */
static void turn(const struct op *op, uint32_t i, uint32_t pos, float *c, float *s)
{
    const float *factors = op->rope_factors ? at(&op->rope_factors->data) : NULL;
    double freq = op->rope_scale * pow(op->rope_base, -2.0 * i / op->head_dim);
    if (factors) freq /= factors[i];
    *c = (float)cos(pos * freq);
    *s = (float)sin(pos * freq);
}

void cpu_rope(const struct op *op, uint32_t pos0, float *x)
{
    uint32_t half = op->head_dim / 2;
    for (uint32_t t = 0; t < op->n; t++, x += (size_t)op->heads * op->head_dim) {
        for (uint32_t i = 0; i < half; i++) {
            float c, s;
            turn(op, i, pos0 + t, &c, &s);
            uint32_t a = op->rope_neox ? i : 2 * i, b = op->rope_neox ? i + half : 2 * i + 1;
            for (uint32_t h = 0; h < op->heads; h++) {
                float *head = x + (size_t)h * op->head_dim, u = head[a], v = head[b];
                head[a] = u * c - v * s;
                head[b] = u * s + v * c;
            }
        }
    }
}

static float gelu_tanh(float g)
{
    return 0.5f * g * (1.0f + tanhf(0.7978845608f * (g + 0.044715f * g * g * g)));
}

void cpu_glu(const struct op *op, const float *x, const float *x2, float *y)
{
    size_t n = (size_t)op->n * op->dim;
    if (op->gelu)
        for (size_t i = 0; i < n; i++) y[i] = gelu_tanh(x[i]) * x2[i];
    else
        for (size_t i = 0; i < n; i++) y[i] = x[i] / (1.0f + expf(-x[i])) * x2[i];
}

void cpu_add(const struct op *op, const float *x, const float *x2, float *y)
{
    size_t n = (size_t)op->n * op->dim;
    for (size_t i = 0; i < n; i++) y[i] = x[i] + x2[i];
}

void cpu_bias(uint32_t n, uint32_t m, const float *bias, float *y)
{
    for (uint32_t t = 0; t < n; t++, y += m)
        for (uint32_t i = 0; i < m; i++) y[i] += bias[i];
}

void cpu_kv_store(const struct op *op, uint32_t pos0, struct cpu_kv *kv)
{
    size_t from = (size_t)pos0 * kv->dim, bytes = (size_t)op->n * kv->dim * sizeof(float);
    memcpy(kv->k + from, at(&op->x), bytes);
    memcpy(kv->v + from, at(&op->x2), bytes);
}

void cpu_argmax(const float *logits, uint32_t vocab, struct step_result *out)
{
    *out = (struct step_result){.top1 = -INFINITY, .top2 = -INFINITY};
    for (uint32_t i = 0; i < vocab; i++) {
        if (logits[i] > out->top1) {
            out->top2 = out->top1;
            out->top1 = logits[i];
            out->token = i;
        } else if (logits[i] > out->top2) {
            out->top2 = logits[i];
        }
    }
}
