/*
 * The bench of kcheck; see bench.h.
 *
 * A batch is one CUDA graph of back-to-back launches of about BATCH_US, so that the host's launch
 * cost does not enter. Cold batches rotate activations and weights over several times the L2, so
 * that none is found there; hot ones use the same bytes again and again. The variant and the one it
 * is held against take turns in alternating order, block by block, so that a drift of the clock
 * meets both. First come warm-up blocks; the rest end when both spreads are small, or at a limit.
 * Nothing is counted while timing.
 */
#include "kernels/kcheck/bench.h"

#include "base/clock.h"
#include "base/median.h"
#include "kernels/kcheck/nvml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MIN = 9,
    BLOCKS_MAX = 60,
    BLOCKS_MS = 1500, /* of one series */
    WARM = 3,
    BATCH_US = 10000,
    QUICK_BLOCKS_MAX = 21,
    QUICK_BATCH_US = 3000,
    LAUNCHES_MAX = 4096,
    COPIES_MAX = 4096,
    L2_TIMES = 4,
};

/* One variant ready to be timed. */
struct lane {
    const struct variant *v;
    struct gpu_case c;
    drv_ptr a, b; /* `copies` of each, a_step and b_step bytes apart */
    size_t a_step, b_step;
    int copies, launches;
    struct drv_graph_exec *cold, *hot;
};

struct bench {
    struct gpu *g;
    const struct check_job *job;
    struct lane lane[2]; /* the variant, and what it is held against */
    int lanes;
    struct drv_event *start, *end;
    struct nvml nvml;
};

/* ---- figures ---- */

bool bench_settled(const double *v, int n)
{
    double sorted[BLOCKS_MAX], median, iqr;
    if (n < BLOCKS_MIN || n > BLOCKS_MAX) return false;
    memcpy(sorted, v, (size_t)n * sizeof *v);
    median = median_iqr(sorted, (size_t)n, &iqr);
    return iqr <= 0.01 * median;
}

/* ---- one lane ---- */

static enum status launch(struct bench *b, struct lane *l, int copy)
{
    struct gpu *g = b->g;
    drv_ptr x = l->a + (size_t)copy * l->a_step, w = l->b + (size_t)copy * l->b_step;
    drv_ptr y = l->c.y + CHECK_GUARD_BYTES;
    void *args[] = {&w, &x, &y, &l->c.shape.m, &l->c.shape.n, &l->c.shape.k};
    struct launch_options opt = {.strict = true, .force_blocks_per_sm = b->job->blocks};
    return launcher_run(g->launcher, l->v, &l->c.shape, &opt, args, g->stream, &l->c.plan);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 64 + 255) & ~(size_t)255;
}

static enum status copy_all(struct gpu *g, drv_ptr *to, size_t step, int copies, drv_ptr from,
                            size_t bytes)
{
    const struct driver *d = g->drv;
    enum status st = driver_check(d, d->MemAlloc(to, (size_t)copies * step), "copies of inputs");
    for (int i = 0; st == OK && i < copies; i++)
        st = driver_check(d, d->MemcpyDtoD(*to + (size_t)i * step, from, bytes), "copy");
    return st;
}

static enum status rotate_inputs(struct gpu *g, struct lane *l)
{
    const struct driver *d = g->drv;
    size_t l2 = (size_t)driver_attribute(d, g->dev, DRV_DEV_L2_BYTES, 64 << 20);
    l->a_step = aligned(l->c.a_bytes);
    l->b_step = aligned(l->c.b_bytes);
    size_t copies = L2_TIMES * l2 / (l->c.a_bytes + l->c.b_bytes) + 1;
    l->copies = copies > COPIES_MAX ? COPIES_MAX : (int)copies;
    enum status st = copy_all(g, &l->a, l->a_step, l->copies, l->c.a, l->c.a_bytes);
    if (st == OK) st = copy_all(g, &l->b, l->b_step, l->copies, l->c.b, l->c.b_bytes);
    if (st == OK) st = driver_check(d, d->CtxSynchronize(), "copy");
    return st;
}

static enum status make_graph(struct bench *b, struct lane *l, bool cold,
                              struct drv_graph_exec **out)
{
    struct gpu *g = b->g;
    const struct driver *d = g->drv;
    struct drv_graph *graph = NULL;
    enum status st =
        driver_check(d, d->StreamBeginCapture(g->stream, DRV_CAPTURE_THREAD_LOCAL), "capture");
    if (st != OK) return st;
    for (int i = 0; st == OK && i < l->launches; i++) st = launch(b, l, cold ? i % l->copies : 0);
    drv_result r = d->StreamEndCapture(g->stream, &graph);
    if (st == OK) st = driver_check(d, r, "capture");
    if (st == OK) st = driver_check(d, d->GraphInstantiate(out, graph, 0), "graph");
    if (graph) d->GraphDestroy(graph);
    return st;
}

/* Microseconds of a launch: of a graph, or of a single launch when exec is NULL. */
static enum status time_us(struct bench *b, struct lane *l, struct drv_graph_exec *exec, double *us)
{
    const struct driver *d = b->g->drv;
    float ms = 0;
    enum status st = driver_check(d, d->EventRecord(b->start, b->g->stream), "event");
    if (st == OK && exec) st = driver_check(d, d->GraphLaunch(exec, b->g->stream), "graph");
    if (st == OK && !exec) st = launch(b, l, 0);
    if (st == OK) st = driver_check(d, d->EventRecord(b->end, b->g->stream), "event");
    if (st == OK) st = driver_check(d, d->EventSynchronize(b->end), l->v->kernel);
    if (st == OK) st = driver_check(d, d->EventElapsedTime(&ms, b->start, b->end), "event");
    if (st == OK && !(ms > 0)) st = err_set(ERR_FAILED, "the device's events give no time");
    *us = 1000.0 * ms / (exec ? l->launches : 1);
    return st;
}

