/*
 * What a sound GGUF must also be to become a model: every rule of model_open_gguf() has a file that
 * breaks it and is refused with words that name the cause; and optional parts that are taken.
 */
#include "engine/model.h"
#include "engine/synth_priv.h"
#include "engine/tokenizer.h"
#include "tests/lib/gguf_make.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LLAMA_SPM = 3, LLAMA_BPE = 2, GEMMA = 7 }; /* places in the fixture table */

static enum status open_made(const struct gguf_maker *m, struct buf *b, struct model **out)
{
    struct gguf *g;
    *out = NULL;
    gguf_maker_finish(m, b);
    enum status st = gguf_open_memory(b->data, b->len, "made", NULL, &g);
    return st ? st : model_open_gguf(g, false, out);
}

static void assert_refused(const struct gguf_maker *m, const char *words)
{
    struct buf b = {0};
    struct model *model;
    enum status st = open_made(m, &b, &model);
    buf_free(&b);
    if (st == OK) fail_msg("opened; it should say \"%s\"", words);
    assert_null(model);
    if (!strstr(err_msg(), words)) fail_msg("said \"%s\" without \"%s\"", err_msg(), words);
}

static struct model *assert_opens(const struct gguf_maker *m, struct buf *b)
{
    struct model *model;
    if (open_made(m, b, &model)) fail_msg("%s", err_msg());
    return model;
}

/* Overwrites the u32 or f32 bits of a metadata key in place. */
static void change_u32(struct gguf_maker *m, const char *key, uint32_t v)
{
    uint8_t *p = memmem(m->kv.data, m->kv.len, key, strlen(key));
    assert_non_null(p);
    for (int i = 0; i < 4; i++) p[strlen(key) + 4 + (size_t)i] = (uint8_t)(v >> 8 * i);
}

/* Overwrites a text of the metadata with another of the same length. */
static void change_text(struct gguf_maker *m, const char *from, const char *to)
{
    assert_int_equal(strlen(from), strlen(to));
    uint8_t *p = memmem(m->kv.data, m->kv.len, from, strlen(from));
    assert_non_null(p);
    memcpy(p, to, strlen(to));
}

static void test_wrong_hparams(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t v;
        const char *words;
    } rows[] = {
        {"llama.block_count", 0, "llama.block_count is 0"},
        {"llama.block_count", 257, "1 to 256"},
        {"llama.block_count", 2, "blk.1.attn_norm.weight is missing"},
        {"llama.embedding_length", 1u << 20, "llama.embedding_length"},
        {"llama.embedding_length", 32, "metadata ask for 32"},
        {"llama.feed_forward_length", 64, "ffn_gate"},
        {"llama.context_length", 0, "llama.context_length"},
        {"llama.attention.head_count_kv", 3, "llama.attention.head_count_kv is 3"},
        {"llama.attention.key_length", 31, "even"},
        {"llama.attention.key_length", 1024, "1 to 512"},
        {"llama.attention.value_length", 64, "equal"},
        {"llama.rope.dimension_count", 16, "16 of 32"},
        {"llama.rope.freq_base", 0, "positive"},
        {"llama.rope.freq_base", 0x7fc00000, "positive"},
        {"llama.attention.layer_norm_rms_epsilon", 0xbf800000, "positive"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_maker m;
        gguf_fixture_maker(LLAMA_SPM, &m);
        change_u32(&m, rows[i].key, rows[i].v);
        assert_refused(&m, rows[i].words);
        gguf_maker_free(&m);
    }
}

static void test_uneven_heads(void **state)
{
    (void)state;
    struct gguf_maker m;
    gguf_fixture_maker(LLAMA_SPM, &m);
    change_u32(&m, "llama.attention.head_count", 3);
    change_u32(&m, "llama.attention.head_count_kv", 2);
    assert_refused(&m, "evenly");
    gguf_maker_free(&m);
}

