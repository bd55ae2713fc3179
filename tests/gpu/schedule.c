/*
 * The honest schedule of rounds, on a GPU: a stand-in token loop (tests/gpu/schedule.cu) drives the
 * real counter sources through cupti/turns.h, and what they say is held against each other.
 *
 *   schedule [--turns N] [--cubin FILE]   the test; ends "N passed, N failed, N skipped"
 *   schedule --clean    timed rounds only, libcupti never opened; prints their median in ms
 *
 * PM samples are joined to kernel spans by time alone. Timed rounds are compared before libcupti,
 * with it attached, with PM standing by, at the end, and with a clean child before and after.
 */
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/driver.h"
#include "cupti/counter.h"
#include "cupti/lib.h"
#include "cupti/pc.h"
#include "cupti/turns.h"
#include "tests/lib/counter_found.h"
#include "tests/lib/counter_print.h"
#include "tests/lib/stand_in.h"

enum {
    GROUPS = 6,
    ROUND_LAUNCHES = GROUPS * STAND_IN_KERNELS,
    BASE_ROUNDS = 200,
    ROUNDS_CAP = 1 << 16,
    PM_NS = 20000,
};

/* Tags count launches from 1 and kernels go round in the stand-in's order: a tag tells its kernel.
 */

/* ---- results of checks ---- */

static int passed, failed, skipped;

static void check(bool ok, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void check(bool ok, const char *what, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("%s %s: ", ok ? "ok  " : "FAIL", what);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    ok ? passed++ : failed++;
}

static void skip(const char *what, const char *why)
{
    printf("skip %s: %s\n", what, why);
    skipped++;
}

/* ---- the work ---- */

/* One round; t NULL = no schedule. Every launch is chosen for exact counters. */
static void run_round(struct stand_in *w, struct turns *t, uint64_t *tag)
{
    for (int i = 0; i < ROUND_LAUNCHES; i++) {
        struct counter_launch l = {
            .tag = ++*tag, .kernel = stand_in_names[i % STAND_IN_KERNELS], .chosen = true};
        if (t) turns_launch_begin(t, &l);
        stand_in_launch(w, i % STAND_IN_KERNELS);
        if (t) turns_launch_end(t, &l);
    }
    drv_result r = w->d->StreamSynchronize(w->stream);
    if (r != DRV_SUCCESS) {
        fprintf(stderr, "round: %s\n", driver_error_name(w->d, r));
        exit(EXIT_FAILED);
    }
}

/* ---- statistics ---- */

struct times {
    const char *what;
    double *ms;
    size_t n;
};

static void times_add(struct times *t, uint64_t ns)
{
    if (!t->ms) t->ms = calloc(ROUNDS_CAP, sizeof *t->ms);
    if (t->ms && t->n < ROUNDS_CAP) t->ms[t->n++] = (double)ns * 1e-6;
}

static double times_print(struct times *t, double base)
{
    double m = found_quantile(t->ms, t->n, 0.5);
    printf("  %-34s %6zu rounds  median %8.4f ms  iqr %7.4f  x%.4f\n", t->what, t->n, m,
           found_quantile(t->ms, t->n, 0.75) - found_quantile(t->ms, t->n, 0.25), m / base);
    return m;
}

static void time_rounds(struct stand_in *w, struct times *t, int rounds, uint64_t *tag)
{
    for (int i = 0; i < rounds + 10; i++) {
        uint64_t t0 = clock_mono_ns();
        run_round(w, NULL, tag);
        if (i >= 10) times_add(t, clock_mono_ns() - t0);
    }
}

/* ---- the run ---- */

static _Atomic bool stop_decoding;

static void *decode_main(void *user)
{
    while (!atomic_load(&stop_decoding))
        if (turns_poll(user) != OK) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return NULL;
}

struct run {
    struct stand_in w;
    struct cupti_lib *lib;
    struct counter_source *src[COUNTER_ROLES];
    struct found f;
    struct turns *turns;
    struct times base, attached, clear, standby, after;
    unsigned rounds[5];
    uint64_t tag, passes;
    bool prime; /* PC sampling */
};

static struct turns_round one_scheduled(struct run *r)
{
    struct turns_round round;
    turns_begin(r->turns, &round);
    r->rounds[round.kind]++;
    uint64_t first = r->tag, t0 = clock_mono_ns();
    do {
        r->tag = first; /* a repeated pass is the same work, with the same tags */
        run_round(&r->w, r->turns, &r->tag);
        if (round.kind == TURNS_RANGE) r->passes++;
    } while (turns_end(r->turns) == ERR_AGAIN);
    if (round.kind == TURNS_TIMED)
        times_add(round.armed ? &r->standby : &r->clear, clock_mono_ns() - t0);
    return round;
}

static bool open_sources(struct run *r)
{
    struct counter_env env = {
        .lib = r->lib,
        .driver = r->w.d,
        .ctx = r->w.ctx,
        .stream = r->w.stream,
        .device = r->w.dev,
        .sink = found_sink(&r->f),
    };
    for (int role = 0; role < COUNTER_ROLES; role++) {
        if (counter_open((enum counter_role)role, false, &env, &r->src[role]) != OK) return false;
        printf("  source %-9s %-11s %s\n", r->src[role]->state.name,
               counter_health_name(r->src[role]->state.health), r->src[role]->state.detail);
    }
    return true;
}

/* Runs the schedule until turn `turns` is over, or for a minute. */
static void run_turns(struct run *r, const struct turns_config *cfg, unsigned turns)
{
    pthread_t decoder;
    if (turns_open(r->src, cfg, &r->turns) != OK) return;
    atomic_store(&stop_decoding, false);
    if (pthread_create(&decoder, NULL, decode_main, r->turns) != 0) return;
    uint64_t deadline = clock_mono_ns() + 60000000000ull;
    while (one_scheduled(r).turn <= turns && clock_mono_ns() < deadline) continue;
    while (turns_pause(r->turns) == ERR_AGAIN)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&stop_decoding, true);
    pthread_join(decoder, NULL);
}

