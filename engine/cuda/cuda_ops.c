/*
 * Operators as launches, but for products (cuda_matmul.c). To add one: a function that fills args
 * in the kernel's own order (first comment of its .cu file), and a case in cuda_run_op().
 *
 * Invariant: nothing here depends on the step's position, so that a decode step can be replayed.
 */
#include "engine/cuda/cuda_priv.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static uint32_t blocks_of(uint64_t count, uint32_t each)
{
    return (uint32_t)((count + each - 1) / each);
}

/* A launch over `count` values, one a thread, with `moved` f32 values read or written. */
static struct cuda_launch flat(const struct backend *b, const struct op *op, enum cuda_kernel k,
                               uint64_t count, double moved, void **args)
{
    return (struct cuda_launch){.v = b->kernel[k],
                                .op = op,
                                .grid = {blocks_of(count, OPS_FLAT), 1, 1},
                                .block = OPS_FLAT,
                                .dyn_smem = -1,
                                .m = op->dim,
                                .n = op->n,
                                .bytes = 4.0 * moved,
                                .args = args};
}

static enum status too_large(const struct op *op)
{
    return err_set(ERR_LIMIT, "%s: %u tokens x %u values are more than a kernel here counts",
                   op->role, op->n, op->dim);
}

static enum status unsupported(const struct op *op, const char *what, uint32_t v)
{
    return err_set(ERR_UNAVAILABLE, "%s: %s %u isn't computed on the GPU; --backend cpu does it",
                   op->role, what, v);
}

static enum status embed(struct backend *b, const struct op *op)
{
    static const int kernels[] = {
        [QUANT_F32] = CUDA_EMBED_F32,   [QUANT_F16] = CUDA_EMBED_F16,
        [QUANT_Q4_1] = CUDA_EMBED_Q4_1, [QUANT_Q5_0] = CUDA_EMBED_Q5_0,
        [QUANT_Q8_0] = CUDA_EMBED_Q8_0, [QUANT_Q4_K] = CUDA_EMBED_Q4_K,
        [QUANT_Q6_K] = CUDA_EMBED_Q6_K,
    };
    if (!quant_known((uint32_t)op->w->type))
        return unsupported(op, "tensor type", (uint32_t)op->w->type);
    int dim = (int)op->w->k, vocab = (int)op->w->m;
    float scale = op->scale;
    drv_ptr w = op->w->data.addr, y = op->y.addr;
    void *args[] = {&w, &b->state, &y, &dim, &vocab, &scale};
    struct cuda_launch l = flat(b, op, (enum cuda_kernel)kernels[op->w->type], op->w->k, 0, args);
    l.grid[1] = op->n;
    l.m = op->w->k;
    l.bytes =
        op->n * ((double)quant_row_bytes((enum quant_type)op->w->type, op->w->k) + 4.0 * op->w->k);
    return cuda_launch(b, &l);
}

static enum status norm(struct backend *b, const struct op *op)
{
    uint64_t groups = (uint64_t)op->n * (op->heads ? op->heads : 1);
    if (groups > INT_MAX / 32) return too_large(op);
    int ngroups = (int)groups, dim = (int)op->dim;
    float eps = op->eps;
    drv_ptr x = op->x.addr, w = op->w->data.addr, y = op->y.addr;
    void *args[] = {&x, &w, &y, &ngroups, &dim, &eps};
    bool heads = op->heads > 0;
    struct cuda_launch l = flat(b, op, heads ? CUDA_NORM_HEAD : CUDA_NORM, groups * 32,
                                2.0 * (double)groups * op->dim, args);
    if (!heads) {
        l.grid[0] = (uint32_t)groups;
        l.block = (op->dim + 31) / 32 * 32;
        if (l.block > 1024) l.block = 1024;
    }
    return cuda_launch(b, &l);
}

/* The frequencies of one kind of layer, made in double as on the CPU; kept until close. */
enum status cuda_rope_table(struct backend *b, const struct op *op, drv_ptr *out)
{
    uint64_t factors_at = op->rope_factors ? op->rope_factors->data.addr : 0;
    uint32_t half = op->head_dim / 2;
    for (uint32_t i = 0; i < b->n_rope; i++) {
        const struct cuda_rope_table *t = &b->rope[i];
        if (t->base == op->rope_base && t->scale == op->rope_scale && t->factors == factors_at &&
            t->head_dim == op->head_dim) {
            *out = t->freq;
            return OK;
        }
    }
    if (b->n_rope == CUDA_ROPE_TABLES)
        return err_set(ERR_LIMIT, "more than %d kinds of rotary positions in one model",
                       CUDA_ROPE_TABLES);
    struct cuda_rope_table *t = &b->rope[b->n_rope];
    *t = (struct cuda_rope_table){op->rope_base, op->rope_scale, factors_at, op->head_dim, 0};
    float *factors = NULL;
    double *freq = malloc(half * sizeof *freq + 1);
    enum status st = OK;
    if (factors_at) {
        factors = malloc(half * sizeof *factors + 1);
        if (factors)
            st = cuda_download(b, &op->rope_factors->data, 0, factors, half * sizeof *factors);
    }
    if (!freq || (factors_at && !factors)) st = err_set(ERR_NOMEM, "out of memory");
    if (st != OK) goto out;
    for (uint32_t i = 0; i < half; i++) {
        freq[i] = op->rope_scale * pow(op->rope_base, -2.0 * i / op->head_dim);
        if (factors) freq[i] /= factors[i];
    }
    st = cuda_alloc_bytes(b, half * sizeof *freq, "rotary frequencies", &t->freq);
    if (st != OK) goto out;
    b->n_rope++;
    st =
        driver_check(b->drv, b->drv->MemcpyHtoDAsync(t->freq, freq, half * sizeof *freq, b->stream),
                     "rotary frequencies");
    if (st == OK) st = cuda_wait(b);
    *out = t->freq;
out:
    free(freq);
    free(factors);
    return st;
}

