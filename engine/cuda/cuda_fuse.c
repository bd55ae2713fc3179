/*
 * Neighbouring operators in one launch. Decode is a few hundred short kernels: what is saved is
 * their starts and ends, and the trips of small vectors through memory.
 *
 * A rule looks at the operators from here on and either does nothing or launches one kernel that
 * leaves everything that somebody reads as the single ones would have left it (a sum whose only
 * reader is the next operator isn't stored). The arithmetic is the same expression by expression,
 * so tokens don't depend on it; $SASSTOP_FUSE=0 runs the operators one by one. The launch goes by
 * the first operator's role, or by one that names all. To add a rule: a function and a row in
 * RULES.
 */
#include "engine/cuda/cuda_priv.h"

#include "kernels/q8.h"

#include <limits.h>
#include <string.h>

/* What a rule gets: the operators from here on. It sets *done when it has launched. */
struct look {
    const struct op *op;
    uint32_t n;
};

static bool is(const struct look *l, uint32_t i, enum op_kind kind)
{
    return i < l->n && l->op[i].kind == kind;
}

static struct cuda_launch launch_of(const struct backend *b, const struct op *op,
                                    enum cuda_kernel k, uint32_t blocks, void **args)
{
    return (struct cuda_launch){.v = b->kernel[k],
                                .op = op,
                                .grid = {blocks, 1, 1},
                                .block = b->kernel[k]->desc.threads,
                                .dyn_smem = -1,
                                .m = op->dim,
                                .n = op->n,
                                .args = args};
}

static enum status grow_chunks(struct backend *b, struct cuda_scratch *s, uint64_t n, uint32_t k)
{
    return cuda_grow(b, s, n * (k / Q8_CHUNK) * Q8_CHUNK_BYTES, "quantised activations");
}

/* The product at i reads x, k values a token, as q8 chunks. */
static bool quantised_product(const struct look *l, uint32_t i, const struct buffer *x, uint32_t k)
{
    return is(l, i, OP_MATMUL) && l->op[i].x.addr == x->addr && l->op[i].n == l->op[0].n &&
           l->op[i].w->k == k && k % Q8_CHUNK == 0 && cuda_is_quantised(l->op[i].w) &&
           (uint64_t)l->op[i].n * (k / Q8_CHUNK) <= INT_MAX / Q8_CHUNK_BYTES;
}

/* ---- norm, and the chunks of its row ---- */

static enum status norm_q8(struct backend *b, const struct look *look, uint32_t *done)
{
    const struct op *op = look->op;
    if (op->heads || op->dim > OPS_NORM_Q8_DIM || !quantised_product(look, 1, &op->y, op->dim) ||
        cuda_wants_bf16(b, op + 1))
        return OK;
    enum status st = grow_chunks(b, &b->q8, op->n, op->dim);
    if (st != OK) return st;
    int groups = (int)op->n, dim = (int)op->dim;
    float eps = op->eps;
    drv_ptr x = op->x.addr, w = op->w->data.addr, y = op->y.addr;
    void *args[] = {&x, &w, &y, &groups, &dim, &eps, &b->q8.p};
    struct cuda_launch l = launch_of(b, op, CUDA_NORM_Q8, op->n, args);
    l.block = (op->dim / 4 + 31) / 32 * 32;
    if (l.block > OPS_NORM_Q8) l.block = OPS_NORM_Q8;
    l.bytes = (double)op->n * op->dim * (8 + Q8_CHUNK_BYTES / 32.0);
    st = cuda_launch(b, &l);
    cuda_q8_holds(b, st == OK ? op->y.addr : 0, op->n, op->dim);
    *done = 1;
    return st;
}

/* ---- products of one token ---- */

/* A product that kernels/ops/gemv_one.cuh takes. */
static bool one_token(const struct op *op, enum quant_type type)
{
    return op->n == 1 && op->w->type == (int)type && !op->bias && op->w->m && op->w->k &&
           op->w->k % 256 == 0 && op->w->k <= OPS_GEMV_ONE_K;
}

static double product_bytes(const struct op *op)
{
    const struct weight *w = op->w;
    double row = (double)quant_row_bytes((enum quant_type)w->type, w->k);
    return w->m * (row + 4.0) + w->k * (Q8_CHUNK_BYTES / 32.0);
}

static void add_product(struct cuda_launch *l, const struct op *op)
{
    l->m += op->w->m;
    l->macs += (double)op->w->m * op->w->k;
    l->bytes += product_bytes(op);
}

