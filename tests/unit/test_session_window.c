/* PM windows: who gets a sample, and what a row says when it has none. */
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

#include "tests/lib/session_lab.h"

enum { PERIOD = 1000, KEY = 1 };

static struct value steady(const struct session *s, unsigned row)
{
    return row_metric_steady(s, &s->rows[row - 1], "sm_pct");
}

static struct value whole(const struct session *s, unsigned row)
{
    return row_metric_whole(s, &s->rows[row - 1], "sm_pct");
}

/* n samples of PERIOD from `start`, all of value v. */
static void samples(struct session *s, uint32_t window, uint64_t from, unsigned n, double v)
{
    struct pm_item *it = calloc(n, sizeof *it);
    for (unsigned i = 0; i < n; i++)
        it[i] = (struct pm_item){.start = from + (uint64_t)i * PERIOD, .dur = PERIOD, .v = {v}};
    lab_samples(s, window, it, n);
    free(it);
}

static void thirty_whole_samples_make_a_figure(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct span_item span = {.row = 1, .start = 5000, .dur = 29 * PERIOD};
    lab_window_begin(s, 1, KEY, PERIOD);
    lab_spans(s, 1, &span, 1);
    samples(s, 1, 5000, 29, 61.25);
    lab_window_end(s, 1, false, true, 0);
    assert_int_equal(s->last_window.whole, 29);
    assert_int_equal(steady(s, 1).state, VALUE_PENDING);
    assert_string_equal(steady(s, 1).why, "fewer than 30 whole samples so far");

    span.dur = PERIOD;
    lab_window_begin(s, 2, KEY, PERIOD);
    lab_spans(s, 2, &span, 1);
    samples(s, 2, 5000, 1, 61.25);
    lab_window_end(s, 2, false, true, 0);
    struct value v = steady(s, 1);
    assert_int_equal(v.state, VALUE_OK);
    assert_float_equal(v.v, 61.25, 1e-4);
    assert_int_equal(v.n, 30);
    assert_string_equal(v.source, "pm");
    assert_int_equal(s->rows[0].window_calls, 2);
    lab_end(s);
}

static void offset_moves_spans_onto_samples(void **state)
{
    (void)state;
    const int64_t offsets[] = {-4000, 0, 7300};
    for (int i = 0; i < 3; i++) {
        struct session *s = lab_new_sampled(KEY);
        struct span_item span = {
            .row = 1, .start = (uint64_t)(20000 - offsets[i]), .dur = 40 * PERIOD};
        lab_window_begin(s, 1, KEY, PERIOD);
        lab_spans(s, 1, &span, 1);
        samples(s, 1, 10000, 10, 0); /* before it: idle */
        samples(s, 1, 20000, 40, 50);
        samples(s, 1, 60000, 10, 0);
        lab_window_end(s, 1, false, true, offsets[i]);
        assert_int_equal(s->last_window.whole, 40);
        assert_int_equal(s->last_window.idle, 20);
        assert_float_equal(steady(s, 1).v, 50, 1e-6);
        lab_end(s);
    }
}

/* The wall clock, which is CUPTI's, is set back or forth by an hour between windows (NTP, a user):
 * each window carries its own base, so its samples still meet its launches, and a timeline keeps
 * the session's own time. */
static void a_step_of_the_clock_changes_no_figure(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    const uint64_t hour = 3600000000000ull, wall = s->hello.wall_ns + 10 * hour;
    const uint64_t bases[] = {wall, wall + hour, wall - 9 * hour, 0};
    struct span_item span = {.row = 1, .start = 5000, .dur = 10 * PERIOD};
    for (uint32_t w = 0; w < 4; w++) {
        struct buf b = {0};
        pack_metric(&b, KEY);
        struct msg_window_begin m = {.window = w + 1,
                                     .source = "pm",
                                     .period_ns = PERIOD,
                                     .base_ns = bases[w],
                                     .metrics = {b.data, (uint32_t)b.len}};
        lab_apply(s, FRAME_WINDOW_BEGIN, &m);
        buf_free(&b);
        lab_spans(s, w + 1, &span, 1);
        samples(s, w + 1, 5000, 10, 40);
        lab_window_end(s, w + 1, false, true, 0);
    }
    assert_int_equal(steady(s, 1).n, 40);
    assert_float_equal(steady(s, 1).v, 40, 1e-6);
    assert_int_equal(s->garbled_frames, 0);
    for (uint32_t w = 0; w < s->ntrace; w++)
        for (uint32_t i = 0; i < s->trace[w].nspans; i++)
            assert_true(s->trace[w].spans[i].t_ns <= s->t_ns + 1000000000u);
    lab_end(s);
}