/* ---- checks ---- */

static void check_pm(struct run *r, struct found_joined *j, size_t inside)
{
    const struct found *f = &r->f;
    if (r->src[COUNTER_PM]->state.health == COUNTER_UNAVAILABLE) {
        skip("live SM%", r->src[COUNTER_PM]->state.why);
        return;
    }
    double exact = f->exact[STAND_IN_BUSY][METRIC_SM_LAUNCH], whole = j[STAND_IN_BUSY].whole,
           steady = found_quantile(j[STAND_IN_BUSY].sm, j[STAND_IN_BUSY].n, 0.5);
    check(f->windows[COUNTER_PM] >= 6 && f->n_samples > 500, "pm windows",
          "%u windows, %zu samples, %zu "
          "inside a span",
          f->windows[COUNTER_PM], f->n_samples, inside);
    check(j[STAND_IN_BUSY].n >= 100 && j[STAND_IN_COPY].n >= 30, "join by time",
          "busy %zu, copy %zu samples", j[STAND_IN_BUSY].n, j[STAND_IN_COPY].n);
    double tb = j[STAND_IN_BUSY].sum[FOUND_TENSOR] / (double)j[STAND_IN_BUSY].n;
    double tc = j[STAND_IN_COPY].sum[FOUND_TENSOR] / (double)j[STAND_IN_COPY].n;
    check(tb > 10 * tc, "join keeps kernels apart", "tensor%% %.2f in busy, %.3f in copy", tb, tc);
    /* Steady leaves out ramp and tail: kernels of 0.9, 0.3 and 0.1 ms read 0.5, 1.0 and 2.6 points
     * above the exact figure. Whole has them, and shares its edge samples with its neighbours. */
    if (isfinite(steady)) {
        check(steady > exact - 0.5 && steady < exact + 2.6, "steady SM% against exact",
              "%.2f steady, %.2f exact", steady, exact);
        check(fabs(whole - exact) < 1, "whole SM% against exact", "%.2f whole, %.2f exact", whole,
              exact);
    } else {
        skip("live SM% against exact", "this chip has no one-pass SM%");
    }
    double us = (double)(f->sum[COUNTER_PM].end_ns - f->sum[COUNTER_PM].start_ns);
    double expected = us * 1000 / PM_NS;
    check((double)f->n_samples > 0.8 * expected && (double)f->n_samples < 1.1 * expected,
          "samples of a window", "%zu in %.1f ms of windows, %.0f expected", f->n_samples,
          us * 1e-3, expected);
    check(f->overflows[COUNTER_PM] == 0, "pm overflow", "%u windows", f->overflows[COUNTER_PM]);
}

