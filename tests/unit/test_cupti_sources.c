/*
 * The real sources over a paper CUPTI (tests/lib/fake_cupti.h): what they deliver, what they lose
 * and say so, and what each refusal does to a source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cupti/counter.h"
#include "cupti/pc.h"
#include "tests/lib/counter_found.h"
#include "tests/lib/fake_cupti.h"

static const char *const names[] = {"kernel_a", "kernel_b"};
static struct found found;
static struct cupti_lib *lib;

static int setup(void **state)
{
    (void)state;
    unsetenv("FAKE_CUPTI");
    fake_cupti_reset();
    lib = fake_cupti_open();
    return lib && found_init(&found, names, 2, 4096, 8192) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    found_free(&found);
    free(lib);
    unsetenv("FAKE_CUPTI");
    return 0;
}

static struct counter_source *open_source(enum counter_role role)
{
    struct counter_env env = {.lib = lib, .ctx = &found, .sink = found_sink(&found)};
    struct counter_source *src;
    assert_int_equal(counter_open(role, false, &env, &src), OK);
    return src;
}

static void close_source(struct counter_source *src)
{
    counter_close(src);
    assert_int_equal(fake_cupti.hosts, 0);
    if (fake_cupti.violations) print_message("violation: %s\n", fake_cupti.last_violation);
    assert_int_equal(fake_cupti.violations, 0);
}

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

static void pm_decodes_in_pieces(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_PM);
    assert_int_equal(src->state.health, COUNTER_READY);
    assert_non_null(strstr(src->state.detail, "triage"));
    struct counter_config cfg = {.pm_max_samples = 64};
    assert_int_equal(counter_configure(src, &cfg), OK);
    assert_int_equal(counter_arm(src), OK);
    pm_window(src);
    pm_window(src);
    assert_int_equal(counter_disarm(src), OK);
    /* 600 a window, the first of each dropped and counted, none lost at the seams of 64. */
    assert_int_equal(found.n_samples, 2 * 599);
    assert_int_equal(found.sum[COUNTER_PM].other, 2);
    assert_int_equal(found.sum[COUNTER_PM].dropped, 0);
    for (size_t i = 0; i < 599; i++) {
        assert_true(found.samples[i].start == 5000000000ull + (i + 1) * 20000);
        assert_true(found.samples[i].v[FOUND_SM] == (double)(i + 1));
    }
    close_source(src);
}

static void pm_overflow_is_said(void **state)
{
    (void)state;
    static const char *const ways[] = {"overflow=1", "overflow=2"}; /* flag and 8; bare 999 */
    for (int i = 0; i < 2; i++) {
        struct counter_source *src = open_source(COUNTER_PM);
        assert_int_equal(counter_arm(src), OK);
        setenv("FAKE_CUPTI", ways[i], 1);
        pm_window(src);
        assert_int_equal(found.overflows[COUNTER_PM], i + 1);
        unsetenv("FAKE_CUPTI");
        pm_window(src); /* and goes on */
        assert_int_equal(found.overflows[COUNTER_PM], i + 1);
        close_source(src);
    }
}

static void pm_without_time_trigger(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "notimer=1", 1);
    struct counter_source *src = open_source(COUNTER_PM);
    assert_int_equal(counter_arm(src), OK);
    pm_window(src);
    close_source(src);
}

static void pm_refused_object_is_disabled(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_PM);
    setenv("FAKE_CUPTI", "cuptiPmSamplingSetConfig=26", 1);
    assert_int_equal(counter_arm(src), ERR_FAILED);
    assert_int_equal(src->state.health, COUNTER_FAILED);
    assert_false(fake_cupti.pm_enabled);
    assert_non_null(strstr(src->state.remedy, "dcgmi profile --pause"));
    unsetenv("FAKE_CUPTI");
    assert_int_equal(counter_arm(src), OK); /* another try works */
    assert_int_equal(src->state.health, COUNTER_READY);
    close_source(src);
}

static void pm_without_triage_names(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "notriage=1", 1);
    struct counter_source *src = open_source(COUNTER_PM);
    assert_int_equal(src->state.health, COUNTER_READY);
    assert_non_null(strstr(src->state.detail, "no one-pass SM%"));
    assert_int_equal(counter_arm(src), OK);
    pm_window(src);
    assert_true(found.samples[0].v[FOUND_SM] != found.samples[0].v[FOUND_SM]); /* NaN, not 0 */
    assert_true(found.samples[0].v[FOUND_ACTIVE] >= 0);
    close_source(src);
}