/* A product onto the residual stream: x = x + w y. */
static enum status product_add(struct backend *b, const struct look *look, uint32_t *done)
{
    const struct op *op = look->op, *add = op + 1;
    bool q4 = one_token(op, QUANT_Q4_K);
    if (!q4 && !one_token(op, QUANT_Q6_K)) return OK;
    if (!is(look, 1, OP_ADD) || add->x2.addr != op->y.addr || add->x.addr != add->y.addr ||
        add->dim != op->w->m || add->n != 1)
        return OK;
    enum status st = cuda_quantise(b, op);
    if (st != OK) return st;
    int m = (int)op->w->m, k = (int)op->w->k;
    drv_ptr w = op->w->data.addr, y = add->y.addr;
    void *args[] = {&w, &b->q8.p, &y, &y, &m, &k};
    struct cuda_launch l = launch_of(b, op, q4 ? CUDA_Q4K_GEMV_ADD : CUDA_Q6K_GEMV_ADD,
                                     cuda_gemv_one_blocks(b, (op->w->m + 1) / 2), args);
    l.m = 0;
    l.k = op->w->k;
    add_product(&l, op);
    st = cuda_launch(b, &l);
    if (b->q8_of == add->y.addr) b->q8_of = 0;
    *done = 2;
    return st;
}

/* act(gate) * up, and the chunks for the product that reads it. */
static enum status gate_up(struct backend *b, const struct look *look, uint32_t *done)
{
    const struct op *gate = look->op, *up = gate + 1, *glu = gate + 2;
    if (!is(look, 1, OP_MATMUL) || !is(look, 2, OP_GLU) || !one_token(gate, QUANT_Q4_K) ||
        !one_token(up, QUANT_Q4_K) || up->x.addr != gate->x.addr)
        return OK;
    uint32_t m = gate->w->m;
    if (up->w->m != m || up->w->k != gate->w->k || m % Q8_CHUNK || m > OPS_GEMV_GLU_M ||
        glu->dim != m || glu->n != 1 || glu->x.addr != gate->y.addr || glu->x2.addr != up->y.addr ||
        !quantised_product(look, 3, &glu->y, m))
        return OK;
    enum status st = cuda_quantise(b, gate);
    if (st == OK) st = grow_chunks(b, &b->q8_next, 1, m);
    if (st == OK) st = cuda_quantise(b, gate); /* once more if memory moved */
    if (st != OK) return st;
    struct op named = *gate;
    named.role = "ffn_gate_up";
    int im = (int)m, k = (int)gate->w->k, gelu = glu->gelu;
    drv_ptr wg = gate->w->data.addr, wu = up->w->data.addr, y = glu->y.addr;
    void *args[] = {&wg, &wu, &b->q8.p, &y, &b->q8_next.p, &im, &k, &gelu};
    struct cuda_launch l =
        launch_of(b, &named, CUDA_Q4K_GEMV_GLU, cuda_gemv_one_blocks(b, m), args);
    l.m = 0;
    l.k = gate->w->k;
    add_product(&l, gate);
    add_product(&l, up);
    st = cuda_launch(b, &l);
    struct cuda_scratch read = b->q8;
    b->q8 = b->q8_next;
    b->q8_next = read;
    cuda_q8_holds(b, st == OK ? glu->y.addr : 0, 1, m);
    *done = 3;
    return st;
}

/* Products of the same activations and type: q, k and v. */
static enum status many(struct backend *b, const struct look *look, uint32_t *done)
{
    static const char *const roles[] = {"", "", "attn_qk", "attn_qkv"};
    const struct op *op = look->op;
    enum quant_type type = (enum quant_type)op->w->type;
    struct ops_gemv_many g = {{0}, {0}, {0}, 0};
    uint32_t n = 0, rows = 0;
    if (strcmp(op->role, "attn_q")) return OK;
    for (; n < 3 && is(look, n, OP_MATMUL); n++) {
        const struct op *p = op + n;
        if (!one_token(p, type) || p->x.addr != op->x.addr || p->w->k != op->w->k || p->w->m % 2)
            break;
        g.w[n] = (const uint8_t *)(uintptr_t)p->w->data.addr;
        g.y[n] = (float *)(uintptr_t)p->y.addr;
        g.m[n] = (int)p->w->m;
        rows += p->w->m;
    }
    if (n < 2 || (type != QUANT_Q4_K && type != QUANT_Q6_K)) return OK;
    enum status st = cuda_quantise(b, op);
    if (st != OK) return st;
    struct op named = *op;
    named.role = roles[n];
    int k = (int)op->w->k;
    void *args[] = {&g, &b->q8.p, &k};
    struct cuda_launch l =
        launch_of(b, &named, type == QUANT_Q4_K ? CUDA_Q4K_GEMV_MANY : CUDA_Q6K_GEMV_MANY,
                  cuda_gemv_one_blocks(b, rows / 2), args);
    l.m = 0;
    l.k = op->w->k;
    for (uint32_t i = 0; i < n; i++) add_product(&l, op + i);
    *done = n;
    return cuda_launch(b, &l);
}

