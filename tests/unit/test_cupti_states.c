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
    assert_int_equal(found.bad_tags, 19); /* it held its place: the others know their launch */
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
    const struct CMUnitTest tests[] = {
        T(activity_tags_in_launch_order),  T(activity_does_not_guess),
        T(activity_skips_foreign_kernels), T(activity_pool_is_bounded),
        T(refusals_become_states),         T(probes_say_why_not),
        T(order_of_calls_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
