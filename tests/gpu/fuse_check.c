/*
 * Fused operators of the CUDA backend against the same operators one by one: a whole layer, for one
 * token and for three, with every mix of types that a rule looks at. Ends with
 * "N passed, N failed, N skipped"; without a GPU all are skipped.
 *
 * Limit. The arithmetic is the same but for the order of a norm's sum, which may put an activation
 * on the other side of a rounding edge: an NMSE of 1e-4 would take every activation on its edge
 * (see engine_parity.sh); a wrong row, scale or chunk gives 1e-2 and more.
 */
#include "engine/cuda/cuda_priv.h"
#include "engine/model.h"
#include "tests/gpu/op_pair.h"

enum { D = 256, FF = 512, HEADS = 4, KV = 2, HD = 64, OPS = 16, CONTEXT = 64, TOKENS = 3 };

static int launches;

struct layer {
    struct weights norm, q, k, v, o, gate, up, down;
    struct pair x, a, bq, bk, bv, bo, t, bg, bu;
    struct op ops[OPS];
    uint32_t n_ops;
};

static struct op *add(struct layer *l, enum op_kind kind, const char *role, uint32_t n)
{
    struct op *op = &l->ops[l->n_ops++];
    *op = (struct op){.kind = kind, .role = role, .n = n, .scale = 0.125f, .eps = 1e-5f};
    return op;
}

static void product(struct layer *l, const char *role, uint32_t n, const struct weights *w,
                    const struct pair *x, const struct pair *y)
{
    struct op *op = add(l, OP_MATMUL, role, n);
    op->w = &w->g;
    op->x = x->g;
    op->y = y->g;
}

static void norm(struct layer *l, const char *role, uint32_t n)
{
    struct op *op = add(l, OP_NORM, role, n);
    op->w = &l->norm.g;
    op->x = l->x.g;
    op->y = l->a.g;
    op->dim = D;
}

static void residual(struct layer *l, uint32_t n)
{
    struct op *op = add(l, OP_ADD, "residual", n);
    op->x = op->y = l->x.g;
    op->x2 = l->t.g;
    op->dim = D;
}

static void rope(struct layer *l, uint32_t n, const struct pair *x, uint32_t heads, bool neox)
{
    struct op *op = add(l, OP_ROPE, "rope", n);
    op->x = op->y = x->g;
    op->heads = heads;
    op->head_dim = HD;
    op->rope_base = 10000;
    op->rope_scale = 1;
    op->rope_neox = neox;
}

static void attention(struct layer *l, uint32_t n)
{
    struct op *op = add(l, OP_KV_STORE, "kv_store", n);
    op->x = l->bk.g;
    op->x2 = l->bv.g;
    op->dim = KV * HD;
    op = add(l, OP_ATTENTION, "attention", n);
    op->x = l->bq.g;
    op->y = l->bo.g;
    op->heads = HEADS;
    op->kv_heads = KV;
    op->head_dim = HD;
}

static void list(struct layer *l, uint32_t n, bool neox, bool gelu)
{
    l->n_ops = 0;
    norm(l, "attn_norm", n);
    product(l, "attn_q", n, &l->q, &l->a, &l->bq);
    product(l, "attn_k", n, &l->k, &l->a, &l->bk);
    product(l, "attn_v", n, &l->v, &l->a, &l->bv);
    rope(l, n, &l->bq, HEADS, neox);
    rope(l, n, &l->bk, KV, neox);
    attention(l, n);
    product(l, "attn_output", n, &l->o, &l->bo, &l->t);
    residual(l, n);
    norm(l, "ffn_norm", n);
    product(l, "ffn_gate", n, &l->gate, &l->a, &l->bg);
    product(l, "ffn_up", n, &l->up, &l->a, &l->bu);
    struct op *op = add(l, OP_GLU, "ffn_act", n);
    op->x = op->y = l->bg.g;
    op->x2 = l->bu.g;
    op->dim = FF;
    op->gelu = gelu;
    product(l, "ffn_down", n, &l->down, &l->bg, &l->t);
    residual(l, n);
}

