/*
 * The schedule of rounds: over the paper CUPTI no rule is ever broken, timed rounds are clean, what
 * fails is left out and tried again; over synthetic sources a session is reproducible and SM% comes
 * back by the join.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cupti/synth.h"
#include "cupti/turns.h"
#include "tests/lib/counter_found.h"
#include "tests/lib/fake_cupti.h"

static const char *const names[] = {"kernel_a", "kernel_b", "kernel_c"};
enum { KERNELS = 3, LAUNCHES = 12 };

static struct found found;
static struct cupti_lib *lib;
static struct counter_source *src[COUNTER_ROLES];
static struct turns *turns;
static uint64_t fake_now, tag;
static unsigned kinds[5], dirty;

static uint64_t now(void)
{
    return fake_now;
}

static int setup(void **state)
{
    (void)state;
    unsetenv("FAKE_CUPTI");
    fake_cupti_reset();
    lib = fake_cupti_open();
    memset(src, 0, sizeof src);
    memset(kinds, 0, sizeof kinds);
    turns = NULL;
    fake_now = 1;
    tag = dirty = 0;
    return lib && found_init(&found, names, KERNELS, 1 << 15, 1 << 17) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    turns_close(turns);
    for (int r = 0; r < COUNTER_ROLES; r++) counter_close(src[r]);
    if (fake_cupti.violations) print_message("violation: %s\n", fake_cupti.last_violation);
    assert_int_equal(fake_cupti.violations, 0);
    assert_int_equal(fake_cupti.hosts, 0);
    found_free(&found);
    free(lib);
    unsetenv("FAKE_CUPTI");
    return 0;
}

static void open_all(bool synthetic, const char *script, const struct turns_config *cfg)
{
    struct counter_env env = {.lib = synthetic ? NULL : lib,
                              .ctx = &found,
                              .script = script,
                              .seed = 42,
                              .sink = found_sink(&found)};
    for (int r = 0; r < COUNTER_ROLES; r++)
        assert_int_equal(counter_open((enum counter_role)r, synthetic, &env, &src[r]), OK);
    if (!synthetic) found.failures = 0; /* events has no driver here */
    struct turns_config c = cfg ? *cfg : (struct turns_config){0};
    c.now = now;
    assert_int_equal(turns_open(src, &c, &turns), OK);
}

/* 10 ms pass in a round. decode: the decode thread keeps up. */
static struct turns_round one_round(bool decode)
{
    struct turns_round r;
    turns_begin(turns, &r);
    kinds[r.kind]++;
    for (int i = 0; i < COUNTER_ROLES; i++)
        if (r.kind == TURNS_TIMED && src[i]->started) dirty++;
    uint64_t first = tag;
    do {
        tag = first;
        for (int i = 0; i < LAUNCHES; i++) {
            struct counter_launch l = {
                .tag = ++tag, .kernel = names[i % KERNELS], .chosen = i < KERNELS, .macs = 1e9};
            turns_launch_begin(turns, &l);
            fake_cupti_launch(l.kernel, false);
            turns_launch_end(turns, &l);
        }
        fake_now += 10000000;
    } while (turns_end(turns) == ERR_AGAIN);
    if (decode) turns_poll(turns);
    return r;
}

static void a_long_run_breaks_no_rule(void **state)
{
    (void)state;
    struct turns_config cfg = {.pc_every = 2, .range_every = 3};
    fake_cupti.passes = 3;
    open_all(false, NULL, &cfg);
    struct turns_round r = {0};
    int rounds = 0;
    while (r.turn < 30 && rounds++ < 100000) {
        r = one_round(rounds % 3 != 0); /* decoding lags now and then */
        if (rounds % 97 == 0) turns_request(turns, TURNS_WANT_PC | TURNS_WANT_RANGE);
    }
    assert_int_equal(r.turn, 30);
    assert_int_equal(dirty, 0);
    assert_int_equal(found.failures, 0);
    /* A request lets one spans round go first and leaves the turn's others out. */
    assert_true(kinds[TURNS_SPANS] >= 29 * 2);
    assert_true(kinds[TURNS_PC] >= 14 * 5); /* 50 ms of 10 ms rounds */
    assert_true(kinds[TURNS_RANGE] >= 9);
    assert_true(kinds[TURNS_TIMED] >= 4 * (kinds[TURNS_SPANS] + kinds[TURNS_RANGE]));
    assert_true(found.windows[COUNTER_PM] >= 29 * 2);
    assert_true(found.windows[COUNTER_ACTIVITY] >= 29 * 2);
    assert_int_equal(found.bad_tags, 0);
    while (turns_pause(turns) == ERR_AGAIN) turns_poll(turns);
    assert_true(turns_cost(turns, TURNS_PM_ARM).n >= 29);
    assert_int_equal(turns_cost(turns, TURNS_PM_ARM).n, turns_cost(turns, TURNS_PM_DISARM).n);
    assert_int_equal(turns_cost(turns, TURNS_PC_ARM).n, turns_cost(turns, TURNS_PC_DISARM).n);
    for (int a = 0; a < TURNS_ACTIONS; a++) assert_true(turns_action_name((enum turns_action)a)[0]);
}