static void pc_drains_and_names(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_PC);
    struct counter_config cfg = {.pc_max_pcs = 64};
    assert_int_equal(counter_configure(src, &cfg), OK);
    fake_cupti.pc_late = 10;
    assert_int_equal(counter_arm(src), OK);
    for (int w = 0; w < 2; w++) {
        assert_int_equal(counter_start(src), OK);
        assert_int_equal(counter_stop(src), OK);
        assert_int_equal(found.pc_records[0] + found.pc_records[1],
                         100 * (w + 1)); /* reads of 64 */
    }
    assert_int_equal(counter_disarm(src), OK);
    assert_int_equal(found.pc_records[0] + found.pc_records[1],
                     210); /* what was left at disable too */
    /* Raw reasons count 1 2 3 4 5 a record: plain 1, twin 2, plain 3, twin 4, plain 5. */
    assert_int_equal(found.n_reasons, 3);
    assert_string_equal(found.reasons[0], "long_scoreboard");
    assert_string_equal(found.reasons[1], "no_instruction");
    assert_string_equal(found.reasons[2], "selected");
    assert_int_equal(found.pc[0][0] + found.pc[1][0], 210);
    assert_int_equal(found.pc_not[0][0] + found.pc_not[1][0], 420);
    assert_int_equal(found.pc[0][1] + found.pc[1][1], 630);
    assert_int_equal(found.pc_not[0][2] + found.pc_not[1][2], 0);
    assert_int_equal(found.sum[COUNTER_PC].items, 210 * 15);
    close_source(src);
}

static void pc_loss_is_said(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_PC);
    assert_int_equal(counter_arm(src), OK);
    setenv("FAKE_CUPTI", "pc_dropped=17", 1);
    assert_int_equal(counter_start(src), OK);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.sum[COUNTER_PC].dropped, 17);
    setenv("FAKE_CUPTI", "cuptiPCSamplingGetData=8", 1);
    assert_int_equal(counter_start(src), OK);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.overflows[COUNTER_PC], 1);
    unsetenv("FAKE_CUPTI");
    close_source(src);
}

static void pc_odd_reason_counts(void **state)
{
    (void)state;
    static const char *const counts[] = {"reasons=0", "reasons=1000000"};
    for (int i = 0; i < 2; i++) {
        setenv("FAKE_CUPTI", counts[i], 1);
        struct counter_source *src = open_source(COUNTER_PC);
        assert_int_equal(counter_arm(src), ERR_UNAVAILABLE);
        assert_false(fake_cupti.pc_enabled);
        close_source(src);
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
    assert_int_equal(pc_cubin_crc(lib, "abcd", 4, &crc), OK);
    assert_int_equal(crc, 12);
}

static void range_pass(struct counter_source *src, int launches)
{
    for (int i = 0; i < launches; i++) {
        struct counter_launch l = {.tag = (uint64_t)i + 1, .kernel = names[i % 2], .chosen = i < 4};
        counter_launch_begin(src, &l);
        counter_launch_end(src, &l);
    }
}

static void range_replays_until_done(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_RANGE);
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
    /* The paper range profiler lists ranges backwards: the last range, position 0, has the lowest
     * values. Tag 4 (kernel_b) is position 0, tag 3 (kernel_a) position 1: the last written are
     * tags 2 and 1. */
    assert_int_equal(found.sum[COUNTER_RANGE].items, 12);
    assert_true(found.exact[0][METRIC_DURATION] > 1002.9 &&
                found.exact[0][METRIC_DURATION] < 1003.5);
    assert_true(found.exact[1][METRIC_DURATION] > 1001.9 &&
                found.exact[1][METRIC_DURATION] < 1002.5);
    close_source(src);
}

static void range_refuses_other_work(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_RANGE);
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
    assert_int_equal(found.sum[COUNTER_RANGE].items, 0);
    close_source(src);
}

static void range_bounds(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_RANGE);
    struct counter_config cfg = {.range_max = 3};
    assert_int_equal(counter_configure(src, &cfg), OK);
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    range_pass(src, 6); /* chooses 4 */
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(counter_disarm(src), OK);
    assert_int_equal(found.sum[COUNTER_RANGE].items, 3);
    assert_int_equal(found.sum[COUNTER_RANGE].dropped, 1);
    close_source(src);
}

