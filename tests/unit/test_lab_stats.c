/*
 * The statistics of experiments: known intervals, reasons to refuse, and simulated experiments with
 * drift, outliers and heavy tails, in which the rate of false alarms and the power are held.
 * The generator is seeded with a constant: every run simulates the same experiments.
 */
#include "session/lab_stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { EXPERIMENTS = 2000, PAIRS = 24, AA_PAIRS = 24 };

static uint64_t state;

static double uniform(void)
{
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Student's t with 2 degrees of freedom: no finite variance. */
static double heavy(void)
{
    double u = uniform();
    return (2 * u - 1) / sqrt(2 * u * (1 - u));
}

struct world {
    double sd;       /* of one timing, logarithm */
    double drift;    /* logarithm, over the whole run */
    double outliers; /* share of timings that take up to 30 % longer */
    bool heavy;
};

static double timing(const struct world *w, double at, double effect)
{
    double noise = w->sd * (w->heavy ? heavy() / 2 : normal());
    if (uniform() < w->outliers) noise += 0.3 * uniform();
    return -effect + w->drift * at + noise;
}

/* d of n pairs in the order AB BA AB ...; times are logarithms. */
static void pairs(const struct world *w, uint32_t n, double effect, double *d)
{
    for (uint32_t i = 0; i < n; i++) {
        double t0 = (2 * i + 0.5) / (2 * n), t1 = (2 * i + 1.5) / (2 * n);
        bool ab = i % 2 == 0;
        double a = timing(w, ab ? t0 : t1, 0), b = timing(w, ab ? t1 : t0, effect);
        d[i] = a - b;
    }
}

struct rates {
    double excluded; /* 95 % intervals that miss the true effect */
    double land, revert, noise;
    double positive; /* intervals wholly above 0 */
    double called;   /* real gains: the interval lies above the noise band */
};

static struct rates simulate(const struct world *w, double effect, double bar)
{
    struct rates r = {0};
    double d[PAIRS], aa[AA_PAIRS];
    state = 20260903;
    for (int i = 0; i < EXPERIMENTS; i++) {
        struct lab_result res;
        pairs(w, PAIRS, log1p(effect), d);
        pairs(w, AA_PAIRS, 0, aa);
        struct lab_evidence e = {.bar = bar, .ab = d, .n = PAIRS, .aa = aa, .naa = AA_PAIRS};
        assert_int_equal(lab_judge(&e, &res), OK);
        r.excluded += res.ab.lo > log1p(effect) || res.ab.hi < log1p(effect);
        r.positive += res.ab.lo > 0;
        r.called += res.ab.lo > res.band;
        r.land += res.verdict == LAB_LAND;
        r.revert += res.verdict == LAB_REVERT;
        r.noise += res.verdict == LAB_NOISE;
    }
    double *v = &r.excluded;
    for (size_t i = 0; i < sizeof r / sizeof *v; i++) v[i] /= EXPERIMENTS;
    return r;
}

static const struct world worlds[] = {
    {.sd = 0.004},
    {.sd = 0.004, .drift = 0.06},
    {.sd = 0.004, .heavy = true},
    {.sd = 0.004, .drift = -0.04, .outliers = 0.08},
};

/* Three standard errors of a rate of 5 % over 2000 experiments are 1.5 %. */
static void test_false_alarms(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct rates none = simulate(&worlds[i], 0, 0.02), some = simulate(&worlds[i], 0.03, 0.02);
        print_message("world %zu: interval misses %.3f (no effect) %.3f (+3 %%), LAND %.4f, "
                      "NOISE %.3f\n",
                      i, none.excluded, some.excluded, none.land, none.noise);
        assert_true(none.excluded < 0.065);
        assert_true(some.excluded < 0.065);
        assert_true(none.positive < 0.04);
        assert_true(none.land < 0.005);
        assert_true(none.noise > 0.97);
    }
    /* Not wildly conservative either: the plain world's intervals miss about as often as said. */
    assert_true(simulate(&worlds[0], 0, 0.02).excluded > 0.03);
}

