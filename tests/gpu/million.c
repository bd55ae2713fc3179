/*
 * Kernel activity at length, on a GPU: a million tiny launches in one window, each with its own
 * span and in order, out of a bounded pool; graph launches whose nodes are told apart; accounts
 * that add up when CUPTI's own pool of device buffers is made small. Ends "N passed, N failed, N
 * skipped".
 *
 *   million [--launches N] [--pool N]    pool: device buffers that CUPTI may use, 0 = its own limit
 *
 * The tiny kernel adds 1 to a counter in device memory, so what ran is known without CUPTI.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cupti/counter.h"
#include "cupti/lib.h"
#include "tests/lib/stand_in.h"

enum { GRAPH_NODES = 300, GRAPH_LAUNCHES = 3000, POOL_ATTRIBUTE = 2, PLAIN = 100000 };

static struct seen {
    uint64_t spans, next, misplaced, unnamed, nodes_wrong;
    uint64_t nodes[GRAPH_NODES]; /* graph node ids in order of first sight */
    unsigned nnodes;
    struct counter_window w;
} seen;
static int passed, failed;

static void check(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void check(bool ok, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("%s ", ok ? "ok  " : "FAIL");
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    ok ? passed++ : failed++;
}

static void skip(const char *why)
{
    printf("skip million: %s\n0 passed, 0 failed, 1 skipped\n", why);
    exit(EXIT_OK);
}

/* Nodes of a graph come in the order in which they run: the n-th span of a launch is its node n. */
static void note_node(const struct counter_span *s)
{
    uint64_t at = (seen.spans - 1) % GRAPH_NODES;
    if (seen.nnodes < GRAPH_NODES && at == seen.nnodes)
        seen.nodes[seen.nnodes++] = s->graph_node;
    else if (seen.nodes[at] != s->graph_node)
        seen.nodes_wrong++;
}

static void on_span(void *user, const struct counter_span *s)
{
    (void)user;
    seen.spans++;
    if (!s->tag)
        seen.unnamed++;
    else if (s->tag != ++seen.next)
        seen.misplaced++, seen.next = s->tag;
    if (s->graph) note_node(s);
}

static void on_window(void *user, const struct counter_window *w)
{
    (void)user;
    seen.w = *w;
}

static void must(enum status st)
{
    if (st == OK) return;
    fprintf(stderr, "million: %s\n", err_msg());
    exit(err_exit_code(st));
}

static int count_of(struct stand_in *w)
{
    int n = -1;
    must(driver_check(w->d, w->d->StreamSynchronize(w->stream), "waiting"));
    must(driver_check(w->d, w->d->MemcpyDtoH(&n, w->count, sizeof n), "counter"));
    return n;
}

static void say_window(const char *what, uint64_t ns, uint64_t launches)
{
    const struct counter_window *w = &seen.w;
    printf("     %s: %llu launches, %.3f us each; %llu spans, %llu dropped, %llu without times; "
           "%u overhead records, %.2f ms; reading %.2f s\n",
           what, (unsigned long long)launches, (double)ns / 1e3 / (double)launches,
           (unsigned long long)w->items, (unsigned long long)w->dropped,
           (unsigned long long)w->invalid, w->overheads, (double)w->overhead_ns / 1e6,
           (double)w->decode_ns / 1e9);
}

/* Whatever is lost or of no use is counted: nothing is missing without a word. CUPTI counts what it
 * drops over all kinds of records, those of its overhead too. */
static void check_account(const char *what, uint64_t launches)
{
    uint64_t known = seen.w.items + seen.w.invalid, sum = known + seen.w.dropped;
    check(seen.w.dropped ? known < launches && sum >= launches : known == launches,
          "%s: spans, drops and records without times are %llu of %llu launches", what,
          (unsigned long long)sum, (unsigned long long)launches);
}

static void plain(struct stand_in *w, struct counter_source *src, uint64_t launches)
{
    int before = count_of(w);
    memset(&seen, 0, sizeof seen);
    must(counter_start(src));
    uint64_t t0 = clock_mono_ns();
    for (uint64_t i = 1; i <= launches; i++) {
        struct counter_launch l = {.tag = i, .kernel = stand_in_names[STAND_IN_TINY]};
        counter_launch_begin(src, &l);
        stand_in_launch(w, STAND_IN_TINY);
        counter_launch_end(src, &l);
    }
    int ran = count_of(w) - before;
    uint64_t ns = clock_mono_ns() - t0;
    must(counter_stop(src));
    say_window("plain", ns, launches);
    check((uint64_t)ran == launches, "%d launches ran", ran);
    check_account("plain", launches);
    if (!seen.w.dropped)
        check(seen.unnamed == 0 && seen.misplaced == 0, "every span knows its launch: %llu don't",
              (unsigned long long)(seen.unnamed + seen.misplaced));
}

static struct drv_graph_exec *make_graph(struct stand_in *w)
{
    struct drv_graph *g;
    struct drv_graph_exec *x;
    must(driver_check(w->d, w->d->StreamBeginCapture(w->stream, DRV_CAPTURE_THREAD_LOCAL),
                      "capture"));
    for (int i = 0; i < GRAPH_NODES; i++) stand_in_launch(w, STAND_IN_TINY);
    must(driver_check(w->d, w->d->StreamEndCapture(w->stream, &g), "capture"));
    must(driver_check(w->d, w->d->GraphInstantiate(&x, g, 0), "graph"));
    must(driver_check(w->d, w->d->GraphDestroy(g), "graph"));
    return x;
}

static void graphs(struct stand_in *w, struct counter_source *src)
{
    struct drv_graph_exec *x = make_graph(w);
    uint64_t launches = (uint64_t)GRAPH_LAUNCHES * GRAPH_NODES, tag = 0;
    int before = count_of(w);
    memset(&seen, 0, sizeof seen);
    must(counter_start(src));
    uint64_t t0 = clock_mono_ns();
    for (int i = 0; i < GRAPH_LAUNCHES; i++) {
        struct counter_launch l = {.kernel = stand_in_names[STAND_IN_TINY]};
        for (int k = 0; k < GRAPH_NODES; k++) {
            l.tag = ++tag;
            counter_launch_begin(src, &l);
        }
        must(driver_check(w->d, w->d->GraphLaunch(x, w->stream), "graph"));
        counter_launch_end(src, &l);
    }
    int ran = count_of(w) - before;
    uint64_t ns = clock_mono_ns() - t0;
    must(counter_stop(src));
    say_window("graphs", ns, launches);
    check((uint64_t)ran == launches, "%d nodes ran", ran);
    check_account("graphs", launches);
    if (!seen.w.dropped && !seen.w.invalid) {
        check(seen.unnamed == 0 && seen.misplaced == 0, "every node's span knows its launch");
        check(seen.nnodes == GRAPH_NODES && seen.nodes_wrong == 0,
              "nodes are told apart: %u ids, %llu out of place", seen.nnodes,
              (unsigned long long)seen.nodes_wrong);
    }
    w->d->GraphExecDestroy(x);
}

static double plain_us(struct stand_in *w)
{
    for (int i = 0; i < 1000; i++) stand_in_launch(w, STAND_IN_TINY);
    count_of(w);
    uint64_t t0 = clock_mono_ns();
    for (int i = 0; i < PLAIN; i++) stand_in_launch(w, STAND_IN_TINY);
    count_of(w);
    return (double)(clock_mono_ns() - t0) / 1e3 / PLAIN;
}

static void limit_pool(const struct cupti_lib *lib, size_t pool)
{
    size_t size = sizeof pool;
    if (!pool) return;
    must(cupti_check(lib, lib->activity_attribute(POOL_ATTRIBUTE, &size, &pool), "pool limit"));
    printf("     CUPTI may use %zu device buffers\n", pool);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"launches", 1, NULL, 'l'}, {"pool", 1, NULL, 'p'}, {NULL, 0, NULL, 0}};
    uint64_t launches = 1000000;
    size_t pool = 0;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == '?') return EXIT_USAGE;
        *(c == 'l' ? &launches : (uint64_t *)&pool) = strtoull(optarg, NULL, 10);
    }
    char cubin[600];
    const char *slash = strrchr(argv[0], '/');
    snprintf(cubin, sizeof cubin, "%.*sschedule.sm_90a.cubin",
             slash ? (int)(slash - argv[0] + 1) : 0, argv[0]);
    struct stand_in w;
    struct cupti_lib *lib;
    struct counter_source *src;
    if (stand_in_open(&w, cubin) != OK) skip(err_msg());
    double before = plain_us(&w);
    if (cupti_open(&lib) != OK || cupti_attach(lib, w.dev) != OK) skip(err_msg());
    limit_pool(lib, pool);
    struct counter_env env = {.lib = lib,
                              .driver = w.d,
                              .ctx = w.ctx,
                              .stream = w.stream,
                              .sink = {.span = on_span, .window = on_window}};
    struct counter_config cfg = {.spans_max = 1 << 20};
    must(counter_open(COUNTER_ACTIVITY, false, &env, &src));
    if (src->state.health != COUNTER_READY) skip(src->state.why);
    must(counter_configure(src, &cfg));
    must(counter_arm(src));
    plain(&w, src, launches);
    graphs(&w, src);
    plain(&w, src, 1000); /* and a short one after them */
    must(counter_disarm(src));
    counter_close(src);
    printf("     a launch: %.3f us before CUPTI, %.3f us after activity was switched off\n", before,
           plain_us(&w));
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed ? EXIT_FAILED : EXIT_OK;
}
