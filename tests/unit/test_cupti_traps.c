/*
 * Traps that others fell into (docs/TRAPS.md), over a paper CUPTI: refusals of every call, calls
 * that are never made, callbacks at odd times and on odd threads, leaving in the middle, programs
 * that use no GPU at all.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cupti/counter.h"
#include "cupti/lib.h"
#include "cupti/pack.h"
#include "cupti/turns.h"
#include "tests/lib/cupti_lab.h"
#include "tests/lib/engine_child.h"

/* Some tests name a library of their own. */
static int teardown(void **state)
{
    unsetenv("SASSTOP_CUPTI");
    return cupti_lab_teardown(state);
}

/* The whole life of a source, whatever its calls answer. */
static void live(enum counter_role role)
{
    struct counter_source *src = cupti_lab_open(role);
    for (int turn = 0; turn < 2; turn++) {
        if (counter_arm(src) != OK) break;
        for (int w = 0; w < 3 && counter_start(src) == OK; w++) {
            for (uint64_t i = 1; i <= 6; i++) {
                struct counter_launch l = {
                    .tag = i, .kernel = cupti_lab_names[(i - 1) % 2], .chosen = true};
                counter_launch_begin(src, &l);
                fake_cupti_launch(l.kernel, false);
                counter_launch_end(src, &l);
            }
            counter_stop(src);
            counter_poll(src);
        }
        counter_disarm(src);
    }
    if (src->state.health != COUNTER_READY) assert_true(src->state.why[0]);
    counter_close(src);
}

static const char *const symbols[] = {
#define CALL(field, symbol, args, level) symbol,
#include "cupti/calls.def"
#undef CALL
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

/* Each call of each source answers each error: nothing ends the process, a source that stops says
 * why, and what it had claimed is given back unless giving back was what failed. */
static void every_call_may_refuse(void **state)
{
    (void)state;
    static const int errors[] = {1,  2,  7,  8,  14, 15, 26, 27, 33, 35,
                                 38, 39, 40, 41, 42, 43, 44, 45, 46, 999};
    for (int s = 0; s < SYMBOLS; s++) {
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
            char script[80];
            snprintf(script, sizeof script, "%s=%d", symbols[s], errors[e]);
            for (int role = COUNTER_ACTIVITY; role < COUNTER_ROLES; role++) {
                fake_cupti_reset();
                setenv("FAKE_CUPTI", script, 1);
                live((enum counter_role)role);
            }
            bool letting_go = strstr(symbols[s], "Disable") || strstr(symbols[s], "Stop");
            if (!letting_go) {
                assert_false(fake_cupti.pm_enabled || fake_cupti.pc_enabled);
                assert_false(fake_cupti.range_enabled || fake_cupti.activity_on);
            }
            assert_int_equal(fake_cupti.hosts, 0);
        }
    }
}

/* Calls that were the cause of crashes, leaks or wrong figures elsewhere are not even looked up: no
 * finaliser, no profiler teardown, no timestamp callback, no driver or resource callbacks, none of
 * the profiling interfaces before CUDA 13. */
static void what_is_never_called(void **state)
{
    (void)state;
    static const char *const never[] = {
        "cuptiFinalize",
        "cuptiProfilerDeInitialize",
        "cuptiActivityRegisterTimestampCallback",
        "cuptiEnableCallback",
        "cuptiEnableDomain",
        "cuptiEnableAllDomains",
        "cuptiProfilerBeginSession",
        "cuptiProfilerSetConfig",
        "cuptiEventGroupCreate",
        "cuptiMetricGetValue",
        "cuptiActivityPushExternalCorrelationId",
        "cuptiSubscribe", /* the one without names */
    };
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        for (int s = 0; s < SYMBOLS; s++) assert_string_not_equal(symbols[s], never[i]);
    for (int s = 0; s < SYMBOLS; s++) assert_null(strstr(symbols[s], "NVPW_"));
}

