/* Fields of JSON and texts of CSV: what isn't there reads as unknown, what is odd stays one field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cjson/cJSON.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/quote.h"

static void fields_that_are_not_there_are_unknown(void **state)
{
    (void)state;
    cJSON *o = cJSON_Parse("{\"n\":1.5,\"t\":\"a\\nb\",\"o\":{},\"z\":null}");
    char line[4];
    assert_non_null(o);
    assert_true(json_number(o, "n") == 1.5);
    assert_true(isnan(json_number(o, "N")) && isnan(json_number(o, "t")));
    assert_true(isnan(json_number(o, "z")) && isnan(json_number(NULL, "n")));
    assert_string_equal(json_text(o, "t"), "a\nb");
    assert_string_equal(json_text(o, "n"), "");
    assert_string_equal(json_text(NULL, "t"), "");
    json_line(o, "t", line, sizeof line);
    assert_string_equal(line, "a b");
    json_line(o, "t", line, 2);
    assert_string_equal(line, "a");
    json_line(o, "o", line, sizeof line);
    assert_string_equal(line, "");
    cJSON_Delete(o);
}

static void quotes_are_doubled(void **state)
{
    static const char *const texts[][2] = {
        {"", "\"\""}, {"a,b\n", "\"a,b\n\""}, {"say \"x\"", "\"say \"\"x\"\"\""}};
    (void)state;
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buf b = {0};
        char *printed = NULL;
        size_t size = 0;
        quote_csv(&b, texts[i][0]);
        buf_u8(&b, 0);
        assert_string_equal((char *)b.data, texts[i][1]);
        FILE *f = open_memstream(&printed, &size);
        quote_csv_print(f, texts[i][0]);
        fclose(f);
        assert_string_equal(printed, texts[i][1]);
        free(printed);
        buf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_that_are_not_there_are_unknown),
        cmocka_unit_test(quotes_are_doubled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