static void test_features_not_computed(void **state)
{
    (void)state;
    static const struct {
        const char *key, *text; /* text NULL: the number v */
        uint32_t v;
        const char *words;
    } rows[] = {
        {"llama.expert_count", NULL, 8, "mixture of 8 experts"},
        {"llama.rope.scaling.type", "yarn", 0, "\"yarn\""},
        {"llama.attention.sliding_window", NULL, 16, "sliding window"},
    };
    struct gguf_maker m;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gguf_fixture_maker(LLAMA_SPM, &m);
        m.n_kv += rows[i].text ? synth_put_kv_str(&m.kv, rows[i].key, rows[i].text)
                               : synth_put_kv_u32(&m.kv, rows[i].key, rows[i].v);
        assert_refused(&m, rows[i].words);
        gguf_maker_free(&m);
    }
    gguf_fixture_maker(GEMMA, &m);
    m.n_kv += synth_put_kv_f32(&m.kv, "gemma3.final_logit_softcapping", 30);
    assert_refused(&m, "final_logit_softcapping");
    gguf_maker_free(&m);
}

static void test_unknown_names(void **state)
{
    (void)state;
    static const struct {
        size_t fixture;
        const char *from, *to, *words;
    } rows[] = {
        {GEMMA, "gemma3", "gemma9", "\"gemma9\""},
        {LLAMA_BPE, "smollm", "smollx", "\"smollx\""},
        {LLAMA_BPE, "gpt2", "gptX", "\"gptX\""},
        {LLAMA_BPE, "tokenizer.ggml.merges", "tokenizer.ggml.mergex",
         "tokenizer.ggml.merges is missing"},
        {LLAMA_BPE, "h e", "hxe", "merge 0"},
        {LLAMA_SPM, "tokenizer.ggml.scores", "tokenizer.ggml.scorex",
         "tokenizer.ggml.scores is missing"},
        {LLAMA_SPM, "tokenizer.ggml.tokens", "tokenizer.ggml.tokenx",
         "tokenizer.ggml.tokens is missing"},
        {LLAMA_SPM, "general.architecture", "general.architectura",
         "general.architecture is missing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_maker m;
        gguf_fixture_maker(rows[i].fixture, &m);
        change_text(&m, rows[i].from, rows[i].to);
        assert_refused(&m, rows[i].words);
        gguf_maker_free(&m);
    }
}

/* Finds the tensor of a name in a maker. */
static size_t tensor_index(const struct gguf_maker *m, const char *name)
{
    for (size_t i = 0; i < m->n_tensors; i++)
        if (strcmp(m->tensors[i].name, name) == 0) return i;
    fail_msg("no tensor %s", name);
    return 0;
}

static void test_tensor_rules(void **state)
{
    (void)state;
    struct gguf_maker m;

    gguf_fixture_maker(LLAMA_SPM, &m);
    gguf_maker_tensor(&m, "blk.0.attn_q.bias", QUANT_F32, 64, 0, 1, 0);
    assert_refused(&m, "blk.0.attn_q.bias has no place");
    gguf_maker_free(&m);

    /* gemma3's norms mean nothing in a llama model. */
    gguf_fixture_maker(LLAMA_SPM, &m);
    gguf_maker_tensor(&m, "blk.0.attn_q_norm.weight", QUANT_F32, 32, 0, 1, 0);
    assert_refused(&m, "blk.0.attn_q_norm.weight has no place");
    gguf_maker_free(&m);

    gguf_fixture_maker(LLAMA_SPM, &m);
    m.tensors[tensor_index(&m, "blk.0.ffn_norm.weight")].type = QUANT_F16;
    assert_refused(&m, "F32 is read there");
    gguf_maker_free(&m);

    /* The same bytes as 32 rows of 128. */
    gguf_fixture_maker(LLAMA_SPM, &m);
    size_t q = tensor_index(&m, "blk.0.attn_q.weight");
    m.tensors[q].ne[0] *= 2;
    m.tensors[q].ne[1] /= 2;
    assert_refused(&m, "blk.0.attn_q.weight is 128 x 32");
    gguf_maker_free(&m);

    gguf_fixture_maker(LLAMA_SPM, &m);
    size_t out = m.n_tensors;
    gguf_maker_tensor(&m, "output.weight", QUANT_Q8_0, 64, 383, 1, 0);
    assert_refused(&m, "output.weight is 64 x 383");
    m.tensors[out].n_dims = 3;
    m.tensors[out].ne[2] = 1;
    assert_refused(&m, "output.weight is 64 x 383");
    gguf_maker_free(&m);
}

static void test_vocabulary_sizes(void **state)
{
    (void)state;
    struct gguf_maker m;
    for (int more = -1; more <= 1; more += 2) {
        gguf_fixture_maker(LLAMA_SPM, &m);
        size_t e = tensor_index(&m, "token_embd.weight");
        m.n_tensors = e; /* the sizes are compared before other tensors are looked for */
        gguf_maker_tensor(&m, "token_embd.weight", QUANT_Q8_0, 64, (uint64_t)(384 + more), 1, 0);
        assert_refused(&m, "the tokenizer has 384 tokens");
        gguf_maker_free(&m);
    }
}

static void test_separate_output_and_rope_factors(void **state)
{
    (void)state;
    struct gguf_maker m;
    struct buf b = {0};
    gguf_fixture_maker(LLAMA_SPM, &m);
    gguf_maker_tensor(&m, "output.weight", QUANT_Q8_0, 64, 384, 1, 0);
    gguf_maker_tensor(&m, "rope_freqs.weight", QUANT_F32, 16, 0, 0, 2);
    m.n_kv += synth_put_kv_str(&m.kv, "llama.rope.scaling.type", "linear");
    m.n_kv += synth_put_kv_f32(&m.kv, "llama.rope.scaling.factor", 4);
    m.n_kv += synth_put_kv_str(&m.kv, "general.name", "named");
    m.n_kv += synth_put_kv_u32(&m.kv, "general.file_type", 15);
    struct model *model = assert_opens(&m, &b);
    const struct model_hparams *h = model_hparams(model);
    assert_false(h->tied_output);
    assert_int_equal(model_tensor(model, 0, ROLE_OUTPUT)->type, QUANT_Q8_0);
    assert_non_null(h->rope_factors);
    assert_float_equal(h->rope_factors[15], 2, 0);
    assert_float_equal(model_rope_scale(h, 0), 0.25, 0);
    assert_string_equal(model_identity(model)->name, "named");
    assert_string_equal(model_identity(model)->quant, "Q4_K_M");
    model_close(model);
    buf_free(&b);
    gguf_maker_free(&m);

    gguf_fixture_maker(LLAMA_SPM, &m);
    gguf_maker_tensor(&m, "rope_freqs.weight", QUANT_F32, 16, 0, 0, 0);
    assert_refused(&m, "rope_freqs");
    gguf_maker_free(&m);
}

static void test_gemma3_options(void **state)
{
    (void)state;
    struct gguf_maker m;
    struct buf b = {0};
    gguf_fixture_maker(GEMMA, &m);
    m.n_kv += synth_put_kv_u32(&m.kv, "gemma3.attention.sliding_window_pattern", 2);
    m.n_kv += synth_put_kv_f32(&m.kv, "gemma3.rope.freq_base_swa", 5000);
    m.n_kv += synth_put_kv_str(&m.kv, "gemma3.rope.scaling.type", "linear");
    m.n_kv += synth_put_kv_f32(&m.kv, "gemma3.rope.scaling.factor", 8);
    struct model *model = assert_opens(&m, &b);
    const struct model_hparams *h = model_hparams(model);
    for (uint32_t l = 0; l < 7; l++) {
        bool local = l % 2 == 0;
        assert_int_equal(model_layer_is_local(h, l), local);
        assert_float_equal(model_rope_base(h, l), local ? 5000 : 1e6, 0);
        assert_float_equal(model_rope_scale(h, l), local ? 1 : 0.125, 0);
    }
    model_close(model);
    buf_free(&b);
    gguf_maker_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_hparams),
        cmocka_unit_test(test_uneven_heads),
        cmocka_unit_test(test_features_not_computed),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_tensor_rules),
        cmocka_unit_test(test_vocabulary_sizes),
        cmocka_unit_test(test_separate_output_and_rope_factors),
        cmocka_unit_test(test_gemma3_options),
    };
    return cmocka_run_group_tests_name("gguf_model", tests, NULL, NULL);
}
