/*
 * pm, pc and range over a paper CUPTI (tests/lib/fake_cupti.h): what they deliver, what they lose
 * and say so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/driver.h"
#include "cupti/counter.h"
#include "cupti/pc.h"
#include "tests/lib/cupti_lab.h"

static void pm_window(struct counter_source *src)
{
    assert_int_equal(counter_start(src), OK);
    assert_int_equal(counter_poll(src), ERR_AGAIN); /* the window is open */
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(counter_start(src), ERR_AGAIN); /* and not decoded */
    assert_int_equal(counter_disarm(src), ERR_AGAIN);
    assert_int_equal(counter_poll(src), OK);
    assert_int_equal(counter_poll(src), ERR_AGAIN);
}

static void pm_decodes_a_window_at_once(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_PM);
    assert_int_equal(src->state.health, COUNTER_READY);
    assert_non_null(strstr(src->state.detail, "triage"));
    assert_int_equal(counter_arm(src), OK);
    pm_window(src);
    pm_window(src);
    assert_int_equal(counter_disarm(src), OK);
    /* 600 a window, the first of each dropped and counted. */
    assert_int_equal(lab.found.n_samples, 2 * 599);
    assert_int_equal(lab.found.sum[COUNTER_PM].other, 2);
    assert_int_equal(lab.found.sum[COUNTER_PM].dropped, 0);
    for (size_t i = 0; i < 599; i++) {
        assert_true(lab.found.samples[i].start == 5000000000ull + (i + 1) * 20000);
        assert_true(lab.found.samples[i].v[FOUND_SM] == (double)(i + 1));
    }
    cupti_lab_close(src);
}

static void pm_full_image_is_a_loss(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_PM);
    struct counter_config cfg = {.pm_max_samples = 64};
    assert_int_equal(counter_configure(src, &cfg), OK);
    assert_int_equal(counter_arm(src), OK);
    pm_window(src);
    assert_int_equal(lab.found.n_samples, 63);
    assert_true(lab.found.sum[COUNTER_PM].dropped > 0);
    cupti_lab_close(src);
}

static void pm_overflow_is_said(void **state)
{
    (void)state;
    static const char *const ways[] = {"overflow=1", "overflow=2"}; /* flag and 8; bare 999 */
    for (int i = 0; i < 2; i++) {
        struct counter_source *src = cupti_lab_open(COUNTER_PM);
        assert_int_equal(counter_arm(src), OK);
        setenv("FAKE_CUPTI", ways[i], 1);
        pm_window(src);
        assert_int_equal(lab.found.overflows[COUNTER_PM], i + 1);
        unsetenv("FAKE_CUPTI");
        pm_window(src); /* and goes on */
        assert_int_equal(lab.found.overflows[COUNTER_PM], i + 1);
        cupti_lab_close(src);
    }
}

static void pm_without_time_trigger(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "notimer=1", 1);
    struct counter_source *src = cupti_lab_open(COUNTER_PM);
    assert_int_equal(counter_arm(src), OK);
    pm_window(src);
    cupti_lab_close(src);
}

static void pm_refused_object_is_disabled(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_PM);
    setenv("FAKE_CUPTI", "cuptiPmSamplingSetConfig=26", 1);
    assert_int_equal(counter_arm(src), ERR_FAILED);
    assert_int_equal(src->state.health, COUNTER_FAILED);
    assert_false(fake_cupti.pm_enabled);
    assert_non_null(strstr(src->state.remedy, "dcgmi profile --pause"));
    unsetenv("FAKE_CUPTI");
    assert_int_equal(counter_arm(src), OK); /* another try works */
    assert_int_equal(src->state.health, COUNTER_READY);
    cupti_lab_close(src);
}

static void pm_without_triage_names(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "notriage=1", 1);
    struct counter_source *src = cupti_lab_open(COUNTER_PM);
    assert_int_equal(src->state.health, COUNTER_READY);
    assert_non_null(strstr(src->state.detail, "no one-pass SM%"));
    assert_int_equal(counter_arm(src), OK);
    pm_window(src);
    assert_true(lab.found.samples[0].v[FOUND_SM] !=
                lab.found.samples[0].v[FOUND_SM]); /* NaN, not 0 */
    assert_true(lab.found.samples[0].v[FOUND_ACTIVE] >= 0);
    cupti_lab_close(src);
}

