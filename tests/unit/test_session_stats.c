/* Bounded statistics: exact while everything is kept, close afterwards, repeatable always. */
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

#include "session/stats.h"

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile by the same rule, from all values. */
static double exact(const double *v, unsigned n, double q)
{
    double *copy = malloc(n * sizeof *copy);
    memcpy(copy, v, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, compare_doubles);
    double at = q * (n - 1);
    unsigned i = (unsigned)at < n - 1 ? (unsigned)at : n - 1;
    double r = i == n - 1 ? copy[i] : copy[i] + (at - i) * (copy[i + 1] - copy[i]);
    free(copy);
    return r;
}

static void quantiles_are_exact_while_all_is_kept(void **state)
{
    (void)state;
    srand(3);
    for (unsigned n = 1; n <= STAT_KEEP; n += 15) {
        struct series s = {0};
        double v[STAT_KEEP];
        for (unsigned i = 0; i < n; i++) stat_add(&s, v[i] = (float)(rand() % 10000) / 16);
        for (double q = 0; q <= 1; q += 0.125)
            assert_float_equal(stat_quantile(&s, q), exact(v, n, q), 1e-9);
        if (n > 1) assert_float_equal(stat_iqr(&s), exact(v, n, 0.75) - exact(v, n, 0.25), 1e-9);
    }
}

static void quantiles_stay_close_over_many_values(void **state)
{
    (void)state;
    struct series s = {0};
    enum { N = 200000 };
    /* A slow rise: a reservoir that favoured old or new values would be far off. */
    for (unsigned i = 0; i < N; i++) stat_add(&s, i);
    assert_int_equal(s.n, N);
    assert_float_equal(s.min, 0, 0);
    assert_float_equal(s.max, N - 1, 0);
    /* Standard error of the median of 256 even values: 0.5 / sqrt(256) = 3 % of the range. */
    assert_float_equal(stat_quantile(&s, 0.5) / N, 0.5, 4 * 0.032);
    assert_float_equal(stat_iqr(&s) / N, 0.5, 4 * 0.045);
}

static void equal_input_gives_equal_output(void **state)
{
    (void)state;
    struct series a = {0}, b = {0};
    for (int i = 0; i < 5000; i++) stat_add(&a, i % 77);
    for (int i = 0; i < 5000; i++) stat_add(&b, i % 77);
    assert_memory_equal(&a, &b, sizeof a);
}

static void what_is_not_finite_is_left_out(void **state)
{
    (void)state;
    struct series s = {0};
    stat_add(&s, NAN);
    stat_add(&s, INFINITY);
    stat_add(&s, -INFINITY);
    assert_int_equal(s.n, 0);
    assert_true(isnan(stat_quantile(&s, 0.5)));
    assert_true(isnan(stat_iqr(&s)));
    stat_add(&s, 2);
    assert_true(isnan(stat_iqr(&s)));
    struct value none = value_missing(VALUE_PENDING, "none");
    struct value v = stat_median_value(&s, "clock", none);
    assert_float_equal(v.v, 2, 0);
    assert_true(v.spread < 0);
    s = (struct series){0};
    assert_int_equal(stat_median_value(&s, "clock", none).state, VALUE_PENDING);
}

static void ratio_carries_half_the_sum_of_spreads(void **state)
{
    (void)state;
    struct series a = {0}, b = {0};
    assert_int_equal(stat_ratio(&a, &b, "clock").state, VALUE_PENDING);
    for (int i = 0; i <= 4; i++) stat_add(&a, 198 + i);    /* median 200, IQR 2 */
    for (int i = 0; i <= 4; i++) stat_add(&b, 96 + 2 * i); /* median 100, IQR 4 */
    struct value v = stat_ratio(&a, &b, "clock");
    assert_int_equal(v.state, VALUE_OK);
    assert_float_equal(v.v, 2, 1e-12);
    assert_float_equal(v.spread, 2 * 0.5 * (2.0 / 200 + 4.0 / 100), 1e-12);
    b = (struct series){0};
    stat_add(&b, 0);
    assert_int_equal(stat_ratio(&a, &b, "clock").state, VALUE_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_exact_while_all_is_kept),
        cmocka_unit_test(quantiles_stay_close_over_many_values),
        cmocka_unit_test(equal_input_gives_equal_output),
        cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(ratio_carries_half_the_sum_of_spreads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