static void without_an_offset_nothing_is_joined(void **state)
{
    (void)state;
    const struct {
        bool ok;
        int64_t ns;
    } bad[] = {{false, 0}, {true, INT64_MAX}, {true, INT64_MIN}};
    for (int i = 0; i < 3; i++) {
        struct session *s = lab_new_sampled(KEY);
        struct span_item span = {.row = 1, .start = 0, .dur = 50 * PERIOD};
        lab_window_begin(s, 1, KEY, PERIOD);
        lab_spans(s, 1, &span, 1);
        samples(s, 1, 0, 50, 50);
        lab_window_end(s, 1, false, bad[i].ok, bad[i].ns);
        struct value v = steady(s, 1);
        assert_int_equal(v.state, VALUE_UNAVAILABLE);
        assert_non_null(strstr(v.why, "offset"));
        assert_int_equal(s->windows_unused, 1);
        lab_end(s);
    }
}

static void overflow_makes_no_figure(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct span_item span = {.row = 1, .start = 0, .dur = 50 * PERIOD};
    lab_window_begin(s, 1, KEY, PERIOD);
    lab_spans(s, 1, &span, 1);
    samples(s, 1, 0, 50, 50);
    lab_window_end(s, 1, true, true, 0);
    assert_int_equal(steady(s, 1).state, VALUE_OVERFLOW);
    assert_int_equal(s->windows_unused, 1);
    lab_end(s);
}

static void sample_over_two_rows_is_nobodys(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    /* Row 1 up to 10,500, row 2 from there: the sample at 10,000 is both's. */
    struct span_item spans[] = {{1, 0, 10500}, {2, 10500, 10500}};
    lab_window_begin(s, 1, KEY, PERIOD);
    lab_spans(s, 1, spans, 2);
    samples(s, 1, 0, 10, 60);
    samples(s, 1, 10000, 1, 40);
    samples(s, 1, 11000, 10, 20);
    lab_window_end(s, 1, false, true, 0);
    assert_int_equal(s->last_window.whole, 20);
    assert_int_equal(s->last_window.shared, 1);
    assert_int_equal(s->rows[0].shared_samples, 1);
    assert_int_equal(s->rows[1].shared_samples, 1);
    const struct row_metric *m = &s->rows[0].metrics[0];
    assert_int_equal(m->steady.n, 10);
    assert_float_equal(m->steady.max, 60, 0);
    /* 10 x 60 over 10,000 ns and half of 40 over 500 ns. */
    assert_float_equal(m->whole_weighted, 10 * 60 * 1000.0 + 40 * 500.0, 1e-6);
    assert_float_equal(m->whole_ns, 10500, 1e-9);
    lab_end(s);
}

static void idle_edge_goes_to_the_launch_with_all_its_weight(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    /* 40 launches of 600 ns, one in each sample of 1000 ns, value 30: while it runs it is 50. */
    lab_window_begin(s, 1, KEY, PERIOD);
    for (unsigned i = 0; i < 40; i++) {
        struct span_item span = {1, i * 1000ull + 100, 600};
        lab_spans(s, 1, &span, 1);
    }
    samples(s, 1, 0, 40, 30);
    lab_window_end(s, 1, false, true, 0);
    assert_int_equal(s->last_window.whole, 0);
    struct value v = whole(s, 1);
    assert_int_equal(v.state, VALUE_OK);
    assert_float_equal(v.v, 50, 1e-9);
    assert_null(v.why);
    v = steady(s, 1);
    assert_int_equal(v.state, VALUE_UNAVAILABLE);
    assert_string_equal(v.why, "shorter than the sampling period");
    lab_end(s);
}