static void pc_drains_and_names(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_PC);
    struct counter_config cfg = {.pc_max_pcs = 64};
    assert_int_equal(counter_configure(src, &cfg), OK);
    fake_cupti.pc_late = 10;
    assert_int_equal(counter_arm(src), OK);
    for (int w = 0; w < 2; w++) {
        assert_int_equal(counter_start(src), OK);
        assert_int_equal(counter_stop(src), OK);
        assert_int_equal(lab.found.pc_records[0] + lab.found.pc_records[1],
                         100 * (w + 1)); /* reads of 64 */
    }
    assert_int_equal(counter_disarm(src), OK);
    assert_int_equal(lab.found.pc_records[0] + lab.found.pc_records[1],
                     210); /* what was left at disable too */
    /* Raw reasons count 1 2 3 4 5 a record: plain 1, twin 2, plain 3, twin 4, plain 5. */
    assert_int_equal(lab.found.n_reasons, 3);
    assert_string_equal(lab.found.reasons[0], "long_scoreboard");
    assert_string_equal(lab.found.reasons[1], "no_instruction");
    assert_string_equal(lab.found.reasons[2], "selected");
    assert_int_equal(lab.found.pc[0][0] + lab.found.pc[1][0], 210);
    assert_int_equal(lab.found.pc_not[0][0] + lab.found.pc_not[1][0], 420);
    assert_int_equal(lab.found.pc[0][1] + lab.found.pc[1][1], 630);
    assert_int_equal(lab.found.pc_not[0][2] + lab.found.pc_not[1][2], 0);
    assert_int_equal(lab.found.sum[COUNTER_PC].items, 210 * 15);
    cupti_lab_close(src);
}

static enum status prime_work(void *ctx)
{
    ++*(int *)ctx;
    return *(int *)ctx > 2 ? ERR_FAILED : OK;
}

static void pc_primes_in_silence(void **state)
{
    (void)state;
    int calls = 0;
    struct counter_source *src = cupti_lab_open(COUNTER_PC);
    fake_cupti.pc_late = 10;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pc_prime(src, prime_work, &calls), i < 2 ? OK : ERR_FAILED);
        assert_false(fake_cupti.pc_enabled);
    }
    assert_int_equal(calls, 3);
    assert_int_equal(lab.found.windows[COUNTER_PC], 0);
    assert_int_equal(lab.found.pc_records[0] + lab.found.pc_records[1], 0);
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(lab.found.windows[COUNTER_PC], 1);
    cupti_lab_close(src);
    src = cupti_lab_open(COUNTER_PM); /* any other source is left alone */
    assert_int_equal(pc_prime(src, prime_work, &calls), OK);
    assert_int_equal(calls, 3);
    cupti_lab_close(src);
}

static void pc_loss_is_said(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_PC);
    assert_int_equal(counter_arm(src), OK);
    setenv("FAKE_CUPTI", "pc_dropped=17", 1);
    assert_int_equal(counter_start(src), OK);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(lab.found.sum[COUNTER_PC].dropped, 17);
    setenv("FAKE_CUPTI", "cuptiPCSamplingGetData=8", 1);
    assert_int_equal(counter_start(src), OK);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(lab.found.overflows[COUNTER_PC], 1);
    unsetenv("FAKE_CUPTI");
    cupti_lab_close(src);
}

static void pc_odd_reason_counts(void **state)
{
    (void)state;
    static const char *const counts[] = {"reasons=0", "reasons=1000000"};
    for (int i = 0; i < 2; i++) {
        setenv("FAKE_CUPTI", counts[i], 1);
        struct counter_source *src = cupti_lab_open(COUNTER_PC);
        assert_int_equal(counter_arm(src), ERR_UNAVAILABLE);
        assert_false(fake_cupti.pc_enabled);
        cupti_lab_close(src);
    }
}

static void pc_reason_names(void **state)
{
    (void)state;
    char out[40];
    bool twin;
    pc_reason_name("smsp__pcsamp_warps_issue_stalled_math_pipe_throttle_not_issued", out,
                   sizeof out, &twin);
    assert_string_equal(out, "math_pipe_throttle");
    assert_true(twin);
    pc_reason_name("smsp__pcsamp_warps_issue_stalled_branch_resolve", out, sizeof out, &twin);
    assert_string_equal(out, "branch_resolving");
    assert_false(twin);
    pc_reason_name("something_new", out, sizeof out, &twin);
    assert_string_equal(out, "something_new");
    pc_reason_name("", out, sizeof out, &twin);
    assert_string_equal(out, "");
    uint64_t crc = 0;
    assert_int_equal(pc_cubin_crc(lab.lib, "abcd", 4, &crc), OK);
    assert_int_equal(crc, 12);
}

