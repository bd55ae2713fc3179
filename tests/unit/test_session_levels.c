/* Levels by least squares: exact systems, bounds, what is refused and why; and the clock offset
 * that the same model finds. The recorded H200 windows hold both to measured figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/align.h"
#include "session/levels.h"
#include "session/model.h"
#include "session/record.h"

static const double PERCENT[] = {100, 100};

/* The same small generator everywhere: tests repeat. */
static double draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / (1 << 24);
}

static double gauss(uint32_t *seed)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) sum += draw(seed);
    return sum - 6;
}

/* n samples of three rows in random parts, idle for the rest. */
static void add_three(struct levels *l, unsigned n, const double level[3], double noise, bool check)
{
    uint32_t seed = 7;
    for (unsigned i = 0; i < n; i++) {
        int place[3];
        double part[3], value[1] = {0}, room = 1;
        for (int k = 0; k < 3; k++) {
            place[k] = levels_row(l, (uint32_t)k + 10);
            part[k] = draw(&seed) * room;
            room -= part[k];
            value[0] += part[k] * level[k];
        }
        value[0] += noise * gauss(&seed);
        if (check)
            levels_check(l, place, part, 3, value);
        else
            levels_add(l, place, part, 3, value);
    }
}

static void exact_samples_give_exact_levels(void **state)
{
    (void)state;
    const double level[3] = {80, 3, 41.5};
    struct levels *l = levels_new(1, PERCENT);
    struct level got;
    add_three(l, 60, level, 0, false);
    levels_solve(l);
    add_three(l, 60, level, 0, true);
    assert_int_equal(levels_rows(l), 3);
    for (unsigned p = 0; p < 3; p++) {
        levels_get(l, 0, p, 2, &got);
        assert_int_equal(got.state, LEVEL_OK);
        assert_int_equal(levels_row_at(l, p), p + 10);
        assert_float_equal(got.v, level[p], 1e-3);
        assert_true(got.error < 1e-3);
        assert_int_equal(got.samples, 60);
        assert_true(got.inflation >= 1);
    }
    assert_true(levels_residual(l, 0) < 1e-6);
    assert_true(levels_variance(l, 0) > 1);
    levels_free(l);
}

/* The error is honest: of 200 noisy systems, the truth lies within two standard errors in most. */
static void errors_cover_the_truth(void **state)
{
    (void)state;
    const double level[3] = {60, 20, 40};
    unsigned within = 0, all = 0;
    for (uint32_t run = 0; run < 200; run++) {
        struct levels *l = levels_new(1, PERCENT);
        struct level got;
        for (int check = 0; check < 2; check++) {
            uint32_t noise = run * 7919 + 1, seed = 7 + run;
            for (unsigned i = 0; i < 200; i++) {
                int place[3];
                double part[3], value[1] = {0}, room = 1;
                for (int k = 0; k < 3; k++) {
                    place[k] = levels_row(l, (uint32_t)k + 1);
                    part[k] = draw(&seed) * room;
                    room -= part[k];
                    value[0] += part[k] * level[k];
                }
                value[0] += 3 * gauss(&noise);
                if (check)
                    levels_check(l, place, part, 3, value);
                else
                    levels_add(l, place, part, 3, value);
            }
            if (!check) levels_solve(l);
        }
        for (unsigned p = 0; p < 3; p++, all++) {
            levels_get(l, 0, p, 50, &got);
            assert_int_equal(got.state, LEVEL_OK);
            within += fabs(got.v - level[p]) <= 2 * got.error;
        }
        levels_free(l);
    }
    assert_int_equal(all, 600);
    assert_true(within > 540 && within < 600); /* 95.4 % of a normal distribution */
}

static void levels_stay_within_their_bounds(void **state)
{
    (void)state;
    const double level[3] = {-20, 130, 50}; /* what no chip has: the nearest that it can have */
    struct levels *l = levels_new(1, PERCENT);
    struct level got[3];
    add_three(l, 200, level, 0, false);
    levels_solve(l);
    add_three(l, 200, level, 0, true);
    for (unsigned p = 0; p < 3; p++) levels_get(l, 0, p, 100, &got[p]);
    assert_true(got[0].v == 0);
    assert_true(got[1].v == 100);
    assert_true(got[2].v > 0 && got[2].v < 100);
    levels_free(l);
}

