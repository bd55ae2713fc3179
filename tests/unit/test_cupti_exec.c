/*
 * Executed counts over a paper CUPTI (tests/lib/fake_cupti.h): what the source delivers, what each
 * refusal does to it, and that the schedule lets nothing else be on beside it.
 */
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
#include "tests/lib/fake_cupti.h"

enum { GOT_MAX = 256 };

static struct cupti_lib *lib;
static struct counter_executed got[GOT_MAX];
static unsigned ngot, nwindows, nspans;
static struct counter_window window;
static uint64_t fake_now;

static void on_executed(void *user, const struct counter_executed *x)
{
    (void)user;
    if (ngot < GOT_MAX) got[ngot++] = *x;
}

static void on_window(void *user, const struct counter_window *w)
{
    (void)user;
    if (w->role != COUNTER_EXEC) return;
    window = *w;
    nwindows++;
}

static void on_span(void *user, const struct counter_span *s)
{
    (void)user, (void)s;
    nspans++;
}

static int setup(void **state)
{
    (void)state;
    unsetenv("FAKE_CUPTI");
    fake_cupti_reset();
    ngot = nwindows = nspans = 0;
    fake_now = 1;
    lib = fake_cupti_open();
    return lib ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(lib);
    unsetenv("FAKE_CUPTI");
    return 0;
}

static struct counter_env environment(void)
{
    return (struct counter_env){
        .lib = lib,
        .ctx = &got,
        .sink = {.executed = on_executed, .window = on_window, .span = on_span}};
}

static struct counter_source *open_source(void)
{
    struct counter_env env = environment();
    struct counter_source *src;
    assert_int_equal(counter_open(COUNTER_EXEC, false, &env, &src), OK);
    return src;
}

static void close_source(struct counter_source *src)
{
    counter_close(src);
    if (fake_cupti.violations) print_message("violation: %s\n", fake_cupti.last_violation);
    assert_int_equal(fake_cupti.violations, 0);
    assert_false(fake_cupti.sass_enabled || fake_cupti.sass_configured);
}

static void launch(struct counter_source *src, uint64_t tag, const char *kernel, bool chosen)
{
    struct counter_launch l = {.tag = tag, .kernel = kernel, .chosen = chosen};
    counter_launch_begin(src, &l);
    assert_int_equal(fake_cupti.sass_enabled, chosen);
    fake_cupti_launch(kernel, false);
    counter_launch_end(src, &l);
    assert_false(fake_cupti.sass_enabled); /* nothing stays patched */
}

static void one_window(struct counter_source *src)
{
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    launch(src, 1, "kernel_a", false);
    launch(src, 2, "kernel_b", true);
    launch(src, 3, "kernel_a", false);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(counter_disarm(src), OK);
}

static void check_b(const struct counter_executed *x, uint64_t pred_each)
{
    for (unsigned i = 0; i < 3; i++) {
        uint64_t inst = i == 2 ? 0 : 10 * (i + 1);
        assert_int_equal(x[i].tag, 2);
        assert_string_equal(x[i].function, "kernel_b");
        assert_int_equal(x[i].pc, i * 16);
        assert_int_equal(x[i].inst, inst);
        assert_int_equal(x[i].threads, inst * 32);
        assert_true(x[i].pred_on == (pred_each ? inst * pred_each : COUNTER_UNKNOWN));
    }
}

/* The second window needs no second configuration: it would be refused. */
static void counts_the_chosen_launch_alone(void **state)
{
    (void)state;
    struct counter_source *src = open_source();
    assert_int_equal(src->state.health, COUNTER_READY);
    assert_non_null(strstr(src->state.detail, "predicated on"));
    for (unsigned i = 1; i <= 2; i++) {
        ngot = 0;
        one_window(src);
        assert_int_equal(fake_cupti.sass_launches, i);
        assert_int_equal(ngot, 3);
        check_b(got, 20);
        assert_int_equal(nwindows, i);
        assert_int_equal(window.items, 3);
        assert_int_equal(window.dropped + window.other, 0);
    }
    close_source(src);
}

static void records_with_all_metrics_and_of_others(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "sass_joined=1,sass_foreign=2", 1);
    struct counter_source *src = open_source();
    one_window(src);
    assert_int_equal(ngot, 3);
    check_b(got, 20);
    assert_int_equal(window.other, 2);
    close_source(src);
}

static void what_the_chip_lacks_is_unknown(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "nopred=1", 1);
    struct counter_source *src = open_source();
    assert_int_equal(src->state.health, COUNTER_READY);
    assert_non_null(strstr(src->state.detail, "no predication on this chip"));
    one_window(src);
    check_b(got, 0);
    close_source(src);
    setenv("FAKE_CUPTI", "nosass=1", 1);
    src = open_source();
    assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
    assert_non_null(strstr(src->state.why, "executed counts by instruction"));
    assert_int_equal(counter_arm(src), ERR_UNAVAILABLE);
    close_source(src);
}

