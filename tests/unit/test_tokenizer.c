/*
 * Tokenizers of the committed files: ids equal llama.cpp's for every text, both families and each
 * pre-tokenizer; decoding; flags; limits; malformed UTF-8.
 */
#include "engine/model.h"
#include "engine/tokenizer.h"
#include "tests/lib/token_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct model *open_fixture(const char *name)
{
    char path[128];
    struct model *m;
    snprintf(path, sizeof path, "tests/fixtures/gguf/%s", name);
    if (model_open(path, &m)) fail_msg("%s", err_msg());
    return m;
}

static void test_ids_equal_llama_cpp(void **state)
{
    (void)state;
    cJSON *want = token_rows_load("tests/fixtures/tokens/fixtures.json");
    const cJSON *rows;
    int files = 0, wrong = 0;
    cJSON_ArrayForEach(rows, cJSON_GetObjectItem(want, "files"))
    {
        struct model *m = open_fixture(rows->string);
        int here = token_rows_check(model_tokenizer(m), rows);
        if (here) print_error("%s: %d texts differ\n", rows->string, here);
        wrong += here;
        files++;
        model_close(m);
    }
    cJSON_Delete(want);
    assert_int_equal(files, 5);
    assert_int_equal(wrong, 0);
}

static size_t decode_all(const struct tokenizer *t, const int32_t *ids, size_t n, char *out,
                         size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) len += tokenizer_decode(t, ids[i], out + len, size - len);
    return len;
}

/* All 256 bytes, most of them malformed UTF-8: SPM spells them in byte tokens, BPE replaces them.
 */
static void test_any_bytes(void **state)
{
    (void)state;
    char text[256], out[4096];
    int32_t *ids;
    size_t n;
    for (int i = 0; i < 256; i++) text[i] = (char)i;

    struct model *m = open_fixture("llama-q5_0-spm.gguf");
    const struct tokenizer *t = model_tokenizer(m);
    assert_int_equal(tokenizer_encode(t, text, sizeof text, 0, &ids, &n), OK);
    assert_int_equal(decode_all(t, ids, n, out, sizeof out), 257);
    assert_int_equal(out[0], ' ');
    assert_memory_equal(out + 1, text, 256);
    free(ids);
    model_close(m);

    m = open_fixture("llama-q4_k-bpe.gguf");
    t = model_tokenizer(m);
    assert_int_equal(tokenizer_encode(t, text, sizeof text, 0, &ids, &n), OK);
    assert_int_equal(decode_all(t, ids, n, out, sizeof out), 128 + 128 * 3);
    assert_memory_equal(out, text, 128);
    assert_memory_equal(out + 128, "\xef\xbf\xbd", 3);
    free(ids);
    model_close(m);
}

static void test_flags(void **state)
{
    (void)state;
    static const char text[] = "a<|endoftext|><tool>b";
    struct model *m = open_fixture("llama-q4_k-bpe.gguf");
    const struct tokenizer *t = model_tokenizer(m);
    int32_t *ids, end = tokenizer_eos(t);
    size_t n, seen = 0;

    assert_int_equal(tokenizer_encode(t, text, sizeof text - 1, TOKENIZER_SPECIAL, &ids, &n), OK);
    assert_int_equal(n, 4);
    assert_int_equal(ids[1], end);
    assert_int_equal(ids[2], end + 1); /* <tool> is user-defined */
    free(ids);

    assert_int_equal(tokenizer_encode(t, text, sizeof text - 1, 0, &ids, &n), OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_not_equal(ids[i], end);
        seen += ids[i] == end + 1;
    }
    assert_int_equal(seen, 1);
    free(ids);

    char out[32];
    assert_true(tokenizer_is_end(t, end));
    assert_false(tokenizer_is_end(t, end + 1));
    assert_int_equal(tokenizer_decode(t, end, out, sizeof out), 0);
    assert_int_equal(tokenizer_decode(t, end + 1, out, sizeof out), 6);
    assert_memory_equal(out, "<tool>", 6);
    model_close(m);
}

static void test_decode_bounds(void **state)
{
    (void)state;
    struct model *m = open_fixture("llama-q4_k-bpe.gguf");
    const struct tokenizer *t = model_tokenizer(m);
    int32_t tool = tokenizer_eos(t) + 1, vocab = (int32_t)tokenizer_vocab(t);
    char out[4] = {'x', 'x', 'x', 'x'};
    assert_int_equal(tokenizer_decode(t, tool, out, 2), 6);
    assert_memory_equal(out, "<txx", 4);
    assert_int_equal(tokenizer_decode(t, tool, NULL, 0), 6);
    assert_int_equal(tokenizer_decode(t, -1, out, sizeof out), 0);
    assert_int_equal(tokenizer_decode(t, vocab, out, sizeof out), 0);
    assert_false(tokenizer_is_end(t, -1));
    assert_false(tokenizer_is_end(t, vocab));
    model_close(m);
}

/* Every byte has one character, and comes back from it. */
static void test_byte_alphabet(void **state)
{
    (void)state;
    struct model *m = open_fixture("llama-q4_k-bpe.gguf");
    const struct tokenizer *t = model_tokenizer(m);
    for (int32_t b = 0; b < 256; b++) {
        char out[4];
        assert_int_equal(tokenizer_decode(t, b, out, sizeof out), 1);
        assert_int_equal((uint8_t)out[0], b);
    }
    model_close(m);
}

static void test_long_texts(void **state)
{
    (void)state;
    static const char *const files[] = {"llama-q5_0-spm.gguf", "llama-f16-bpe.gguf"};
    char *text = malloc(TOKENIZER_MAX_TEXT + 1), *out = malloc(TOKENIZER_MAX_TEXT + 2);
    assert_non_null(text);
    assert_non_null(out);
    for (size_t f = 0; f < 2; f++) {
        struct model *m = open_fixture(files[f]);
        const struct tokenizer *t = model_tokenizer(m);
        int32_t *ids;
        size_t n;
        memset(text, f ? ' ' : 'a', TOKENIZER_MAX_TEXT + 1);
        assert_int_equal(tokenizer_encode(t, text, TOKENIZER_MAX_TEXT + 1, 0, &ids, &n), ERR_LIMIT);
        assert_null(ids);
        assert_int_equal(tokenizer_encode(t, text, TOKENIZER_MAX_TEXT / 8, 0, &ids, &n), OK);
        assert_int_equal(decode_all(t, ids, n, out, TOKENIZER_MAX_TEXT),
                         TOKENIZER_MAX_TEXT / 8 + !f);
        free(ids);
        model_close(m);
    }
    free(text);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_equal_llama_cpp),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_decode_bounds),
        cmocka_unit_test(test_byte_alphabet),
        cmocka_unit_test(test_long_texts),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
