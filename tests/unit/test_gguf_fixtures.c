/*
 * The committed GGUF files: they are what the generator makes (ACCEPT=1 writes them), stay small,
 * and open as the models that their names say.
 */
#include "engine/model.h"
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

enum { MAX_BYTES = 200 * 1000 };

static void fixture_path(size_t i, char *out, size_t size)
{
    snprintf(out, size, "tests/fixtures/gguf/%s", gguf_fixture_name(i));
}

static void write_file(const char *path, const struct buf *b)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
    assert_int_equal(fclose(f), 0);
}

static void test_committed_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < gguf_fixture_count(); i++) {
        char path[128];
        struct buf b = {0};
        struct gguf *g;
        size_t len;
        fixture_path(i, path, sizeof path);
        gguf_make_fixture(i, &b);
        assert_false(b.failed);
        assert_true(b.len < MAX_BYTES);
        if (getenv("ACCEPT")) write_file(path, &b);
        if (gguf_open(path, &g)) fail_msg("%s (ACCEPT=1 writes it)", err_msg());
        const void *bytes = gguf_bytes(g, &len);
        assert_int_equal(len, b.len);
        assert_memory_equal(bytes, b.data, len);
        gguf_close(g);
        buf_free(&b);
    }
}

static struct model *open_fixture(const char *name)
{
    char path[128];
    struct model *m;
    snprintf(path, sizeof path, "tests/fixtures/gguf/%s", name);
    if (model_open(path, &m)) fail_msg("%s", err_msg());
    return m;
}

static void test_every_role_is_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < gguf_fixture_count(); i++) {
        struct model *m = open_fixture(gguf_fixture_name(i));
        const struct model_hparams *h = model_hparams(m);
        bool gemma = h->arch == MODEL_GEMMA3;
        for (uint32_t l = 0; l < h->layers; l++)
            for (int r = 0; r < ROLE_LAYER_COUNT; r++) {
                bool only_gemma = r == ROLE_ATTN_Q_NORM || r == ROLE_ATTN_K_NORM ||
                                  r == ROLE_POST_ATTN_NORM || r == ROLE_POST_FFN_NORM;
                const struct gguf_tensor *t = model_tensor(m, l, (enum model_role)r);
                assert_int_equal(t != NULL, gemma || !only_gemma);
                if (t) assert_non_null(strstr(t->name, model_role_name((enum model_role)r)));
            }
        assert_true(h->tied_output);
        assert_ptr_equal(model_tensor(m, 0, ROLE_OUTPUT), model_tensor(m, 0, ROLE_TOKEN_EMBD));
        assert_null(model_tensor(m, h->layers, ROLE_ATTN_Q));
        model_close(m);
    }
}

static void test_llama_hparams(void **state)
{
    (void)state;
    struct model *m = open_fixture("llama-q4_k-bpe.gguf");
    const struct model_hparams *h = model_hparams(m);
    assert_int_equal(h->arch, MODEL_LLAMA);
    assert_int_equal(h->layers, 1);
    assert_int_equal(h->d_model, 256);
    assert_int_equal(h->d_ff, 64);
    assert_int_equal(h->heads, 2);
    assert_int_equal(h->kv_heads, 1);
    assert_int_equal(h->head_dim, 32);
    assert_int_equal(h->context, 128);
    assert_int_equal(h->act, MODEL_SWIGLU);
    assert_int_equal(h->rope, MODEL_ROPE_PAIRS);
    assert_int_equal(h->window, 0);
    assert_float_equal(h->embd_scale, 1, 0);
    assert_float_equal(h->attn_scale, 1 / sqrtf(32), 0);
    assert_float_equal(h->norm_eps, 1e-5f, 0);
    assert_null(h->rope_factors);
    assert_int_equal(model_tensor(m, 0, ROLE_ATTN_Q)->type, QUANT_Q4_K);
    assert_int_equal(model_tensor(m, 0, ROLE_FFN_DOWN)->type, QUANT_Q8_0);
    assert_string_equal(model_identity(m)->arch, "llama");
    assert_string_equal(model_identity(m)->quant, "Q4_K");
    assert_string_equal(model_identity(m)->name, "llama-q4_k-bpe.gguf");
    assert_string_equal(tokenizer_kind(model_tokenizer(m)), "bpe gpt-2");
    assert_false(model_identity(m)->synthetic);
    assert_true(model_identity(m)->hash != 0);
    model_close(m);
}

static void test_gemma3_hparams(void **state)
{
    (void)state;
    struct model *m = open_fixture("gemma3-q5_0-spm.gguf");
    const struct model_hparams *h = model_hparams(m);
    assert_int_equal(h->arch, MODEL_GEMMA3);
    assert_int_equal(h->act, MODEL_GEGLU_TANH);
    assert_int_equal(h->rope, MODEL_ROPE_HALVES);
    assert_true(h->qk_norm && h->post_norms);
    assert_int_equal(h->window, 8);
    assert_float_equal(h->embd_scale, 8, 0); /* sqrt(64) */
    for (uint32_t l = 0; l < 7; l++) {
        assert_int_equal(model_layer_is_local(h, l), l != 5);
        assert_float_equal(model_rope_base(h, l), l == 5 ? 1e6f : 1e4f, 0);
        assert_float_equal(model_rope_scale(h, l), 1, 0);
    }
    model_close(m);
}

/* The hash names the header and table, so every fixture has its own. */
static void test_hashes_differ(void **state)
{
    (void)state;
    uint64_t seen[16];
    size_t n = gguf_fixture_count();
    assert_true(n <= 16);
    for (size_t i = 0; i < n; i++) {
        struct model *m = open_fixture(gguf_fixture_name(i));
        seen[i] = model_identity(m)->hash;
        model_close(m);
        for (size_t k = 0; k < i; k++) assert_true(seen[i] != seen[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_committed_bytes), cmocka_unit_test(test_every_role_is_there),
        cmocka_unit_test(test_llama_hparams),   cmocka_unit_test(test_gemma3_hparams),
        cmocka_unit_test(test_hashes_differ),
    };
    return cmocka_run_group_tests_name("gguf_fixtures", tests, NULL, NULL);
}
