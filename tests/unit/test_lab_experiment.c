/*
 * Experiments: the words of bars, the fold, the verdict as a function of frames, the sentence, the
 * ledger.
 */
#include "session/lab_ledger.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/lab_made.h"

static void bars_are_understood(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *metric;
        double gain;
    } good[] = {{">= +4% prefill", "prefill", 0.04},    {"1.5%", "kernel", 0.015},
                {">= -0.5 % decode", "decode", -0.005}, {"<= -20% time", "kernel", 0.25},
                {"  >=2%  ", "kernel", 0.02},           {"+4%", "kernel", 0.04}};
    static const char *const bad[] = {
        "",          "4",    "4% speed",      ">= x%",     "<= -3%", "4% a b",
        ">= 1e999%", "nan%", "<= -100% time", "4 percent", "-60%",   "4%%"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char metric[16] = "kernel";
        double gain = 0;
        assert_int_equal(lab_parse_bar(good[i].text, metric, &gain), OK);
        assert_string_equal(metric, good[i].metric);
        assert_true(fabs(gain - good[i].gain) < 1e-12);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char metric[16] = "kernel";
        double gain = 0;
        if (lab_parse_bar(bad[i], metric, &gain) != ERR_USAGE) fail_msg("'%s' was taken", bad[i]);
        assert_string_equal(metric, "kernel");
    }
}

static void verdict_follows_from_frames(void **unused)
{
    (void)unused;
    struct session s;
    lab_made(&s, 0.96);
    struct lab_experiment *x = session_experiment(&s, 1);
    struct lab_result r;
    assert_int_equal(x->npairs, 24);
    assert_int_equal(lab_evaluate(x, &r), OK);
    assert_int_equal(r.verdict, LAB_LAND);
    assert_int_equal(r.ab.n, 12);
    assert_true(fabs(lab_gain(r.ab.est) - 1 / 0.96 + 1) < 0.002);
    lab_made_verdict(&s);
    assert_true(x->closed);
    assert_string_equal(x->verdict.verdict, "LAND");
    /* What comes after the verdict, twice, or of another experiment changes nothing. */
    uint64_t garbled = s.garbled_frames;
    lab_made_pair(&s, "AB", 99, 1, 2);
    lab_made_put(&s, FRAME_EXPERIMENT, 99, &lab_made_def);
    struct msg_gate other = {.experiment = 9};
    lab_made_put(&s, FRAME_GATE, 99, &other);
    assert_int_equal(s.garbled_frames, garbled + 3);
    assert_int_equal(x->npairs, 24);
    session_free(&s);
    lab_made(&s, 0.99);
    assert_int_equal(lab_evaluate(session_experiment(&s, 1), &r), OK);
    assert_int_equal(r.verdict, LAB_REVERT);
    session_free(&s);
}

static void bad_pairs_are_left_out(void **unused)
{
    (void)unused;
    struct session s;
    lab_made(&s, 0.96);
    struct msg_pair p = {.experiment = 1, .kind = "AB", .a_us = 1, .b_us = 9, .dropped = "clocks"};
    struct lab_result r;
    lab_made_put(&s, FRAME_PAIR, 1, &p);
    p.dropped[0] = '\0';
    p.a_us = (double)NAN;
    lab_made_put(&s, FRAME_PAIR, 1, &p);
    p.a_us = -1;
    lab_made_put(&s, FRAME_PAIR, 1, &p);
    struct lab_experiment *x = session_experiment(&s, 1);
    assert_int_equal(lab_dropped(x), 1);
    assert_int_equal(lab_evaluate(x, &r), OK);
    assert_int_equal(r.ab.n, 12);
    /* A failed gate stands against any verdict; a forced one does not. */
    struct msg_gate g = {.experiment = 1, .gate = "parity B", .state = "forced"};
    lab_made_put(&s, FRAME_GATE, 1, &g);
    assert_null(lab_failed_gate(x));
    snprintf(g.state, sizeof g.state, "failed");
    lab_made_put(&s, FRAME_GATE, 1, &g);
    assert_int_equal(lab_evaluate(x, &r), OK);
    assert_int_equal(r.verdict, LAB_INVALID);
    session_free(&s);
}

static void pairs_are_bounded(void **unused)
{
    (void)unused;
    struct session s;
    lab_made(&s, 0.96);
    for (uint32_t i = 0; i < LAB_ALL_PAIRS + 50; i++) lab_made_pair(&s, "AB", i, 100, 96);
    assert_int_equal(session_experiment(&s, 1)->npairs, LAB_ALL_PAIRS);
    assert_int_equal(s.overflowed, 74);
    struct lab_result r;
    assert_int_equal(lab_evaluate(session_experiment(&s, 1), &r), OK);
    assert_int_equal(r.ab.n, LAB_PAIRS_MAX);
    session_free(&s);
}