static void test_power(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct rates one = simulate(&worlds[i], 0.01, 0.005),
                     two = simulate(&worlds[i], 0.02, 0.01),
                     four = simulate(&worlds[i], 0.04, 0.03);
        print_message("world %zu: called real at +1 %% %.3f, +2 %% %.3f, +4 %% %.3f; LAND %.3f "
                      "%.3f %.3f\n",
                      i, one.called, two.called, four.called, one.land, two.land, four.land);
        bool rough = worlds[i].outliers > 0;
        assert_true(one.called > (rough ? 0.50 : 0.98));
        assert_true(two.called > (rough ? 0.75 : 0.99));
        assert_true(four.called > (rough ? 0.85 : 0.99));
        assert_true(four.land > (rough ? 0.80 : 0.99));
    }
    /* Below the bar but real: REVERT, not LAND. */
    struct rates below = simulate(&worlds[0], 0.02, 0.04);
    assert_true(below.land < 0.01 && below.revert > 0.95);
    struct rates worse = simulate(&worlds[0], -0.02, 0.02);
    assert_true(worse.land == 0 && worse.revert > 0.95);
}

/* The promised smallest effect is found about four times in five. */
static void test_detectable(void **unused)
{
    (void)unused;
    struct world w = {.sd = 0.01};
    double d[PAIRS], aa[AA_PAIRS], sum = 0;
    struct lab_result res;
    state = 7;
    for (int i = 0; i < 200; i++) {
        pairs(&w, PAIRS, 0, d);
        pairs(&w, AA_PAIRS, 0, aa);
        struct lab_evidence e = {.bar = 0.01, .ab = d, .n = PAIRS, .aa = aa, .naa = AA_PAIRS};
        assert_int_equal(lab_judge(&e, &res), OK);
        sum += res.detectable;
    }
    struct rates r = simulate(&w, expm1(sum / 200), 0.001);
    print_message("smallest effect %.4f found with %.3f\n", sum / 200, r.called);
    assert_true(r.called > 0.65 && r.called < 0.95);
}

static void test_interval_known(void **unused)
{
    (void)unused;
    /* Six pairs: the 95 % interval is the whole range, its level 96.9 %. */
    const double d[] = {0.01, 0.02, 0.03, 0.04, 0.05, 0.06};
    struct lab_interval i;
    assert_int_equal(lab_interval_of(d, 6, &i), OK);
    assert_true(i.known && i.lo == 0.01 && i.hi == 0.06);
    assert_true(fabs(i.est - 0.035) < 1e-12 && fabs(i.median - 0.035) < 1e-12);
    assert_int_equal(lab_interval_of(d, 5, &i), OK);
    assert_false(i.known);
    assert_int_equal(i.n, 5);
    assert_int_equal(lab_interval_of(NULL, 0, &i), OK);
    assert_false(i.known);
    /* The tables of the signed-rank test give 8 (W <= 8 at 10 pairs, two-sided 5 %). */
    double ten[10];
    for (int k = 0; k < 10; k++) ten[k] = k + 1;
    assert_int_equal(lab_interval_of(ten, 10, &i), OK);
    /* Means in order: 1, 1.5, 2, 2, 2.5, 2.5, 3, 3, 3: the ninth from either end. */
    assert_true(i.lo == 3 && i.hi == 8);
}

static void test_large_n_is_continuous(void **unused)
{
    (void)unused;
    double d[61];
    struct lab_interval a, b;
    state = 3;
    for (int i = 0; i < 61; i++) d[i] = normal();
    assert_int_equal(lab_interval_of(d, 60, &a), OK);
    assert_int_equal(lab_interval_of(d, 61, &b), OK);
    assert_true(fabs(a.lo - b.lo) < 0.1 && fabs(a.hi - b.hi) < 0.1);
    assert_true(lab_pairs_for(&a, 10) == 0 && lab_pairs_for(&a, 0.05) > 60);
}

static struct lab_evidence quiet(double *d, double *aa, double effect)
{
    static const struct world w = {.sd = 0.002};
    state = 11;
    pairs(&w, PAIRS, effect, d);
    pairs(&w, AA_PAIRS, 0, aa);
    return (struct lab_evidence){.bar = 0.02, .ab = d, .n = PAIRS, .aa = aa, .naa = AA_PAIRS};
}

static void expect(const struct lab_evidence *e, enum lab_verdict v, const char *word)
{
    struct lab_result r;
    assert_int_equal(lab_judge(e, &r), OK);
    if (r.verdict != v || !strstr(r.why, word)) print_message("%d %s\n", r.verdict, r.why);
    assert_int_equal(r.verdict, v);
    assert_non_null(strstr(r.why, word));
}

