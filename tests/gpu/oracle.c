/*
 * The oracle's work: a list of operators whose kernels this project's sources measure, and which
 * Nsight Compute measures in the same program, launched the same way. tests/gpu/oracle.sh runs both
 * and compares.
 *
 *   oracle                 a test of its own sides: ends "N passed, N failed, N skipped"
 *   oracle --own FILE [MIB]
 *                          measures: exact counters, stalls by PC sampling, live SM%; into FILE;
 *                          MIB of memory are taken first, so that all else lies elsewhere
 *   oracle --cost          what a group of exact counters takes, by set and by room for ranges
 *   oracle --plain FILE    the same launches, each wanted one between cuProfilerStart and
 *                          cuProfilerStop (ncu --profile-from-start off); their order into FILE
 *
 * FILE is tab-separated: "launch I OP KERNEL SHAPE", then "value I NAME MEAN SD N", NAME as ncu
 * writes it, "stall I REASON SAMPLES", "live I V". Both sides run the same sequence: each operator
 * once uncounted, then REPEAT - 1 times, and before each wanted launch a flush of the L2
 * (tests/lib/oracle_flush.h). So the caches hold the same whoever measures, as long as nothing
 * comes between the flush and the launch: ncu has to replay the application, since its replay of
 * kernels saves and restores memory there. No clock is set on either side.
 */
#include "base/clock.h"
#include "cupti/counter.h"
#include "cupti/lib.h"
#include "cupti/pc.h"
#include "engine/cuda/cuda.h"
#include "engine/model.h"
#include "tests/lib/counter_found.h"
#include "tests/lib/oracle_flush.h"
#include "tests/lib/oracle_work.h"
#include "tests/lib/profiler.h"
#include "tests/lib/repeats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIST_MAX = 64, /* launches of all operators */
    REPEAT = 5,    /* of an operator in a counted pass; the first is left out */
    REPEAT_TAG = 1 << 12,
    REASONS = 48,
};
static const uint64_t PC_NS = 100000000, PM_NS = 22000000, PM_LEAST_NS = 300000;

struct seen {
    const struct oracle_work *w;
    uint32_t kernel, grid[3], smem_dynamic, n, m, k;
    bool wanted;
    struct repeats value[512];
    double ns;
    unsigned spans;
    uint64_t stall[REASONS], stall_all;
    double live;
};

static struct backend *gpu;
static const struct kernel_info *kernels;
static struct oracle_work works[ORACLE_WORKS];
static unsigned nworks, nseen;
static struct seen seen[LIST_MAX];
static unsigned profiled[LIST_MAX * REPEAT], nprofiled; /* in the order of ncu's rows */
static char reasons[REASONS][40];
static unsigned nreasons;
static struct found found;

/* What the hooks know of the run under way. */
static struct {
    const struct oracle_work *w;
    unsigned at, rep;
    bool listing, profile, warm; /* warm: without flushes */
    struct counter_source *src[3];
    unsigned nsrc;
} now;

static void must(enum status st)
{
    if (st == OK) return;
    fprintf(stderr, "oracle: %s\n", err_msg());
    exit(err_exit_code(st));
}

/* ---- launching ---- */

static uint64_t tag_now(void)
{
    return now.w->first + now.at + 1 + (uint64_t)now.rep * REPEAT_TAG;
}

/* Counted like any launch, since the range source counts places; tag 0 is nobody's. */
static void flush_caches(void)
{
    struct counter_launch l = {.kernel = oracle_flush_name, .chosen = true};
    for (unsigned s = 0; s < now.nsrc; s++) counter_launch_begin(now.src[s], &l);
    must(oracle_flush_launch());
    for (unsigned s = 0; s < now.nsrc; s++) counter_launch_end(now.src[s], &l);
}

