/*
 * Tokenizers of real files against recorded token ids of llama.cpp.
 *
 * Needs the models that tools/model.sh fetches; a model that isn't in the cache is skipped by name.
 * To record again: encode tests/fixtures/tokens/texts.json without and with special tokens (the
 * latter with the start token) and write the rows in the same order.
 */
#include "engine/model.h"
#include "engine/tokenizer.h"
#include "tests/lib/model_cache.h"
#include "tests/lib/token_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_model(const char *file, const char *fixture)
{
    struct model *m = model_cache_open(file);
    cJSON *want = token_rows_load(fixture);
    int wrong = token_rows_check(model_tokenizer(m), cJSON_GetObjectItem(want, "rows"));
    cJSON_Delete(want);
    model_close(m);
    assert_int_equal(wrong, 0);
}

static void test_gemma_tokens(void **state)
{
    (void)state;
    check_model(CACHED_GEMMA, "tests/fixtures/tokens/gemma3-270m.json");
}

static void test_smollm2_tokens(void **state)
{
    (void)state;
    check_model(CACHED_SMOLLM2, "tests/fixtures/tokens/smollm2-135m.json");
}

static void test_gemma_prompt(void **state)
{
    (void)state;
    struct model *m = model_cache_open(CACHED_GEMMA);
    cJSON *want = token_rows_load("tests/fixtures/gemma/llama_cpp_tokens.json");
    char text[4096];
    FILE *f = fopen("tests/fixtures/gemma/prompt.txt", "rb");
    assert_non_null(f);
    size_t len = fread(text, 1, sizeof text - 1, f), n;
    fclose(f);
    text[len] = '\0';
    int32_t *ids;
    assert_int_equal(tokenizer_encode(model_tokenizer(m), text, len, TOKENIZER_BOS, &ids, &n), OK);
    int wrong =
        token_rows_compare("prompt.txt", cJSON_GetObjectItem(want, "prompt_tokens"), ids, n);
    free(ids);
    cJSON_Delete(want);
    model_close(m);
    assert_int_equal(wrong, 0);
    assert_true(n >= 256);
}

/* Plain encodings decode to the text, and the recorded continuation to its text. */
static void check_round_trip(const char *file)
{
    struct model *m = model_cache_open(file);
    cJSON *texts = token_rows_load("tests/fixtures/tokens/texts.json");
    const cJSON *v;
    cJSON_ArrayForEach(v, texts)
    {
        int32_t *ids;
        size_t n, len = 0;
        char out[1024];
        const char *text = v->valuestring;
        assert_int_equal(tokenizer_encode(model_tokenizer(m), text, strlen(text), 0, &ids, &n), OK);
        for (size_t i = 0; i < n; i++)
            len += tokenizer_decode(model_tokenizer(m), ids[i], out + len, sizeof out - 1 - len);
        free(ids);
        out[len] = '\0';
        /* U+2581 stands for a space in SPM, so it can't come back as itself. */
        if (!strstr(text, "\xe2\x96\x81") || strcmp(tokenizer_kind(model_tokenizer(m)), "spm") != 0)
            assert_string_equal(out, text);
    }
    cJSON_Delete(texts);
    model_close(m);
}

static void test_gemma_round_trip(void **state)
{
    (void)state;
    check_round_trip(CACHED_GEMMA);
}

static void test_smollm2_round_trip(void **state)
{
    (void)state;
    check_round_trip(CACHED_SMOLLM2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma_tokens),       cmocka_unit_test(test_smollm2_tokens),
        cmocka_unit_test(test_gemma_prompt),       cmocka_unit_test(test_gemma_round_trip),
        cmocka_unit_test(test_smollm2_round_trip),
    };
    return cmocka_run_group_tests_name("tokenizer_real", tests, NULL, NULL);
}
