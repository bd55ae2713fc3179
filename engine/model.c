/*
 * A model's tensors by role, its identity, opening and closing; see model.h.
 *
 * Job: find every role's tensor, hold it against the shape that the hyper-parameters give, and
 * refuse a tensor without a role, since leaving one out would compute another model than the
 * file's. Invariant: a model that was handed out has every tensor that its architecture needs, of
 * the right shape and of a type that the backends take. To add a role: a row in `roles`, in the
 * order of enum model_role.
 */
#include "engine/model_priv.h"

#include "engine/synth.h"
#include "engine/tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dim { DIM_NONE, DIM_MODEL, DIM_FF, DIM_Q, DIM_KV, DIM_HEAD, DIM_HALF_HEAD, DIM_VOCAB };
enum need { NEED_ALWAYS, NEED_QK_NORM, NEED_POST_NORM, NEED_OPTIONAL };

struct role {
    const char *name;
    enum dim row, rows; /* rows DIM_NONE: a vector of F32 */
    enum need need;
};

static const struct role roles[ROLE_COUNT] = {
    [ROLE_ATTN_NORM] = {"attn_norm", DIM_MODEL, DIM_NONE, NEED_ALWAYS},
    [ROLE_ATTN_Q] = {"attn_q", DIM_MODEL, DIM_Q, NEED_ALWAYS},
    [ROLE_ATTN_K] = {"attn_k", DIM_MODEL, DIM_KV, NEED_ALWAYS},
    [ROLE_ATTN_V] = {"attn_v", DIM_MODEL, DIM_KV, NEED_ALWAYS},
    [ROLE_ATTN_Q_NORM] = {"attn_q_norm", DIM_HEAD, DIM_NONE, NEED_QK_NORM},
    [ROLE_ATTN_K_NORM] = {"attn_k_norm", DIM_HEAD, DIM_NONE, NEED_QK_NORM},
    [ROLE_ATTN_OUT] = {"attn_output", DIM_Q, DIM_MODEL, NEED_ALWAYS},
    [ROLE_POST_ATTN_NORM] = {"post_attention_norm", DIM_MODEL, DIM_NONE, NEED_POST_NORM},
    [ROLE_FFN_NORM] = {"ffn_norm", DIM_MODEL, DIM_NONE, NEED_ALWAYS},
    [ROLE_FFN_GATE] = {"ffn_gate", DIM_MODEL, DIM_FF, NEED_ALWAYS},
    [ROLE_FFN_UP] = {"ffn_up", DIM_MODEL, DIM_FF, NEED_ALWAYS},
    [ROLE_FFN_DOWN] = {"ffn_down", DIM_FF, DIM_MODEL, NEED_ALWAYS},
    [ROLE_POST_FFN_NORM] = {"post_ffw_norm", DIM_MODEL, DIM_NONE, NEED_POST_NORM},
    [ROLE_TOKEN_EMBD] = {"token_embd", DIM_MODEL, DIM_VOCAB, NEED_ALWAYS},
    [ROLE_OUTPUT_NORM] = {"output_norm", DIM_MODEL, DIM_NONE, NEED_ALWAYS},
    [ROLE_OUTPUT] = {"output", DIM_MODEL, DIM_VOCAB, NEED_OPTIONAL},
    [ROLE_ROPE_FREQS] = {"rope_freqs", DIM_HALF_HEAD, DIM_NONE, NEED_OPTIONAL},
};

struct model {
    struct gguf *gguf;
    struct tokenizer *tokenizer;
    struct model_hparams h;
    struct model_identity id;
    const struct gguf_tensor **layer; /* layers * ROLE_LAYER_COUNT */
    const struct gguf_tensor *global[ROLE_COUNT - ROLE_LAYER_COUNT];
};

static uint64_t dim_value(const struct model_hparams *h, enum dim d)
{
    switch (d) {
    case DIM_MODEL:
        return h->d_model;
    case DIM_FF:
        return h->d_ff;
    case DIM_Q:
        return (uint64_t)h->heads * h->head_dim;
    case DIM_KV:
        return (uint64_t)h->kv_heads * h->head_dim;
    case DIM_HEAD:
        return h->head_dim;
    case DIM_HALF_HEAD:
        return h->head_dim / 2;
    case DIM_VOCAB:
        return h->vocab;
    default:
        return 1;
    }
}

static bool is_needed(const struct model_hparams *h, enum need need)
{
    return need == NEED_ALWAYS || (need == NEED_QK_NORM && h->qk_norm) ||
           (need == NEED_POST_NORM && h->post_norms);
}

static bool is_known_here(const struct model_hparams *h, enum need need)
{
    return need == NEED_OPTIONAL || is_needed(h, need);
}