static void check_exact(struct run *r)
{
    const struct found *f = &r->f;
    if (r->src[COUNTER_RANGE]->state.health == COUNTER_UNAVAILABLE) {
        skip("exact counters", r->src[COUNTER_RANGE]->state.why);
        return;
    }
    for (int k = 0; k < STAND_IN_KERNELS; k++)
        check(f->inst_n[k] >= 3 && f->inst_min[k] > 0 && f->inst_min[k] == f->inst_max[k],
              "instructions repeat", "%s: %u times, %.0f to %.0f", stand_in_names[k], f->inst_n[k],
              f->inst_min[k], f->inst_max[k]);
    /* 32 threads do one load, one add and one store: a warp, some tens of instructions. */
    check(f->exact[STAND_IN_TINY][METRIC_INST] >= 5 && f->exact[STAND_IN_TINY][METRIC_INST] <= 60,
          "tiny kernel",
          "%.0f "
          "instructions",
          f->exact[STAND_IN_TINY][METRIC_INST]);
    double bytes =
        f->exact[STAND_IN_COPY][METRIC_DRAM_RATE] * f->exact[STAND_IN_COPY][METRIC_DURATION] * 1e-9;
    check(bytes > 0.5 * (double)STAND_IN_BYTES && bytes < 2.5 * (double)STAND_IN_BYTES,
          "copy moves its bytes", "%.0f MB of DRAM traffic for %.0f MB read and written",
          bytes * 1e-6, 2e-6 * (double)STAND_IN_BYTES);
}

static void check_pc(struct run *r)
{
    const struct found *f = &r->f;
    if (r->src[COUNTER_PC]->state.health == COUNTER_UNAVAILABLE) {
        skip("stall reasons", r->src[COUNTER_PC]->state.why);
        return;
    }
    uint64_t n[STAND_IN_KERNELS] = {0};
    for (int k = 0; k < STAND_IN_KERNELS; k++)
        for (size_t i = 0; i < f->n_reasons; i++) n[k] += f->pc[k][i];
    check(n[STAND_IN_BUSY] > 1000 && n[STAND_IN_COPY] > 100, "stall samples",
          "busy %llu, copy %llu, foreign %llu", (unsigned long long)n[STAND_IN_BUSY],
          (unsigned long long)n[STAND_IN_COPY], (unsigned long long)f->pc_foreign);
    check(f->sum[COUNTER_PC].dropped == 0 && !f->overflows[COUNTER_PC], "pc drops", "%llu",
          (unsigned long long)f->sum[COUNTER_PC].dropped);
    double wait = 0;
    for (size_t i = 0; i < f->n_reasons; i++)
        if (strcmp(f->reasons[i], "long_scoreboard") == 0 ||
            strcmp(f->reasons[i], "lg_throttle") == 0)
            wait += (double)f->pc[STAND_IN_COPY][i];
    check(wait > 0.5 * (double)n[STAND_IN_COPY], "copy waits for memory", "%.1f%% of its samples",
          100 * wait / (double)(n[STAND_IN_COPY] ? n[STAND_IN_COPY] : 1));
}