static enum status product(struct backend *b, const struct look *look, uint32_t *done)
{
    enum status st = many(b, look, done);
    if (st == OK && !*done) st = gate_up(b, look, done);
    if (st == OK && !*done) st = product_add(b, look, done);
    return st;
}

/* ---- rotation of q and k, and the cache ---- */

static enum status rope_kv(struct backend *b, const struct look *look, uint32_t *done)
{
    const struct op *q = look->op, *k = q + 1, *store = q + 2;
    if (!is(look, 1, OP_ROPE) || !is(look, 2, OP_KV_STORE) || store->x.addr != k->x.addr ||
        k->n != q->n || store->n != q->n || k->head_dim != q->head_dim ||
        k->rope_neox != q->rope_neox || k->rope_base != q->rope_base ||
        k->rope_scale != q->rope_scale || k->rope_factors != q->rope_factors)
        return OK;
    uint64_t pairs = (uint64_t)q->n * (q->heads + k->heads) * (q->head_dim / 2);
    uint32_t dim = k->heads * k->head_dim;
    if (store->layer < 0 || (uint32_t)store->layer >= b->layers || b->kv[store->layer].dim != dim ||
        pairs > INT_MAX - OPS_FLAT || q->head_dim % 2)
        return OK;
    drv_ptr freq;
    enum status st = cuda_rope_table(b, q, &freq);
    if (st != OK) return st;
    int n = (int)q->n, heads = (int)q->heads, kv_heads = (int)k->heads, head_dim = (int)q->head_dim,
        context = (int)b->o.context;
    drv_ptr xq = q->x.addr, xk = k->x.addr, v = store->x2.addr, kc = b->kv[store->layer].k,
            vc = b->kv[store->layer].v;
    void *args[] = {&xq,       &xk, &v,     &kc,       &vc,       &freq,
                    &b->state, &n,  &heads, &kv_heads, &head_dim, &context};
    struct op named = *q;
    named.role = "rope_kv";
    struct cuda_launch l =
        launch_of(b, &named, q->rope_neox ? CUDA_ROPE_KV_HALVES : CUDA_ROPE_KV_PAIRS,
                  (uint32_t)((pairs + OPS_FLAT - 1) / OPS_FLAT), args);
    l.m = (q->heads + k->heads) * q->head_dim;
    l.bytes = 16.0 * (double)pairs + 12.0 * q->n * dim;
    st = cuda_launch(b, &l);
    if (b->q8_of == q->x.addr || b->q8_of == k->x.addr) b->q8_of = 0;
    *done = 3;
    return st;
}

/* ---- attention of one query, and the chunks of its result ---- */

static enum status attention_q8(struct backend *b, const struct look *look, uint32_t *done)
{
    const struct op *op = look->op;
    uint32_t dim = op->heads * op->head_dim;
    if (op->n != 1 || op->head_dim % Q8_CHUNK || !quantised_product(look, 1, &op->y, dim))
        return OK;
    enum status st = grow_chunks(b, &b->q8, 1, dim);
    if (st == OK) st = cuda_attention_parts(b, op);
    if (st != OK) return st;
    int head_dim = (int)op->head_dim;
    drv_ptr y = op->y.addr, scratch = b->attn.p;
    void *args[] = {&scratch, &y, &head_dim, &b->q8.p};
    struct cuda_launch l = launch_of(b, op, CUDA_DECODE_MERGE_Q8, op->heads, args);
    l.m = dim;
    l.bytes = 4.0 * ((double)ops_attn_decode_floats(op->heads, op->head_dim) + dim);
    st = cuda_launch(b, &l);
    cuda_q8_holds(b, st == OK ? op->y.addr : 0, 1, dim);
    *done = 1;
    return st;
}

/* By the first operator's kind. */
static enum status (*const RULES[])(struct backend *, const struct look *, uint32_t *) = {
    [OP_NORM] = norm_q8,
    [OP_MATMUL] = product,
    [OP_ROPE] = rope_kv,
    [OP_ATTENTION] = attention_q8,
};

enum status cuda_fuse(struct backend *b, const struct op *ops, uint32_t nops, uint32_t *done)
{
    struct look look = {ops, nops};
    *done = 0;
    if (!b->fuse || ops->n == 0 || (size_t)ops->kind >= sizeof RULES / sizeof RULES[0] ||
        !RULES[ops->kind])
        return OK;
    return RULES[ops->kind](b, &look, done);
}
