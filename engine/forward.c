/*
 * Model -> operators. Both architectures are one walk over the layers; what differs is in the
 * hyper-parameters. Invariant: x is the residual stream and only OP_EMBED and OP_ADD write it.
 * To add an architecture: its differences become hyper-parameters first, then branches here.
 */
#include "engine/forward.h"

#include <stdlib.h>
#include <string.h>

enum { OPS_PER_LAYER = 24, OPS_OUTSIDE = 8 };

enum status forward_buffers_alloc(const struct backend_ops *bo, struct backend *b,
                                  const struct model *m, uint32_t max_tokens, bool all_logits,
                                  struct forward_buffers *out)
{
    const struct model_hparams *h = model_hparams(m);
    size_t n = max_tokens, d = h->d_model, q = (size_t)h->heads * h->head_dim,
           kv = (size_t)h->kv_heads * h->head_dim;
    struct {
        struct buffer *to;
        size_t floats;
    } rooms[] = {
        {&out->x, n * d},
        {&out->a, n * d},
        {&out->q, n * q},
        {&out->k, n * kv},
        {&out->v, n * kv},
        {&out->o, n * q},
        {&out->t, n * d},
        {&out->gate, n * h->d_ff},
        {&out->up, n * h->d_ff},
        {&out->last, d},
        {&out->logits, (all_logits ? n : 1) * (size_t)h->vocab},
    };
    memset(out, 0, sizeof *out);
    out->max_tokens = max_tokens;
    out->all_logits = all_logits;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        enum status st = bo->alloc(b, rooms[i].floats * sizeof(float), rooms[i].to);
        if (st == OK) continue;
        forward_buffers_free(bo, b, out);
        return st;
    }
    return OK;
}

void forward_buffers_free(const struct backend_ops *bo, struct backend *b,
                          struct forward_buffers *f)
{
    struct buffer *all[] = {&f->x, &f->a,    &f->q,  &f->k,    &f->v,     &f->o,
                            &f->t, &f->gate, &f->up, &f->last, &f->logits};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->addr) bo->release(b, all[i]);
}

/* What building needs at every turn. */
struct builder {
    const struct backend_ops *bo;
    struct backend *b;
    const struct model *m;
    const struct model_hparams *h;
    const struct forward_buffers *f;
    struct forward *out;
    int layer; /* -1 outside */
};

static struct op *add(struct builder *s, enum op_kind kind, const char *role)
{
    struct op *op = &s->out->ops[s->out->nops++]; /* OPS_PER_LAYER is room enough: 19 at most */
    *op = (struct op){.kind = kind, .role = role, .layer = s->layer, .n = s->out->n, .scale = 1};
    return op;
}

static const struct weight *weight(struct builder *s, enum model_role role)
{
    uint32_t layer = s->layer < 0 ? 0 : (uint32_t)s->layer;
    return s->bo->get_weight(s->b, model_tensor(s->m, layer, role));
}

static void norm(struct builder *s, enum model_role role, struct buffer x, struct buffer y)
{
    struct op *op = add(s, OP_NORM, model_role_name(role));
    op->w = weight(s, role);
    op->x = x;
    op->y = y;
    op->dim = s->h->d_model;
    op->eps = s->h->norm_eps;
}

static void head_norm(struct builder *s, enum model_role role, struct buffer x, uint32_t heads)
{
    norm(s, role, x, x);
    struct op *op = &s->out->ops[s->out->nops - 1];
    op->dim = s->h->head_dim;
    op->heads = heads;
}

static void matmul(struct builder *s, enum model_role role, struct buffer x, struct buffer y)
{
    struct op *op = add(s, OP_MATMUL, model_role_name(role));
    op->w = weight(s, role);
    op->x = x;
    op->y = y;
}

static void rope(struct builder *s, const char *role, struct buffer x, uint32_t heads)
{
    struct op *op = add(s, OP_ROPE, role);
    const struct gguf_tensor *factors = model_tensor(s->m, 0, ROLE_ROPE_FREQS);
    op->x = op->y = x;
    op->heads = heads;
    op->head_dim = s->h->head_dim;
    op->rope_base = model_rope_base(s->h, (uint32_t)s->layer);
    op->rope_scale = model_rope_scale(s->h, (uint32_t)s->layer);
    op->rope_factors = factors ? s->bo->get_weight(s->b, factors) : NULL;
    op->rope_neox = s->h->rope == MODEL_ROPE_HALVES;
}

/* x = x + t */
static void residual(struct builder *s, const char *role)
{
    struct op *op = add(s, OP_ADD, role);
    op->x = op->y = s->f->x;
    op->x2 = s->f->t;
    op->dim = s->h->d_model;
}

static void attention(struct builder *s)
{
    const struct model_hparams *h = s->h;
    struct op *op = add(s, OP_KV_STORE, "kv_store");
    op->x = s->f->k;
    op->x2 = s->f->v;
    op->dim = h->kv_heads * h->head_dim;
    op = add(s, OP_ATTENTION, "attention");
    op->x = s->f->q;
    op->y = s->f->o;
    op->heads = h->heads;
    op->kv_heads = h->kv_heads;
    op->head_dim = h->head_dim;
    op->window = model_layer_is_local(h, (uint32_t)s->layer) ? h->window : 0;
    op->scale = h->attn_scale;
}