static void rows_that_always_come_together_are_refused(void **state)
{
    (void)state;
    struct levels *l = levels_new(1, PERCENT);
    struct level got;
    uint32_t seed = 3;
    for (int check = 0; check < 2; check++) {
        seed = 3;
        for (int i = 0; i < 100; i++) {
            /* 1 and 2 in the same proportion each time; 3 by itself. */
            int place[3] = {levels_row(l, 1), levels_row(l, 2), levels_row(l, 3)};
            double a = 0.1 + 0.3 * draw(&seed), c = draw(&seed) * 0.3;
            double part[3] = {a, 2 * a, c}, value[1] = {a * 50 + 2 * a * 30 + c * 70};
            if (check)
                levels_check(l, place, part, 3, value);
            else
                levels_add(l, place, part, 3, value);
        }
        if (!check) levels_solve(l);
    }
    for (unsigned p = 0; p < 2; p++) {
        levels_get(l, 0, p, 2, &got);
        assert_int_equal(got.state, LEVEL_TIED);
        assert_true(isnan(got.v));
        assert_true(got.inflation > LEVELS_MAX_INFLATION);
    }
    levels_get(l, 0, 2, 2, &got);
    assert_int_equal(got.state, LEVEL_OK);
    assert_float_equal(got.v, 70, 1e-2);
    assert_true(levels_residual(l, 0) < 1e-6);
    levels_free(l);
}

static void too_few_samples_are_no_level(void **state)
{
    (void)state;
    const double level[3] = {50, 50, 50};
    struct levels *l = levels_new(1, PERCENT);
    struct level got;
    add_three(l, LEVELS_MIN_SAMPLES - 1, level, 0, false);
    levels_solve(l);
    add_three(l, LEVELS_MIN_SAMPLES - 1, level, 0, true);
    levels_get(l, 0, 0, 2, &got);
    assert_int_equal(got.state, LEVEL_FEW);
    levels_get(l, 0, 77, 2, &got); /* no such row, no such metric */
    assert_int_equal(got.state, LEVEL_FEW);
    levels_get(l, 5, 0, 2, &got);
    assert_int_equal(got.state, LEVEL_FEW);
    levels_free(l);
}

static void samples_off_the_model_are_refused(void **state)
{
    (void)state;
    const double level[3] = {5, 6, 7};
    struct levels *l = levels_new(1, PERCENT);
    struct level got;
    add_three(l, 40, level, 60, false);
    levels_solve(l);
    add_three(l, 40, level, 60, true);
    levels_get(l, 0, 0, 2, &got);
    assert_int_equal(got.state, LEVEL_LOOSE);
    levels_free(l);
}

static void missing_values_leave_a_sample_or_a_metric_out(void **state)
{
    (void)state;
    struct levels *l = levels_new(2, PERCENT);
    struct level got;
    for (int check = 0; check < 2; check++) {
        for (int i = 0; i < 60; i++) {
            int place = levels_row(l, 1);
            double part = 0.2 + 0.01 * i;
            double value[2] = {i == 30 ? (double)NAN : part * 40, (double)NAN};
            if (check)
                levels_check(l, &place, &part, 1, value);
            else
                levels_add(l, &place, &part, 1, value);
        }
        if (!check) levels_solve(l);
    }
    levels_get(l, 0, 0, 2, &got);
    assert_int_equal(got.state, LEVEL_OK);
    assert_int_equal(got.samples, 59);
    assert_float_equal(got.v, 40, 1e-6);
    levels_get(l, 1, 0, 2, &got);
    assert_int_equal(got.state, LEVEL_FEW);
    assert_true(isnan(levels_residual(l, 1)));
    levels_free(l);
}

static void rows_are_bounded(void **state)
{
    (void)state;
    struct levels *l = levels_new(1, NULL);
    for (uint32_t i = 0; i < LEVELS_ROWS_MAX; i++) assert_int_equal(levels_row(l, i + 1), (int)i);
    assert_int_equal(levels_row(l, 9999), -1);
    assert_int_equal(levels_row(l, 5), 4);
    levels_solve(l); /* rows without samples */
    levels_free(l);
    assert_null(levels_new(LEVELS_METRICS_MAX + 1, NULL));
}

/* ---- the clock offset ---- */

enum { PERIOD = 20000, SAMPLES = 600, SPANS = 2000 };