static void activity_round(struct counter_source *src, int n, int skip, int invalid)
{
    assert_int_equal(counter_start(src), OK);
    for (int i = 0; i < n; i++) {
        struct counter_launch l = {.tag = (uint64_t)i + 1, .kernel = names[i % 2]};
        counter_launch_begin(src, &l);
        if (i != skip) fake_cupti_launch(names[i % 2], i == invalid);
        counter_launch_end(src, &l);
    }
    assert_int_equal(counter_stop(src), OK);
}

static void activity_tags_in_launch_order(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    activity_round(src, 250, -1, -1); /* buffers of 100, records last first */
    assert_int_equal(found.n_spans, 250);
    assert_int_equal(found.bad_tags, 0);
    for (size_t i = 0; i < 250; i++) assert_int_equal(found.spans[i].tag, i + 1);
    activity_round(src, 10, -1, -1);
    assert_int_equal(found.n_spans, 260);
    assert_int_equal(found.bad_tags, 0);
    close_source(src);
    assert_false(fake_cupti.activity_on);
}

static void activity_does_not_guess(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    activity_round(src, 20, 7, -1); /* a record is missing: which one can't be known */
    assert_int_equal(found.n_spans, 19);
    assert_int_equal(found.bad_tags, 19);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].other, 19);
    activity_round(src, 20, -1, 5); /* a record without times */
    assert_int_equal(found.sum[COUNTER_ACTIVITY].invalid, 1);
    assert_int_equal(found.bad_tags, 38);
    close_source(src);
}

static void activity_skips_foreign_kernels(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    for (int i = 0; i < 6; i++) {
        struct counter_launch l = {.tag = (uint64_t)i + 1, .kernel = names[i % 2]};
        fake_cupti_launch("library_kernel", false);
        counter_launch_begin(src, &l);
        fake_cupti_launch(l.kernel, false);
    }
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.foreign, 6);
    assert_int_equal(found.bad_tags, 0);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].other, 6);
    close_source(src);
}

static void activity_pool_is_bounded(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "records_per_buffer=10", 1);
    struct counter_source *src = open_source(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    activity_round(src, 300, -1, -1); /* 16 buffers of 10 records */
    assert_int_equal(found.n_spans, 160);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].dropped, 140);
    assert_int_equal(found.overflows[COUNTER_ACTIVITY], 1);
    assert_int_equal(found.bad_tags, 160);
    activity_round(src, 100, -1, -1); /* buffers came back */
    assert_int_equal(found.n_spans, 260);
    assert_int_equal(found.bad_tags, 160);
    close_source(src);
}