static void counting_waits_for_decoding(void **state)
{
    (void)state;
    open_all(false, NULL, NULL);
    for (int i = 0; i < 5; i++) one_round(false);
    assert_int_equal(kinds[TURNS_SPANS], 1);
    for (int i = 0; i < 50; i++) assert_int_equal(one_round(false).kind, TURNS_TIMED);
    assert_int_equal(turns_pause(turns), ERR_AGAIN);
    assert_int_equal(turns_poll(turns), OK);
    assert_int_equal(turns_pause(turns), OK);
    assert_false(fake_cupti.pm_enabled);
    for (int i = 0; i < 5; i++) assert_int_equal(one_round(true).kind, TURNS_TIMED);
    turns_resume(turns);
    for (int i = 0; i < 6; i++) one_round(true);
    assert_true(kinds[TURNS_SPANS] >= 2);
}

static void requests_come_soon(void **state)
{
    (void)state;
    struct turns_config cfg = {.pm_windows = 1, .rest_ns = 3600000000000ull};
    open_all(false, NULL, &cfg);
    for (int i = 0; i < 40; i++) one_round(true);
    assert_int_equal(kinds[TURNS_PC] + kinds[TURNS_RANGE], 0); /* never by themselves */
    assert_int_equal(kinds[TURNS_SPANS], 1);
    turns_request(turns, TURNS_WANT_RANGE | TURNS_WANT_PC);
    for (int i = 0; i < 16; i++) one_round(true);
    assert_int_equal(kinds[TURNS_RANGE], 1);
    assert_int_equal(kinds[TURNS_PC], 5);
    turns_request(turns, TURNS_WANT_SPANS);
    for (int i = 0; i < 6; i++) one_round(true);
    assert_int_equal(kinds[TURNS_SPANS], 2);
}

/* The next round whatever is owed, and what was due before comes after it as it would have. */
static void now_is_the_next_round(void **state)
{
    (void)state;
    struct turns_config cfg = {.pm_windows = 3, .timed_rounds = 5, .range_every = 1, .rest_ns = 1};
    open_all(false, NULL, &cfg);
    for (int i = 0; i < 4; i++) one_round(true); /* five are owed at first */
    assert_int_equal(kinds[TURNS_TIMED], 4);
    turns_request(turns, TURNS_WANT_NOW);
    one_round(true);
    assert_int_equal(kinds[TURNS_RANGE], 1);
    for (int i = 0; i < 19; i++)
        one_round(true); /* three windows of the turn, each with its five */
    assert_int_equal(kinds[TURNS_SPANS], 3);
    assert_int_equal(kinds[TURNS_RANGE], 1);
    for (int i = 0; i < 8; i++) one_round(true); /* and the turn's own pass */
    assert_int_equal(kinds[TURNS_RANGE], 2);
}

/* A window holds less than a round: windows take the parts in turn, from the first after a request.
 */
static void windows_take_parts_in_turn(void **state)
{
    (void)state;
    struct turns_config cfg = {.parts = 2, .timed_rounds = 1, .rest_ns = 3600000000000ull};
    unsigned at_begin = 0, at_part = 0;
    open_all(false, NULL, &cfg);
    for (int i = 0; i < 12; i++) {
        struct turns_round r;
        bool early, late;
        if (i == 7) turns_request(turns, TURNS_WANT_SPANS);
        turns_begin(turns, &r);
        early = src[COUNTER_PM]->started;
        turns_part(turns, 1);
        late = src[COUNTER_PM]->started;
        assert_true(r.kind != TURNS_SPANS || (r.window && late));
        assert_true(r.kind == TURNS_SPANS || (!r.window && !late));
        if (i == 7) assert_true(early); /* the first part, though the last window had it too */
        at_begin += early;
        at_part += late && !early;
        assert_int_equal(turns_end(turns), OK);
        turns_poll(turns);
    }
    assert_int_equal(at_begin, 3); /* of rounds 1 3 5: the first and the third; then 7 */
    assert_int_equal(at_part, 2);
    assert_int_equal(found.windows[COUNTER_PM], 5);
}