static void test_refusals(void **unused)
{
    (void)unused;
    double d[PAIRS], aa[AA_PAIRS], c[PAIRS];
    struct lab_evidence e = quiet(d, aa, 0.04);
    expect(&e, LAB_LAND, "meets");
    e.n = LAB_MIN_PAIRS - 1;
    expect(&e, LAB_INVALID, "too few");
    e = quiet(d, aa, 0.04);
    e.naa = LAB_MIN_AA - 1;
    expect(&e, LAB_INVALID, "too few");
    e = quiet(d, aa, 0.04);
    e.gate_failed = "parity of B";
    expect(&e, LAB_INVALID, "parity of B");
    e = quiet(d, aa, 0.04);
    e.drift = 0.05;
    expect(&e, LAB_LAND, "meets"); /* pairs cancel that much of A's time */
    e.drift_of_clock = true;
    expect(&e, LAB_INVALID, "clock drifted");
    e.drift = -0.2;
    e.drift_of_clock = false;
    expect(&e, LAB_INVALID, "drifted by -");
    /* Faster in time, equal in cycles: the clock moved, not the kernel. */
    e = quiet(d, aa, 0.04);
    for (int i = 0; i < PAIRS; i++) c[i] = d[i] - 0.04;
    e.cycles = c;
    e.ncycles = PAIRS;
    expect(&e, LAB_INVALID, "cycles");
    e.cycles = d;
    expect(&e, LAB_LAND, "meets");
    /* The untouched kernel moved with B. */
    e.control = d;
    e.ncontrol = PAIRS;
    expect(&e, LAB_INVALID, "untouched");
    e.control = aa;
    expect(&e, LAB_LAND, "meets");
}

static void test_verdicts(void **unused)
{
    (void)unused;
    double d[PAIRS], aa[AA_PAIRS];
    struct lab_result r;
    struct lab_evidence e = quiet(d, aa, 0);
    expect(&e, LAB_NOISE, "A against A");
    assert_int_equal(lab_judge(&e, &r), OK);
    assert_true(r.firm && r.more == 0 && r.detectable > r.band && r.band > 0);
    e = quiet(d, aa, 0.01);
    expect(&e, LAB_REVERT, "misses");
    e = quiet(d, aa, 0.0198 /* the bar itself */);
    assert_int_equal(lab_judge(&e, &r), OK);
    assert_false(r.firm);
    assert_true(r.more > 0);
    /* A bar of "no worse than -0.5 %". */
    e = quiet(d, aa, 0);
    e.bar = -0.005;
    expect(&e, LAB_LAND, "meets");
    e = quiet(d, aa, -0.02);
    e.bar = -0.005;
    expect(&e, LAB_REVERT, "below");
    for (int v = LAB_LAND; v <= LAB_INVALID; v++)
        assert_int_equal(lab_verdict_parse(lab_verdict_name((enum lab_verdict)v)), v);
    assert_int_equal(lab_verdict_parse("?"), LAB_OPEN);
}

static void test_drift(void **unused)
{
    (void)unused;
    double v[30];
    for (int i = 0; i < 30; i++) v[i] = 100 * exp(0.1 * i / 29);
    assert_true(fabs(lab_drift(v, 30) - 0.1 * 20 / 29) < 0.01);
    v[29] = 5000; /* one outlier doesn't carry it */
    assert_true(lab_drift(v, 30) < 0.1);
    assert_true(lab_drift(v, 5) == 0);
    assert_true(fabs(lab_gain(log(1.04)) - 0.04) < 1e-12);
}

static void test_more_is_said_only_as_far_as_it_is_known(void **unused)
{
    (void)unused;
    char text[40];
    assert_string_equal(lab_more_text(1, text, sizeof text), "1 more pair");
    assert_string_equal(lab_more_text(12, text, sizeof text), "about 12 more pairs");
    assert_string_equal(lab_more_text(1000, text, sizeof text), "about 1000 more pairs");
    assert_string_equal(lab_more_text(LAB_MORE_MAX, text, sizeof text), "over 1000 more pairs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_is_said_only_as_far_as_it_is_known),
        cmocka_unit_test(test_interval_known),
        cmocka_unit_test(test_large_n_is_continuous),
        cmocka_unit_test(test_false_alarms),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_detectable),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