static void on_launch(void *ctx, const struct launch_info *i)
{
    (void)ctx;
    struct counter_launch l = {.tag = tag_now(), .kernel = kernels[i->kernel].name, .chosen = true};
    bool wanted = !strncmp(l.kernel, now.w->kernel, strlen(now.w->kernel));
    if (now.listing && nseen < LIST_MAX) {
        struct seen *s = &seen[nseen++];
        *s = (struct seen){.w = now.w,
                           .kernel = i->kernel,
                           .smem_dynamic = i->smem_dynamic,
                           .m = i->m,
                           .n = i->n,
                           .k = i->k,
                           .wanted = wanted,
                           .live = NAN};
        memcpy(s->grid, i->grid, sizeof s->grid);
    }
    if (wanted && !now.warm) flush_caches();
    for (unsigned s = 0; s < now.nsrc; s++) counter_launch_begin(now.src[s], &l);
    if (!now.profile || !wanted) return;
    must(cuda_backend.sync(gpu));
    if (nprofiled < LIST_MAX * REPEAT) profiled[nprofiled++] = now.w->first + now.at;
    profiler_start();
}

static void on_launched(void *ctx, const struct launch_info *i)
{
    (void)ctx;
    struct counter_launch l = {.tag = tag_now(), .kernel = kernels[i->kernel].name, .chosen = true};
    if (now.profile) {
        must(cuda_backend.sync(gpu));
        profiler_stop();
    }
    for (unsigned s = 0; s < now.nsrc; s++) counter_launch_end(now.src[s], &l);
    now.at++;
}

static void run_work(struct oracle_work *w)
{
    struct step_result r;
    if (w->family) must(cuda_backend.select(gpu, w->family, w->variant, w->kd));
    now.w = w;
    now.at = 0;
    if (now.listing) w->first = nseen;
    must(cuda_backend.run(gpu, &w->op, 1, NULL, w->op.n, w->pos0, false, TIMING_EXTERNAL, &r));
    must(cuda_backend.sync(gpu));
    if (now.listing) w->count = nseen - w->first;
}

static enum status run_list(void *listing)
{
    now.listing = listing != NULL && nseen == 0;
    for (unsigned i = 0; i < nworks; i++) run_work(&works[i]);
    now.listing = false;
    return OK;
}

/* ---- what the sources say ---- */

static struct seen *seen_of(uint64_t tag)
{
    uint64_t at = tag ? (tag - 1) % REPEAT_TAG : LIST_MAX;
    return at < nseen ? &seen[at] : NULL;
}

static void on_exact(void *user, const struct counter_exact *e)
{
    struct seen *s = seen_of(e->tag);
    (void)user;
    if (!s || e->id >= 512 || (e->tag - 1) / REPEAT_TAG == 0 || isnan(e->value)) return;
    repeats_add(&s->value[e->id], e->value);
}

static void on_span(void *user, const struct counter_span *sp)
{
    struct seen *s = seen_of(sp->tag);
    (void)user;
    if (s) s->ns += (double)(sp->end_ns - sp->start_ns), s->spans++;
}

static void on_pc(void *user, const struct counter_pc *p)
{
    (void)user;
    for (unsigned i = 0; i < p->n; i++) {
        unsigned r = 0;
        while (r < nreasons && strcmp(reasons[r], p->stalls[i].reason)) r++;
        if (r == REASONS) continue;
        if (r == nreasons)
            snprintf(reasons[nreasons++], sizeof reasons[0], "%s", p->stalls[i].reason);
        for (unsigned k = 0; k < nseen; k++) {
            if (seen[k].w != now.w || strcmp(kernels[seen[k].kernel].name, p->function)) continue;
            seen[k].stall[r] += p->stalls[i].samples;
            seen[k].stall_all += p->stalls[i].samples;
        }
    }
}

static void on_state(void *user, const struct counter_state *s)
{
    (void)user;
    if (s->health == COUNTER_FAILED || s->health == COUNTER_UNAVAILABLE)
        fprintf(stderr, "oracle: source %s: %s\n", s->name, s->why);
}

static struct counter_source *open_source(struct cupti_lib *lib, enum counter_role role)
{
    struct counter_env env = {
        .lib = lib,
        .driver = cuda_backend.driver(gpu),
        .ctx = cuda_backend.context(gpu),
        .stream = cuda_backend.stream(gpu),
        .sink = {.exact = on_exact, .span = on_span, .pc = on_pc, .state = on_state}};
    struct counter_source *s;
    if (role == COUNTER_PM) env.sink = found_sink(&found);
    must(counter_open(role, false, &env, &s));
    if (s->state.health != COUNTER_READY)
        must(err_set(ERR_UNAVAILABLE, "%s: %s", s->state.name, s->state.why));
    return s;
}

