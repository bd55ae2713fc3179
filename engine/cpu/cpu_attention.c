/*
 * Causal attention over the cache, one (token, head) at a time: scores, softmax with the maximum
 * taken off, weighted sum of values; all f32 in a fixed order.
 */
#include "engine/cpu/cpu_ops.h"
#include "engine/cpu/matmul.h"

#include <math.h>
#include <string.h>

struct attention_job {
    const struct op *op;
    const struct cpu_kv *kv;
    const float *q;
    float *y, *scores;
    uint32_t pos0, context;
};

static float softmax(float *s, uint32_t n)
{
    float top = s[0], sum = 0;
    for (uint32_t i = 1; i < n; i++)
        if (s[i] > top) top = s[i];
    for (uint32_t i = 0; i < n; i++) {
        s[i] = expf(s[i] - top);
        sum += s[i];
    }
    return sum;
}

static void one_head(const struct attention_job *j, uint32_t t, uint32_t head, float *s)
{
    const struct op *op = j->op;
    uint32_t d = op->head_dim, pos = j->pos0 + t;
    uint32_t from = op->window && pos + 1 > op->window ? pos + 1 - op->window : 0;
    uint32_t seen = pos + 1 - from, kv_head = head / (op->heads / op->kv_heads);
    size_t row = ((size_t)t * op->heads + head) * d;
    const float *k = j->kv->k + (size_t)from * j->kv->dim + (size_t)kv_head * d;
    const float *v = j->kv->v + (size_t)from * j->kv->dim + (size_t)kv_head * d;
    float *y = j->y + row;
    for (uint32_t i = 0; i < seen; i++)
        s[i] = cpu_dot(j->q + row, k + (size_t)i * j->kv->dim, d) * op->scale;
    float sum = softmax(s, seen);
    memset(y, 0, d * sizeof *y);
    for (uint32_t i = 0; i < seen; i++, v += j->kv->dim)
        for (uint32_t c = 0; c < d; c++) y[c] += s[i] * v[c];
    for (uint32_t c = 0; c < d; c++) y[c] /= sum;
}

static void heads_job(void *ctx, uint32_t first, uint32_t end, unsigned thread)
{
    const struct attention_job *j = ctx;
    float *s = j->scores + (size_t)thread * j->context;
    for (uint32_t i = first; i < end; i++) one_head(j, i / j->op->heads, i % j->op->heads, s);
}

void cpu_attention(struct pool *p, const struct op *op, const struct cpu_kv *kv, uint32_t pos0,
                   uint32_t context, float *scores)
{
    struct attention_job j = {
        op,   kv,     (const float *)(uintptr_t)op->x.addr, (float *)(uintptr_t)op->y.addr, scores,
        pos0, context};
    double cost = 2.0 * op->head_dim * (pos0 + op->n / 2 + 1);
    pool_run(p, op->n * op->heads, cost, heads_job, &j);
}