static enum status lane_open(struct bench *b, struct lane *l, const struct variant *v,
                             const struct shape *s)
{
    struct family_inputs in = {0};
    double once = 0;
    l->v = v;
    enum status st = gpu_case_open(b->g, &l->c, v, s);
    if (st == OK) st = l->c.fam->make_inputs(s, INPUT_RANDOM, 1, &in);
    if (st == OK) st = gpu_case_upload(b->g, &l->c, &in);
    family_inputs_free(&in);
    if (st == OK) st = rotate_inputs(b->g, l);
    if (st == OK) st = time_us(b, l, NULL, &once);
    if (st == OK) st = time_us(b, l, NULL, &once);
    if (st != OK) return st;
    int n = (int)((b->job->quick ? QUICK_BATCH_US : BATCH_US) / (once > 1 ? once : 1));
    if (n < l->copies) n = l->copies; /* a cold batch meets every copy */
    l->launches = n < 2 ? 2 : n > LAUNCHES_MAX ? LAUNCHES_MAX : n;
    st = make_graph(b, l, true, &l->cold);
    if (st == OK) st = make_graph(b, l, false, &l->hot);
    return st;
}

static void lane_close(struct gpu *g, struct lane *l)
{
    const struct driver *d = g->drv;
    if (l->cold) d->GraphExecDestroy(l->cold);
    if (l->hot) d->GraphExecDestroy(l->hot);
    if (l->a) d->MemFree(l->a);
    if (l->b) d->MemFree(l->b);
    if (l->v) gpu_case_close(g, &l->c);
}

/* ---- series ---- */

struct series {
    double us[2][BLOCKS_MAX];
    int n;
};

/* Blocks of one batch of each lane, the order changing from block to block. */
static enum status run_blocks(struct bench *b, bool cold, struct series *s)
{
    enum status st = OK;
    uint64_t end = clock_mono_ns() + (uint64_t)BLOCKS_MS * 1000000u * (uint64_t)b->lanes;
    const int most = b->job->quick ? QUICK_BLOCKS_MAX : BLOCKS_MAX;
    s->n = 0;
    for (int block = -WARM; st == OK && s->n < most; block++) {
        for (int i = 0; st == OK && i < b->lanes; i++) {
            int at = (block & 1) && b->lanes == 2 ? 1 - i : i;
            struct lane *l = &b->lane[at];
            st = time_us(b, l, cold ? l->cold : l->hot, &s->us[at][s->n]);
        }
        if (st != OK || block < 0) continue;
        s->n++;
        bool settled = true;
        for (int i = 0; i < b->lanes; i++) settled &= bench_settled(s->us[i], s->n);
        if (settled || (s->n >= BLOCKS_MIN && clock_mono_ns() > end)) break;
    }
    return st;
}

static void ratio_of(const struct series *s, struct bench_figures *out)
{
    double r[BLOCKS_MAX];
    for (int i = 0; i < s->n; i++) r[i] = s->us[1][i] / s->us[0][i];
    out->ratio = median_iqr(r, (size_t)s->n, &out->ratio_iqr);
}

static enum status measure(struct bench *b, struct bench_figures *out)
{
    struct series s;
    struct nvml_reading clocks;
    const struct lane *l = &b->lane[0];
    enum status st = run_blocks(b, false, &s);
    if (st != OK) return st;
    out->hot_us = median_iqr(s.us[0], (size_t)s.n, &out->hot_iqr);
    nvml_read(&b->nvml, &clocks);
    out->mhz_before = clocks.mhz;
    if ((st = run_blocks(b, true, &s)) != OK) return st;
    nvml_read(&b->nvml, &clocks);
    out->mhz_after = clocks.mhz;
    memcpy(out->throttle, clocks.throttle, sizeof out->throttle);
    if (b->lanes == 2) ratio_of(&s, out);
    out->us = median_iqr(s.us[0], (size_t)s.n, &out->iqr);
    out->n = (uint32_t)s.n;
    out->launches = (uint32_t)l->launches;
    out->rotated = (double)l->copies * (double)(l->c.a_bytes + l->c.b_bytes) /
                   driver_attribute(b->g->drv, b->g->dev, DRV_DEV_L2_BYTES, 64 << 20);
    if (out->mhz_before && out->mhz_after)
        out->cycles = out->us * 0.5 * (out->mhz_before + out->mhz_after);
    return OK;
}

enum status bench_shape(struct gpu *g, const struct check_job *job, const struct shape *s,
                        struct bench_figures *out)
{
    const struct driver *d = g->drv;
    const struct variant *v = job->variant, *against = job->against;
    struct bench b = {.g = g, .job = job, .lanes = against && against != v ? 2 : 1};
    *out = (struct bench_figures){0};
    nvml_open(&b.nvml, d, g->dev);
    enum status st = driver_check(d, d->EventCreate(&b.start, DRV_EVENT_DEFAULT), "event");
    if (st == OK) st = driver_check(d, d->EventCreate(&b.end, DRV_EVENT_DEFAULT), "event");
    if (st == OK) st = lane_open(&b, &b.lane[0], v, s);
    if (st == OK && b.lanes == 2) st = lane_open(&b, &b.lane[1], against, s);
    if (st == OK) st = measure(&b, out);
    if (st == OK && against == v) out->ratio = 1;
    if (st != OK) out->n = 0;
    for (int i = 0; i < 2; i++) lane_close(g, &b.lane[i]);
    if (b.start) d->EventDestroy(b.start);
    if (b.end) d->EventDestroy(b.end);
    return st;
}
