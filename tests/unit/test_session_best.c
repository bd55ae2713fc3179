/* "best": the variant of each flipped family that won, against what the family ran first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "session/table.h"
#include "tests/lib/session_lab.h"

static void cell_of(const struct session *s, const char *id, struct cell *c)
{
    struct table t = {0};
    assert_int_equal(table_build(&t, s, table_find("best"), NULL), OK);
    assert_int_equal(t.nrows, 1);
    memset(c, 0, sizeof *c);
    for (uint32_t i = 0; i < t.def->ncolumns; i++)
        if (!strcmp(t.def->columns[i].id, id)) table_cell(&t, 0, i, c);
    table_free(&t);
}

static void is_text(const struct session *s, const char *id, const char *wanted)
{
    struct cell c;
    cell_of(s, id, &c);
    assert_true(c.is_text);
    assert_string_equal(c.text, wanted);
}

static void rounds(struct session *s, uint32_t generation, unsigned n, double tok_s)
{
    for (unsigned i = 0; i < n; i++) lab_round(s, generation, 0, tok_s + i % 2);
}

static void the_fastest_is_told_with_what_it_won(void **state)
{
    (void)state;
    struct cell c;
    struct session *s = lab_new();
    rounds(s, 1, 12, 1000);
    lab_generation(s, 2, "wide", 8);
    rounds(s, 2, 12, 1500);
    lab_generation(s, 3, "nb", 8);
    rounds(s, 3, 12, 1400);
    is_text(s, "variant", "wide KD 8");
    is_text(s, "next", "nb KD 8");
    is_text(s, "verdict", "faster");
    is_text(s, "next_verdict", "faster");
    cell_of(s, "ratio", &c);
    assert_float_equal(c.value.v, 1.5, 0.01);
    cell_of(s, "next_ratio", &c);
    assert_float_equal(c.value.v, 1500.0 / 1400, 0.01);
    lab_end(s);
}

static void few_rounds_win_nothing(void **state)
{
    (void)state;
    struct session *s = lab_new();
    rounds(s, 1, 12, 1000);
    lab_generation(s, 2, "wide", 8);
    rounds(s, 2, 4, 3000);
    struct cell c;
    cell_of(s, "generation", &c);
    assert_true(c.value.v == 1); /* the other has too few to be believed */
    cell_of(s, "ratio", &c);
    assert_int_equal(c.value.state, VALUE_UNAVAILABLE);
    assert_non_null(strstr(c.value.why, "started with"));
    is_text(s, "next", "wide KD 8");
    is_text(s, "next_verdict", "few rounds");
    is_text(s, "control", "-");
    lab_end(s);
}

static void nothing_timed_is_no_row(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct table t = {0};
    assert_int_equal(table_build(&t, s, table_find("best"), NULL), OK);
    assert_int_equal(t.nrows, 0);
    table_free(&t);
    lab_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_told_with_what_it_won),
        cmocka_unit_test(few_rounds_win_nothing),
        cmocka_unit_test(nothing_timed_is_no_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
