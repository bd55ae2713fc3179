/* Windows kept for the timeline: what is read from a stretch of them, and which ones leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/timeline.h"
#include "tests/lib/session_lab.h"

enum { PERIOD = 1000, KEY = 1 };

/* Row 1 from 0 to 4000 at 80, row 2 from 5000 to 8000 at 20; samples up to 10,000, one missing. */
static void window(struct session *s, uint32_t number, bool offset_ok)
{
    const struct span_item spans[] = {{1, 0, 4000}, {2, 5000, 1000}, {2, 6500, 1500}};
    struct pm_item items[10];
    for (int i = 0; i < 10; i++)
        items[i] = (struct pm_item){.start = (uint64_t)i * PERIOD,
                                    .dur = PERIOD,
                                    .v = {i < 4    ? 80
                                          : i == 9 ? (double)NAN
                                                   : 20}};
    lab_window_begin(s, number, KEY, PERIOD);
    lab_spans(s, number, spans, 3);
    lab_samples(s, number, items, 10);
    lab_window_end(s, number, false, offset_ok, 0);
}

static void means_are_by_time_and_gaps_are_nothing(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    uint64_t from, to;
    window(s, 1, true);
    assert_int_equal(s->ntrace, 1);
    const struct trace_window *w = &s->trace[0];
    timeline_bounds(w, &from, &to);
    assert_int_equal(to - from, 10000);
    assert_float_equal(timeline_mean(w, 0, from, from + 4000), 80, 1e-6);
    assert_float_equal(timeline_mean(w, 0, from + 3000, from + 5000), 50, 1e-6);
    assert_float_equal(timeline_mean(w, 0, from + 3500, from + 3501), 80, 1e-6);
    assert_float_equal(timeline_mean(w, 0, from + 8500, from + 10000), 20, 1e-6);
    assert_true(isnan(timeline_mean(w, 0, from + 9000, from + 10000))); /* missing, not 0 */
    assert_true(isnan(timeline_mean(w, 0, to + 5, to + 50)));
    assert_true(isnan(timeline_mean(w, -1, from, to)));
    assert_true(isnan(timeline_mean(w, 99, from, to)));
    lab_end(s);
}

static void lanes_are_rows_by_their_time(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct timeline_lane lanes[4];
    float busy[10];
    uint64_t from, to;
    window(s, 1, true);
    const struct trace_window *w = &s->trace[0];
    timeline_bounds(w, &from, &to);
    assert_int_equal(timeline_lanes(w, from, to, lanes, 4), 2);
    assert_int_equal(lanes[0].row, 1);
    assert_int_equal(lanes[0].ns, 4000);
    assert_int_equal(lanes[1].row, 2);
    assert_int_equal(lanes[1].ns, 2500);
    assert_int_equal(lanes[1].launches, 2);
    assert_int_equal(timeline_lanes(w, from, to, lanes, 1), 2); /* told, not written */
    assert_int_equal(timeline_lanes(w, from + 4000, from + 5000, lanes, 4), 0);
    timeline_busy(w, 2, from, to, busy, 10);
    const float wanted[10] = {0, 0, 0, 0, 0, 1, 0.5f, 1, 0, 0};
    for (int i = 0; i < 10; i++) assert_float_equal(busy[i], wanted[i], 1e-5);
    lab_end(s);
}

static void launches_are_found_both_ways(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    uint64_t from, to;
    window(s, 1, true);
    const struct trace_window *w = &s->trace[0];
    timeline_bounds(w, &from, &to);
    assert_int_equal(timeline_next(w, 2, from, 1)->t_ns - from, 5000);
    assert_int_equal(timeline_next(w, 2, from + 5000, 1)->t_ns - from, 6500);
    assert_null(timeline_next(w, 2, from + 6500, 1));
    assert_int_equal(timeline_next(w, 2, from + 6500, -1)->t_ns - from, 5000);
    assert_null(timeline_next(w, 2, from + 5000, -1));
    lab_end(s);
}

static void a_stretch_is_named_after_what_ran_most(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct timeline_named n;
    uint64_t from, to;
    window(s, 1, true);
    const struct trace_window *w = &s->trace[0];
    timeline_bounds(w, &from, &to);
    assert_true(timeline_name(w, from, to, UINT32_MAX, &n));
    assert_int_equal(n.row, 1);
    assert_int_equal(n.ns, 4000);
    assert_int_equal(n.launches, 3);
    assert_int_equal(n.rows, 2);
    assert_true(timeline_name(w, from, to, 2, &n)); /* what was looked for, when it ran there */
    assert_int_equal(n.row, 2);
    assert_int_equal(n.ns, 2500);
    assert_int_equal(n.span->t_ns - from, 5000);
    assert_true(timeline_name(w, from + 5200, from + 5700, 1, &n));
    assert_int_equal(n.row, 2);
    assert_int_equal(n.launches, 1);
    assert_false(timeline_name(w, from + 6100, from + 6400, 2, &n));
    lab_end(s);
}

static void a_launch_has_its_own_samples(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct timeline_launch l;
    window(s, 1, true);
    assert_true(timeline_newest(s, 0, 4, &l));
    assert_int_equal(l.n, 4);
    assert_int_equal(l.first, 0);
    assert_false(timeline_newest(s, 0, 5, &l));
    assert_true(timeline_newest(s, 1, 1, &l)); /* 6500 to 8000: one whole sample */
    assert_int_equal(l.first, 7);
    assert_false(timeline_newest(s, 7, 1, &l));
    lab_end(s);
}

static void a_window_that_is_not_used_is_shown_as_that(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct timeline_launch l;
    window(s, 1, false);
    assert_int_equal(s->ntrace, 1);
    assert_false(s->trace[0].used);
    assert_false(timeline_newest(s, 0, 1, &l));
    lab_end(s);
}

static void the_oldest_windows_leave(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    for (uint32_t i = 1; i <= MAX_TRACE_WINDOWS + 3; i++) window(s, i, true);
    assert_int_equal(s->ntrace, MAX_TRACE_WINDOWS);
    assert_int_equal(s->trace[0].window, 4);
    assert_int_equal(s->trace_left_out, 9);
    assert_int_equal(s->trace_spans, 3 * MAX_TRACE_WINDOWS);
    assert_int_equal(timeline_window(s, UINT64_MAX), MAX_TRACE_WINDOWS - 1);
    lab_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_are_by_time_and_gaps_are_nothing),
        cmocka_unit_test(lanes_are_rows_by_their_time),
        cmocka_unit_test(launches_are_found_both_ways),
        cmocka_unit_test(a_stretch_is_named_after_what_ran_most),
        cmocka_unit_test(a_launch_has_its_own_samples),
        cmocka_unit_test(a_window_that_is_not_used_is_shown_as_that),
        cmocka_unit_test(the_oldest_windows_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