/* A window for a later part is not promised while the last one is decoded. */
static void parts_wait_for_decoding(void **state)
{
    (void)state;
    struct turns_config cfg = {.parts = 2, .timed_rounds = 1};
    open_all(false, NULL, &cfg);
    for (int i = 0; i < 2; i++) one_round(false);
    assert_int_equal(kinds[TURNS_SPANS], 1);
    for (int i = 0; i < 9; i++) assert_int_equal(one_round(false).kind, TURNS_TIMED);
    assert_int_equal(turns_poll(turns), OK);
    struct turns_round r;
    turns_begin(turns, &r);
    assert_int_equal(r.kind, TURNS_SPANS);
    assert_true(r.window);
    assert_false(src[COUNTER_PM]->started);
    assert_int_equal(turns_end(turns), OK); /* the part never came: no window, no samples */
    assert_int_equal(turns_poll(turns), ERR_AGAIN);
    assert_int_equal(found.windows[COUNTER_PM], 1);
}

static void refused_pm_leaves_activity(void **state)
{
    (void)state;
    open_all(false, NULL, NULL);
    setenv("FAKE_CUPTI", "cuptiPmSamplingEnable=35", 1);
    for (int i = 0; i < 400; i++) one_round(true);
    assert_int_equal(found.windows[COUNTER_PM], 0);
    assert_true(found.windows[COUNTER_ACTIVITY] > 5);
    assert_int_equal(src[COUNTER_PM]->state.health, COUNTER_UNAVAILABLE);
    assert_int_equal(found.failures, 1); /* said once, not every turn */
    assert_int_equal(dirty, 0);
}

static void busy_counters_are_tried_again(void **state)
{
    (void)state;
    open_all(false, NULL, NULL);
    setenv("FAKE_CUPTI", "cuptiPmSamplingEnable=26", 1);
    for (int i = 0; i < 200; i++) one_round(true); /* 2 s */
    assert_int_equal(src[COUNTER_PM]->state.health, COUNTER_FAILED);
    assert_int_equal(turns_cost(turns, TURNS_PM_ARM).n, 1);
    unsetenv("FAKE_CUPTI");
    for (int i = 0; i < 1000; i++) one_round(true); /* 10 s more */
    assert_int_equal(src[COUNTER_PM]->state.health, COUNTER_READY);
    assert_true(found.windows[COUNTER_PM] > 3);
}

static void nothing_at_all_is_all_timed(void **state)
{
    (void)state;
    struct counter_source *none[COUNTER_ROLES] = {0};
    assert_int_equal(turns_open(none, NULL, &turns), OK);
    struct counter_env env = {.sink = found_sink(&found)};
    for (int r = 0; r < COUNTER_ROLES; r++)
        assert_int_equal(counter_open((enum counter_role)r, false, &env, &src[r]), OK);
    for (int i = 0; i < 100; i++) one_round(true);
    turns_close(turns);
    assert_int_equal(turns_open(src, NULL, &turns), OK); /* opened, and every one unavailable */
    turns_request(turns, TURNS_WANT_PC | TURNS_WANT_RANGE | TURNS_WANT_SPANS);
    for (int i = 0; i < 100; i++) one_round(true);
    assert_int_equal(kinds[TURNS_TIMED], 200);
}

/* ---- synthetic ---- */

static void synth_joins(void **state)
{
    (void)state;
    struct turns_config cfg = {.pc_every = 1, .range_every = 1};
    open_all(true, NULL, &cfg);
    struct turns_round r = {0};
    for (int i = 0; i < 3000 && r.turn < 20; i++) r = one_round(true);
    assert_int_equal(found.failures, 0);
    assert_int_equal(found.bad_tags, 0);
    struct found_joined j[KERNELS];
    size_t inside = found_join(&found, j);
    assert_true(inside > 150);
    for (int k = 0; k < KERNELS; k++) {
        double want = synth_sm_pct(names[k], 42), got = found_quantile(j[k].sm, j[k].n, 0.5);
        /* Short kernels hold a whole sample only now and then. */
        assert_true(j[k].n > (synth_duration_ns(names[k], 1e9, 42) > 40000 ? 100 : 0));
        assert_true(fabs(got - want) <= 0.021 * want); /* the wave is 2% */
        assert_true(fabs(found.exact[k][METRIC_DURATION] -
                         (double)synth_duration_ns(names[k], 1e9, 42)) < 0.5);
        assert_true(found.inst_min[k] == found.inst_max[k] && found.inst_min[k] > 0);
        assert_true(found.pc[k][0] > 0 && found.pc_not[k][0] <= found.pc[k][0]);
        free(j[k].sm);
    }
}

