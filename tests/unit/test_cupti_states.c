/*
 * Activity over a paper CUPTI (tests/lib/fake_cupti.h), and what each refusal does to a source.
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
#include "tests/lib/cupti_lab.h"

static void activity_round(struct counter_source *src, int n, int skip, int invalid)
{
    assert_int_equal(counter_start(src), OK);
    for (int i = 0; i < n; i++) {
        struct counter_launch l = {.tag = (uint64_t)i + 1, .kernel = cupti_lab_names[i % 2]};
        counter_launch_begin(src, &l);
        if (i != skip) fake_cupti_launch(cupti_lab_names[i % 2], i == invalid);
        counter_launch_end(src, &l);
    }
    assert_int_equal(counter_stop(src), OK);
}

static void activity_tags_in_launch_order(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    activity_round(src, 250, -1, -1); /* buffers of 100, records last first */
    assert_int_equal(lab.found.n_spans, 250);
    assert_int_equal(lab.found.bad_tags, 0);
    for (size_t i = 0; i < 250; i++) assert_int_equal(lab.found.spans[i].tag, i + 1);
    activity_round(src, 10, -1, -1);
    assert_int_equal(lab.found.n_spans, 260);
    assert_int_equal(lab.found.bad_tags, 0);
    cupti_lab_close(src);
    assert_false(fake_cupti.activity_on);
}

static void activity_does_not_guess(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    activity_round(src, 20, 7, -1); /* a record is missing: which one can't be known */
    assert_int_equal(lab.found.n_spans, 19);
    assert_int_equal(lab.found.bad_tags, 19);
    assert_int_equal(lab.found.sum[COUNTER_ACTIVITY].other, 19);
    activity_round(src, 20, -1, 5); /* a record without times */
    assert_int_equal(lab.found.sum[COUNTER_ACTIVITY].invalid, 1);
    assert_int_equal(lab.found.bad_tags, 19); /* it held its place: the others know their launch */
    cupti_lab_close(src);
}

static void activity_skips_foreign_kernels(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    for (int i = 0; i < 6; i++) {
        struct counter_launch l = {.tag = (uint64_t)i + 1, .kernel = cupti_lab_names[i % 2]};
        fake_cupti_launch("library_kernel", false);
        counter_launch_begin(src, &l);
        fake_cupti_launch(l.kernel, false);
    }
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(lab.found.foreign, 6);
    assert_int_equal(lab.found.bad_tags, 0);
    assert_int_equal(lab.found.sum[COUNTER_ACTIVITY].other, 6);
    cupti_lab_close(src);
}

static void activity_pool_is_bounded(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "records_per_buffer=1,hold=512", 1);
    struct counter_source *src = cupti_lab_open(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    activity_round(src, 400, -1, -1); /* 256 buffers of a record, none given back before */
    assert_int_equal(lab.found.n_spans, 256);
    assert_int_equal(lab.found.sum[COUNTER_ACTIVITY].dropped, 144);
    assert_int_equal(lab.found.overflows[COUNTER_ACTIVITY], 1);
    assert_int_equal(lab.found.bad_tags, 256);
    activity_round(src, 100, -1, -1); /* buffers came back */
    assert_int_equal(lab.found.n_spans, 356);
    assert_int_equal(lab.found.bad_tags, 256);
    cupti_lab_close(src);
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
        struct counter_source *src = cupti_lab_open(cases[i].role);
        setenv("FAKE_CUPTI", cases[i].script, 1);
        assert_int_not_equal(counter_arm(src), OK);
        if (!strstr(src->state.why, cases[i].why))
            print_message("%s -> %s\n", cases[i].script, src->state.why);
        assert_non_null(strstr(src->state.why, cases[i].why));
        assert_non_null(strstr(src->state.remedy, cases[i].remedy));
        assert_int_equal(src->state.health, cases[i].health);
        assert_false(fake_cupti.pm_enabled || fake_cupti.pc_enabled || fake_cupti.range_enabled);
        unsetenv("FAKE_CUPTI");
        cupti_lab_close(src);
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
        struct counter_source *src = cupti_lab_open(cases[i].role);
        assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
        assert_non_null(strstr(src->state.why, cases[i].why));
        assert_int_equal(counter_arm(src), ERR_UNAVAILABLE);
        cupti_lab_close(src);
    }
    unsetenv("FAKE_CUPTI");
    snprintf(lab.lib->chip, sizeof lab.lib->chip, "GX999");
    struct counter_source *src = cupti_lab_open(COUNTER_PM);
    assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
    assert_non_null(strstr(src->state.why, "GX999"));
    cupti_lab_close(src);
    snprintf(lab.lib->other, sizeof lab.lib->other, "Nsight Systems");
    src = cupti_lab_open(COUNTER_ACTIVITY);
    assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
    assert_non_null(strstr(src->state.why, "Nsight Systems"));
    cupti_lab_close(src);
    struct counter_env none = {.sink = found_sink(&lab.found)};
    for (int r = 0; r < COUNTER_ROLES; r++) {
        assert_int_equal(counter_open((enum counter_role)r, false, &none, &src), OK);
        assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
        assert_true(src->state.why[0]);
        assert_int_equal(counter_arm(src), ERR_UNAVAILABLE);
        cupti_lab_close(src);
    }
}

static void order_of_calls_is_held(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_PM);
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
    cupti_lab_close(src); /* closes an open window, decodes it, disarms */
    assert_int_equal(lab.found.windows[COUNTER_PM], 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, cupti_lab_setup, cupti_lab_teardown)
    const struct CMUnitTest tests[] = {
        T(activity_tags_in_launch_order),  T(activity_does_not_guess),
        T(activity_skips_foreign_kernels), T(activity_pool_is_bounded),
        T(refusals_become_states),         T(probes_say_why_not),
        T(order_of_calls_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
