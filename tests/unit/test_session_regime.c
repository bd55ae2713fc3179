/* Roofline and regime from hand-made figures, missing ones too; ceilings folded from frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/session_lab.h"

/* A product of 30 GMAC in 500 us over 125 MB, every figure known; nothing busy. */
static struct regime_in all(void)
{
    return (struct regime_in){.macs = 30e9,
                              .least_bytes = 60e6,
                              .us = value_ok(500, "activity"),
                              .dram_rate = value_ok(2.5e11, "range"), /* 125 MB in 500 us */
                              .dram = value_ok(6, "range"),
                              .l1 = value_ok(48, "pm"),
                              .l2 = value_ok(15, "pm"),
                              .tensor = value_ok(30, "pm"),
                              .alu = value_ok(35, "pm"),
                              .fma = value_ok(5, "pm"),
                              .issue = value_ok(42, "range"),
                              .sm_active = value_ok(95, "range"),
                              .stall = value_ok(33, "pc"),
                              .stall_name = "long_scoreboard",
                              .dram_ceiling = value_ok(4e12, "events"),
                              .compute_ceiling = value_ok(8e14, "events"),
                              .compute_name = "int8 mma"};
}

static struct value none(void)
{
    return value_missing(VALUE_PENDING, "not yet");
}

static void nothing_busy_is_latency(void **state)
{
    (void)state;
    struct regime_in in = all();
    struct regime r;
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_LATENCY);
    assert_string_equal(
        r.decided,
        "latency bound: L1/shared 48%, issue 42%, DRAM 6.0%, tensor 30%, ALU 35% of peak, "
        "none at 60; waits: long_scoreboard 33%");
    /* a tenth of 42 % of 95 % of the time */
    assert_float_equal(r.saving.v, 3.99, 1e-9);
    assert_string_equal(
        r.payoff, "-10% instructions: saves at most 4.0% of its time, where warps wait on them");
}

static void the_busiest_part_decides(void **state)
{
    (void)state;
    struct regime_in in = all();
    struct regime r;
    in.issue = value_ok(80, "range");
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_ISSUE);
    assert_float_equal(r.saving.v, 7.6, 1e-9);
    assert_string_equal(r.payoff, "-10% instructions: saves up to 7.6% of its time");
    in.dram = value_ok(91, "range");
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_MEMORY);
    assert_true(r.saving.v == 0);
    assert_non_null(strstr(r.payoff, "saves nothing, DRAM sets the time"));
    in.tensor = value_ok(95, "pm");
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_PIPE);
    assert_non_null(strstr(r.decided, "pipe bound: tensor 95%, issue 80%, DRAM 91%"));
    /* At the edge. */
    in = all();
    in.issue = value_ok(REGIME_BUSY, "range");
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_ISSUE);
    in.issue.v = REGIME_BUSY - 0.01;
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_LATENCY);
    assert_non_null(strstr(r.decided, "issue 59.9%"));
}

static void a_missing_figure_decides_nothing(void **state)
{
    (void)state;
    struct regime_in in = all();
    struct regime r;
    in.issue = none();
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_UNKNOWN);
    assert_string_equal(r.decided,
                        "its limit is not known: issue has no figure, DRAM 6.0%, tensor 30%, "
                        "L1/shared 48%, L2 15%, ALU 35%, FMA 5.0%");
    assert_int_equal(r.saving.state, VALUE_UNAVAILABLE);
    assert_non_null(strstr(r.payoff, "not known"));
    /* ... but another part at its limit is enough. */
    in.dram = value_ok(88, "range");
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_MEMORY);
    in = all();
    in.tensor = none();
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_UNKNOWN);
    assert_non_null(strstr(r.decided, "tensor has no figure"));
    assert_non_null(strstr(r.payoff, "what it saves is not known"));
    in.dram_rate = value_ok(3e13, "range"); /* 15 GB: 4 operations a byte, no work for the pipe */
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_LATENCY);
    /* Nothing at all. */
    in = (struct regime_in){.us = none(),
                            .dram_rate = none(),
                            .dram = none(),
                            .l1 = none(),
                            .l2 = none(),
                            .tensor = none(),
                            .alu = none(),
                            .fma = none(),
                            .issue = none(),
                            .sm_active = none(),
                            .stall = none()};
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_UNKNOWN);
    assert_string_equal(r.decided, "its limit is not known: issue has no figure");
    assert_int_equal(r.rate.state, VALUE_UNAVAILABLE);
    assert_non_null(strstr(r.roofline, "not a matrix product"));
}

static void the_roof_is_the_lower_of_two(void **state)
{
    (void)state;
    struct regime_in in = all();
    struct regime r;
    regime_of(&in, &r);
    /* 60 Gop in 125 MB: 480 op/B; 480 x 4 TB/s = 1920 Top/s, over 2 x 800: compute is the roof. */
    assert_float_equal(r.intensity.v, 480, 1e-9);
    assert_float_equal(r.rate.v, 1.2e14, 1);
    assert_float_equal(r.roof.v, 1.6e15, 1);
    assert_float_equal(r.roof_share.v, 7.5, 1e-9);
    assert_string_equal(r.roofline, "120 Top/s at 480 op/B: 8% of 1600 Top/s, the int8 mma roof");
    in.dram_rate = value_ok(2.5e12, "range"); /* 48 op/B: 192 Top/s */
    regime_of(&in, &r);
    assert_float_equal(r.roof.v, 1.92e14, 1);
    assert_non_null(strstr(r.roofline, "the DRAM roof at that intensity"));
    in.dram_rate = none(); /* the least traffic stands in, and says so */
    regime_of(&in, &r);
    assert_float_equal(r.intensity.v, 1000, 1e-9);
    assert_null(r.intensity.source);
    assert_non_null(strstr(r.roofline, "at least traffic"));
    in.dram_ceiling = value_missing(VALUE_UNAVAILABLE, "not measured");
    regime_of(&in, &r);
    assert_int_equal(r.roof.state, VALUE_UNAVAILABLE);
    assert_string_equal(r.roofline,
                        "120 Top/s at 1000 op/B at least traffic; roof: not measured in "
                        "this session");
    in.macs /= 1e5; /* of a slow one the figure doesn't round to nothing */
    regime_of(&in, &r);
    assert_non_null(strstr(r.roofline, "1.2 Gop/s"));
    in.macs *= 1e5;
    in.least_bytes = 0;
    regime_of(&in, &r);
    assert_int_equal(r.intensity.state, VALUE_UNAVAILABLE);
}