static enum status rope(struct backend *b, const struct op *op)
{
    uint64_t pairs = (uint64_t)op->n * op->heads * (op->head_dim / 2);
    drv_ptr freq, x = op->x.addr;
    if (pairs > INT_MAX - OPS_FLAT) return too_large(op);
    enum status st = cuda_rope_table(b, op, &freq);
    if (st != OK) return st;
    int n = (int)op->n, heads = (int)op->heads, head_dim = (int)op->head_dim;
    void *args[] = {&x, &freq, &b->state, &n, &heads, &head_dim};
    struct cuda_launch l = flat(b, op, op->rope_neox ? CUDA_ROPE_HALVES : CUDA_ROPE_PAIRS, pairs,
                                4.0 * (double)pairs, args);
    l.m = op->heads * op->head_dim;
    return cuda_launch(b, &l);
}

/* NULL, with the message set, when the layer has none. */
static const struct cuda_kv *layer_cache(const struct backend *b, const struct op *op)
{
    if (op->layer >= 0 && (uint32_t)op->layer < b->layers) return &b->kv[op->layer];
    err_set(ERR_USAGE, "%s: layer %d has no KV cache", op->role, op->layer);
    return NULL;
}

static enum status kv_store(struct backend *b, const struct op *op)
{
    const struct cuda_kv *kv = layer_cache(b, op);
    if (!kv) return ERR_USAGE;
    int n = (int)op->n, dim = (int)kv->dim, context = (int)b->o.context;
    uint64_t count = (uint64_t)op->n * kv->dim;
    drv_ptr k = op->x.addr, v = op->x2.addr, kc = kv->k, vc = kv->v;
    void *args[] = {&k, &v, &kc, &vc, &b->state, &n, &dim, &context};
    struct cuda_launch l = flat(b, op, CUDA_KV_STORE, count, 4.0 * (double)count, args);
    l.m = kv->dim;
    return cuda_launch(b, &l);
}

/* 64, 96, 128, 256 -> 0..3; -1: no kernel. */
static int head_kind(uint32_t head_dim)
{
    return head_dim == 64 ? 0 : head_dim == 96 ? 1 : head_dim == 128 ? 2 : head_dim == 256 ? 3 : -1;
}

enum status cuda_check_attention(const struct backend *b, const struct op *op, int *kind)
{
    const struct cuda_kv *kv = layer_cache(b, op);
    if (!kv) return ERR_USAGE;
    *kind = head_kind(op->head_dim);
    if (*kind < 0) return unsupported(op, "a head length of", op->head_dim);
    if (!op->kv_heads || op->heads % op->kv_heads || kv->dim != op->kv_heads * op->head_dim ||
        op->heads > CUDA_MAX_TOKENS)
        return err_set(ERR_USAGE, "%s: %u heads on %u key heads of %u don't fit a cache of %u",
                       op->role, op->heads, op->kv_heads, op->head_dim, kv->dim);
    return OK;
}

enum status cuda_attention_parts(struct backend *b, const struct op *op)
{
    int kind;
    size_t floats = ops_attn_decode_floats(op->heads, op->head_dim);
    enum status st = cuda_check_attention(b, op, &kind);
    if (st == OK) st = cuda_grow(b, &b->attn, floats * sizeof(float), "attention scratch");
    if (st != OK) return st;
    const struct cuda_kv *kv = &b->kv[op->layer];
    int heads = (int)op->heads, kv_heads = (int)op->kv_heads, window = (int)op->window;
    float scale = op->scale;
    drv_ptr q = op->x.addr, k = kv->k, v = kv->v, scratch = b->attn.p;
    void *args[] = {&q, &k, &v, &scratch, &b->state, &heads, &kv_heads, &window, &scale};
    struct cuda_launch l = flat(b, op, (enum cuda_kernel)(CUDA_DECODE_64 + kind), 1, 0, args);
    l.grid[0] = op->kv_heads * blocks_of(op->heads / op->kv_heads, OPS_ATTN_GROUP);
    l.grid[1] = OPS_ATTN_SPLITS;
    l.block = l.v->desc.threads;
    l.m = op->heads * op->head_dim;
    return cuda_launch(b, &l);
}