/* Launches, of which the first 4 are chosen. */
static void range_pass(struct counter_source *src, int launches)
{
    for (int i = 0; i < launches; i++) {
        struct counter_launch l = {
            .tag = (uint64_t)i + 1, .kernel = cupti_lab_names[i % 2], .chosen = i < 4};
        counter_launch_begin(src, &l);
        fake_cupti_launch(l.kernel, false);
        counter_launch_end(src, &l);
    }
}

static void range_replays_until_done(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_RANGE);
    for (size_t passes = 1; passes <= 3; passes++) {
        fake_cupti.passes = passes;
        struct counter_config cfg = {.range_sets = METRIC_SET_LIVE};
        assert_int_equal(counter_configure(src, &cfg), OK);
        assert_int_equal(counter_arm(src), OK);
        for (size_t p = 1; p <= passes; p++) {
            assert_int_equal(counter_start(src), OK);
            range_pass(src, 6);
            assert_int_equal(counter_stop(src), p < passes ? ERR_AGAIN : OK);
        }
        assert_int_equal(counter_start(src), ERR_USAGE); /* the group is complete */
        src->state.health = COUNTER_READY;
        assert_int_equal(counter_disarm(src), OK);
    }
    /* Range i has the value 1000 + i, and tags are i + 1: the last of each kernel are 3 and 4. */
    assert_int_equal(lab.found.sum[COUNTER_RANGE].items, 12);
    assert_true(lab.found.exact[0][METRIC_DURATION] > 1001.9 &&
                lab.found.exact[0][METRIC_DURATION] < 1002.5);
    assert_true(lab.found.exact[1][METRIC_DURATION] > 1002.9 &&
                lab.found.exact[1][METRIC_DURATION] < 1003.5);
    cupti_lab_close(src);
}

/* A driver that knows which context is current, and a CUPTI that is told whether there is one. */
static void *current;
static int starts_without, starts_with;
static cupti_result without, with; /* what it answers; 0: as the paper CUPTI */

static drv_result set_current(struct drv_ctx *ctx)
{
    current = ctx;
    return DRV_SUCCESS;
}

static drv_result synchronized(struct drv_stream *stream)
{
    (void)stream;
    return DRV_SUCCESS;
}

static cupti_result (*fake_start)(struct cupti_range_params *);

static cupti_result watched_start(struct cupti_range_params *p)
{
    *(current ? &starts_with : &starts_without) += 1;
    cupti_result answer = current ? with : without;
    return answer ? answer : fake_start(p);
}

/* A source with that driver, armed. */
static struct counter_source *open_watched(void)
{
    static const struct driver driver = {.CtxSetCurrent = set_current,
                                         .StreamSynchronize = synchronized};
    struct counter_config cfg = {.range_sets = METRIC_SET_LIVE};
    struct counter_env env = cupti_lab_env();
    struct counter_source *src;
    env.driver = &driver;
    current = env.ctx;
    starts_with = starts_without = 0;
    assert_int_equal(counter_open(COUNTER_RANGE, false, &env, &src), OK);
    assert_int_equal(counter_configure(src, &cfg), OK);
    assert_int_equal(counter_arm(src), OK);
    return src;
}

/* The first pass begins without a current context, which is back after it; a CUPTI that refuses
 * that is asked again as usual. */
static void range_begins_unasked(void **state)
{
    (void)state;
    fake_start = lab.lib->range_start;
    lab.lib->range_start = watched_start;
    fake_cupti.passes = 3;
    for (int refuses = 0; refuses < 2; refuses++) {
        without = refuses ? CUPTI_R_UNKNOWN : 0;
        struct counter_source *src = open_watched();
        for (int p = 1; p <= 3; p++) {
            assert_int_equal(counter_start(src), OK);
            assert_ptr_equal(current, src->env.ctx);
            range_pass(src, 6);
            assert_int_equal(counter_stop(src), p < 3 ? ERR_AGAIN : OK);
        }
        assert_int_equal(counter_disarm(src), OK);
        assert_int_equal(starts_without, 1);
        assert_int_equal(starts_with, refuses ? 3 : 2);
        cupti_lab_close(src);
    }
}

/* Both are refused: the reason is the second one's, but not that it came out of order. */
static void range_says_why_it_did_not_begin(void **state)
{
    (void)state;
    static const struct {
        cupti_result without, with;
        const char *why;
    } cases[] = {{CUPTI_R_UNKNOWN, CUPTI_R_HARDWARE_BUSY, "another tool holds"},
                 {CUPTI_R_HARDWARE_BUSY, CUPTI_R_INVALID_OPERATION, "another tool holds"}};
    fake_start = lab.lib->range_start;
    lab.lib->range_start = watched_start;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        without = cases[i].without;
        with = cases[i].with;
        struct counter_source *src = open_watched();
        assert_int_not_equal(counter_start(src), OK);
        assert_non_null(strstr(src->state.why, cases[i].why));
        assert_ptr_equal(current, src->env.ctx);
        without = with = 0;
        counter_close(src);
    }
}

