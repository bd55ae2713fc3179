/*
 * Tokenizers of real files against recorded token ids of llama.cpp.
 *
 * Needs the models that tools/model.sh fetches; a model that isn't in the cache is skipped by name.
 * To record again: encode tests/fixtures/tokens/texts.json without and with special tokens (the
 * latter with the start token) and write the rows in the same order.
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
#include <unistd.h>

#include <cmocka.h>

static void cache_path(const char *file, char *out, size_t size)
{
    const char *own = getenv("SASSTOP_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    if (own && *own)
        snprintf(out, size, "%s/%s", own, file);
    else if (xdg && *xdg)
        snprintf(out, size, "%s/sasstop/%s", xdg, file);
    else
        snprintf(out, size, "%s/.cache/sasstop/%s", home ? home : "", file);
}

/* Skips the test when the model isn't there. */
static struct model *open_cached(const char *file)
{
    char path[4096];
    struct model *m;
    cache_path(file, path, sizeof path);
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s isn't in the cache (tools/model.sh fetches it)\n", file);
        skip();
    }
    if (model_open(path, &m) != OK) fail_msg("%s", err_msg());
    return m;
}

static void check_model(const char *file, const char *fixture)
{
    struct model *m = open_cached(file);
    cJSON *want = token_rows_load(fixture);
    int wrong = token_rows_check(model_tokenizer(m), cJSON_GetObjectItem(want, "rows"));
    cJSON_Delete(want);
    model_close(m);
    assert_int_equal(wrong, 0);
}

static void test_gemma_tokens(void **state)
{
    (void)state;
    check_model("gemma-3-270m-q4_k_m.gguf", "tests/fixtures/tokens/gemma3-270m.json");
}

static void test_smollm2_tokens(void **state)
{
    (void)state;
    check_model("SmolLM2-135M-Instruct.Q4_1.gguf", "tests/fixtures/tokens/smollm2-135m.json");
}

static void test_gemma_prompt(void **state)
{
    (void)state;
    struct model *m = open_cached("gemma-3-270m-q4_k_m.gguf");
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
    struct model *m = open_cached(file);
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
    check_round_trip("gemma-3-270m-q4_k_m.gguf");
}

static void test_smollm2_round_trip(void **state)
{
    (void)state;
    check_round_trip("SmolLM2-135M-Instruct.Q4_1.gguf");
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