static enum status check_shape(const struct model *m, const struct gguf_tensor *t,
                               const struct role *role)
{
    uint64_t row = dim_value(&m->h, role->row), rows = dim_value(&m->h, role->rows);
    if (t->ne[0] != row || t->ne[1] != rows || t->ne[2] != 1 || t->ne[3] != 1)
        return err_set(
            ERR_FORMAT,
            "%s: tensor %s is %llu x %llu x %llu x %llu; this model's metadata ask for %llu x %llu",
            gguf_name(m->gguf), t->name, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
            (unsigned long long)t->ne[2], (unsigned long long)t->ne[3], (unsigned long long)row,
            (unsigned long long)rows);
    if (role->rows == DIM_NONE && t->type != QUANT_F32)
        return err_set(ERR_FORMAT, "%s: tensor %s is of type %s; F32 is read there",
                       gguf_name(m->gguf), t->name, quant_name(t->type));
    return OK;
}

static enum status find_role(struct model *m, const char *prefix, const struct role *role,
                             const struct gguf_tensor **slot, size_t *found)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s.weight", prefix, role->name);
    const struct gguf_tensor *t =
        is_known_here(&m->h, role->need) ? gguf_tensor_find(m->gguf, name) : NULL;
    if (!t && is_needed(&m->h, role->need))
        return err_set(ERR_FORMAT, "%s: the tensor %s is missing", gguf_name(m->gguf), name);
    *slot = t;
    if (!t) return OK;
    ++*found;
    return check_shape(m, t, role);
}

static bool has_role(const struct model *m, const struct gguf_tensor *t)
{
    for (size_t i = 0; i < (size_t)m->h.layers * ROLE_LAYER_COUNT; i++)
        if (m->layer[i] == t) return true;
    for (size_t i = 0; i < ROLE_COUNT - ROLE_LAYER_COUNT; i++)
        if (m->global[i] == t) return true;
    return false;
}

static enum status refuse_stranger(const struct model *m)
{
    for (size_t i = 0; i < gguf_tensor_count(m->gguf); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(m->gguf, i);
        if (!has_role(m, t))
            return err_set(
                ERR_FORMAT,
                "%s: the tensor %s has no place in a %s model as computed here; without it the "
                "results would be another model's",
                gguf_name(m->gguf), t->name, model_arch_name(m->h.arch));
    }
    return OK;
}

static enum status read_vocab(struct model *m)
{
    const struct gguf_tensor *t = gguf_tensor_find(m->gguf, "token_embd.weight");
    if (!t)
        return err_set(ERR_FORMAT, "%s: the tensor token_embd.weight is missing",
                       gguf_name(m->gguf));
    if (t->ne[1] > MODEL_MAX_VOCAB)
        return err_set(ERR_LIMIT, "%s: a vocabulary of %llu tokens; at most %d are possible",
                       gguf_name(m->gguf), (unsigned long long)t->ne[1], MODEL_MAX_VOCAB);
    m->h.vocab = (uint32_t)t->ne[1];
    if (tokenizer_vocab(m->tokenizer) != m->h.vocab)
        return err_set(ERR_FORMAT, "%s: the tokenizer has %u tokens, the embedding %u rows",
                       gguf_name(m->gguf), tokenizer_vocab(m->tokenizer), m->h.vocab);
    return OK;
}

static enum status use_rope_factors(struct model *m)
{
    const struct gguf_tensor *t = model_tensor(m, 0, ROLE_ROPE_FREQS);
    if (!t) return OK;
    m->h.rope_factors = t->data;
    for (uint64_t i = 0; i < t->ne[0]; i++)
        if (!isfinite(m->h.rope_factors[i]) || m->h.rope_factors[i] <= 0)
            return err_set(
                ERR_FORMAT,
                "%s: value %llu of rope_freqs.weight is %g; a positive number belongs there",
                gguf_name(m->gguf), (unsigned long long)i, (double)m->h.rope_factors[i]);
    return OK;
}

static enum status find_tensors(struct model *m)
{
    size_t found = 0;
    enum status st;

    m->layer = calloc((size_t)m->h.layers * ROLE_LAYER_COUNT, sizeof *m->layer);
    if (!m->layer) return err_set(ERR_NOMEM, "%s: no memory for its tables", gguf_name(m->gguf));
    for (int r = ROLE_LAYER_COUNT; r < ROLE_COUNT; r++)
        if ((st = find_role(m, "", &roles[r], &m->global[r - ROLE_LAYER_COUNT], &found))) return st;
    for (uint32_t l = 0; l < m->h.layers; l++) {
        char prefix[24];
        snprintf(prefix, sizeof prefix, "blk.%u.", l);
        for (int r = 0; r < ROLE_LAYER_COUNT; r++)
            if ((st = find_role(m, prefix, &roles[r], &m->layer[l * ROLE_LAYER_COUNT + (uint32_t)r],
                                &found)))
                return st;
    }
    if (found != gguf_tensor_count(m->gguf)) return refuse_stranger(m);
    m->h.tied_output = !m->global[ROLE_OUTPUT - ROLE_LAYER_COUNT];
    return use_rope_factors(m);
}

