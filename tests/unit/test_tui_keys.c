/* The key table: every name is a key, no key means two things, docs/KEYS.md says the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tui/keys.h"

static void test_every_key_has_one_meaning(void **state)
{
    int seen[256];
    int n = 0;
    (void)state;
    for (unsigned i = 0; i < nkey_rows; i++) {
        char list[40], *save = NULL;
        snprintf(list, sizeof list, "%s", key_rows[i].keys);
        for (char *k = strtok_r(list, " ", &save); k; k = strtok_r(NULL, " ", &save)) {
            int key = key_parse(k);
            assert_int_not_equal(key, KEY_NONE);
            for (int j = 0; j < n; j++) assert_int_not_equal(seen[j], key);
            assert_int_equal(key_request(key), key_rows[i].request);
            seen[n++] = key;
        }
        assert_true(strlen(key_rows[i].help) > 2);
    }
    assert_true(n > 50);
}

static void test_names_that_are_no_keys(void **state)
{
    static const char *const bad[] = {"", "F0", "F13", "C-", "C-ab", "Nothing", "ab", " "};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(key_parse(bad[i]), KEY_NONE);
    assert_int_equal(key_parse("F5"), KEY_F_1 + 4);
    assert_int_equal(key_parse("C-l"), 12);
    assert_int_equal(key_request(KEY_NONE), REQ_NONE);
    assert_int_equal(key_request(0x1f600), REQ_NONE);
}

/* What the decision on names fixes: these keys may not move. */
static void test_fixed_keys(void **state)
{
    static const struct {
        const char *key;
        enum request request;
    } fixed[] = {{"v", REQ_VARIANT_NEXT}, {"V", REQ_VARIANT_PREV}, {"k", REQ_KD_NEXT},
                 {"K", REQ_KD_PREV},      {"s", REQ_SASS},         {"e", REQ_EXPORT},
                 {"r", REQ_RECORD},       {"F", REQ_FORCE},        {"R", REQ_OPEN},
                 {"Space", REQ_PAUSE},    {"/", REQ_FILTER},       {"F5", REQ_REDRAW},
                 {"C-l", REQ_REDRAW},     {"h", REQ_HELP},         {"F1", REQ_HELP},
                 {"q", REQ_QUIT},         {"Tab", REQ_NEXT_VIEW}};
    (void)state;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        assert_int_equal(key_request(key_parse(fixed[i].key)), fixed[i].request);
}

static void test_document_agrees(void **state)
{
    struct buf b = {0};
    char text[16384];
    (void)state;
    FILE *f = fopen("docs/KEYS.md", "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    keys_markdown(&b);
    buf_u8(&b, 0);
    assert_string_equal(text, (const char *)b.data);
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_has_one_meaning),
        cmocka_unit_test(test_names_that_are_no_keys),
        cmocka_unit_test(test_fixed_keys),
        cmocka_unit_test(test_document_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