static void check_times(struct run *r, double clean)
{
    printf("\n  timed rounds (ratio to the clean child's %.4f ms)\n", clean);
    struct times *all[] = {&r->base, &r->attached, &r->clear, &r->standby, &r->after};
    double m[5];
    for (int i = 0; i < 5; i++) m[i] = times_print(all[i], clean);
    check(m[2] < 1.01 * m[1] && m[3] < 1.02 * m[1], "timed rounds stay clean",
          "nothing armed x%.4f, pm or pc "
          "standing by x%.4f of the rounds before",
          m[2] / m[1], m[3] / m[1]);
    check(m[4] < 1.01 * clean, "against a clean process", "x%.4f after everything is off",
          m[4] / clean);
}

/* ---- main ---- */

static int run_clean(const char *cubin, int rounds)
{
    struct stand_in w;
    struct times t = {0};
    uint64_t tag = 0;
    if (stand_in_open(&w, cubin) != OK) return EXIT_UNAVAILABLE;
    time_rounds(&w, &t, rounds, &tag);
    printf("%.6f\n", found_quantile(t.ms, t.n, 0.5));
    free(t.ms);
    return EXIT_OK;
}

static double clean_child(const char *self, const char *cubin)
{
    char cmd[1200];
    double ms = NAN;
    snprintf(cmd, sizeof cmd, "'%s' --clean --cubin '%s'", self, cubin);
    FILE *p = popen(cmd, "r");
    if (!p) return NAN;
    if (fscanf(p, "%lf", &ms) != 1) ms = NAN;
    pclose(p);
    return ms;
}

/* Exact SM% takes several passes: a set of its own, after the turns. */
static void run_sol(struct run *r)
{
    struct counter_config cfg = {.range_sets = METRIC_SET_SOL};
    struct turns_config once = {.range_every = 1, .pm_windows = 1, .timed_rounds = 1, .rest_ns = 1};
    struct counter_source *all[COUNTER_ROLES];
    if (counter_configure(r->src[COUNTER_RANGE], &cfg) != OK) {
        printf("  SOL set: %s\n", err_msg());
        return;
    }
    memcpy(all, r->src, sizeof all);
    for (int i = 0; i < COUNTER_ROLES; i++)
        if (i != COUNTER_RANGE) r->src[i] = NULL;
    struct turns *main_turns = r->turns;
    uint64_t before = r->passes;
    run_turns(r, &once, 1);
    printf("  SOL set: %s, passes run %llu; cost:\n", r->src[COUNTER_RANGE]->state.detail,
           (unsigned long long)(r->passes - before));
    counter_print_costs(r->turns);
    turns_close(r->turns);
    r->turns = main_turns;
    memcpy(r->src, all, sizeof all);
}

static enum status prime_work(void *user)
{
    struct stand_in *w = user;
    for (int k = 0; k < STAND_IN_KERNELS; k++) stand_in_launch(w, k);
    return driver_check(w->d, w->d->StreamSynchronize(w->stream), "priming");
}

static bool open_cupti(struct run *r)
{
    if (cupti_open(&r->lib) != OK || cupti_attach(r->lib, r->w.dev) != OK) {
        skip("counters", err_msg());
        return false;
    }
    printf("  CUPTI %u, chip %s, %s\n", r->lib->version, r->lib->chip, r->lib->path);
    time_rounds(&r->w, &r->attached, BASE_ROUNDS, &r->tag);
    return true;
}