static void measure_spans(struct counter_source *act)
{
    must(counter_arm(act));
    must(counter_start(act));
    now.src[0] = act;
    now.nsrc = 1;
    for (now.rep = 0; now.rep < REPEAT; now.rep++) run_list(NULL);
    now.rep = now.nsrc = 0;
    must(counter_stop(act));
}

/* A window for each operator: a kernel's name alone doesn't tell which it belongs to. */
static void measure_stalls(struct counter_source *pc)
{
    must(counter_arm(pc));
    for (unsigned i = 0; i < nworks; i++) {
        must(counter_start(pc));
        for (uint64_t t0 = clock_mono_ns(); clock_mono_ns() - t0 < PC_NS;) run_work(&works[i]);
        must(counter_stop(pc));
    }
    must(counter_disarm(pc));
}

/* SM% over whole launches of kernel k, by PM samples and spans of one window. */
static double live_of(struct counter_source *pm, struct counter_source *act, struct oracle_work *w,
                      const char *name)
{
    struct found_joined j;
    const char *names[] = {name};
    double whole = NAN;
    if (!found_init(&found, names, 1, 4096, 8192)) return NAN;
    struct counter_sink keep = act->env.sink;
    act->env.sink = found_sink(&found);
    bool open = counter_start(pm) == OK;
    if (open && counter_start(act) != OK) {
        counter_stop(pm);
        while (counter_poll(pm) == OK) continue;
        open = false;
    }
    if (open) {
        now.src[0] = act;
        now.nsrc = 1;
        for (uint64_t t0 = clock_mono_ns(); clock_mono_ns() - t0 < PM_NS;) run_work(w);
        now.nsrc = 0;
        counter_stop(pm);
        counter_stop(act);
        while (counter_poll(pm) == OK) continue;
        found_join(&found, &j);
        whole = j.whole;
        free(j.sm);
    }
    act->env.sink = keep;
    found_free(&found);
    return whole;
}

static void measure_live(struct counter_source *pm, struct counter_source *act)
{
    if (counter_arm(pm) != OK) return;
    for (unsigned i = 0; i < nseen; i++) {
        struct seen *s = &seen[i];
        if (!s->wanted || !s->spans || s->ns / s->spans < (double)PM_LEAST_NS) continue;
        s->live = live_of(pm, act, (struct oracle_work *)s->w, kernels[s->kernel].name);
    }
    counter_disarm(pm);
}

static void measure_exact(struct counter_source *range)
{
    struct counter_config cfg = {.range_sets = METRIC_SET_ALL, .range_max = LIST_MAX * REPEAT};
    enum status more = ERR_AGAIN;
    must(counter_configure(range, &cfg));
    fprintf(stderr, "oracle: range: %s\n", range->state.detail);
    must(counter_arm(range));
    for (unsigned pass = 0; more == ERR_AGAIN && pass < 64; pass++) {
        must(counter_start(range));
        now.src[0] = range;
        now.nsrc = 1;
        for (unsigned i = 0; i < nworks; i++)
            for (now.rep = 0; now.rep < REPEAT; now.rep++) run_work(&works[i]);
        now.rep = now.nsrc = 0;
        more = counter_stop(range);
    }
    if (more != OK) must(more);
    must(counter_disarm(range));
}

/* ---- output ---- */

static void put_launch(FILE *f, unsigned i)
{
    const struct seen *s = &seen[i];
    fprintf(f, "launch\t%u\t%s\t%s\t%ux%ux%u\n", i, s->w->name, kernels[s->kernel].name, s->m, s->n,
            s->k);
}