static void losses_are_said(void **state)
{
    (void)state;
    struct counter_source *src = open_source();
    setenv("FAKE_CUPTI", "sass_dropped=7", 1);
    one_window(src);
    assert_int_equal(window.dropped, 7);
    assert_true(window.overflow);
    unsetenv("FAKE_CUPTI");
    struct counter_config small = {.exec_insns = 2};
    close_source(src);
    fake_cupti_reset();
    src = open_source();
    assert_int_equal(counter_configure(src, &small), OK);
    ngot = 0;
    one_window(src);
    assert_true(window.dropped > 0);
    assert_int_equal(ngot, 0);
    close_source(src);
}

/* A refusal in the middle leaves nothing patched, and is told by the state. */
static void refusals_become_states(void **state)
{
    (void)state;
    static const struct {
        const char *script, *why;
        enum counter_health health;
    } cases[] = {
        {"cuptiSassMetricsEnable=35", "restricted", COUNTER_UNAVAILABLE},
        {"cuptiSassMetricsEnable=27", "not supported", COUNTER_UNAVAILABLE},
        {"cuptiSassMetricsEnable=999", "no reason", COUNTER_FAILED},
        {"cuptiSassMetricsGetDataProperties=7", "out of order", COUNTER_FAILED},
        {"cuptiSassMetricsFlushData=999", "reading executed counts", COUNTER_FAILED},
        {"cuptiSassMetricsDisable=999", "taking the patches out", COUNTER_FAILED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_cupti_reset();
        struct counter_source *src = open_source();
        assert_int_equal(counter_arm(src), OK);
        assert_int_equal(counter_start(src), OK);
        setenv("FAKE_CUPTI", cases[i].script, 1);
        struct counter_launch l = {.tag = 1, .kernel = "kernel_a", .chosen = true};
        counter_launch_begin(src, &l);
        fake_cupti_launch(l.kernel, false);
        counter_launch_end(src, &l);
        assert_false(fake_cupti.sass_enabled);
        assert_int_not_equal(counter_stop(src), OK);
        assert_int_equal(src->state.health, cases[i].health);
        if (!strstr(src->state.why, cases[i].why))
            print_message("%s -> %s\n", cases[i].script, src->state.why);
        assert_non_null(strstr(src->state.why, cases[i].why));
        unsetenv("FAKE_CUPTI");
        close_source(src);
    }
    fake_cupti_reset();
    struct counter_source *src = open_source();
    setenv("FAKE_CUPTI", "cuptiSassMetricsSetConfig=35", 1);
    assert_int_equal(counter_arm(src), ERR_UNAVAILABLE);
    assert_non_null(strstr(src->state.remedy, "NVreg_"));
    unsetenv("FAKE_CUPTI");
    close_source(src);
}

static void probes_say_why_not(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "confidential=1", 1);
    struct counter_source *src = open_source();
    assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
    assert_non_null(strstr(src->state.why, "confidential"));
    close_source(src);
    unsetenv("FAKE_CUPTI");
    lib->sass_flush = NULL; /* an older library */
    src = open_source();
    assert_int_equal(src->state.health, COUNTER_UNAVAILABLE);
    assert_non_null(strstr(src->state.why, "lacks the interface"));
    close_source(src);
}

/* ---- the schedule ---- */

static uint64_t now(void)
{
    return fake_now;
}

struct bench {
    struct counter_source *src[COUNTER_ROLES];
    struct turns *turns;
};

static void bench_open(struct bench *b, bool synthetic)
{
    struct counter_env env = environment();
    struct turns_config cfg = {.pc_every = 1, .range_every = 1, .now = now};
    env.seed = 42;
    for (int r = 0; r < COUNTER_ROLES; r++)
        assert_int_equal(counter_open((enum counter_role)r, synthetic, &env, &b->src[r]), OK);
    assert_int_equal(turns_open(b->src, &cfg, &b->turns), OK);
}

static void bench_close(struct bench *b)
{
    turns_close(b->turns);
    for (int r = 0; r < COUNTER_ROLES; r++) counter_close(b->src[r]);
    if (fake_cupti.violations) print_message("violation: %s\n", fake_cupti.last_violation);
    assert_int_equal(fake_cupti.violations, 0);
}

