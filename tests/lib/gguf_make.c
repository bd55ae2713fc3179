/*
 * See gguf_make.h. To add a fixture, add a row to `fixtures` and run the test with ACCEPT=1.
 *
 * Invariant: the bytes depend on the table alone. Types with blocks of 256 get a d_model of 256 and
 * fall back to Q8_0 where rows are shorter, as real encoders do.
 */
#include "tests/lib/gguf_make.h"

#include "engine/synth.h"
#include "engine/synth_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ALIGN = 32, SPM_VOCAB = 384 };

struct fixture {
    const char *name;
    bool gemma;
    enum quant_type type;
    const char *pre; /* NULL: SPM */
};

static const struct fixture fixtures[] = {
    {"llama-f32-spm.gguf", false, QUANT_F32, NULL},
    {"llama-f16-bpe.gguf", false, QUANT_F16, "llama-bpe"},
    {"llama-q4_1-bpe.gguf", false, QUANT_Q4_1, "smollm"},
    {"llama-q5_0-spm.gguf", false, QUANT_Q5_0, NULL},
    {"llama-q8_0-bpe.gguf", false, QUANT_Q8_0, "default"},
    {"llama-q4_k-bpe.gguf", false, QUANT_Q4_K, "gpt-2"},
    {"llama-q6_k-spm.gguf", false, QUANT_Q6_K, NULL},
    {"gemma3-q5_0-spm.gguf", true, QUANT_Q5_0, NULL},
};

static const char *const merges[] = {
    "h e",
    "i n",
    "r e",
    "o n",
    "e r",
    "a n",
    "an d",
    "o r",
    "l d",
    "or ld",
    "l l",
    "ll o",
    "he llo",
    "e s",
    "in g",
    "t i",
    "ti on",
    "\xc4\xa0 t",
    "\xc4\xa0t he",
    "\xc4\xa0 w",
    "\xc4\xa0w orld",
    "\xc4\xa0 a",
    "\xc4\xa0 \xc4\xa0",
    "\xc4\x8a \xc4\x8a",
};
enum { MERGES = sizeof merges / sizeof *merges, BPE_VOCAB = 256 + MERGES + 2 };

void gguf_maker_tensor(struct gguf_maker *m, const char *name, enum quant_type type, uint64_t row,
                       uint64_t rows, float sd, float mean)
{
    size_t i = m->n_tensors++, n = (size_t)(row * (rows ? rows : 1));
    size_t align = m->alignment ? m->alignment : DEFAULT_ALIGN, bytes = quant_row_bytes(type, n);
    snprintf(m->tensors[i].name, sizeof m->tensors[i].name, "%s", name);
    m->tensors[i].type = type;
    m->tensors[i].n_dims = rows ? 2 : 1;
    m->tensors[i].ne[0] = row;
    m->tensors[i].ne[1] = rows;
    while (m->data.len % align) buf_u8(&m->data, 0);
    m->tensors[i].offset = m->data.len;

    float *v = malloc(n * sizeof *v);
    if (!v || !buf_reserve(&m->data, bytes)) abort();
    synth_gauss(100 + i, 0, v, n);
    for (size_t k = 0; k < n; k++) v[k] = v[k] * sd + mean;
    quant_quantize_row(type, v, m->data.data + m->data.len, n);
    m->data.len += bytes;
    free(v);
}

void gguf_maker_finish(const struct gguf_maker *m, struct buf *out)
{
    size_t align = m->alignment ? m->alignment : DEFAULT_ALIGN;
    buf_put(out, "GGUF", 4);
    buf_u32(out, 3);
    buf_u64(out, m->n_tensors);
    buf_u64(out, m->n_kv);
    buf_put(out, m->kv.data, m->kv.len);
    for (size_t i = 0; i < m->n_tensors; i++) {
        synth_put_str(out, m->tensors[i].name, strlen(m->tensors[i].name));
        buf_u32(out, m->tensors[i].n_dims);
        for (uint32_t d = 0; d < m->tensors[i].n_dims && d < GGUF_MAX_DIMS; d++)
            buf_u64(out, m->tensors[i].ne[d]);
        buf_u32(out, m->tensors[i].type);
        buf_u64(out, m->tensors[i].offset);
    }
    while (out->len % align) buf_u8(out, 0);
    buf_put(out, m->data.data, m->data.len);
}

