/*
 * Synthetic models: the generator's known answers, independence of the number of threads, the type
 * mix, the statistics of the weights and the pool's way of filling.
 */
#include "engine/model.h"
#include "engine/synth.h"
#include "engine/tokenizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Random123's published vectors for philox4x32-10. */
static void test_philox_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t ctr[4], key[2], out[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
        uint32_t out[4];
        synth_philox(kat[i].ctr, kat[i].key, out);
        assert_memory_equal(out, kat[i].out, sizeof out);
    }
}

static void test_gauss_is_by_index(void **state)
{
    (void)state;
    enum { N = 64 };
    float all[N], part[N];
    synth_gauss(7, 1000, all, N);
    for (size_t from = 0; from < N; from += 5) {
        size_t n = N - from < 9 ? N - from : 9;
        synth_gauss(7, 1000 + from, part, n);
        assert_memory_equal(part, all + from, n * sizeof *part);
    }
    synth_gauss(8, 1000, part, N);
    assert_memory_not_equal(part, all, sizeof all);
}

/* Limits: five standard errors of mean, variance and the share within one sd for 2^18 values. */
static void test_gauss_distribution(void **state)
{
    (void)state;
    enum { N = 1 << 18 };
    float *v = malloc(N * sizeof *v);
    assert_non_null(v);
    synth_gauss(3, 0, v, N);
    double sum = 0, sq = 0, inside = 0;
    for (int i = 0; i < N; i++) {
        assert_true(isfinite(v[i]));
        sum += (double)v[i];
        sq += (double)v[i] * (double)v[i];
        inside += fabsf(v[i]) < 1;
    }
    free(v);
    assert_true(fabs(sum / N) < 5 / sqrt(N));
    assert_true(fabs(sq / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(inside / N - 0.682689492) < 5 * sqrt(0.6827 * 0.3173 / N));
}

static void test_threads_give_the_same_bytes(void **state)
{
    (void)state;
    struct gguf *one, *five;
    size_t a, b;
    assert_int_equal(synth_open("tiny", 1, &one), OK);
    assert_int_equal(synth_open("tiny", 5, &five), OK);
    const void *p = gguf_bytes(one, &a), *q = gguf_bytes(five, &b);
    assert_int_equal(a, b);
    assert_memory_equal(p, q, a);
    gguf_close(one);
    gguf_close(five);
}

static void test_tiny_shape(void **state)
{
    (void)state;
    struct model *m;
    if (model_open("synth:tiny", &m)) fail_msg("%s", err_msg());
    const struct model_hparams *h = model_hparams(m);
    assert_int_equal(h->layers, 2);
    assert_int_equal(h->d_model, 256);
    assert_int_equal(h->d_ff, 512);
    assert_int_equal(h->heads, 4);
    assert_int_equal(h->head_dim, 64);
    assert_int_equal(h->vocab, 512);
    assert_true(model_identity(m)->synthetic);
    assert_string_equal(model_identity(m)->quant, "Q4_K_M");
    assert_false(h->tied_output);
    assert_int_equal(model_tensor(m, 0, ROLE_OUTPUT)->type, QUANT_Q6_K);
    assert_int_equal(model_tensor(m, 0, ROLE_ATTN_V)->type, QUANT_Q4_K);
    assert_int_equal(model_tensor(m, 1, ROLE_ATTN_V)->type, QUANT_Q6_K);
    assert_int_equal(model_tensor(m, 1, ROLE_FFN_DOWN)->type, QUANT_Q6_K);
    assert_int_equal(model_tensor(m, 1, ROLE_ATTN_Q)->type, QUANT_Q4_K);
    model_close(m);
}

/* The Q4_K_M rule on 32 layers: 4 first, 4 last, and every third of the 24 between (8 of them). */
static void test_more_bits(void **state)
{
    (void)state;
    static const uint32_t q6[] = {0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31};
    size_t at = 0;
    for (uint32_t i = 0; i < 32; i++) {
        bool want = at < sizeof q6 / sizeof *q6 && q6[at] == i;
        at += want;
        assert_int_equal(synth_more_bits(i, 32), want);
    }
    assert_false(synth_more_bits(0, 2));
    assert_true(synth_more_bits(1, 2));
}

/* Dequantised weights keep mean 0 and sd 0.02 (Q4_K adds about 7% of noise in quadrature), norms
 * mean 1. */
static void test_weight_statistics(void **state)
{
    (void)state;
    struct model *m;
    float row[512];
    double sq = 0, sum = 0;
    size_t n = 0;
    assert_int_equal(model_open("synth:tiny", &m), OK);
    const struct gguf_tensor *t = model_tensor(m, 0, ROLE_FFN_UP);
    size_t bytes = quant_row_bytes(t->type, t->ne[0]);
    for (uint64_t r = 0; r < t->ne[1]; r++) {
        quant_dequant_row(t->type, (const char *)t->data + r * bytes, row, t->ne[0]);
        for (uint64_t i = 0; i < t->ne[0]; i++, n++) {
            sum += (double)row[i];
            sq += (double)row[i] * (double)row[i];
        }
    }
    assert_true(fabs(sum / (double)n) < 0.02 * 5 / sqrt((double)n) + 1e-4);
    assert_true(fabs(sqrt(sq / (double)n) / 0.02 - 1) < 0.02);
    const float *norm = model_tensor(m, 0, ROLE_ATTN_NORM)->data;
    for (int i = 0; i < 256; i++) assert_true(fabsf(norm[i] - 1) < 0.02f);
    model_close(m);
}

static double row_sd(const struct gguf_tensor *t, uint64_t r)
{
    size_t n = (size_t)t->ne[0];
    float *row = malloc(n * sizeof *row);
    double sq = 0;
    assert_non_null(row);
    quant_dequant_row(t->type, (const char *)t->data + r * quant_row_bytes(t->type, n), row, n);
    for (size_t i = 0; i < n; i++) sq += (double)row[i] * (double)row[i];
    free(row);
    return sqrt(sq / (double)n);
}

/* The large model: the public counts of Llama 3 8B and of its Q4_K_M's tensor data; every matrix is
 * readable to its last row and has the sd of 4096 or more values (five standard errors and the
 * types' own noise). */
static void test_llama3_8b(void **state)
{
    (void)state;
    struct model *m;
    if (model_open("synth:llama3-8b", &m)) fail_msg("%s", err_msg());
    const struct model_hparams *h = model_hparams(m);
    assert_true(model_identity(m)->params == 8030261248u);
    assert_true(model_identity(m)->bytes == 4912898048u);
    assert_int_equal(h->layers, 32);
    assert_int_equal(h->heads / h->kv_heads, 4);
    assert_int_equal(h->vocab, 128256);
    for (size_t i = 0; i < gguf_tensor_count(model_gguf(m)); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(model_gguf(m), i);
        if (t->n_dims == 1) continue;
        assert_true(fabs(row_sd(t, 0) / 0.02 - 1) < 5 / sqrt(2 * 4096) + 0.01);
        assert_true(fabs(row_sd(t, t->ne[1] - 1) / 0.02 - 1) < 5 / sqrt(2 * 4096) + 0.01);
    }
    const struct gguf_tensor *a = model_tensor(m, 0, ROLE_FFN_UP),
                             *b = model_tensor(m, 1, ROLE_FFN_UP);
    assert_memory_not_equal(a->data, b->data, 144 * 16);
    model_close(m);
}

static void test_large_threads(void **state)
{
    (void)state;
    struct gguf *one, *three;
    assert_int_equal(synth_open("llama3-8b", 1, &one), OK);
    assert_int_equal(synth_open("llama3-8b", 3, &three), OK);
    static const char *const names[] = {"token_embd.weight", "blk.7.attn_norm.weight",
                                        "output.weight"};
    for (size_t i = 0; i < 3; i++) {
        const struct gguf_tensor *a = gguf_tensor_find(one, names[i]),
                                 *b = gguf_tensor_find(three, names[i]);
        size_t n = a->bytes < 100000000 ? a->bytes : 100000000; /* more than a window */
        assert_int_equal(a->bytes, b->bytes);
        assert_memory_equal(a->data, b->data, n);
    }
    gguf_close(one);
    gguf_close(three);
}

static void test_text_round_trip(void **state)
{
    (void)state;
    static const char *const texts[] = {"the quick brown fox", "x = 1;\n\tif (a) b();",
                                        "caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x9a\x80",
                                        " tana  soru "};
    struct model *m;
    assert_int_equal(model_open("synth:tiny", &m), OK);
    const struct tokenizer *t = model_tokenizer(m);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        int32_t *ids;
        size_t n, len = 0;
        char out[256];
        assert_int_equal(tokenizer_encode(t, texts[k], strlen(texts[k]), TOKENIZER_BOS, &ids, &n),
                         OK);
        assert_int_equal(ids[0], tokenizer_bos(t));
        for (size_t i = 0; i < n; i++)
            len += tokenizer_decode(t, ids[i], out + len, sizeof out - len);
        free(ids);
        /* The start of a text gets a space in front. */
        assert_int_equal(len, strlen(texts[k]) + 1);
        assert_memory_equal(out + 1, texts[k], len - 1);
    }
    model_close(m);
}

static void test_unknown_name(void **state)
{
    (void)state;
    struct model *m;
    assert_int_equal(model_open("synth:huge", &m), ERR_USAGE);
    assert_null(m);
    assert_non_null(strstr(err_msg(), "synth:llama3-8b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_gauss_is_by_index),
        cmocka_unit_test(test_gauss_distribution),
        cmocka_unit_test(test_threads_give_the_same_bytes),
        cmocka_unit_test(test_tiny_shape),
        cmocka_unit_test(test_more_bits),
        cmocka_unit_test(test_weight_statistics),
        cmocka_unit_test(test_llama3_8b),
        cmocka_unit_test(test_large_threads),
        cmocka_unit_test(test_text_round_trip),
        cmocka_unit_test(test_unknown_name),
    };
    return cmocka_run_group_tests_name("synth", tests, NULL, NULL);
}
