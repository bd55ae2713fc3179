/* What a session keeps of its sources' tallies and of NVML's readings, and how tables show both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/table.h"
#include "tests/lib/session_lab.h"

static struct session s;

static int setup(void **state)
{
    (void)state;
    lab_start(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    session_free(&s);
    return 0;
}

/* The text of a cell in the row whose first cell is `row`. */
static void cell_of(const char *table, const char *row, const char *column, char *out, size_t size)
{
    struct table t = {0};
    struct cell c;
    char name[CELL_TEXT_MAX];
    out[0] = '\0';
    assert_int_equal(table_build(&t, &s, table_find(table), NULL), OK);
    for (uint32_t i = 0; i < t.nrows; i++) {
        table_cell(&t, i, 0, &c);
        cell_format(&t.def->columns[0], &c, 20, name, sizeof name);
        if (strcmp(name, row)) continue;
        for (uint32_t k = 0; k < t.def->ncolumns; k++)
            if (!strcmp(t.def->columns[k].id, column)) {
                table_cell(&t, i, k, &c);
                cell_format(&t.def->columns[k], &c, 60, out, size);
            }
    }
    table_free(&t);
}

static void expect(const char *table, const char *row, const char *column, const char *text)
{
    char got[CELL_TEXT_MAX];
    cell_of(table, row, column, got, sizeof got);
    assert_string_equal(got, text);
}

static void totals_replace_totals(void **state)
{
    (void)state;
    struct msg_tally m = {.name = "activity", .windows = 1, .items = 10};
    lab_apply(&s, FRAME_TALLY, &m);
    m.windows = 2;
    m.items = 1000000;
    m.dropped = 3;
    m.invalid = 4;
    m.overheads = 2;
    m.overhead_ns = 1500000;
    lab_apply(&s, FRAME_TALLY, &m);
    assert_int_equal(s.ntallies, 1);
    expect("costs", "activity", "windows", "2");
    expect("costs", "activity", "dropped", "3");
    expect("costs", "activity", "invalid", "4");
    expect("costs", "activity", "overhead_ms", "1.50");
    expect("costs", "activity", "passes", "-"); /* unknown, not 0 */
    expect("costs", "activity", "output", "");
}

static void passes_and_output_are_shown(void **state)
{
    (void)state;
    struct msg_tally m = {.name = "range",
                          .sets = "live,sol",
                          .metrics = 18,
                          .passes = 9,
                          .pass_ns = 412000000,
                          .output = 1,
                          .output_hash = 0x123456789abcdefull};
    lab_apply(&s, FRAME_TALLY, &m);
    expect("costs", "range", "passes", "9");
    expect("costs", "range", "pass_ms", "412");
    expect("costs", "range", "sets", "live,sol: 18 metrics");
    expect("costs", "range", "output", "equal 89abcdef");
    expect("costs", "range", "overhead_ms", "-");
    m.output = 2;
    lab_apply(&s, FRAME_TALLY, &m);
    expect("costs", "range", "output", "DIFFERS");
}

static void more_sources_than_fit_are_counted(void **state)
{
    (void)state;
    struct msg_tally m = {.windows = 1};
    for (int i = 0; i < MAX_SOURCES + 3; i++) {
        snprintf(m.name, sizeof m.name, "s%d", i);
        lab_apply(&s, FRAME_TALLY, &m);
    }
    assert_int_equal(s.ntallies, MAX_SOURCES);
    assert_int_equal(s.overflowed, 3);
}

static void clocks_belong_to_their_generation(void **state)
{
    (void)state;
    struct msg_clocks c = {.sm_mhz = 1980, .power_mw = 400000, .temp_c = 50};
    expect("generations", "1", "sm_mhz", "-");
    lab_apply(&s, FRAME_CLOCKS, &c);
    expect("generations", "1", "sm_mhz", "1980");
    expect("generations", "1", "watts", "400");
    expect("generations", "1", "throttle", "none");
    lab_generation(&s, 2, "nb", 8);
    expect("generations", "2", "throttle", "-");
    c = (struct msg_clocks){
        .sm_mhz = 1755, .power_mw = 700000, .temp_c = 71, .throttle = "power cap"};
    lab_apply(&s, FRAME_CLOCKS, &c);
    snprintf(c.throttle, sizeof c.throttle, "power cap, software thermal");
    lab_apply(&s, FRAME_CLOCKS, &c);
    c.throttle[0] = '\0';
    c.temp_c = 69;
    lab_apply(&s, FRAME_CLOCKS, &c);
    expect("generations", "2", "sm_mhz", "1755");
    expect("generations", "2", "celsius", "71");
    expect("generations", "2", "throttle", "power cap, software thermal (2 of 3)");
    expect("generations", "1", "throttle", "none");
}

/* Every reason that NVML knows, said for hours, stays inside its buffer. */
static void reasons_are_kept_once(void **state)
{
    (void)state;
    struct msg_clocks c = {.sm_mhz = 1000};
    static const char *const texts[] = {
        "application clocks, power cap, hardware slowdown", "sync boost, software thermal",
        "hardware thermal, power brake, display clocks", ",,, ,", "x"};
    for (int i = 0; i < 1000; i++) {
        snprintf(c.throttle, sizeof c.throttle, "%s", texts[i % 5]);
        lab_apply(&s, FRAME_CLOCKS, &c);
    }
    const struct generation *g = session_current(&s);
    assert_true(strlen(g->throttle) < sizeof g->throttle);
    assert_non_null(strstr(g->throttle, "application clocks, power cap"));
    assert_int_equal(g->throttled, 1000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(totals_replace_totals),
        T(passes_and_output_are_shown),
        T(more_sources_than_fit_are_counted),
        T(clocks_belong_to_their_generation),
        T(reasons_are_kept_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
