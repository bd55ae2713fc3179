/* Surplus attribution by executed counts and by hot loops; tables and reports of executed counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/executed.h"
#include "session/report.h"
#include "session/table.h"
#include "tests/lib/exec_lab.h"
#include "tests/lib/session_lab.h"

static double parts(const struct surplus *p, unsigned *n)
{
    struct surplus_row r;
    double sum = 0;
    *n = 0;
    for (uint32_t i = 0; i < surplus_count(p); i++)
        if (surplus_at(p, i, &r)) {
            sum += r.pct;
            ++*n;
        }
    return sum;
}

static void surplus_by_executed_counts(void **state)
{
    (void)state;
    struct session *s = exec_start();
    struct surplus p;
    struct surplus_row r;
    char text[300];
    unsigned n;
    const struct exec_item other[] = {{0, 0, 0, 10, 0, 0}, {1, 1, 0, 22, 0, 0}, {2, 2, 0, 8, 0, 0}};
    exec_kernel(s, 3, "narrow_kd8", 99);
    exec_row(s, 2, 3, 1, 64, 1000);
    exec_tell(s, 1, 2, 3, exec_some, EXEC_SOME); /* 40 float, 20 tensor of 1000 MACs */
    exec_tell(s, 2, 3, 3, other, 3);             /* 18 float, 22 tensor */
    surplus_open(s, 0, 1, true, &p);
    assert_int_equal(p.basis, SURPLUS_EXECUTED);
    assert_true(fabs(p.sum_a - 0.06) < 1e-12 && fabs(p.sum_b - 0.04) < 1e-12);
    assert_true(surplus_at(&p, 0, &r));
    assert_string_equal(r.name, "float");
    assert_true(fabs(r.delta - 0.022) < 1e-12 && fabs(r.pct - 110) < 1e-9);
    assert_true(surplus_at(&p, 1, &r));
    assert_true(fabs(r.pct + 10) < 1e-9);
    assert_true(fabs(parts(&p, &n) - 100) < 1e-9);
    assert_int_equal(n, 2);
    surplus_words(&p, text, sizeof text);
    assert_string_equal(text,
                        "executed: nb_kd8 60.000M instructions/GMAC, narrow_kd8 40.000M: +50.0%");
    surplus_open(s, 1, 0, false, &p); /* the other way round: a saving, and each opcode once */
    assert_true(fabs(parts(&p, &n) - 100) < 1e-9);
    assert_int_equal(n, 3);
    surplus_open(s, 0, 0, true, &p); /* nothing to divide */
    assert_true(surplus_at(&p, 0, &r) && isnan(r.pct) && r.delta == 0);
    lab_end(s);
}

static void surplus_falls_back_to_hot_loops(void **state)
{
    (void)state;
    struct session *s = exec_start();
    struct surplus p;
    struct surplus_row r;
    char text[400];
    unsigned n;
    exec_kernel(s, 3, "narrow_kd8", 99);
    exec_row(s, 2, 3, 1, 64, 1000);
    exec_tell(s, 1, 2, 3, exec_some, EXEC_SOME);
    surplus_open(s, 0, 1, true, &p);
    assert_int_equal(p.basis, SURPLUS_NONE);
    assert_non_null(strstr(p.why, "the reference has no executed counts"));
    assert_int_equal(surplus_count(&p), 0);
    exec_census(s, 2, 60, true);
    exec_census(s, 3, 30, false); /* an older recording */
    surplus_open(s, 0, 1, true, &p);
    assert_int_equal(p.basis, SURPLUS_NONE);
    exec_census(s, 3, 30, true);
    surplus_open(s, 0, 1, true, &p);
    assert_int_equal(p.basis, SURPLUS_STATIC);
    assert_true(fabs(p.sum_a - 0.09) < 1e-12 && fabs(p.sum_b - 0.06) < 1e-12);
    assert_true(fabs(parts(&p, &n) - 100) < 1e-9);
    assert_int_equal(n, 2); /* float once, though two opcodes are of it */
    assert_true(surplus_at(&p, 0, &r) && fabs(r.a - 0.07) < 1e-12);
    assert_false(surplus_at(&p, 1, &r));
    surplus_words(&p, text, sizeof text);
    assert_non_null(strstr(text, "static hot loop: nb_kd8 90.000M"));
    assert_non_null(strstr(text, "the reference has no executed counts"));
    assert_null(strstr(text, "range"));
    lab_metric(s, 23, "inst", "range"); /* the loop of the first one is not where it works */
    struct msg_counter c = {.row = 1, .metric = 23, .source = "range", .state = VALUE_OK, .n = 2};
    c.v = 100;
    lab_apply(s, FRAME_COUNTER, &c);
    c.row = 2;
    c.v = 125;
    lab_apply(s, FRAME_COUNTER, &c);
    surplus_open(s, 0, 1, true, &p);
    surplus_words(&p, text, sizeof text);
    assert_non_null(strstr(text, "60.000M: +50.0%; whole launches by range: 100.000M, 125.000M: "
                                 "-20.0%; the reference"));
    surplus_open(s, 0, UINT32_MAX, true, &p);
    assert_int_equal(p.basis, SURPLUS_NONE);
    assert_non_null(strstr(p.why, "no reference"));
    surplus_open(s, UINT32_MAX, 1, true, &p);
    assert_non_null(strstr(p.why, "no kernel is selected"));
    lab_end(s);
}

/* Tables ask for their own reference, the kernel before. */
static void tables_and_reports_hold_it(void **state)
{
    (void)state;
    struct session *s = exec_start();
    struct table t = {0};
    struct cell c = {0};
    struct buf out = {0};
    static const char *const formats[] = {"json", "md", "csv", "html"};
    exec_kernel(s, 3, "narrow_kd8", 99);
    lab_generation(s, 2, "narrow", 8);
    exec_row(s, 2, 3, 2, 64, 1000);
    exec_census(s, 2, 60, true);
    exec_census(s, 3, 30, true);
    exec_tell(s, 1, 2, 3, exec_some, EXEC_SOME);
    exec_tell(s, 2, 3, 3, exec_some, 3);
    struct table_query q = {.kernel = TABLE_NONE, .row = 1, .other = TABLE_NONE};
    assert_int_equal(table_build(&t, s, table_find("surplus"), &q), OK);
    assert_int_equal(t.nrows, 2);
    assert_int_equal(table_build(&t, s, table_find("executed"), &q), OK);
    assert_int_equal(t.nrows, 3);
    table_cell(&t, 0, 0, &c);
    assert_string_equal(c.text, "FFMA"); /* most executed first */
    assert_int_equal(table_build(&t, s, table_find("executed_classes"), &q), OK);
    assert_int_equal(t.nrows, 2);
    table_free(&t);
    for (unsigned i = 0; i < 4; i++) {
        buf_reset(&out);
        assert_int_equal(report_find(formats[i])->write(s, &out), OK);
        buf_u8(&out, 0);
        const char *text = (const char *)out.data;
        assert_non_null(strstr(text, i == 0 ? "\"executed\"" : "executed"));
        assert_non_null(strstr(text, i == 0   ? "\"never\""
                                     : i == 2 ? "executed_classes"
                                              : "1 of 3 never ran"));
        if (i == 0) assert_non_null(strstr(text, "\"against\""));
    }
    buf_free(&out);
    lab_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(surplus_by_executed_counts),
        cmocka_unit_test(surplus_falls_back_to_hot_loops),
        cmocka_unit_test(tables_and_reports_hold_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