static void put_values(FILE *f, unsigned i)
{
    const struct seen *s = &seen[i];
    const struct kernel_info *k = &kernels[s->kernel];
    fprintf(f, "value\t%u\tlaunch__registers_per_thread\t%u\n", i, k->regs);
    fprintf(f, "value\t%u\tlaunch__shared_mem_per_block_static\t%u\n", i, k->smem_static);
    fprintf(f, "value\t%u\tlaunch__shared_mem_per_block_dynamic\t%u\n", i, s->smem_dynamic);
    for (size_t m = 0; m < metric_count(); m++) {
        const struct metric *d = metric_at(m);
        char name[128];
        const struct repeats *r = &s->value[d->id];
        if (!r->n || !metric_candidate(d->range, 0, name, sizeof name)) continue;
        fprintf(f, "value\t%u\t%s\t%.15g\t%.6g\t%u\n", i, name, r->mean, repeats_sd(r), r->n);
    }
    for (unsigned r = 0; r < nreasons; r++)
        if (s->stall[r])
            fprintf(f, "stall\t%u\t%s\t%llu\n", i, reasons[r], (unsigned long long)s->stall[r]);
    if (isfinite(s->live)) fprintf(f, "live\t%u\t%.6g\n", i, s->live);
}

/* Of our side: every wanted launch with its values. Else the launches that ncu was shown. */
static int write_file(const char *path, bool values)
{
    FILE *f = fopen(path, "w");
    if (!f) must(err_set(ERR_IO, "can't write %s", path));
    for (unsigned i = 0; values && i < nseen; i++) {
        if (!seen[i].wanted) continue;
        put_launch(f, i);
        put_values(f, i);
    }
    for (unsigned i = 0; !values && i < nprofiled; i++) put_launch(f, profiled[i]);
    return fclose(f) ? EXIT_FAILED : EXIT_OK;
}

/* ---- modes ---- */

static int plain(const char *path)
{
    must(profiler_open());
    run_list(&nseen);
    for (unsigned i = 0; i < nworks; i++)
        for (unsigned rep = 0; rep < REPEAT; rep++) {
            now.profile = rep > 0;
            run_work(&works[i]);
        }
    return write_file(path, false);
}

static int own(const char *path)
{
    struct cupti_lib *lib;
    must(cupti_open(&lib));
    must(cupti_attach(lib, 0));
    struct counter_source *pc = open_source(lib, COUNTER_PC);
    must(pc_prime(pc, run_list, &nseen));
    struct counter_source *act = open_source(lib, COUNTER_ACTIVITY);
    struct counter_source *pm = open_source(lib, COUNTER_PM);
    struct counter_source *range = open_source(lib, COUNTER_RANGE);
    measure_spans(act);
    measure_stalls(pc);
    measure_live(pm, act);
    must(counter_disarm(act));
    measure_exact(range);
    int rc = write_file(path, true);
    counter_close(range);
    counter_close(pm);
    counter_close(act);
    counter_close(pc);
    return rc;
}

/* One group over the GEMMs of the list, once each: what a key has to wait for. */
static void cost_of(struct counter_source *range, const char *sets, uint32_t room)
{
    struct counter_config cfg = {.range_sets = metric_sets_parse(sets), .range_max = room};
    uint64_t t[6] = {clock_mono_ns()}, first = 0;
    unsigned passes = 0, launches = 0;
    enum status more = ERR_AGAIN;
    must(counter_configure(range, &cfg));
    t[1] = clock_mono_ns();
    must(counter_arm(range));
    t[2] = clock_mono_ns();
    for (; more == ERR_AGAIN && passes < 64; passes++) {
        uint64_t t0 = clock_mono_ns();
        must(counter_start(range));
        if (!passes) first = clock_mono_ns() - t0;
        now.src[0] = range;
        now.nsrc = 1;
        for (unsigned i = launches = 0; i < nworks && launches + works[i].count <= room; i++) {
            if (works[i].op.kind != OP_MATMUL || works[i].op.n == 1) continue;
            run_work(&works[i]);
            launches += works[i].count;
        }
        now.nsrc = 0;
        more = counter_stop(range);
    }
    t[3] = clock_mono_ns();
    if (more != OK) must(more);
    must(counter_disarm(range));
    t[4] = clock_mono_ns();
    printf("| %s | %u | %u | %u | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", sets, room,
           launches, passes, (double)(t[1] - t[0]) / 1e6, (double)(t[2] - t[1]) / 1e6,
           (double)first / 1e6, (double)(t[3] - t[2] - first) / 1e6, (double)(t[4] - t[3]) / 1e6,
           (double)(t[4] - t[0]) / 1e6);
}