static void adjacent_launches_of_one_row_cover_a_sample(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    /* Launches of 500 ns back to back, and again with a gap of 100 ns between. */
    lab_window_begin(s, 1, KEY, PERIOD);
    for (unsigned i = 0; i < 20; i++) {
        struct span_item span = {1, i * 500ull, 500};
        lab_spans(s, 1, &span, 1);
    }
    for (unsigned i = 0; i < 20; i++) {
        struct span_item span = {1, 20000 + i * 500ull, 400};
        lab_spans(s, 1, &span, 1);
    }
    samples(s, 1, 0, 10, 60);
    samples(s, 1, 20000, 10, 60);
    lab_window_end(s, 1, false, true, 0);
    assert_int_equal(s->last_window.whole, 10);
    assert_int_equal(s->last_window.shared, 0);
    lab_end(s);
}

static void overlapping_launches_of_one_row_count_once(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct span_item spans[] = {{1, 0, 8000}, {1, 0, 4000}, {1, 2000, 6000}};
    lab_window_begin(s, 1, KEY, PERIOD);
    lab_spans(s, 1, spans, 3);
    samples(s, 1, 0, 8, 60);
    lab_window_end(s, 1, false, true, 0);
    assert_int_equal(s->last_window.whole, 8);
    assert_float_equal(s->rows[0].metrics[0].whole_ns, 8000, 1e-9);
    lab_end(s);
}

static void unknown_kernel_shares_but_never_gets(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct span_item spans[] = {{0, 0, 10000}, {1, 5000, 20000}, {999, 30000, 5000}};
    lab_window_begin(s, 1, KEY, PERIOD);
    lab_spans(s, 1, spans, 3);
    samples(s, 1, 0, 40, 60);
    lab_window_end(s, 1, false, true, 0);
    assert_int_equal(s->last_window.shared, 5);
    assert_int_equal(s->last_window.whole, 15);
    assert_int_equal(s->last_window.idle, 10);
    lab_end(s);
}

static void items_out_of_order_are_sorted(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct span_item late = {1, 20000, 10000}, early = {2, 0, 10000};
    lab_window_begin(s, 1, KEY, PERIOD);
    lab_spans(s, 1, &late, 1);
    lab_spans(s, 1, &early, 1);
    samples(s, 1, 20000, 10, 60);
    samples(s, 1, 0, 10, 20);
    lab_window_end(s, 1, false, true, 0);
    assert_int_equal(s->last_window.whole, 20);
    const struct series *of_two = &s->rows[1].metrics[0].steady;
    assert_int_equal(of_two->n, 10);
    assert_true(of_two->min == 20 && of_two->max == 20);
    lab_end(s);
}

static void reasons_name_the_nearest_cause(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    assert_int_equal(steady(s, 1).state, VALUE_PENDING);
    lab_source(s, "pm", "unavailable", "counters need a privilege");
    assert_int_equal(steady(s, 1).state, VALUE_UNAVAILABLE);
    assert_string_equal(steady(s, 1).why, "counters need a privilege");
    assert_string_equal(row_metric_best(s, &s->rows[0], "sm_pct").why, "counters need a privilege");
    struct value v = row_metric_exact(s, &s->rows[0], "inst");
    assert_int_equal(v.state, VALUE_UNAVAILABLE);
    assert_string_equal(v.why, "no exact counter source in this session");
    lab_source(s, "pm", "ok", "");
    lab_generation(s, 2, "wide", 4);
    v = steady(s, 1);
    assert_int_equal(v.state, VALUE_UNAVAILABLE);
    assert_string_equal(v.why, "fewer than 30 whole samples before its generation ended");
    lab_end(s);
}