static void range_refuses_other_work(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_RANGE);
    fake_cupti.passes = 2;
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    range_pass(src, 6);
    assert_int_equal(counter_stop(src), ERR_AGAIN);
    assert_int_equal(counter_start(src), OK);
    range_pass(src, 2);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(counter_disarm(src), ERR_FAILED);
    assert_non_null(strstr(src->state.why, "did not launch the same kernels"));
    assert_int_equal(lab.found.sum[COUNTER_RANGE].items, 0);
    cupti_lab_close(src);
}

/* The work was given up after its first pass: passes that are left run empty. */
static void range_can_be_given_up(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_RANGE);
    fake_cupti.passes = 3;
    assert_int_equal(counter_arm(src), OK);
    for (int p = 0; p < 3; p++) {
        assert_int_equal(counter_start(src), OK);
        if (p == 0) range_pass(src, 6);
        assert_int_equal(counter_stop(src), p < 2 ? ERR_AGAIN : OK);
    }
    assert_int_equal(counter_disarm(src), OK);
    assert_int_equal(src->state.health, COUNTER_READY);
    assert_int_equal(lab.found.sum[COUNTER_RANGE].items, 0);
    cupti_lab_close(src);
}

static void range_bounds(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_RANGE);
    struct counter_config cfg = {.range_max = 3};
    assert_int_equal(counter_configure(src, &cfg), OK);
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    range_pass(src, 6); /* chooses 4: the pass ends before the fourth */
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(counter_disarm(src), OK);
    assert_int_equal(lab.found.sum[COUNTER_RANGE].items, 3);
    assert_int_equal(lab.found.sum[COUNTER_RANGE].dropped, 1);
    cupti_lab_close(src);
}

/* A launch that nobody announced would shift all that follow it. */
static void range_does_not_guess(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_RANGE);
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    fake_cupti_launch("library_kernel", false);
    range_pass(src, 3);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(counter_disarm(src), ERR_FAILED);
    assert_non_null(strstr(src->state.why, "4 ranges for 3 launches"));
    assert_int_equal(lab.found.sum[COUNTER_RANGE].items, 0);
    cupti_lab_close(src);
}

/* Sets that were packed stay packed: going back to one asks the library nothing. */
static void range_sets_are_packed_once(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_RANGE);
    const unsigned sets[] = {METRIC_SET_LIVE, METRIC_SET_LIVE | METRIC_SET_SOL, METRIC_SET_ALL};
    char detail[3][256];
    for (int i = 0; i < 3; i++) {
        struct counter_config cfg = {.range_sets = sets[i]};
        assert_int_equal(counter_configure(src, &cfg), OK);
        memcpy(detail[i], src->state.detail, sizeof detail[i]);
    }
    unsigned hosts = fake_cupti.hosts, calls = fake_cupti.calls;
    for (int i = 0; i < 9; i++) {
        struct counter_config cfg = {.range_sets = sets[i % 3]};
        assert_int_equal(counter_configure(src, &cfg), OK);
        assert_string_equal(src->state.detail, detail[i % 3]);
    }
    assert_int_equal(fake_cupti.calls, calls);
    assert_int_equal(fake_cupti.hosts, hosts);
    /* More than are kept: the oldest leave, all are given back at the end. */
    for (unsigned set = 2; set < 64; set += 2) {
        struct counter_config cfg = {.range_sets = set};
        assert_int_equal(counter_configure(src, &cfg), OK);
    }
    assert_int_equal(fake_cupti.hosts, 4);
    cupti_lab_close(src);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, cupti_lab_setup, cupti_lab_teardown)
    const struct CMUnitTest tests[] = {
        T(pm_decodes_a_window_at_once),
        T(pm_full_image_is_a_loss),
        T(pm_overflow_is_said),
        T(pm_without_time_trigger),
        T(pm_refused_object_is_disabled),
        T(pm_without_triage_names),
        T(pc_drains_and_names),
        T(pc_primes_in_silence),
        T(pc_loss_is_said),
        T(pc_odd_reason_counts),
        T(pc_reason_names),
        T(range_replays_until_done),
        T(range_begins_unasked),
        T(range_says_why_it_did_not_begin),
        T(range_refuses_other_work),
        T(range_can_be_given_up),
        T(range_bounds),
        T(range_does_not_guess),
        T(range_sets_are_packed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