static void attention_block(struct builder *s)
{
    const struct forward_buffers *f = s->f;
    norm(s, ROLE_ATTN_NORM, f->x, f->a);
    matmul(s, ROLE_ATTN_Q, f->a, f->q);
    matmul(s, ROLE_ATTN_K, f->a, f->k);
    matmul(s, ROLE_ATTN_V, f->a, f->v);
    if (s->h->qk_norm) {
        head_norm(s, ROLE_ATTN_Q_NORM, f->q, s->h->heads);
        head_norm(s, ROLE_ATTN_K_NORM, f->k, s->h->kv_heads);
    }
    rope(s, "rope_q", f->q, s->h->heads);
    rope(s, "rope_k", f->k, s->h->kv_heads);
    attention(s);
    matmul(s, ROLE_ATTN_OUT, f->o, f->t);
    if (s->h->post_norms) norm(s, ROLE_POST_ATTN_NORM, f->t, f->t);
    residual(s, "attn_residual");
}

static void ffn_block(struct builder *s)
{
    const struct forward_buffers *f = s->f;
    norm(s, ROLE_FFN_NORM, f->x, f->a);
    matmul(s, ROLE_FFN_GATE, f->a, f->gate);
    matmul(s, ROLE_FFN_UP, f->a, f->up);
    struct op *op = add(s, OP_GLU, "ffn_act");
    op->x = op->y = f->gate;
    op->x2 = f->up;
    op->dim = s->h->d_ff;
    op->gelu = s->h->act == MODEL_GEGLU_TANH;
    matmul(s, ROLE_FFN_DOWN, f->gate, f->t);
    if (s->h->post_norms) norm(s, ROLE_POST_FFN_NORM, f->t, f->t);
    residual(s, "ffn_residual");
}

/* From the residual stream to logits and a token. */
static void output(struct builder *s)
{
    const struct forward_buffers *f = s->f;
    struct buffer x = f->x;
    struct op *op;
    if (!f->all_logits && s->out->n > 1) {
        op = add(s, OP_LAST, "last_row");
        op->x = f->x;
        op->y = x = f->last;
        op->dim = s->h->d_model;
    }
    uint32_t rows = f->all_logits ? s->out->n : 1;
    norm(s, ROLE_OUTPUT_NORM, x, f->a);
    s->out->ops[s->out->nops - 1].n = rows;
    matmul(s, ROLE_OUTPUT, f->a, f->logits);
    s->out->ops[s->out->nops - 1].n = rows;
    if (f->all_logits) return;
    op = add(s, OP_ARGMAX, "argmax");
    op->n = 1;
    op->y = f->logits;
    op->dim = s->h->vocab;
}

enum status forward_build(const struct backend_ops *bo, struct backend *b, const struct model *m,
                          const struct forward_buffers *bufs, uint32_t n, struct forward *out)
{
    const struct model_hparams *h = model_hparams(m);
    struct builder s = {.bo = bo, .b = b, .m = m, .h = h, .f = bufs, .out = out, .layer = -1};
    *out = (struct forward){.n = n};
    if (n == 0 || n > bufs->max_tokens)
        return err_set(ERR_LIMIT, "a step of %u tokens; this engine has room for 1 to %u", n,
                       bufs->max_tokens);
    out->ops = calloc((size_t)h->layers * OPS_PER_LAYER + OPS_OUTSIDE, sizeof *out->ops);
    if (!out->ops) return err_set(ERR_NOMEM, "out of memory for the list of operators");
    struct op *op = add(&s, OP_EMBED, model_role_name(ROLE_TOKEN_EMBD));
    op->w = weight(&s, ROLE_TOKEN_EMBD);
    op->y = bufs->x;
    op->dim = h->d_model;
    op->scale = h->embd_scale;
    for (s.layer = 0; s.layer < (int)h->layers; s.layer++) {
        attention_block(&s);
        ffn_block(&s);
    }
    s.layer = -1;
    output(&s);
    for (uint32_t i = 0; i < out->nops; i++) {
        enum op_kind k = out->ops[i].kind;
        bool needs = k == OP_EMBED || k == OP_NORM || k == OP_MATMUL;
        if (!needs || out->ops[i].w) continue;
        err_set(ERR_FAILED, "the backend holds no weights for %s", out->ops[i].role);
        forward_free(out);
        return ERR_FAILED;
    }
    return OK;
}

void forward_free(struct forward *f)
{
    free(f->ops);
    *f = (struct forward){0};
}

enum status forward_kv_init(const struct backend_ops *bo, struct backend *b, const struct model *m)
{
    const struct model_hparams *h = model_hparams(m);
    uint32_t dims[MODEL_MAX_LAYERS];
    for (uint32_t i = 0; i < h->layers && i < MODEL_MAX_LAYERS; i++)
        dims[i] = h->kv_heads * h->head_dim;
    return bo->kv_init(b, h->layers, dims);
}
