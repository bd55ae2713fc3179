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

static void *at(drv_ptr p)
{
    return (void *)(uintptr_t)p;
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

/* What a product that reads op->x is given: its chunks, or (norm: the operator that makes op->x)
 * what the norm is made of. */
static enum status input_of(struct backend *b, const struct op *op, const struct op *norm,
                            struct ops_gemv_input *in)
{
    *in = (struct ops_gemv_input){0};
    if (norm) {
        in->x = at(norm->x.addr);
        in->w = at(norm->w->data.addr);
        in->eps = norm->eps;
        return OK;
    }
    enum status st = cuda_quantise(b, op);
    in->chunks = at(b->q8.p);
    return st;
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
static enum status gate_up(struct backend *b, const struct look *look, const struct op *norm,
                           uint32_t *done)
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
    struct ops_gemv_input in;
    enum status st = input_of(b, gate, norm, &in);
    if (st == OK) st = grow_chunks(b, &b->q8_next, 1, m);
    if (st == OK) st = input_of(b, gate, norm, &in); /* once more if memory moved */
    if (st != OK) return st;
    struct op named = *gate;
    named.role = "ffn_gate_up";
    int im = (int)m, k = (int)gate->w->k, gelu = glu->gelu;
    drv_ptr wg = gate->w->data.addr, wu = up->w->data.addr, y = glu->y.addr;
    void *args[] = {&wg, &wu, &in, &y, &b->q8_next.p, &im, &k, &gelu};
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

/* Products of the same activations and type: q, k and v. With a norm in front also a single one. */
static enum status many(struct backend *b, const struct look *look, const struct op *norm,
                        uint32_t *done)
{
    static const char *const roles[] = {"", "", "attn_qk", "attn_qkv"};
    const struct op *op = look->op;
    enum quant_type type = (enum quant_type)op->w->type;
    struct ops_gemv_many g = {{0}, {0}, {0}, 0};
    uint32_t n = 0, rows = 0;
    uint32_t most = strcmp(op->role, "attn_q") ? 1 : 3;
    if (!norm && most == 1) return OK;
    for (; n < most && is(look, n, OP_MATMUL); n++) {
        const struct op *p = op + n;
        if (!one_token(p, type) || p->x.addr != op->x.addr || p->w->k != op->w->k) break;
        if (n && (p->w->m % 2 || op->w->m % 2)) break;
        g.w[n] = at(p->w->data.addr);
        g.y[n] = at(p->y.addr);
        g.m[n] = (int)p->w->m;
        rows += p->w->m;
    }
    if (n < (norm ? 1 : 2) || (type != QUANT_Q4_K && type != QUANT_Q6_K)) return OK;
    struct ops_gemv_input in;
    enum status st = input_of(b, op, norm, &in);
    if (st != OK) return st;
    struct op named = *op;
    if (n > 1) named.role = roles[n];
    int k = (int)op->w->k;
    void *args[] = {&g, &in, &k};
    struct cuda_launch l =
        launch_of(b, &named, type == QUANT_Q4_K ? CUDA_Q4K_GEMV_MANY : CUDA_Q6K_GEMV_MANY,
                  cuda_gemv_one_blocks(b, (rows + 1) / 2), args);
    l.m = 0;
    l.k = op->w->k;
    for (uint32_t i = 0; i < n; i++) add_product(&l, op + i);
    *done = n;
    return cuda_launch(b, &l);
}

static enum status product(struct backend *b, const struct look *look, uint32_t *done)
{
    enum status st = many(b, look, NULL, done);
    if (st == OK && !*done) st = gate_up(b, look, NULL, done);
    if (st == OK && !*done) st = product_add(b, look, done);
    return st;
}

/* ---- norm, and the chunks of its row ---- */

static enum status norm_chunks(struct backend *b, const struct look *look, uint32_t *done)
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

/* The products that stand behind the norm and read it; 0 when they can't make it themselves or
 * somebody else reads it too, up to where it is written again. */
static uint32_t readers_of_norm(const struct look *look)
{
    const struct op *op = look->op;
    uint32_t n = 0;
    if (op->heads || op->n != 1 || op->dim > OPS_NORM_Q8_DIM || op->x.addr == op->y.addr) return 0;
    while (is(look, 1 + n, OP_MATMUL) && op[1 + n].x.addr == op->y.addr) {
        const struct op *p = op + 1 + n;
        if (p->w->k != op->dim || (!one_token(p, QUANT_Q4_K) && !one_token(p, QUANT_Q6_K)))
            return 0;
        n++;
    }
    for (uint32_t i = 1 + n; i < look->n; i++) {
        const struct op *p = op + i;
        if (p->x.addr == op->y.addr || p->x2.addr == op->y.addr) return 0;
        if (p->y.addr == op->y.addr) break;
    }
    return n;
}

/* No launch of its own: each product makes the norm of what it reads. */
static enum status norm_in_products(struct backend *b, const struct look *look, uint32_t *done)
{
    uint32_t n = readers_of_norm(look), at_op = 1;
    enum status st = OK;
    while (st == OK && at_op <= n) {
        struct look rest = {look->op + at_op, look->n - at_op};
        uint32_t some = 0;
        st = gate_up(b, &rest, look->op, &some);
        if (st == OK && !some) st = many(b, &rest, look->op, &some);
        at_op += some ? some : 1; /* many() takes whatever readers_of_norm() let through */
    }
    if (n) *done = at_op;
    return st;
}

static enum status norm(struct backend *b, const struct look *look, uint32_t *done)
{
    enum status st = norm_in_products(b, look, done);
    return st == OK && !*done ? norm_chunks(b, look, done) : st;
}

/* ---- rotation of q and k, and the cache ---- */

/* q and k turned the same way, and k and its values into a layer's cache. */
static bool rotation(const struct backend *b, const struct look *look)
{
    const struct op *q = look->op, *k = q + 1, *store = q + 2;
    return is(look, 1, OP_ROPE) && is(look, 2, OP_KV_STORE) && store->x.addr == k->x.addr &&
           k->n == q->n && store->n == q->n && k->head_dim == q->head_dim && q->head_dim % 2 == 0 &&
           k->rope_neox == q->rope_neox && k->rope_base == q->rope_base &&
           k->rope_scale == q->rope_scale && k->rope_factors == q->rope_factors &&
           store->layer >= 0 && (uint32_t)store->layer < b->layers &&
           b->kv[store->layer].dim == k->heads * k->head_dim;
}

static enum status rope_kv(struct backend *b, const struct look *look, uint32_t *done)
{
    const struct op *q = look->op, *k = q + 1, *store = q + 2;
    uint64_t pairs = (uint64_t)q->n * (q->heads + k->heads) * (q->head_dim / 2);
    uint32_t dim = k->heads * k->head_dim;
    drv_ptr freq;
    if (pairs > INT_MAX - OPS_FLAT) return OK;
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

/* A device that runs attn_one_*: others rotate, store and attend in launches of their own. The
 * kernels want clusters, and were tried on sm_90 alone. */
static bool has_attention_one(const struct backend *b, int kind)
{
    const struct device_limits *lim = launcher_limits(b->launcher);
    return lim->sm == 90 && (int)b->kernel[CUDA_ATTN_ONE_64 + kind]->dyn_smem <= lim->smem_optin;
}

/* The same for one token, and its attention. q and k stay as they were: nobody else reads them. */
static enum status attention_one(struct backend *b, const struct look *look, uint32_t *done)
{
    const struct op *q = look->op, *k = q + 1, *store = q + 2, *op = q + 3;
    int kind;
    if (q->n != 1 || !is(look, 3, OP_ATTENTION) || op->n != 1 || op->x.addr != q->x.addr ||
        op->layer != store->layer || op->heads != q->heads || op->kv_heads != k->heads ||
        op->head_dim != q->head_dim)
        return OK;
    enum status st = cuda_check_attention(b, op, &kind);
    if (st != OK || !has_attention_one(b, kind)) return st;
    uint32_t dim = op->heads * op->head_dim;
    uint32_t clusters =
        op->kv_heads * ((op->heads / op->kv_heads + OPS_ATTN_ONE_GROUP - 1) / OPS_ATTN_ONE_GROUP);
    bool quantise = dim % Q8_CHUNK == 0 && quantised_product(look, 4, &op->y, dim);
    drv_ptr freq;
    st = cuda_rope_table(b, q, &freq);
    if (st == OK && quantise) st = grow_chunks(b, &b->q8, 1, dim);
    if (st != OK) return st;
    const struct cuda_kv *kv = &b->kv[op->layer];
    struct ops_attn_one a = {.q = at(q->x.addr),
                             .k = at(k->x.addr),
                             .v = at(store->x2.addr),
                             .k_cache = at(kv->k),
                             .v_cache = at(kv->v),
                             .y = at(op->y.addr),
                             .chunks = quantise ? at(b->q8.p) : NULL,
                             .freq = at(freq),
                             .state = at(b->state),
                             .heads = (int)op->heads,
                             .kv_heads = (int)op->kv_heads,
                             .window = (int)op->window,
                             .context = (int)b->o.context,
                             .halves = q->rope_neox,
                             .scale = op->scale};
    void *args[] = {&a};
    struct op named = *op;
    named.role = "rope_attention";
    struct cuda_launch l =
        launch_of(b, &named, (enum cuda_kernel)(CUDA_ATTN_ONE_64 + kind), OPS_ATTN_CLUSTER, args);
    l.grid[1] = clusters;
    l.m = dim;
    st = cuda_launch(b, &l);
    cuda_q8_holds(b, st == OK && quantise ? op->y.addr : 0, 1, dim);
    *done = 4;
    return st;
}

static enum status rotated(struct backend *b, const struct look *look, uint32_t *done)
{
    if (!rotation(b, look)) return OK;
    enum status st = attention_one(b, look, done);
    if (st == OK && !*done) st = rope_kv(b, look, done);
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
    [OP_NORM] = norm,
    [OP_MATMUL] = product,
    [OP_ROPE] = rotated,
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