/* Two kernels in turn with gaps; samples see them `offset` later than the spans say. */
static unsigned made_window(struct window_span *spans, struct pm_item *items, int64_t offset,
                            double first, double second)
{
    uint32_t seed = 11;
    uint64_t t = 10 * PERIOD;
    unsigned n = 0;
    while (t < (uint64_t)(SAMPLES + 5) * PERIOD && n < SPANS) {
        uint64_t len = 3000 + (uint64_t)(draw(&seed) * 40000);
        spans[n] = (struct window_span){t, t + len, n % 2 + 1};
        t += len + 1500;
        n++;
    }
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint64_t a = (uint64_t)i * PERIOD + 4 * PERIOD, b = a + PERIOD;
        double v = 0;
        for (unsigned k = 0; k < n; k++) {
            int64_t from = (int64_t)spans[k].start + offset, to = (int64_t)spans[k].end + offset;
            if (from < (int64_t)a) from = (int64_t)a;
            if (to > (int64_t)b) to = (int64_t)b;
            if (from < to) v += (k % 2 ? second : first) * (double)(to - from) / PERIOD;
        }
        items[i] = (struct pm_item){.start = a, .dur = PERIOD, .v = {v + 0.3 * gauss(&seed)}};
    }
    return n;
}

static void offset_is_found_by_edges(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 1000, -1000, 7250, -12500, 18000};
    struct window_span *spans = calloc(SPANS, sizeof *spans);
    struct pm_item *items = calloc(SAMPLES, sizeof *items);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct align a;
        unsigned n = made_window(spans, items, offsets[i], 70, 20);
        assert_int_equal(align_clocks(spans, n, items, SAMPLES, 1, PERIOD, &a), OK);
        assert_true(a.ok);
        assert_null(a.why);
        int64_t off = a.offset_ns - offsets[i];
        assert_true((off < 0 ? -off : off) <= ALIGN_STEP_NS);
        assert_int_equal(a.bound_ns, PERIOD / 16);
        assert_true(a.steep > 2);
    }
    free(spans);
    free(items);
}

static void no_edges_no_offset(void **state)
{
    (void)state;
    struct window_span *spans = calloc(SPANS, sizeof *spans);
    struct pm_item *items = calloc(SAMPLES, sizeof *items);
    struct align a;
    /* One launch over all of the window: flat. */
    spans[0] = (struct window_span){0, (uint64_t)SAMPLES * PERIOD * 2, 1};
    spans[1] =
        (struct window_span){(uint64_t)SAMPLES * PERIOD * 2, (uint64_t)SAMPLES * PERIOD * 3, 2};
    uint32_t seed = 5;
    for (unsigned i = 0; i < SAMPLES; i++)
        items[i] = (struct pm_item){
            .start = (uint64_t)i * PERIOD, .dur = PERIOD, .v = {50 + gauss(&seed), (double)NAN}};
    assert_int_equal(align_clocks(spans, 2, items, SAMPLES, 2, PERIOD, &a), OK);
    assert_false(a.ok);
    assert_non_null(a.why);
    /* Values that have nothing to do with the launches. */
    unsigned n = made_window(spans, items, 0, 70, 20);
    for (unsigned i = 0; i < SAMPLES; i++) items[i].v[0] = 50 + 10 * gauss(&seed);
    assert_int_equal(align_clocks(spans, n, items, SAMPLES, 1, PERIOD, &a), OK);
    assert_false(a.ok);
    /* Too little of anything. */
    assert_int_equal(align_clocks(spans, 1, items, SAMPLES, 1, PERIOD, &a), OK);
    assert_false(a.ok);
    assert_int_equal(align_clocks(spans, n, items, 20, 1, PERIOD, &a), OK);
    assert_false(a.ok);
    free(spans);
    free(items);
}

/* ---- recorded windows ---- */

static struct session *recorded(const char *path)
{
    struct session *s = calloc(1, sizeof *s);
    struct reader *r;
    struct frame f;
    assert_non_null(s);
    assert_int_equal(session_init(s), OK);
    assert_int_equal(reader_open(path, &r), OK);
    while (reader_next(r, &f) == OK) assert_int_equal(session_apply(s, &f), OK);
    reader_close(r);
    return s;
}

static void drop(struct session *s)
{
    session_free(s);
    free(s);
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* How far estimates of `key` lie from `reference`, over rows whose launches take `least` us. */
static unsigned distances(const struct session *s, const char *key, double least,
                          struct value (*reference)(const struct session *, const struct row *,
                                                    const char *),
                          double *out)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *r = &s->rows[i];
        if (!r->window_calls || (double)r->window_ns / (double)r->window_calls < least * 1e3)
            continue;
        struct value v = row_metric_estimate(s, r, key), ref = reference(s, r, key);
        if (v.state == VALUE_ESTIMATE && ref.state == VALUE_OK) out[n++] = fabs(v.v - ref.v);
    }
    qsort(out, n, sizeof *out, ascending);
    return n;
}

