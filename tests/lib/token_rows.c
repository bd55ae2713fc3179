/* See token_rows.h. */
#include "tests/lib/token_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MIN_TEXTS = 50 };

cJSON *token_rows_load(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long len = ftell(f);
    assert_true(len > 0);
    rewind(f);
    char *text = malloc((size_t)len + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)len, f), (size_t)len);
    text[len] = '\0';
    fclose(f);
    cJSON *json = cJSON_Parse(text);
    free(text);
    assert_non_null(json);
    return json;
}

int token_rows_compare(const char *text, const cJSON *want, const int32_t *ids, size_t n)
{
    size_t i = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, want)
    {
        if (i >= n || ids[i] != v->valueint) {
            print_error("\"%s\": token %zu is %d, llama.cpp has %d\n", text, i, i < n ? ids[i] : -1,
                        v->valueint);
            return 1;
        }
        i++;
    }
    if (i == n) return 0;
    print_error("\"%s\": %zu tokens, llama.cpp has %zu\n", text, n, i);
    return 1;
}

static int check_text(const struct tokenizer *t, const char *text, const cJSON *row)
{
    static const struct {
        const char *key;
        unsigned flags;
    } modes[] = {{"plain", 0}, {"special", TOKENIZER_BOS | TOKENIZER_SPECIAL}};
    int wrong = 0;
    for (size_t i = 0; i < 2; i++) {
        int32_t *ids;
        size_t n;
        assert_int_equal(tokenizer_encode(t, text, strlen(text), modes[i].flags, &ids, &n), OK);
        wrong += token_rows_compare(text, cJSON_GetObjectItem(row, modes[i].key), ids, n);
        free(ids);
    }
    return wrong;
}

int token_rows_check(const struct tokenizer *t, const cJSON *rows)
{
    cJSON *texts = token_rows_load("tests/fixtures/tokens/texts.json");
    int wrong = 0, n = cJSON_GetArraySize(texts);

    assert_true(n >= MIN_TEXTS);
    assert_int_equal(cJSON_GetArraySize(rows), n);
    for (int i = 0; i < n; i++)
        wrong +=
            check_text(t, cJSON_GetArrayItem(texts, i)->valuestring, cJSON_GetArrayItem(rows, i));
    cJSON_Delete(texts);
    return wrong;
}