/* The type that most matrices have. */
static const char *commonest_type(const struct model *m)
{
    unsigned count[QUANT_Q6_K + 1] = {0}, best = 0;
    for (size_t i = 0; i < gguf_tensor_count(m->gguf); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(m->gguf, i);
        if (t->ne[1] > 1) count[t->type]++;
    }
    for (unsigned i = 1; i <= QUANT_Q6_K; i++)
        if (count[i] > count[best]) best = i;
    return quant_name(best);
}

static void identify_quant(struct model *m)
{
    /* llama.cpp's numbering of file types. */
    static const char *const labels[] = {
        [0] = "F32",     [1] = "F16",     [2] = "Q4_0",    [3] = "Q4_1",
        [7] = "Q8_0",    [8] = "Q5_0",    [9] = "Q5_1",    [10] = "Q2_K",
        [11] = "Q3_K_S", [12] = "Q3_K_M", [13] = "Q3_K_L", [14] = "Q4_K_S",
        [15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M", [18] = "Q6_K",
    };
    uint32_t type;
    const char *label = NULL;
    if (gguf_has(m->gguf, "general.file_type") &&
        gguf_get_u32(m->gguf, "general.file_type", &type) == OK &&
        type < sizeof labels / sizeof *labels)
        label = labels[type];
    snprintf(m->id.quant, sizeof m->id.quant, "%s", label ? label : commonest_type(m));
}

static void identify(struct model *m, bool synthetic)
{
    struct gguf_str name;
    const char *path = gguf_name(m->gguf), *slash = strrchr(path, '/');
    if (gguf_get_str(m->gguf, "general.name", &name) != OK || name.len == 0) {
        path = slash && slash[1] ? slash + 1 : path;
        name = (struct gguf_str){path, strlen(path)};
    }
    gguf_str_copy(name, m->id.name, sizeof m->id.name);
    snprintf(m->id.arch, sizeof m->id.arch, "%s", model_arch_name(m->h.arch));
    identify_quant(m);
    for (size_t i = 0; i < gguf_tensor_count(m->gguf); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(m->gguf, i);
        m->id.bytes += t->bytes;
        if (strcmp(t->name, "rope_freqs.weight") != 0)
            m->id.params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    m->id.hash = gguf_header_hash(m->gguf);
    m->id.synthetic = synthetic;
}

enum status model_open_gguf(struct gguf *g, bool synthetic, struct model **out)
{
    enum status st;

    *out = NULL;
    struct model *m = calloc(1, sizeof *m);
    if (!m) {
        st = err_set(ERR_NOMEM, "%s: no memory to open it", gguf_name(g));
        gguf_close(g);
        return st;
    }
    m->gguf = g;
    if ((st = model_read_hparams(g, &m->h))) goto out;
    if ((st = tokenizer_open(g, &m->tokenizer))) goto out;
    if ((st = read_vocab(m))) goto out;
    if ((st = find_tensors(m))) goto out;
    identify(m, synthetic);
    *out = m;
out:
    if (st) model_close(m);
    return st;
}

enum status model_open(const char *spec, struct model **out)
{
    static const char synth[] = "synth:";
    struct gguf *g;

    *out = NULL;
    bool synthetic = strncmp(spec, synth, sizeof synth - 1) == 0;
    enum status st = synthetic ? synth_open(spec + sizeof synth - 1, 0, &g) : gguf_open(spec, &g);
    return st ? st : model_open_gguf(g, synthetic, out);
}

void model_close(struct model *m)
{
    if (!m) return;
    tokenizer_close(m->tokenizer);
    gguf_close(m->gguf);
    free(m->layer);
    free(m);
}

const struct model_hparams *model_hparams(const struct model *m)
{
    return &m->h;
}

const struct model_identity *model_identity(const struct model *m)
{
    return &m->id;
}

const struct tokenizer *model_tokenizer(const struct model *m)
{
    return m->tokenizer;
}

const struct gguf *model_gguf(const struct model *m)
{
    return m->gguf;
}

const struct gguf_tensor *model_tensor(const struct model *m, uint32_t layer, enum model_role role)
{
    if (role < ROLE_LAYER_COUNT)
        return layer < m->h.layers ? m->layer[layer * ROLE_LAYER_COUNT + role] : NULL;
    const struct gguf_tensor *t = m->global[role - ROLE_LAYER_COUNT];
    return !t && role == ROLE_OUTPUT ? m->global[ROLE_TOKEN_EMBD - ROLE_LAYER_COUNT] : t;
}

const char *model_role_name(enum model_role role)
{
    return (unsigned)role < ROLE_COUNT ? roles[role].name : "unknown";
}

bool model_layer_is_local(const struct model_hparams *h, uint32_t layer)
{
    return h->window && (layer + 1) % h->window_pattern != 0;
}

float model_rope_base(const struct model_hparams *h, uint32_t layer)
{
    return model_layer_is_local(h, layer) ? h->rope_base_local : h->rope_base;
}

float model_rope_scale(const struct model_hparams *h, uint32_t layer)
{
    return model_layer_is_local(h, layer) ? 1 : h->rope_scale;
}