static uint64_t digest(void)
{
    uint64_t h = 1469598103934665603ull;
    for (size_t i = 0; i < found.n_samples; i++) {
        const uint8_t *b = (const uint8_t *)&found.samples[i];
        for (size_t k = 0; k < sizeof found.samples[0]; k++) h = (h ^ b[k]) * 1099511628211ull;
    }
    return h ^ found.n_spans * 31 ^ found.sum[COUNTER_PC].items;
}

static void synth_is_deterministic(void **state)
{
    uint64_t first = 0;
    for (int run = 0; run < 2; run++) {
        struct turns_config cfg = {.pc_every = 2};
        open_all(true, NULL, &cfg);
        for (int i = 0; i < 300; i++) one_round(true);
        assert_true(found.n_samples > 100);
        if (run == 0)
            first = digest();
        else
            assert_true(digest() == first);
        if (run == 0) {
            teardown(state);
            setup(state);
        }
    }
}

static void synth_plays_faults(void **state)
{
    (void)state;
    open_all(true,
             "overflow@pm:2,drop-burst@activity:3,invalid-time@activity:1,busy@pm:2,absent@range",
             NULL);
    assert_int_equal(src[COUNTER_RANGE]->state.health, COUNTER_UNAVAILABLE);
    assert_true(src[COUNTER_PM]->state.synthetic);
    for (int i = 0; i < 30; i++) one_round(true);
    assert_int_equal(found.overflows[COUNTER_PM], 1);
    assert_true(found.sum[COUNTER_PM].dropped > 0);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].invalid, LAUNCHES);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].dropped, LAUNCHES / 2);
    for (int i = 0; i < 400; i++) one_round(true); /* the second arm meets "busy" */
    assert_int_equal(found.failures, 2);           /* absent, busy */
    assert_non_null(strstr(found.last_why, "another tool holds"));
    for (int i = 0; i < 600; i++) one_round(true); /* and the third does not */
    assert_int_equal(src[COUNTER_PM]->state.health, COUNTER_READY);
}

static void synth_scripts_are_checked(void **state)
{
    (void)state;
    assert_int_equal(synth_check(NULL), OK);
    assert_int_equal(synth_check(""), OK);
    assert_int_equal(synth_check("no-privilege@pm,overflow,fail@pc:12"), OK);
    static const char *const bad[] = {"overfl",       "overflow@gpu",
                                      "overflow@pm:", "overflow@pm:0",
                                      "busy:9x",      "busy@pm:99999999999999999999",
                                      "busy,,busy",   "@pm"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(synth_check(bad[i]), ERR_USAGE);
}

/* Rounds of 10 ms until the n-th turn begins. */
static unsigned rounds_to_turn(uint32_t turn)
{
    unsigned n = 0;
    while (n++ < 10000 && one_round(true).turn < turn) continue;
    return n;
}

static void a_shorter_rest_ends_one_under_way(void **state)
{
    (void)state;
    struct turns_config cfg = {.pm_windows = 1, .rest_ns = 60000000000ull};
    open_all(false, NULL, &cfg);
    for (int i = 0; i < 50; i++) one_round(true);
    struct turns_round r = one_round(true);
    assert_int_equal(r.turn, 1); /* resting for a minute */
    assert_int_equal(r.kind, TURNS_TIMED);
    turns_set_rest(turns, 200000000);
    unsigned soon = rounds_to_turn(2), next = rounds_to_turn(3);
    assert_in_range(soon, 18, 24); /* 200 ms */
    assert_in_range(next, 20, 40); /* the turn's own rounds, then 200 ms */
    turns_set_rest(turns, 2000000000);
    assert_in_range(rounds_to_turn(4), 200, 240);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_long_run_breaks_no_rule),
        T(a_shorter_rest_ends_one_under_way),
        T(counting_waits_for_decoding),
        T(requests_come_soon),
        T(now_is_the_next_round),
        T(windows_take_parts_in_turn),
        T(parts_wait_for_decoding),
        T(refused_pm_leaves_activity),
        T(busy_counters_are_tried_again),
        T(nothing_at_all_is_all_timed),
        T(synth_joins),
        T(synth_is_deterministic),
        T(synth_plays_faults),
        T(synth_scripts_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