void gguf_maker_free(struct gguf_maker *m)
{
    buf_free(&m->kv);
    buf_free(&m->data);
}

/* A merge's two texts without the space between. */
static void put_joined(struct buf *b, const char *merge)
{
    const char *space = strchr(merge, ' ');
    buf_u64(b, strlen(merge) - 1);
    buf_put(b, merge, (size_t)(space - merge));
    buf_put(b, space + 1, strlen(space + 1));
}

/* Byte b as GPT-2 writes it, from the definition: the visible Latin-1 bytes stand for themselves,
 * the others are numbered from U+0100 on. */
static void put_byte_token(struct buf *b, unsigned byte)
{
    unsigned hidden = 0, cp = byte;
    for (unsigned i = 0; i <= byte; i++) {
        bool visible = (i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || i >= 0xae;
        if (i == byte && !visible) cp = 256 + hidden;
        hidden += !visible;
    }
    buf_u64(b, cp < 128 ? 1 : 2);
    if (cp < 128) {
        buf_u8(b, (uint8_t)cp);
    } else {
        buf_u8(b, (uint8_t)(0xc0 | cp >> 6));
        buf_u8(b, (uint8_t)(0x80 | (cp & 63)));
    }
}

static void put_bpe(struct gguf_maker *m, const char *pre)
{
    struct buf *b = &m->kv;
    m->n_kv += synth_put_kv_str(b, "tokenizer.ggml.model", "gpt2");
    m->n_kv += synth_put_kv_str(b, "tokenizer.ggml.pre", pre);
    m->n_kv += synth_put_kv_array(b, "tokenizer.ggml.tokens", GGUF_STR, BPE_VOCAB);
    for (unsigned i = 0; i < 256; i++) put_byte_token(b, i);
    for (size_t i = 0; i < MERGES; i++) put_joined(b, merges[i]);
    synth_put_str(b, "<|endoftext|>", 13);
    synth_put_str(b, "<tool>", 6);
    m->n_kv += synth_put_kv_array(b, "tokenizer.ggml.token_type", GGUF_I32, BPE_VOCAB);
    for (unsigned i = 0; i < BPE_VOCAB; i++)
        buf_u32(b, i == BPE_VOCAB - 2 ? 3 : i == BPE_VOCAB - 1 ? 4 : 1);
    m->n_kv += synth_put_kv_array(b, "tokenizer.ggml.merges", GGUF_STR, MERGES);
    for (size_t i = 0; i < MERGES; i++) synth_put_str(b, merges[i], strlen(merges[i]));
    m->n_kv += synth_put_kv_u32(b, "tokenizer.ggml.bos_token_id", BPE_VOCAB - 2);
    m->n_kv += synth_put_kv_u32(b, "tokenizer.ggml.eos_token_id", BPE_VOCAB - 2);
}

struct sizes {
    const char *arch;
    uint32_t layers, d, ff, heads, kv_heads, head_dim, vocab;
};

static void put_u32(struct gguf_maker *m, const struct sizes *s, const char *suffix, uint32_t v)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", s->arch, suffix);
    m->n_kv += synth_put_kv_u32(&m->kv, key, v);
}

static void put_f32(struct gguf_maker *m, const struct sizes *s, const char *suffix, float v)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", s->arch, suffix);
    m->n_kv += synth_put_kv_f32(&m->kv, key, v);
}

static void put_hparams(struct gguf_maker *m, const struct sizes *s, bool gemma)
{
    m->n_kv += synth_put_kv_str(&m->kv, "general.architecture", s->arch);
    put_u32(m, s, "block_count", s->layers);
    put_u32(m, s, "context_length", 128);
    put_u32(m, s, "embedding_length", s->d);
    put_u32(m, s, "feed_forward_length", s->ff);
    put_u32(m, s, "attention.head_count", s->heads);
    put_u32(m, s, "attention.head_count_kv", s->kv_heads);
    put_u32(m, s, "attention.key_length", s->head_dim);
    put_u32(m, s, "attention.value_length", s->head_dim);
    put_f32(m, s, "rope.freq_base", gemma ? 1e6f : 1e4f);
    put_f32(m, s, "attention.layer_norm_rms_epsilon", gemma ? 1e-6f : 1e-5f);
    if (gemma)
        put_u32(m, s, "attention.sliding_window", 8);
    else
        put_u32(m, s, "rope.dimension_count", s->head_dim);
}