static struct turns_round bench_round(struct bench *b)
{
    struct turns_round r;
    turns_begin(b->turns, &r);
    do {
        for (unsigned i = 0; i < 4; i++) {
            struct counter_launch l = {
                .tag = i + 1, .kernel = "kernel_a", .chosen = i == 1, .macs = 1e9};
            turns_launch_begin(b->turns, &l);
            fake_cupti_launch(l.kernel, false);
            turns_launch_end(b->turns, &l);
        }
        fake_now += 10000000;
    } while (turns_end(b->turns) == ERR_AGAIN);
    turns_poll(b->turns);
    return r;
}

/* Asked for in every state of the schedule: it is the very next round, alone, and all others go on
 * after it. The paper CUPTI counts what is on beside it as violations. */
static void comes_next_and_alone(void **state)
{
    (void)state;
    struct bench b;
    unsigned kinds[TURNS_EXEC + 1] = {0};
    bench_open(&b, false);
    for (unsigned i = 0; i < 120; i++) {
        bool ask = i % 7 == 3;
        if (ask) turns_request(b.turns, TURNS_WANT_EXEC);
        struct turns_round r = bench_round(&b);
        if (ask) assert_int_equal(r.kind == TURNS_EXEC || b.src[COUNTER_PC]->started, 1);
        kinds[r.kind]++;
        assert_false(fake_cupti.sass_enabled);
    }
    assert_true(kinds[TURNS_EXEC] >= 15);
    assert_int_equal(ngot, 3 * kinds[TURNS_EXEC]);
    assert_true(kinds[TURNS_SPANS] && kinds[TURNS_PC] && kinds[TURNS_RANGE]);
    assert_true(kinds[TURNS_TIMED] >= 3 * kinds[TURNS_EXEC]);
    assert_true(turns_cost(b.turns, TURNS_EXEC_STOP).n == kinds[TURNS_EXEC]);
    bench_close(&b);
}

/* Nobody asked: it never runs, and nothing of it is configured. */
static void never_by_itself(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, false);
    for (unsigned i = 0; i < 60; i++) assert_int_not_equal(bench_round(&b).kind, TURNS_EXEC);
    assert_false(fake_cupti.sass_configured);
    assert_int_equal(ngot, 0);
    bench_close(&b);
}

static void a_failure_is_tried_again_when_asked(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, false);
    setenv("FAKE_CUPTI", "cuptiSassMetricsSetConfig=26", 1);
    turns_request(b.turns, TURNS_WANT_EXEC);
    assert_int_not_equal(bench_round(&b).kind, TURNS_EXEC);
    assert_int_equal(b.src[COUNTER_EXEC]->state.health, COUNTER_FAILED);
    unsetenv("FAKE_CUPTI");
    for (unsigned i = 0; i < 10; i++) assert_int_not_equal(bench_round(&b).kind, TURNS_EXEC);
    turns_request(b.turns, TURNS_WANT_EXEC);
    assert_int_equal(bench_round(&b).kind, TURNS_EXEC);
    assert_int_equal(ngot, 3);
    bench_close(&b);
}

/* The synthetic counts sum to the synthetic range's instructions. */
static double range_inst;

static void on_exact(void *user, const struct counter_exact *e)
{
    (void)user;
    if (e->id == METRIC_INST) range_inst = e->value;
}

static void synthetic_sums_agree(void **state)
{
    (void)state;
    struct counter_env env = environment();
    struct counter_launch l = {.tag = 9, .kernel = "some_kernel", .chosen = true, .macs = 1e10};
    env.seed = 42;
    env.sink.exact = on_exact;
    static const enum counter_role roles[] = {COUNTER_RANGE, COUNTER_EXEC};
    double sum = 0;
    unsigned never = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct counter_source *src;
        assert_int_equal(counter_open(roles[i], true, &env, &src), OK);
        assert_int_equal(counter_arm(src), OK);
        assert_int_equal(counter_start(src), OK);
        counter_launch_begin(src, &l);
        counter_launch_end(src, &l);
        assert_int_equal(counter_stop(src), OK);
        counter_close(src);
    }
    for (unsigned i = 0; i < ngot; i++) {
        sum += (double)got[i].inst;
        never += got[i].inst == 0;
        assert_int_equal(got[i].tag, 9);
        assert_true(got[i].pred_on <= got[i].threads && got[i].threads <= 32 * got[i].inst);
    }
    assert_true(ngot > 0 && never > 0 && never < ngot);
    assert_true(sum == range_inst);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(counts_the_chosen_launch_alone),
        T(records_with_all_metrics_and_of_others),
        T(what_the_chip_lacks_is_unknown),
        T(losses_are_said),
        T(refusals_become_states),
        T(probes_say_why_not),
        T(comes_next_and_alone),
        T(never_by_itself),
        T(a_failure_is_tried_again_when_asked),
        T(synthetic_sums_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