static void layer_open(struct layer *l, enum quant_type v, enum quant_type down)
{
    struct pair *out[] = {&l->a, &l->bq, &l->bk, &l->bv, &l->bo, &l->t, &l->bg, &l->bu};
    *l = (struct layer){.norm = weights_of(QUANT_F32, 1, D, 1),
                        .q = weights_of(QUANT_Q4_K, HEADS * HD, D, 0.05),
                        .k = weights_of(QUANT_Q4_K, KV * HD, D, 0.05),
                        .v = weights_of(v, KV * HD, D, 0.05),
                        .o = weights_of(QUANT_Q4_K, D, HEADS * HD, 0.05),
                        .gate = weights_of(QUANT_Q4_K, FF, D, 0.05),
                        .up = weights_of(QUANT_Q4_K, FF, D, 0.05),
                        .down = weights_of(down, D, FF, 0.05)};
    l->x = pair_out(TOKENS * D);
    for (size_t i = 0; i < sizeof out / sizeof out[0]; i++) *out[i] = pair_out(TOKENS * FF);
}

static void layer_close(struct layer *l)
{
    struct weights *w[] = {&l->norm, &l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
    struct pair *p[] = {&l->x, &l->a, &l->bq, &l->bk, &l->bv, &l->bo, &l->t, &l->bg, &l->bu};
    for (size_t i = 0; i < sizeof w / sizeof w[0]; i++) pair_free(&w[i]->p);
    for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) pair_free(p[i]);
}

/* The residual stream after the layer ran over n tokens and then over one; returns launches. */
static int run(struct layer *l, const float *x, uint32_t n, bool fuse, float *out)
{
    uint32_t tokens[TOKENS] = {0};
    bool neox = n == 1, gelu = n != 1;
    gpu->fuse = fuse;
    launches = 0;
    list(l, n, neox, gelu);
    must(cuda_upload(gpu, &l->x.g, 0, x, n * D * sizeof *x));
    must(cuda_backend.run(gpu, l->ops, l->n_ops, tokens, n, 0, false, TIMING_EXTERNAL, NULL));
    list(l, 1, neox, gelu);
    must(cuda_backend.run(gpu, l->ops, l->n_ops, tokens, 1, n, false, TIMING_EXTERNAL, NULL));
    must(cuda_backend.sync(gpu));
    must(cuda_backend.download(gpu, &l->x.g, 0, out, n * D * sizeof *out));
    return launches;
}

static void check(enum quant_type v, enum quant_type down, uint32_t n)
{
    struct layer l;
    float *x = randoms(n * D, 1), *single = need(n * D * sizeof *x),
          *fused = need(n * D * sizeof *x);
    double err = 0, ref = 0;
    char text[120];
    layer_open(&l, v, down);
    int many = run(&l, x, n, false, single), few = run(&l, x, n, true, fused);
    for (uint32_t i = 0; i < n * D; i++) {
        err += ((double)fused[i] - single[i]) * ((double)fused[i] - single[i]);
        ref += (double)single[i] * single[i];
    }
    snprintf(text, sizeof text, "v %s, down %s, %u tokens: nmse %.2e, %d launches instead of %d",
             quant_name(v), quant_name(down), n, err / ref, few, many);
    result(err / ref <= 1e-4 && few < many, "fuse", text);
    layer_close(&l);
    free(x);
    free(single);
    free(fused);
}

static void on_launch(void *ctx, const struct launch_info *i)
{
    (void)ctx;
    (void)i;
    launches++;
}

int main(void)
{
    static const enum quant_type types[] = {QUANT_Q4_K, QUANT_Q6_K, QUANT_Q8_0};
    struct backend_options o = {
        .max_tokens = TOKENS, .context = CONTEXT, .hooks = {.on_launch = on_launch}};
    struct backend_options oc = {.max_tokens = TOKENS, .context = CONTEXT};
    uint32_t dim = KV * HD;
    enum status st = cuda_backend.open(&o, &gpu);
    if (st != OK) {
        printf("SKIP fuse_check: %s\n0 passed, 0 failed, 1 skipped\n", err_msg());
        return st == ERR_UNAVAILABLE ? 0 : 1;
    }
    must(cpu_backend.open(&oc, &cpu));
    must(cuda_backend.kv_init(gpu, 1, &dim));
    for (int v = 0; v < 3; v++)
        for (int down = 0; down < 3; down++)
            for (uint32_t n = 1; n <= TOKENS; n += 2) check(types[v], types[down], n);
    cuda_backend.close(gpu);
    cpu_backend.close(cpu);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
