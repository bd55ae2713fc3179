/*
 * Hyper-parameters from GGUF metadata.
 *
 * Job: read the keys of an architecture, fill in what the format leaves to its readers (gemma3's
 * pattern and local rope base), refuse what the forward pass doesn't compute. Invariant: what
 * leaves here is inside the limits of model.h, so products of two of these numbers fit 64 bits many
 * times over. To add an architecture: a row in `archs`, its differences in model_read_hparams(),
 * its tensors in model.c.
 */
#include "engine/model_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const archs[] = {[MODEL_LLAMA] = "llama", [MODEL_GEMMA3] = "gemma3"};

/* gemma3 27B is the one size whose attention scale isn't that of its heads; it is told by its
 * depth. */
enum { GEMMA3_27B_LAYERS = 62, GEMMA3_PATTERN = 6 };
static const float GEMMA3_LOCAL_ROPE_BASE = 10000;

const char *model_arch_name(enum model_arch arch)
{
    return archs[arch];
}

static enum status read_arch(const struct gguf *g, enum model_arch *arch)
{
    struct gguf_str s;
    char name[64];
    enum status st = gguf_get_str(g, "general.architecture", &s);
    if (st) return st;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (gguf_str_is(s, archs[i])) {
            *arch = (enum model_arch)i;
            return OK;
        }
    return err_set(ERR_FORMAT,
                   "%s: the architecture \"%s\" isn't computed here; llama and gemma3 are (most "
                   "Llama, Mistral and SmolLM files, and Gemma 3)",
                   gguf_name(g), gguf_str_copy(s, name, sizeof name));
}

/* A key of the architecture: "llama" + ".block_count". */
struct key {
    char text[96];
};

static struct key arch_key(const struct model_hparams *h, const char *suffix)
{
    struct key k;
    snprintf(k.text, sizeof k.text, "%s.%s", archs[h->arch], suffix);
    return k;
}

/* An integer from 1 to max. `def` 0: the key must be there. */
static enum status read_count(const struct gguf *g, const struct model_hparams *h,
                              const char *suffix, uint32_t def, uint32_t max, uint32_t *out)
{
    struct key k = arch_key(h, suffix);
    enum status st = def ? gguf_get_u32_or(g, k.text, def, out) : gguf_get_u32(g, k.text, out);
    if (st) return st;
    if (*out < 1 || *out > max)
        return err_set(ERR_LIMIT, "%s: %s is %u; 1 to %u are possible", gguf_name(g), k.text, *out,
                       max);
    return OK;
}

static enum status read_positive(const struct gguf *g, const struct model_hparams *h,
                                 const char *suffix, float def, float *out)
{
    struct key k = arch_key(h, suffix);
    enum status st = def > 0 ? gguf_get_f32_or(g, k.text, def, out) : gguf_get_f32(g, k.text, out);
    if (st) return st;
    if (!isfinite(*out) || *out <= 0)
        return err_set(ERR_FORMAT, "%s: %s is %g; a positive number belongs there", gguf_name(g),
                       k.text, (double)*out);
    return OK;
}

static enum status read_sizes(const struct gguf *g, struct model_hparams *h)
{
    enum status st;
    if ((st = read_count(g, h, "block_count", 0, MODEL_MAX_LAYERS, &h->layers))) return st;
    if ((st = read_count(g, h, "embedding_length", 0, MODEL_MAX_DIM, &h->d_model))) return st;
    if ((st = read_count(g, h, "feed_forward_length", 0, MODEL_MAX_DIM, &h->d_ff))) return st;
    if ((st = read_count(g, h, "context_length", 0, MODEL_MAX_CONTEXT, &h->context))) return st;
    return OK;
}

static enum status read_heads(const struct gguf *g, struct model_hparams *h)
{
    uint32_t value_dim;
    enum status st;

    if ((st = read_count(g, h, "attention.head_count", 0, MODEL_MAX_DIM, &h->heads))) return st;
    if ((st = read_count(g, h, "attention.head_count_kv", h->heads, h->heads, &h->kv_heads)))
        return st;
    uint32_t def = h->d_model / h->heads ? h->d_model / h->heads : 1;
    if ((st = read_count(g, h, "attention.key_length", def, MODEL_MAX_HEAD_DIM, &h->head_dim)))
        return st;
    if ((st = read_count(g, h, "attention.value_length", h->head_dim, MODEL_MAX_HEAD_DIM,
                         &value_dim)))
        return st;
    if (h->heads % h->kv_heads)
        return err_set(ERR_FORMAT, "%s: %u heads can't share %u key/value heads evenly",
                       gguf_name(g), h->heads, h->kv_heads);
    if (value_dim != h->head_dim || h->head_dim % 2)
        return err_set(
            ERR_FORMAT,
            "%s: key and value heads of %u and %u values; equal and even ones are computed here",
            gguf_name(g), h->head_dim, value_dim);
    if ((uint64_t)h->heads * h->head_dim > MODEL_MAX_DIM)
        return err_set(ERR_LIMIT, "%s: %u heads of %u values are more than %d in all", gguf_name(g),
                       h->heads, h->head_dim, MODEL_MAX_DIM);
    return OK;
}

