/*
 * A model: its hyper-parameters, its tensors by role, its tokenizer and its identity.
 *
 * model_open() takes a GGUF path or a synthetic model's name (engine/synth.h) and checks everything
 * that the forward pass relies on: the architecture, every hyper-parameter, and for every role the
 * shape and a type it may have. A file with a tensor that has no role, or a feature not computed
 * here (experts, partial rotary, other rope scalings), is refused by name. The model owns the
 * mapping: tensors, their data and the tokenizer live until model_close(). After opening it is only
 * read, by any thread.
 *
 * Shapes: a matrix tensor has ne[0] = inputs (k, the row length) and ne[1] = outputs (m),
 * row-major, so that y[m] = W[m][k] . x[k]. In the forward pass of a layer, with norm() = RMSNorm
 * with weight (x * w / sqrt(mean(x^2) + eps); gemma's 1 + w is already folded into the file's w):
 *
 *   a = norm(x, ATTN_NORM);  q, k, v = ATTN_Q a, ATTN_K a, ATTN_V a          [heads or
 * kv_heads][head_dim] if qk_norm:  q, k = norm per head (ATTN_Q_NORM, ATTN_K_NORM) rope(q, k);  o =
 * ATTN_OUT attention(q * attn_scale, k, v) if post_norms:  o = norm(o, POST_ATTN_NORM) x += o;  f =
 * norm(x, FFN_NORM);  f = FFN_DOWN (act(FFN_GATE f) * FFN_UP f) if post_norms:  f = norm(f,
 * POST_FFN_NORM) x += f
 *
 * before it x = embd_scale * TOKEN_EMBD[token], after it logits = OUTPUT norm(x, OUTPUT_NORM).
 * Query head h reads key/value head h / (heads / kv_heads).
 */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include "base/status.h"
#include "engine/gguf.h"

enum {
    MODEL_MAX_LAYERS = 256,
    MODEL_MAX_DIM = 1 << 17, /* d_model, d_ff, heads * head_dim */
    MODEL_MAX_HEAD_DIM = 512,
    MODEL_MAX_VOCAB = 1 << 20, /* tokens */
    MODEL_MAX_CONTEXT = 1 << 24,
};

enum model_arch { MODEL_LLAMA, MODEL_GEMMA3 };

enum model_act {
    MODEL_SWIGLU,     /* silu(gate) * up */
    MODEL_GEGLU_TANH, /* 0.5 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3))) * up */
};

/* Which values of a head rotate together. */
enum model_rope {
    MODEL_ROPE_PAIRS,  /* (2i, 2i+1): llama's GGUF, whose q and k rows are permuted for it */
    MODEL_ROPE_HALVES, /* (i, i + head_dim/2): gemma3 */
};

struct model_hparams {
    enum model_arch arch;
    uint32_t layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, context;
    float norm_eps;
    float embd_scale; /* 1, or sqrt(d_model) for gemma3 */
    float attn_scale; /* 1/sqrt(head_dim); gemma3 27B: 1/sqrt(d_model/heads) */
    enum model_act act;
    bool qk_norm, post_norms; /* gemma3 has both, llama neither */
    bool tied_output;         /* OUTPUT is TOKEN_EMBD */

    /* Rotary angle of pair i (0 .. head_dim/2 - 1) at position p:
     *   p * scale * base^(-2i / head_dim) / factor[i], with scale = rope_scale (1 on local layers),
     * factor = rope_factors (NULL: all 1), base = rope_base or rope_base_local; model_rope_base().
     */
    enum model_rope rope;
    float rope_base, rope_scale;
    const float *rope_factors; /* head_dim/2 floats, from tensor rope_freqs.weight; or NULL */

    /* Sliding window: a local layer attends to positions p - window + 1 .. p. 0 = none. Layer i is
     * local when window != 0 and (i + 1) % window_pattern != 0 (gemma3: every 6th is global). */
    uint32_t window, window_pattern;
    float rope_base_local; /* 10000 */
};

/* Layer roles come first: one tensor in each layer. */
enum model_role {
    ROLE_ATTN_NORM,
    ROLE_ATTN_Q,
    ROLE_ATTN_K,
    ROLE_ATTN_V,
    ROLE_ATTN_Q_NORM, /* gemma3 */
    ROLE_ATTN_K_NORM, /* gemma3 */
    ROLE_ATTN_OUT,
    ROLE_POST_ATTN_NORM, /* gemma3 */
    ROLE_FFN_NORM,
    ROLE_FFN_GATE,
    ROLE_FFN_UP,
    ROLE_FFN_DOWN,
    ROLE_POST_FFN_NORM, /* gemma3 */
    ROLE_LAYER_COUNT,
    ROLE_TOKEN_EMBD = ROLE_LAYER_COUNT,
    ROLE_OUTPUT_NORM,
    ROLE_OUTPUT,
    ROLE_ROPE_FREQS, /* optional */
    ROLE_COUNT,
};

struct model_identity {
    char name[128]; /* general.name, or the file's */
    char arch[16];  /* "llama", "gemma3" */
    char
        quant[16]; /* label from general.file_type ("Q4_K_M"), else the most frequent matrix type */
    uint64_t params; /* values in all tensors, rope_freqs not counted */
    uint64_t bytes;  /* of tensor data */
    uint64_t hash;   /* xxh64 of header, metadata and tensor table (not of the weights) */
    bool synthetic;  /* random weights: text means nothing, speed does */
};

struct model;
struct tokenizer;

/* `spec`: a path, or "synth:tiny" / "synth:llama3-8b". *out is NULL on failure. ERR_IO, ERR_FORMAT,
 * ERR_LIMIT, ERR_NOMEM; ERR_USAGE for an unknown synthetic name. */
enum status model_open(const char *spec, struct model **out);

/* The same on an open GGUF, which belongs to the model from then on, also on failure. */
enum status model_open_gguf(struct gguf *g, bool synthetic, struct model **out);

void model_close(struct model *m); /* NULL is fine */

const struct model_hparams *model_hparams(const struct model *m);
const struct model_identity *model_identity(const struct model *m);
const struct tokenizer *model_tokenizer(const struct model *m);
const struct gguf *model_gguf(const struct model *m);

/* The tensor of a role: `layer` counts from 0 and is ignored for global roles. NULL when the model
 * has none (qk norms, post norms, rope_freqs); never NULL otherwise. OUTPUT of a tied model is
 * TOKEN_EMBD's. */
const struct gguf_tensor *model_tensor(const struct model *m, uint32_t layer, enum model_role role);

/* "attn_q", "ffn_down", "output"...: the role part of llama.cpp's tensor names. Static. */
const char *model_role_name(enum model_role role);

bool model_layer_is_local(const struct model_hparams *h, uint32_t layer); /* sliding window */
float model_rope_base(const struct model_hparams *h, uint32_t layer);
float model_rope_scale(const struct model_hparams *h, uint32_t layer);

#endif