static void refusals_become_states(void **state)
{
    (void)state;
    static const struct {
        enum counter_role role;
        const char *script, *why, *remedy;
        enum counter_health health;
    } cases[] = {
        {COUNTER_PM, "cuptiPmSamplingEnable=35", "restricted to administrators", "CAP_PERFMON",
         COUNTER_UNAVAILABLE},
        {COUNTER_PM, "cuptiPmSamplingEnable=26", "another tool holds", "dcgmi", COUNTER_FAILED},
        {COUNTER_PM, "cuptiPmSamplingEnable=43", "MIG", "whole GPU", COUNTER_UNAVAILABLE},
        {COUNTER_PM, "cuptiPmSamplingEnable=41", "confidential", "", COUNTER_UNAVAILABLE},
        {COUNTER_PM, "cuptiPmSamplingEnable=45", "WSL", "", COUNTER_UNAVAILABLE},
        {COUNTER_PC, "cuptiPCSamplingEnable=40", "virtual GPU", "hypervisor", COUNTER_UNAVAILABLE},
        {COUNTER_PC, "cuptiPCSamplingEnable=33", "virtual GPU", "hypervisor", COUNTER_UNAVAILABLE},
        {COUNTER_PC, "cuptiPCSamplingSetConfigurationAttribute=7", "out of order", "",
         COUNTER_FAILED},
        {COUNTER_RANGE, "cuptiRangeProfilerEnable=35", "restricted", "NVreg_", COUNTER_UNAVAILABLE},
        {COUNTER_RANGE, "cuptiRangeProfilerSetConfig=27", "not supported", "", COUNTER_UNAVAILABLE},
        {COUNTER_RANGE, "cuptiRangeProfilerEnable=999", "no reason", "", COUNTER_FAILED},
        {COUNTER_ACTIVITY, "cuptiActivityRegisterCallbacks=15", "no driver", "update",
         COUNTER_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct counter_source *src = open_source(cases[i].role);
        setenv("FAKE_CUPTI", cases[i].script, 1);
        assert_int_not_equal(counter_arm(src), OK);
        if (!strstr(src->state.why, cases[i].why))
            print_message("%s -> %s\n", cases[i].script, src->state.why);
        assert_non_null(strstr(src->state.why, cases[i].why));
        assert_non_null(strstr(src->state.remedy, cases[i].remedy));
        assert_int_equal(src->state.health, cases[i].health);
        assert_false(fake_cupti.pm_enabled || fake_cupti.pc_enabled || fake_cupti.range_enabled);
        unsetenv("FAKE_CUPTI");
        close_source(src);
    }
}

static void probes_say_why_not(void **state)
{
    (void)state;
    static const struct {
        enum counter_role role;
        const char *script, *why;
    } cases[] = {
        {COUNTER_PM, "confidential=1", "confidential"},
        {COUNTER_PC, "vgpu=1", "virtual GPU"},
        {COUNTER_RANGE, "wsl=1", "WSL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("FAKE_CUPTI", cases[i].script, 1);
        struct counter_source *src = open_source(cases[i].role);
        assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
        assert_non_null(strstr(src->state.why, cases[i].why));
        assert_int_equal(counter_arm(src), ERR_UNAVAILABLE);
        close_source(src);
    }
    unsetenv("FAKE_CUPTI");
    snprintf(lib->chip, sizeof lib->chip, "GX999");
    struct counter_source *src = open_source(COUNTER_PM);
    assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
    assert_non_null(strstr(src->state.why, "GX999"));
    close_source(src);
    snprintf(lib->other, sizeof lib->other, "Nsight Systems");
    src = open_source(COUNTER_ACTIVITY);
    assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
    assert_non_null(strstr(src->state.why, "Nsight Systems"));
    close_source(src);
    struct counter_env none = {.sink = found_sink(&found)};
    for (int r = 0; r < COUNTER_ROLES; r++) {
        assert_int_equal(counter_open((enum counter_role)r, false, &none, &src), OK);
        assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
        assert_true(src->state.why[0]);
        assert_int_equal(counter_arm(src), ERR_UNAVAILABLE);
        close_source(src);
    }
}

static void order_of_calls_is_held(void **state)
{
    (void)state;
    struct counter_source *src = open_source(COUNTER_PM);
    assert_int_equal(counter_start(src), ERR_USAGE);
    assert_int_equal(counter_stop(src), ERR_USAGE);
    assert_int_equal(counter_poll(src), ERR_AGAIN);
    assert_int_equal(counter_disarm(src), OK);
    struct counter_config bad = {.pm_keys = "sm_pct,nonsense"};
    assert_int_equal(counter_configure(src, &bad), ERR_USAGE);
    assert_non_null(strstr(err_msg(), "nonsense"));
    struct counter_config two = {.pm_keys = "sm_pct,dram_pct"};
    assert_int_equal(counter_configure(src, &two), OK);
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_configure(src, &two), ERR_USAGE);
    assert_int_equal(counter_start(src), OK);
    close_source(src); /* closes an open window, decodes it, disarms */
    assert_int_equal(found.windows[COUNTER_PM], 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        T(pm_decodes_in_pieces), T(pm_overflow_is_said), T(pm_without_time_trigger),
        T(pm_refused_object_is_disabled), T(pm_without_triage_names), T(pc_drains_and_names),
        T(pc_loss_is_said), T(pc_odd_reason_counts), T(pc_reason_names),
        T(range_replays_until_done), T(range_refuses_other_work), T(range_bounds),
        T(activity_tags_in_launch_order), T(activity_does_not_guess), T(activity_skips_foreign_kernels),
        T(activity_pool_is_bounded), T(refusals_become_states), T(probes_say_why_not),
        T(order_of_calls_is_held),
    };
    /* clang-format on */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