static void shared_memory_can_be_the_limit(void **state)
{
    (void)state;
    struct regime_in in = all();
    struct regime r;
    in.l1 = value_ok(93, "pm");
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_MEMORY);
    assert_non_null(strstr(r.decided, "memory bound: L1/shared 93%, issue 42%"));
    assert_non_null(strstr(r.payoff, "only shared-memory ones save time"));
    in.l1 = none(); /* to come: wait for it */
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_UNKNOWN);
    in.l1 = value_missing(VALUE_UNAVAILABLE, "this chip doesn't sample it"); /* never: say so */
    regime_of(&in, &r);
    assert_int_equal(r.kind, REGIME_LATENCY);
    assert_non_null(strstr(r.decided, "none at 60, L1/shared not known"));
}

static void estimates_keep_their_mark(void **state)
{
    (void)state;
    struct regime_in in = all();
    struct regime r;
    in.issue.state = VALUE_ESTIMATE;
    regime_of(&in, &r);
    assert_non_null(strstr(r.decided, "issue ~42%"));
    assert_int_equal(r.saving.state, VALUE_ESTIMATE);
    assert_non_null(strstr(r.payoff, "~4.0%"));
}

static void idle_sms_are_told_and_save_nothing(void **state)
{
    (void)state;
    struct regime_in in = all();
    struct regime r;
    in.sm_active = value_ok(20, "range");
    regime_of(&in, &r);
    assert_float_equal(r.saving.v, 0.84, 1e-9);
    assert_non_null(strstr(r.decided, "an SM has warps 20% of the time"));
    in.issue_elapsed = true; /* idle SMs are in the figure already */
    regime_of(&in, &r);
    assert_float_equal(r.saving.v, 4.2, 1e-9);
}

/* A damaged stream may hold any number. */
static void any_number_is_borne(void **state)
{
    (void)state;
    const double odd[] = {1e308, -1e308, 1e-308, (double)INFINITY, (double)NAN, -5, 0};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (size_t k = 0; k < 6; k++) {
            struct regime_in in = all();
            struct value *const v[] = {&in.us,        &in.dram_rate,       &in.issue,
                                       &in.sm_active, &in.compute_ceiling, &in.dram_ceiling};
            struct regime r;
            v[k]->v = odd[i];
            if (k == 0) in.macs = in.least_bytes = odd[i];
            regime_of(&in, &r);
            assert_true(strlen(r.decided) > 5 && strlen(r.decided) < sizeof r.decided);
            assert_true(strlen(r.payoff) > 5 && strlen(r.payoff) < sizeof r.payoff);
            assert_true(strlen(r.roofline) > 5 && strlen(r.roofline) < sizeof r.roofline);
        }
}

static void ceiling(struct session *s, const char *key, uint8_t st, double v)
{
    struct msg_ceiling m = {.state = st, .v = v, .spread = v / 100, .n = 15};
    strcpy(m.key, key);
    strcpy(m.unit, "B/s");
    strcpy(m.source, "events");
    if (st != VALUE_OK) strcpy(m.why, "no kernel of it is built");
    lab_apply(s, FRAME_CEILING, &m);
}

static void ceilings_are_folded_by_key(void **state)
{
    (void)state;
    struct session *s = calloc(1, sizeof *s);
    assert_non_null(s);
    lab_start(s);
    assert_int_equal(session_ceiling(s, "dram_read").state, VALUE_UNAVAILABLE);
    assert_string_equal(session_ceiling(s, "dram_read").why, "not measured in this session");
    ceiling(s, "dram_read", VALUE_OK, 4e12);
    ceiling(s, "int8_wgmma", VALUE_UNAVAILABLE, 0);
    ceiling(s, "dram_read", VALUE_OK, 4.2e12); /* measured again */
    assert_int_equal(s->nceilings, 2);
    assert_float_equal(session_ceiling(s, "dram_read").v, 4.2e12, 1);
    assert_int_equal(session_ceiling(s, "dram_read").n, 15);
    assert_string_equal(session_ceiling(s, "int8_wgmma").why, "no kernel of it is built");
    for (int i = 0; i < MAX_CEILINGS + 3; i++) {
        char key[16] = {'k', (char)('a' + i)};
        ceiling(s, key, VALUE_OK, 1);
    }
    assert_int_equal(s->nceilings, MAX_CEILINGS);
    assert_true(s->overflowed > 0);
    session_free(s);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_busy_is_latency),
        cmocka_unit_test(the_busiest_part_decides),
        cmocka_unit_test(a_missing_figure_decides_nothing),
        cmocka_unit_test(the_roof_is_the_lower_of_two),
        cmocka_unit_test(shared_memory_can_be_the_limit),
        cmocka_unit_test(estimates_keep_their_mark),
        cmocka_unit_test(idle_sms_are_told_and_save_nothing),
        cmocka_unit_test(any_number_is_borne),
        cmocka_unit_test(ceilings_are_folded_by_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