/* The plain way to do it, against the sweep of the fold, on random windows. */
static void sweep_agrees_with_looking_at_every_pair(void **state)
{
    (void)state;
    srand(7);
    for (int turn = 0; turn < 60; turn++) {
        struct session *s = lab_new_sampled(KEY);
        struct span_item spans[60];
        unsigned n = 1 + (unsigned)rand() % 60, wanted[3] = {0};
        uint64_t t = 0;
        for (unsigned i = 0; i < n; i++) {
            t += (unsigned)rand() % 3000;
            spans[i] = (struct span_item){(unsigned)rand() % 3, t, (unsigned)rand() % 6000};
        }
        lab_window_begin(s, 1, KEY, PERIOD);
        lab_spans(s, 1, spans, n);
        samples(s, 1, 0, 100, 10);
        lab_window_end(s, 1, false, true, 0);
        for (unsigned k = 0; k < 100; k++) {
            bool rows[3] = {false};
            unsigned count = 0;
            for (unsigned i = 0; i < n; i++)
                if (spans[i].start < (k + 1) * 1000ull &&
                    spans[i].start + spans[i].dur > k * 1000ull)
                    rows[spans[i].row] = true;
            for (int i = 0; i < 3; i++) count += rows[i];
            if (count == 1 && !rows[0]) wanted[0]++; /* some row's alone */
            if (count > 1) wanted[1]++;
            if (count == 0) wanted[2]++;
        }
        assert_int_equal(s->last_window.shared, wanted[1]);
        assert_int_equal(s->last_window.idle, wanted[2]);
        uint64_t whole_samples = 0;
        for (unsigned r = 0; r < 2; r++)
            for (unsigned i = 0; i < s->rows[r].nmetrics; i++)
                whole_samples += s->rows[r].metrics[i].whole_samples;
        uint64_t shares = s->rows[0].shared_samples + s->rows[1].shared_samples;
        assert_int_equal(whole_samples, wanted[0] + shares);
        lab_end(s);
    }
}

/* As many spans as a window holds, all over all samples: bounded work, no attribution. */
static void crowd_of_spans_is_bounded(void **state)
{
    (void)state;
    struct session *s = lab_new_sampled(KEY);
    struct span_item *spans = calloc(50000, sizeof *spans);
    lab_window_begin(s, 1, KEY, PERIOD);
    for (unsigned i = 0; i < 50000; i++) spans[i] = (struct span_item){1 + i % 2, i, 90000000};
    lab_spans(s, 1, spans, 50000);
    lab_spans(s, 1, spans, 50000);
    samples(s, 1, 0, 4096, 10);
    samples(s, 1, 4096 * PERIOD, 4096, 10);
    samples(s, 1, 8192 * PERIOD, 10, 10);
    lab_window_end(s, 1, false, true, 0);
    assert_int_equal(s->last_window.spans, MAX_WINDOW_SPANS);
    assert_int_equal(s->last_window.samples, MAX_WINDOW_SAMPLES);
    assert_int_equal(s->last_window.whole, 0);
    assert_true(s->overflowed > 0);
    free(spans);
    lab_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thirty_whole_samples_make_a_figure),
        cmocka_unit_test(offset_moves_spans_onto_samples),
        cmocka_unit_test(a_step_of_the_clock_changes_no_figure),
        cmocka_unit_test(without_an_offset_nothing_is_joined),
        cmocka_unit_test(overflow_makes_no_figure),
        cmocka_unit_test(sample_over_two_rows_is_nobodys),
        cmocka_unit_test(idle_edge_goes_to_the_launch_with_all_its_weight),
        cmocka_unit_test(adjacent_launches_of_one_row_cover_a_sample),
        cmocka_unit_test(overlapping_launches_of_one_row_count_once),
        cmocka_unit_test(unknown_kernel_shares_but_never_gets),
        cmocka_unit_test(items_out_of_order_are_sorted),
        cmocka_unit_test(reasons_name_the_nearest_cause),
        cmocka_unit_test(sweep_agrees_with_looking_at_every_pair),
        cmocka_unit_test(crowd_of_spans_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