static enum status read_rope_scaling(const struct gguf *g, struct model_hparams *h)
{
    struct gguf_str type;
    char name[32];
    float factor;
    enum status st = gguf_get_str_or(g, arch_key(h, "rope.scaling.type").text, "none", &type);
    if (st) return st;
    h->rope_scale = 1;
    if (gguf_str_is(type, "none")) return OK;
    if (!gguf_str_is(type, "linear"))
        return err_set(ERR_FORMAT,
                       "%s: rope scaling \"%s\" isn't computed here; none and linear are",
                       gguf_name(g), gguf_str_copy(type, name, sizeof name));
    if ((st = read_positive(g, h, "rope.scaling.factor", 1, &factor))) return st;
    h->rope_scale = 1 / factor;
    return OK;
}

static enum status read_rope(const struct gguf *g, struct model_hparams *h)
{
    uint32_t dims;
    enum status st;

    if ((st = read_positive(g, h, "rope.freq_base", 10000, &h->rope_base))) return st;
    if ((st = read_count(g, h, "rope.dimension_count", h->head_dim, MODEL_MAX_DIM, &dims)))
        return st;
    if (dims != h->head_dim)
        return err_set(
            ERR_FORMAT,
            "%s: rotary positions on %u of %u values of a head; only all of them are computed "
            "here",
            gguf_name(g), dims, h->head_dim);
    h->rope_base_local = h->rope_base;
    h->rope = h->arch == MODEL_GEMMA3 ? MODEL_ROPE_HALVES : MODEL_ROPE_PAIRS;
    return read_rope_scaling(g, h);
}

static enum status refuse_features(const struct gguf *g, const struct model_hparams *h)
{
    uint32_t experts;
    float softcap;
    static const char *const caps[] = {"final_logit_softcapping", "attn_logit_softcapping"};
    enum status st = gguf_get_u32_or(g, arch_key(h, "expert_count").text, 0, &experts);
    if (st) return st;
    if (experts)
        return err_set(ERR_FORMAT,
                       "%s: a mixture of %u experts; only dense models are computed here",
                       gguf_name(g), experts);
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        struct key k = arch_key(h, caps[i]);
        if ((st = gguf_get_f32_or(g, k.text, 0, &softcap))) return st;
        if (softcap != 0)
            return err_set(ERR_FORMAT, "%s: %s is set; capped logits aren't computed here",
                           gguf_name(g), k.text);
    }
    return OK;
}

static enum status read_window(const struct gguf *g, struct model_hparams *h)
{
    enum status st;
    if ((st = gguf_get_u32_or(g, arch_key(h, "attention.sliding_window").text, 0, &h->window)))
        return st;
    if (h->arch != MODEL_GEMMA3) {
        if (h->window && h->window < h->context)
            return err_set(ERR_FORMAT, "%s: a sliding window in a %s model isn't computed here",
                           gguf_name(g), archs[h->arch]);
        h->window = 0;
        return OK;
    }
    if ((st = read_count(g, h, "attention.sliding_window_pattern", GEMMA3_PATTERN, MODEL_MAX_LAYERS,
                         &h->window_pattern)))
        return st;
    return read_positive(g, h, "rope.freq_base_swa", GEMMA3_LOCAL_ROPE_BASE, &h->rope_base_local);
}

enum status model_read_hparams(const struct gguf *g, struct model_hparams *h)
{
    enum status st;

    *h = (struct model_hparams){0};
    if ((st = read_arch(g, &h->arch))) return st;
    if ((st = refuse_features(g, h))) return st;
    if ((st = read_sizes(g, h))) return st;
    if ((st = read_heads(g, h))) return st;
    if ((st = read_rope(g, h))) return st;
    if ((st = read_window(g, h))) return st;
    if ((st = read_positive(g, h, "attention.layer_norm_rms_epsilon", 0, &h->norm_eps))) return st;

    bool gemma = h->arch == MODEL_GEMMA3;
    float scale_dim = gemma && h->layers == GEMMA3_27B_LAYERS ? (float)h->d_model / (float)h->heads
                                                              : (float)h->head_dim;
    h->attn_scale = 1 / sqrtf(scale_dim);
    h->embd_scale = gemma ? sqrtf((float)h->d_model) : 1;
    h->act = gemma ? MODEL_GEGLU_TANH : MODEL_SWIGLU;
    h->qk_norm = h->post_norms = gemma;
    return OK;
}