/* As a session counts: nothing is flushed. */
static int cost(void)
{
    static const char *const sets[] = {"live",  "sol",    "live,sol", "stalls",
                                       "pipes", "memory", "all"};
    struct cupti_lib *lib;
    must(cupti_open(&lib));
    must(cupti_attach(lib, 0));
    now.warm = true;
    run_list(&nseen);
    struct counter_source *range = open_source(lib, COUNTER_RANGE);
    printf("| set | room | launches | passes | pack ms | arm ms | first start ms | passes ms | "
           "disarm ms "
           "| in all ms |\n|---|---|---|---|---|---|---|---|---|---|\n");
    for (unsigned i = 0; i < sizeof sets / sizeof sets[0]; i++) cost_of(range, sets[i], 32);
    for (uint32_t room = 16; room <= 1024; room *= 4) cost_of(range, "live,sol", room);
    counter_close(range);
    return EXIT_OK;
}

/* Without arguments: that every wanted launch is found again and has instructions. */
static int self_test(void)
{
    char path[] = "/tmp/sasstop-oracle-XXXXXX", line[256];
    int fd = mkstemp(path), launches = 0, counted = 0;
    if (fd < 0) must(err_set(ERR_IO, "can't make a file in /tmp"));
    int rc = own(path);
    FILE *f = fdopen(fd, "r");
    while (f && fgets(line, sizeof line, f)) {
        launches += !strncmp(line, "launch\t", 7);
        counted += strstr(line, "smsp__inst_executed.sum") != NULL;
    }
    if (f) fclose(f);
    remove(path);
    bool ok = rc == EXIT_OK && launches >= 12 && counted == launches;
    printf("%s every wanted launch is counted: %d of %d\n", ok ? "ok  " : "FAIL", counted,
           launches);
    printf("%d passed, %d failed, 0 skipped\n", ok, !ok);
    return ok ? EXIT_OK : EXIT_FAILED;
}

static void unwilling(const char *why)
{
    printf("skip oracle: %s\n0 passed, 0 failed, 1 skipped\n", why);
    exit(EXIT_OK);
}

int main(int argc, char **argv)
{
    struct backend_options o = {.max_tokens = ORACLE_TOKENS,
                                .context = ORACLE_CONTEXT,
                                .hooks = {NULL, on_launch, on_launched, NULL}};
    struct model *m = NULL;
    struct buffer unused;
    size_t first = argc > 3 ? strtoul(argv[3], NULL, 10) << 20 : 0;
    uint32_t dims[] = {ORACLE_KV_DIM};
    bool costs = argc == 2 && !strcmp(argv[1], "--cost"), test = argc < 3 && !costs;
    enum status st = cuda_backend.open(&o, &gpu);
    if (st != OK && test) unwilling(err_msg());
    must(st);
    must(model_open("synth:tiny", &m));
    /* Which memory a kernel's data lies in sets some of its figures as long as the process lives:
     * processes that all take the same pages would be one sample. */
    if (first) must(cuda_backend.alloc(gpu, first, &unused));
    must(cuda_backend.load(gpu, m, NULL, NULL));
    must(cuda_backend.kv_init(gpu, 1, dims));
    cuda_backend.kernels(gpu, &kernels);
    if (!costs) st = oracle_flush_open(gpu, argv[0]);
    if (st != OK && test) unwilling(err_msg());
    must(st);
    must(oracle_works(gpu, works, &nworks));
    int rc = costs                         ? cost()
             : test                        ? self_test()
             : !strcmp(argv[1], "--own")   ? own(argv[2])
             : !strcmp(argv[1], "--plain") ? plain(argv[2])
                                           : EXIT_USAGE;
    cuda_backend.close(gpu);
    model_close(m);
    return rc;
}