/* One unknown name among good ones: the set has the good ones, and its host object never saw it. */
static void a_bad_name_costs_itself_alone(void **state)
{
    (void)state;
    struct pack_set all, fewer;
    assert_int_equal(pack_range_set(lab.lib, "GH100", METRIC_SET_ALL, &all), OK);
    setenv("FAKE_CUPTI", "nodram=1", 1);
    assert_int_equal(pack_range_set(lab.lib, "GH100", METRIC_SET_ALL, &fewer), OK);
    assert_true(fewer.refused >= 4 && fewer.n + fewer.refused == all.n + all.refused);
    assert_non_null(strstr(fewer.refused_keys, "dram"));
    for (size_t i = 0; i < fewer.n; i++) assert_null(strstr(fewer.names[i], "dram"));
    assert_int_equal(fake_cupti.violations, 0); /* no add to a poisoned object */
    pack_free(lab.lib, &all);
    pack_free(lab.lib, &fewer);
    assert_int_equal(fake_cupti.hosts, 0);
}

/* CUPTI calls back inside its own calls; a lock of ours held across one would stop here for good.
 */
static void callbacks_may_come_inside_any_call(void **state)
{
    (void)state;
    alarm(60);
    setenv("FAKE_CUPTI", "callback_in_dropped=1,records_per_buffer=10", 1);
    struct counter_source *src = cupti_lab_open(COUNTER_ACTIVITY);
    for (int i = 0; i < 50; i++) live(COUNTER_PM);
    assert_int_equal(counter_arm(src), OK);
    for (int w = 0; w < 20; w++) {
        assert_int_equal(counter_start(src), OK);
        for (int i = 0; i < 40; i++) fake_cupti_launch("kernel_a", false);
        assert_int_equal(counter_stop(src), OK);
    }
    counter_close(src);
    alarm(0);
}

static void *flush_thread(void *arg)
{
    (void)arg;
    lab.lib->activity_flush(CUPTI_FLUSH_FORCED);
    return NULL;
}

/* Buffers come back on threads that we have never seen: no thread-local state is assumed. */
static void buffers_may_come_back_on_any_thread(void **state)
{
    (void)state;
    struct counter_source *src = cupti_lab_open(COUNTER_ACTIVITY);
    assert_int_equal(counter_arm(src), OK);
    assert_int_equal(counter_start(src), OK);
    for (uint64_t i = 1; i <= 30; i++) {
        struct counter_launch l = {.tag = i, .kernel = cupti_lab_names[(i - 1) % 2]};
        counter_launch_begin(src, &l);
        fake_cupti_launch(l.kernel, false);
        counter_launch_end(src, &l);
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, flush_thread, NULL), 0);
        pthread_join(t, NULL);
    }
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(lab.found.n_spans, 30);
    assert_int_equal(lab.found.bad_tags, 0);
    counter_close(src);
}

/* ---- stopping while a thread decodes ---- */

static _Atomic bool decoding;

static void *decode_thread(void *arg)
{
    while (atomic_load(&decoding)) turns_poll(arg);
    return NULL;
}

/* The schedule is opened, run for some rounds and stopped over and over while a thread decodes. */
static void stopping_does_not_wait_for_the_decoder(void **state)
{
    (void)state;
    alarm(60);
    for (int life = 0; life < 40; life++) {
        struct counter_source *src[COUNTER_ROLES] = {0};
        struct turns_config cfg = {.timed_rounds = 1, .pm_windows = 1, .rest_ns = 1};
        struct turns *t;
        pthread_t thread;
        src[COUNTER_PM] = cupti_lab_open(COUNTER_PM);
        assert_int_equal(turns_open(src, &cfg, &t), OK);
        atomic_store(&decoding, true);
        assert_int_equal(pthread_create(&thread, NULL, decode_thread, t), 0);
        for (int r = 0; r < 12; r++) {
            struct turns_round round;
            turns_begin(t, &round);
            turns_end(t);
        }
        while (turns_pause(t) == ERR_AGAIN) continue; /* the decoder goes on meanwhile */
        atomic_store(&decoding, false);
        pthread_join(thread, NULL);
        turns_close(t);
        counter_close(src[COUNTER_PM]);
    }
    alarm(0);
    assert_int_equal(fake_cupti.violations, 0);
}