static enum status decode_attention(struct backend *b, const struct op *op)
{
    enum status st = cuda_attention_parts(b, op);
    if (st != OK) return st;
    int head_dim = (int)op->head_dim;
    drv_ptr y = op->y.addr, scratch = b->attn.p;
    void *merge[] = {&scratch, &y, &head_dim};
    size_t floats = ops_attn_decode_floats(op->heads, op->head_dim);
    struct cuda_launch l =
        flat(b, op, CUDA_DECODE_MERGE, 1, (double)floats + op->heads * op->head_dim, merge);
    l.grid[0] = op->heads;
    l.block = l.v->desc.threads;
    l.m = op->heads * op->head_dim;
    return cuda_launch(b, &l);
}

static enum status attention(struct backend *b, const struct op *op)
{
    if (op->n == 1) return decode_attention(b, op);
    int kind;
    enum status st = cuda_check_attention(b, op, &kind);
    if (st != OK) return st;
    const struct cuda_kv *kv = &b->kv[op->layer];
    int n = (int)op->n, heads = (int)op->heads, kv_heads = (int)op->kv_heads,
        window = (int)op->window;
    float scale = op->scale;
    drv_ptr q = op->x.addr, y = op->y.addr, k = kv->k, v = kv->v;
    void *args[] = {&q, &k, &v, &y, &b->state, &n, &heads, &kv_heads, &window, &scale};
    struct cuda_launch l = flat(b, op, (enum cuda_kernel)(CUDA_PREFILL_64 + kind), 1, 0, args);
    l.grid[0] = blocks_of(op->n, OPS_ATTN_TILE);
    l.grid[1] = op->heads;
    l.block = l.v->desc.threads;
    l.m = op->heads * op->head_dim;
    return cuda_launch(b, &l);
}

/* x and x2 into y, n * dim values: glu and add. */
static enum status pairwise(struct backend *b, const struct op *op, enum cuda_kernel k)
{
    uint64_t all = (uint64_t)op->n * op->dim;
    if (all > INT_MAX - OPS_FLAT) return too_large(op);
    int count = (int)all;
    drv_ptr x = op->x.addr, x2 = op->x2.addr, y = op->y.addr;
    void *args[] = {&x, &x2, &y, &count};
    struct cuda_launch l = flat(b, op, k, all, 3.0 * (double)all, args);
    return cuda_launch(b, &l);
}

static enum status last_row(struct backend *b, const struct op *op)
{
    int n = (int)op->n, dim = (int)op->dim;
    drv_ptr x = op->x.addr, y = op->y.addr;
    void *args[] = {&x, &y, &n, &dim};
    struct cuda_launch l = flat(b, op, CUDA_LAST_ROW, op->dim, 2.0 * op->dim, args);
    return cuda_launch(b, &l);
}

static enum status argmax(struct backend *b, const struct op *op)
{
    int n = (int)op->dim;
    drv_ptr logits = op->y.addr;
    void *args[] = {&logits, &b->parts, &n};
    struct cuda_launch l = flat(b, op, CUDA_ARGMAX_PART, 1, op->dim, args);
    l.grid[0] = OPS_ARGMAX_PARTS;
    enum status st = cuda_launch(b, &l);
    if (st != OK) return st;
    void *merge[] = {&b->parts, &b->best, &b->state};
    l = flat(b, op, CUDA_ARGMAX_MERGE, 1, 4.0 * OPS_ARGMAX_PARTS, merge);
    return cuda_launch(b, &l);
}

static enum status dispatch(struct backend *b, const struct op *op)
{
    switch (op->kind) {
    case OP_EMBED:
        return embed(b, op);
    case OP_NORM:
        return norm(b, op);
    case OP_MATMUL:
        return cuda_matmul(b, op);
    case OP_ROPE:
        return rope(b, op);
    case OP_KV_STORE:
        return kv_store(b, op);
    case OP_ATTENTION:
        return attention(b, op);
    case OP_GLU:
        return pairwise(b, op, op->gelu ? CUDA_GLU_GELU : CUDA_GLU_SILU);
    case OP_ADD:
        return pairwise(b, op, CUDA_ADD);
    case OP_LAST:
        return last_row(b, op);
    case OP_ARGMAX:
        return argmax(b, op);
    }
    return err_set(ERR_USAGE, "operator %d is not known here", (int)op->kind);
}

enum status cuda_run_op(struct backend *b, const struct op *op)
{
    if (op->n == 0) return OK;
    enum status st = dispatch(b, op);
    /* The quantised activations are good as long as nobody writes what they were made of. */
    uint64_t written = op->kind == OP_ROPE ? op->x.addr : op->y.addr;
    if (written == b->q8_of) b->q8_of = 0;
    return st;
}