static void whole_run(struct run *r, const char *self, const char *cubin, unsigned turns)
{
    struct turns_config cfg = {.pc_every = 1, .range_every = 1, .rest_ns = 300000000};
    double clean = clean_child(self, cubin);
    printf("  clean child before: %.4f ms a round of %d launches\n", clean, ROUND_LAUNCHES);
    time_rounds(&r->w, &r->base, BASE_ROUNDS, &r->tag);
    if (!open_cupti(r) || !open_sources(r)) return;
    if (r->prime && pc_prime(r->src[COUNTER_PC], prime_work, &r->w) != OK)
        check(false, "priming PC sampling", "%s", err_msg());
    run_turns(r, &cfg, turns);
    printf("  rounds: %u timed, %u spans, %u pc, %u range (%llu passes)\n", r->rounds[TURNS_TIMED],
           r->rounds[TURNS_SPANS], r->rounds[TURNS_PC], r->rounds[TURNS_RANGE],
           (unsigned long long)r->passes);
    run_sol(r);
    counter_disarm(r->src[COUNTER_ACTIVITY]);
    time_rounds(&r->w, &r->after, BASE_ROUNDS, &r->tag);
    double clean2 = clean_child(self, cubin);
    printf("  clean child after: %.4f ms\n", clean2);
    struct found_joined j[STAND_IN_KERNELS];
    size_t inside = found_join(&r->f, j);
    counter_print_kernels(&r->f, j);
    counter_print_stalls(&r->f);
    counter_print_windows(&r->f);
    counter_print_costs(r->turns);
    check(r->f.failures == 0, "no source fell out", "%u state changes to failed; last: %s",
          r->f.failures, r->f.last_why[0] ? r->f.last_why : "-");
    check(r->f.n_spans > 0 && r->f.bad_tags == 0, "spans know their launch",
          "%zu spans, %zu without", r->f.n_spans, r->f.bad_tags);
    check_pm(r, j, inside);
    check_exact(r);
    check_pc(r);
    check_times(r, (clean + clean2) / 2);
    for (int k = 0; k < STAND_IN_KERNELS; k++) free(j[k].sm);
}

static void find_cubin(const char *self, char *out, size_t size)
{
    const char *slash = strrchr(self, '/');
    snprintf(out, size, "%.*sschedule.sm_90a.cubin", slash ? (int)(slash - self + 1) : 0, self);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"clean", no_argument, 0, 'c'},
                                            {"cubin", required_argument, 0, 'f'},
                                            {"turns", required_argument, 0, 't'},
                                            {"no-prime", no_argument, 0, 'k'},
                                            {0}};
    char cubin[512];
    unsigned turns = 4;
    bool clean = false, prime = true;
    find_cubin(argv[0], cubin, sizeof cubin);
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'c') clean = true;
        if (o == 'f') snprintf(cubin, sizeof cubin, "%s", optarg);
        if (o == 't') turns = (unsigned)strtoul(optarg, NULL, 10);
        if (o == 'k') prime = false;
        if (o == '?') return EXIT_USAGE;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (clean) return run_clean(cubin, BASE_ROUNDS);
    struct run *r = calloc(1, sizeof *r);
    if (!r || !found_init(&r->f, stand_in_names, STAND_IN_KERNELS, 1 << 16, 1 << 18))
        return EXIT_FAILED;
    r->prime = prime;
    r->base.what = "before libcupti was opened";
    r->attached.what = "libcupti attached, nothing on";
    r->clear.what = "in turns, nothing armed";
    r->standby.what = "in turns, a source standing by";
    r->after.what = "after all, everything off";
    enum status st = stand_in_open(&r->w, cubin);
    if (st == OK)
        whole_run(r, argv[0], cubin, turns);
    else if (st == ERR_UNAVAILABLE)
        skip("schedule of rounds", err_msg());
    else
        check(false, "stand-in kernels", "%s", err_msg());
    turns_close(r->turns);
    for (int i = 0; i < COUNTER_ROLES; i++) counter_close(r->src[i]);
    found_free(&r->f);
    struct times *all[] = {&r->base, &r->attached, &r->clear, &r->standby, &r->after};
    for (int i = 0; i < 5; i++) free(all[i]->ms);
    free(r);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? EXIT_FAILED : EXIT_OK;
}