static void estimates_agree_with_what_was_measured(void **state)
{
    (void)state;
    double d[512];
    struct session *s = recorded("tests/fixtures/h200.sasstop");
    /* SM% of kernels over 100 us: within 3.2 points of the whole launch, half within 0.3. */
    unsigned n = distances(s, "sm_pct", 100, row_metric_whole, d);
    assert_true(n >= 40);
    assert_true(d[n / 2] < 0.3 && d[n - 1] < 3.2);
    /* DRAM% over 20 us against the exact count of launches run apart. */
    n = distances(s, "dram_pct", 20, row_metric_exact, d);
    assert_true(n >= 50);
    assert_true(d[n / 2] < 0.3 && d[n * 9 / 10] < 3);
    drop(s);
    s = recorded("tests/fixtures/h200_gemma.sasstop");
    n = distances(s, "dram_pct", 0, row_metric_exact, d);
    assert_true(n >= 140);
    assert_true(d[n / 2] < 0.3 && d[n * 9 / 10] < 1.2);
    drop(s);
}

/* A level never stands in for a steady or exact figure, and says what it is. */
static void an_estimate_is_the_last_choice(void **state)
{
    (void)state;
    unsigned estimates = 0;
    struct session *s = recorded("tests/fixtures/h200_gemma.sasstop");
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *r = &s->rows[i];
        struct value best = row_metric_best(s, r, "sm_pct");
        if (best.state != VALUE_ESTIMATE) continue;
        estimates++;
        assert_int_not_equal(row_metric_steady(s, r, "sm_pct").state, VALUE_OK);
        assert_int_not_equal(row_metric_exact(s, r, "sm_pct").state, VALUE_OK);
        assert_non_null(strstr(best.why, "least squares"));
        assert_true(best.n >= LEVELS_MIN_SAMPLES && best.spread >= 0);
        char text[32];
        assert_true(value_format(&best, 9, 1, 0, text, sizeof text)[0] == '~');
    }
    assert_true(estimates > 100);
    drop(s);
}

static void every_recorded_window_can_be_aligned(void **state)
{
    (void)state;
    struct session *s = recorded("tests/fixtures/h200.sasstop");
    assert_int_equal(s->ntrace, 10);
    for (uint32_t i = 0; i < s->ntrace; i++) {
        const struct trace_window *w = &s->trace[i];
        struct window_span *spans = calloc(w->nspans, sizeof *spans);
        struct pm_item *items = calloc(w->nsamples, sizeof *items);
        uint64_t base =
            w->spans[0].t_ns < w->samples[0].t_ns ? w->spans[0].t_ns : w->samples[0].t_ns;
        for (uint32_t k = 0; k < w->nspans; k++) {
            uint64_t at = w->spans[k].t_ns - base;
            spans[k] = (struct window_span){at, at + w->spans[k].dur_ns, w->spans[k].row};
        }
        for (uint32_t k = 0; k < w->nsamples; k++) {
            items[k] =
                (struct pm_item){.start = w->samples[k].t_ns - base, .dur = w->samples[k].dur_ns};
            for (unsigned m = 0; m < w->nmetrics; m++) items[k].v[m] = (double)w->samples[k].v[m];
        }
        struct align a;
        assert_int_equal(
            align_clocks(spans, w->nspans, items, w->nsamples, w->nmetrics, w->period_ns, &a), OK);
        assert_true(a.ok);
        assert_in_range(a.offset_ns + 1250, 0, 2500);
        assert_true(a.bound_ns >= w->period_ns / 16 && a.bound_ns < w->period_ns / 4);
        free(spans);
        free(items);
    }
    drop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_samples_give_exact_levels),
        cmocka_unit_test(errors_cover_the_truth),
        cmocka_unit_test(levels_stay_within_their_bounds),
        cmocka_unit_test(rows_that_always_come_together_are_refused),
        cmocka_unit_test(too_few_samples_are_no_level),
        cmocka_unit_test(samples_off_the_model_are_refused),
        cmocka_unit_test(missing_values_leave_a_sample_or_a_metric_out),
        cmocka_unit_test(rows_are_bounded),
        cmocka_unit_test(offset_is_found_by_edges),
        cmocka_unit_test(no_edges_no_offset),
        cmocka_unit_test(estimates_agree_with_what_was_measured),
        cmocka_unit_test(an_estimate_is_the_last_choice),
        cmocka_unit_test(every_recorded_window_can_be_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