static void sentence_says_what_moved(void **unused)
{
    (void)unused;
    struct session s;
    struct lab_result r;
    char text[400];
    lab_made(&s, 0.96);
    struct lab_experiment *x = session_experiment(&s, 1);
    assert_int_equal(lab_evaluate(x, &r), OK);
    lab_sentence(x, &r, text, sizeof text);
    assert_string_equal(text, ""); /* no figure, no words */
    lab_made_figure(&s, "time a launch", "us", 100, 96);
    lab_sentence(x, &r, text, sizeof text);
    assert_non_null(strstr(text, "No figure beside the time was taken"));
    lab_made_figure(&s, "registers", "", 128, 128);
    lab_sentence(x, &r, text, sizeof text);
    assert_non_null(strstr(text, "No figure beside the time differs"));
    lab_made_figure(&s, "executed instructions", "", 1000, 942);
    lab_made_figure(&s, "SM% of the launch", "%", 31.5, 29.75);
    lab_made_figure(&s, "instructions", "", 100, 900);
    lab_made_figure(&s, "spilled", "B", (double)NAN, 4);
    lab_sentence(x, &r, text, sizeof text);
    assert_non_null(strstr(text, "executed instructions 1000 -> 942 (-5.8 %)"));
    assert_non_null(strstr(text, "SM% of the launch 31.5 -> 29.75 %"));
    assert_null(strstr(text, "100 -> 900"));
    assert_null(strstr(text, "time a launch"));
    assert_null(strstr(text, "spilled"));
    /* Six at most: the work, then what moved farthest; cycles are the time again. */
    lab_made_figure(&s, "elapsed cycles, counted", "cycles", 1000, 500);
    lab_made_figure(&s, "bank conflicts", "", 1000, 500);
    lab_made_figure(&s, "stall wait", "/issue", 0.02, 0.05);
    lab_made_figure(&s, "stall barrier", "/issue", 0.8, 0.6);
    lab_made_figure(&s, "L2 hits", "%", 90, 80);
    lab_made_figure(&s, "DRAM read", "B", 100, 110);
    lab_made_figure(&s, "registers", "", 128, 96);
    lab_sentence(x, &r, text, sizeof text);
    assert_non_null(strstr(text, "executed instructions 1000 -> 942"));
    assert_non_null(strstr(text, "bank conflicts 1000 -> 500"));
    assert_non_null(strstr(text, "stall barrier 0.8 -> 0.6"));
    assert_null(strstr(text, "elapsed cycles"));
    assert_null(strstr(text, "stall wait"));
    assert_null(strstr(text, "SM% of the launch")); /* the least of seven */
    session_free(&s);
}

static void ledger_keeps_the_last_state(void **unused)
{
    (void)unused;
    char path[] = "/tmp/test_lab_ledger_XXXXXX";
    struct session s;
    struct ledger l;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    lab_made(&s, 0.96);
    struct lab_experiment *x = session_experiment(&s, 1);
    assert_int_equal(ledger_append(path, "a.sasstop", &s.hello, x), OK);
    assert_int_equal(ledger_read(path, &l), OK);
    assert_int_equal(l.n, 1);
    assert_string_equal(l.entries[0].state, "open");
    assert_string_equal(l.entries[0].verdict.verdict, "");
    ledger_free(&l);
    lab_made_verdict(&s);
    assert_int_equal(ledger_append(path, "a.sasstop", &s.hello, x), OK);
    assert_int_equal(write(fd, "", 0), 0);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs("{\"session\":\"torn", f);
    fclose(f);
    assert_int_equal(ledger_read(path, &l), OK);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.damaged, 1);
    const struct ledger_entry *e = &l.entries[0];
    assert_string_equal(e->verdict.verdict, "LAND");
    assert_true(fabs(e->verdict.gain - x->verdict.gain) < 1e-12);
    assert_string_equal(e->def.b, lab_made_def.b);
    assert_string_equal(e->def.hypothesis, lab_made_def.hypothesis);
    assert_true(e->def.code_a == lab_made_def.code_a && e->def.seed == 7 && e->def.gain == 0.02);
    assert_string_equal(e->gates, "parity A ok");
    ledger_free(&l);
    close(fd);
    unlink(path);
    assert_int_equal(ledger_read(path, &l), OK); /* none yet: empty */
    assert_int_equal(l.n, 0);
    session_free(&s);
}

static void retry_conditions_are_split(void **unused)
{
    (void)unused;
    char text[64];
    assert_true(ledger_retry(lab_made_def.retry, 0, text, sizeof text));
    assert_string_equal(text, "LDS.32 > 16 in hot");
    assert_true(ledger_retry(lab_made_def.retry, 1, text, sizeof text));
    assert_string_equal(text, "toolkit changes");
    assert_false(ledger_retry(lab_made_def.retry, 2, text, sizeof text));
    assert_false(ledger_retry("", 0, text, sizeof text));
    assert_false(ledger_retry(" ; ", 0, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_are_understood),        cmocka_unit_test(verdict_follows_from_frames),
        cmocka_unit_test(bad_pairs_are_left_out),     cmocka_unit_test(pairs_are_bounded),
        cmocka_unit_test(sentence_says_what_moved),   cmocka_unit_test(ledger_keeps_the_last_state),
        cmocka_unit_test(retry_conditions_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