/* A tensor of layer l, or of the model (l < 0). Q8_0 stands in where rows are too short for the
 * type. */
static void put_tensor(struct gguf_maker *m, int l, const char *part, enum quant_type type,
                       uint64_t row, uint64_t rows)
{
    char name[64];
    if (!quant_row_bytes(type, row)) type = QUANT_Q8_0;
    if (l >= 0)
        snprintf(name, sizeof name, "blk.%d.%s.weight", l, part);
    else
        snprintf(name, sizeof name, "%s.weight", part);
    /* Larger than a trained model's, so that logits of so small a model differ visibly. */
    gguf_maker_tensor(m, name, type, row, rows, rows ? 0.1f : 0.05f, rows ? 0 : 1);
}

static void put_tensors(struct gguf_maker *m, const struct sizes *s, const struct fixture *f)
{
    uint64_t q = (uint64_t)s->heads * s->head_dim, kv = (uint64_t)s->kv_heads * s->head_dim;
    put_tensor(m, -1, "token_embd", f->type, s->d, s->vocab);
    for (int l = 0; l < (int)s->layers; l++) {
        put_tensor(m, l, "attn_norm", QUANT_F32, s->d, 0);
        put_tensor(m, l, "attn_q", f->type, s->d, q);
        put_tensor(m, l, "attn_k", f->type, s->d, kv);
        put_tensor(m, l, "attn_v", f->type, s->d, kv);
        put_tensor(m, l, "attn_output", f->type, q, s->d);
        put_tensor(m, l, "ffn_norm", QUANT_F32, s->d, 0);
        put_tensor(m, l, "ffn_gate", f->type, s->d, s->ff);
        put_tensor(m, l, "ffn_up", f->type, s->d, s->ff);
        put_tensor(m, l, "ffn_down", f->type, s->ff, s->d);
        if (!f->gemma) continue;
        put_tensor(m, l, "attn_q_norm", QUANT_F32, s->head_dim, 0);
        put_tensor(m, l, "attn_k_norm", QUANT_F32, s->head_dim, 0);
        put_tensor(m, l, "post_attention_norm", QUANT_F32, s->d, 0);
        put_tensor(m, l, "post_ffw_norm", QUANT_F32, s->d, 0);
    }
    put_tensor(m, -1, "output_norm", QUANT_F32, s->d, 0);
}

size_t gguf_fixture_count(void)
{
    return sizeof fixtures / sizeof *fixtures;
}

const char *gguf_fixture_name(size_t i)
{
    return fixtures[i].name;
}

void gguf_fixture_maker(size_t i, struct gguf_maker *m)
{
    const struct fixture *f = &fixtures[i];
    uint32_t d = quant_block_len(f->type) == QK_K ? 256 : f->type == QUANT_F32 ? 32 : 64;
    struct sizes s = {"llama", 1, d, d == 256 ? 64 : 96, 2, 1, 32, f->pre ? BPE_VOCAB : SPM_VOCAB};
    /* Seven layers, so that gemma3's sixth is global and the seventh local again. */
    if (f->gemma) s = (struct sizes){"gemma3", 7, d, 96, 2, 1, 32, SPM_VOCAB};

    *m = (struct gguf_maker){0};
    put_hparams(m, &s, f->gemma);
    if (f->pre)
        put_bpe(m, f->pre);
    else
        m->n_kv += synth_put_vocab(&m->kv, SPM_VOCAB);
    put_tensors(m, &s, f);
}

void gguf_make_fixture(size_t i, struct buf *out)
{
    struct gguf_maker m;
    gguf_fixture_maker(i, &m);
    gguf_maker_finish(&m, out);
    gguf_maker_free(&m);
}
