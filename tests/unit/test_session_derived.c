/* Figures that follow from exact counters: their arithmetic, and what they say when one is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cjson/cJSON.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "session/exact_derived.h"
#include "session/report.h"
#include "session/table.h"
#include "tests/lib/session_lab.h"

static struct session s;
static uint16_t metrics;

static int setup(void **state)
{
    (void)state;
    metrics = 0;
    lab_start(&s);
    lab_source(&s, "range", "ok", "");
    struct msg_row_def r = {.row = 1,
                            .kernel = 1,
                            .generation = 1,
                            .m = 1000,
                            .n = 1000,
                            .k = 1000,
                            .macs = 2e9,
                            .bytes = 1000,
                            .warps_per_sm = 16,
                            .max_warps = 64,
                            .limiter = "shared memory"};
    lab_apply(&s, FRAME_ROW_DEF, &r);
    r = (struct msg_row_def){.row = 2, .kernel = 1, .generation = 1, .m = 7, .n = 1};
    lab_apply(&s, FRAME_ROW_DEF, &r);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    session_free(&s);
    return 0;
}

static void counter(uint32_t row, const char *key, double v)
{
    const struct msg_metric_def *d = session_metric(&s, key);
    if (!d) {
        lab_metric(&s, ++metrics, key, "range");
        d = session_metric(&s, key);
    }
    struct msg_counter m = {.row = row,
                            .metric = d->metric,
                            .source = "range",
                            .state = VALUE_OK,
                            .v = v,
                            .spread = -1,
                            .n = 2};
    lab_apply(&s, FRAME_COUNTER, &m);
}

static struct value derived(uint32_t row, const char *key)
{
    for (uint32_t i = 0; i < nexact_derived; i++)
        if (!strcmp(exact_derived[i].key, key)) return exact_derived[i].get(&s, &s.rows[row - 1]);
    fail_msg("no derived figure is called %s", key);
    return (struct value){0};
}

static void is(uint32_t row, const char *key, double v)
{
    struct value got = derived(row, key);
    assert_int_equal(got.state, VALUE_OK);
    assert_float_equal(got.v, v, 1e-9 * (v > 1 ? v : 1));
}

static void the_arithmetic(void **state)
{
    (void)state;
    counter(1, "inst", 4e6);
    counter(1, "thread_inst", 128e6);
    counter(1, "cycles_elapsed", 5e5);
    counter(1, "issue_pct", 62.5);
    counter(1, "alu_inst", 1e6);
    counter(1, "tensor_inst", 5e5);
    counter(1, "occupancy_pct", 20);
    counter(1, "bank_conflicts", 300);
    counter(1, "shared_wavefronts", 1200);
    counter(1, "dram_read_bytes", 3000);
    counter(1, "dram_write_bytes", 1000);
    is(1, "inst_per_gmac", 2e6);
    is(1, "cycles_per_gmac", 2.5e5);
    is(1, "issue_per_scheduler", 0.625);
    is(1, "lanes", 32);
    is(1, "mix_alu_pct", 25);
    is(1, "mix_tensor_pct", 12.5);
    is(1, "occupancy_most_pct", 25);
    is(1, "occupancy_part_pct", 80);
    assert_string_equal(derived(1, "occupancy_part_pct").why, "bound by shared memory");
    is(1, "bank_conflict_pct", 25);
    is(1, "conflicts_per_gmac", 150);
    is(1, "dram_bytes", 4000);
    is(1, "dram_over_least", 4);
    is(1, "macs_per_byte", 5e5);
    assert_string_equal(derived(1, "inst_per_gmac").source, "range");
    assert_int_equal(derived(1, "inst_per_gmac").n, 2);
}

/* What was not counted, or has no meaning here, is unknown and says why; it is never 0. */
static void what_is_missing_is_unknown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < nexact_derived; i++)
        for (uint32_t r = 0; r < 2; r++) {
            if (r == 0 && !strcmp(exact_derived[i].key, "occupancy_most_pct")) continue;
            struct value v = exact_derived[i].get(&s, &s.rows[r]);
            assert_int_not_equal(v.state, VALUE_OK);
            assert_non_null(v.why);
            assert_true(strlen(v.why) > 3);
        }
    counter(2, "inst", 100);
    assert_string_equal(derived(2, "inst_per_gmac").why,
                        "it is no matrix product: its work is not known");
    counter(2, "alu_inst", 10);
    is(2, "mix_alu_pct", 10);
    assert_int_equal(derived(1, "mix_fma_pct").state, VALUE_PENDING);
    assert_int_equal(derived(2, "mix_fma_pct").state, VALUE_UNAVAILABLE); /* not asked for */
    counter(2, "bank_conflicts", 0);
    counter(2, "shared_wavefronts", 0); /* counted, and none there */
    assert_int_equal(derived(2, "bank_conflict_pct").state, VALUE_UNAVAILABLE);
    counter(1, "bank_conflicts", 0);
    counter(1, "shared_wavefronts", 10);
    is(1, "bank_conflict_pct", 0); /* a measured 0 is a figure */
    assert_int_equal(derived(2, "occupancy_most_pct").state, VALUE_UNAVAILABLE);
}

static void table_and_json_have_them(void **state)
{
    (void)state;
    struct table_query q = {.kernel = TABLE_NONE, .row = 0, .other = TABLE_NONE};
    struct table t = {0};
    struct buf b = {0};
    unsigned lines = 0;
    counter(1, "inst", 4e6);
    assert_int_equal(table_build(&t, &s, table_find("detail"), &q), OK);
    for (uint32_t i = 0; i < t.nrows; i++) {
        struct cell c;
        table_cell(&t, i, 0, &c);
        lines += !strcmp(c.text, "inst by work") || !strncmp(c.text, "mix:", 4);
    }
    assert_int_equal(lines, 1); /* no set of pipes was ever defined here */
    table_free(&t);
    assert_int_equal(report_find("json")->write(&s, &b), OK);
    buf_u8(&b, 0);
    cJSON *root = cJSON_Parse((const char *)b.data);
    const cJSON *k = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "kernels"), 0);
    const cJSON *v = cJSON_GetObjectItem(cJSON_GetObjectItem(k, "derived"), "inst_per_gmac");
    assert_float_equal(cJSON_GetObjectItem(v, "v")->valuedouble, 2e6, 1);
    assert_non_null(cJSON_GetObjectItem(cJSON_GetObjectItem(k, "exact"), "inst"));
    assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(k, "derived"), "lanes"));
    cJSON_Delete(root);
    buf_free(&b);
}

static void keys_and_texts_are_whole(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < nexact_derived; i++) {
        const struct exact_derived *e = &exact_derived[i];
        assert_true(e->key[0] && e->label[0] && e->needs[0] && strlen(e->meaning) > 5);
        assert_true(strlen(e->label) <= 19);
        for (uint32_t j = 0; j < i; j++) assert_string_not_equal(e->key, exact_derived[j].key);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_arithmetic),
        T(what_is_missing_is_unknown),
        T(table_and_json_have_them),
        T(keys_and_texts_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