/* ---- leaving, and programs without a GPU ---- */

/* exit() with a window open: nothing of ours runs at exit, so nothing can come in the wrong order.
 */
static void leaving_in_the_middle_is_quiet(void **state)
{
    (void)state;
    for (int role = COUNTER_ACTIVITY; role < COUNTER_ROLES; role++) {
        fake_cupti_reset();
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(20);
            struct counter_env env = cupti_lab_env();
            struct counter_source *src;
            if (counter_open((enum counter_role)role, false, &env, &src) != OK) _exit(2);
            if (counter_arm(src) != OK || counter_start(src) != OK) _exit(3);
            fake_cupti_launch("kernel_a", false);
            fclose(stdout); /* what cmocka has buffered is the parent's */
            exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* A library that leaves a file when it is loaded. */
static bool make_telltale(const char *so, const char *file)
{
    char source[256], cmd[512];
    snprintf(source, sizeof source, "%s.c", so);
    FILE *f = fopen(source, "w");
    if (!f) return false;
    fprintf(f,
            "#include <stdio.h>\n__attribute__((constructor)) static void loaded(void)\n"
            "{ FILE *f = fopen(\"%s\", \"w\"); if (f) fclose(f); }\n",
            file);
    fclose(f);
    snprintf(cmd, sizeof cmd, "${CC:-cc} -shared -fPIC -w -o %s %s 2>/dev/null", so, source);
    bool ok = system(cmd) == 0;
    unlink(source);
    return ok;
}

/* Without a GPU in use nothing is loaded, subscribed or flushed: neither on the CPU nor with
 * --sources none, where rounds must be those of a process that never met CUPTI. */
static void a_cpu_engine_never_loads_cupti(void **state)
{
    (void)state;
    char so[64], file[64];
    snprintf(so, sizeof so, "/tmp/sasstop-telltale-%d.so", (int)getpid());
    snprintf(file, sizeof file, "/tmp/sasstop-telltale-%d.loaded", (int)getpid());
    if (!make_telltale(so, file)) {
        print_message("skipped: no C compiler to build the library\n");
        skip();
    }
    setenv("SASSTOP_CUPTI", so, 1);
    static const char *const sources[] = {"activity,pm,pc,range", "none"};
    for (int i = 0; i < 2; i++) {
        const char *const words[] = {"--backend", "cpu",      "--threads", "1",
                                     "--rounds",  "2",        "--bench",   "pp4,tg1",
                                     "--sources", sources[i], NULL};
        struct engine_child c;
        struct frame f;
        engine_child_start(&c, words);
        while (engine_child_next(&c, &f)) continue;
        int status = engine_child_wait(&c);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_int_not_equal(access(file, F_OK), 0);
    }
    struct cupti_lib *loaded; /* the telltale works: it is loaded, and found to be of no use */
    assert_int_equal(cupti_open(&loaded), ERR_UNAVAILABLE);
    assert_int_equal(access(file, F_OK), 0);
    unlink(file);
    unlink(so);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, cupti_lab_setup, teardown)
    const struct CMUnitTest tests[] = {
        T(every_call_may_refuse),
        T(what_is_never_called),
        T(a_bad_name_costs_itself_alone),
        T(callbacks_may_come_inside_any_call),
        T(buffers_may_come_back_on_any_thread),
        T(stopping_does_not_wait_for_the_decoder),
        T(leaving_in_the_middle_is_quiet),
        T(a_cpu_engine_never_loads_cupti),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
