/*
 * Ceilings; see ceilings.h. Each kernel is launched once to load it and once for its time; one of
 * arithmetic, with as much work as takes LAUNCH_NS, until that time settles. Then LAUNCHES times,
 * each between two events; the figure is the median, its spread the interquartile range. Nothing
 * else runs on the GPU meanwhile but what other processes do.
 *
 * To add one: a kernel in kernels/ops/ceiling*.cu and a row in `probes`.
 */
#include "engine/ceilings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/driver.h"
#include "base/median.h"
#include "base/value.h"
#include "engine/emit.h"
#include "kernels/launch.h"

enum {
    LAUNCHES = 15,
    SETTLES = 32,
    FIRST_ROUNDS = 256,
    ROUNDS_MAX = 1 << 20,
    BLOCKS_PER_SM = 4,
    MIB = 1 << 20,
    BUFFER_MAX_MIB = 256,
    BUFFER_MIN_MIB = 16,
};

static const double LAUNCH_NS = 4e6, STEADY = 0.002;

enum probe_kind { PROBE_READ, PROBE_COPY, PROBE_ROUNDS };

/* `work`: what a warp (wgmma: a group of four) does in a round. */
static const struct probe {
    const char *key, *kernel, *unit;
    enum probe_kind kind;
    uint32_t block, warps; /* warps: of what `work` is said */
    double work;
} probes[] = {
    {"dram_read", "ceiling_read", "B/s", PROBE_READ, 512, 0, 0},
    {"dram_copy", "ceiling_copy", "B/s", PROBE_COPY, 512, 0, 0},
    {"int8_mma", "ceiling_s8", "MAC/s", PROBE_ROUNDS, 256, 1, 8.0 * 16 * 8 * 32},
    {"bf16_mma", "ceiling_bf16", "MAC/s", PROBE_ROUNDS, 256, 1, 8.0 * 16 * 8 * 16},
    {"int8_wgmma", "ceiling_wgmma_s8", "MAC/s", PROBE_ROUNDS, 128, 4, 16.0 * 64 * 128 * 32},
    {"bf16_wgmma", "ceiling_wgmma_bf16", "MAC/s", PROBE_ROUNDS, 128, 4, 16.0 * 64 * 128 * 16},
    {"issue", "ceiling_issue", "inst/s", PROBE_ROUNDS, 256, 1, 256},
};
enum { NPROBES = sizeof probes / sizeof *probes };

struct lab {
    const struct driver *d;
    struct drv_stream *stream;
    struct registry *reg;
    struct launcher *launcher;
    struct drv_event *start, *end;
    drv_ptr from, to, sink;
    size_t bytes; /* of `from` and of `to` */
    uint32_t sms;
};

static enum status alloc(struct lab *l, uint64_t l2_bytes)
{
    size_t free_bytes = 0, total = 0;
    enum status st = driver_check(l->d, l->d->MemGetInfo(&free_bytes, &total), "free memory");
    size_t most = (size_t)BUFFER_MAX_MIB * MIB;
    if (st != OK) return st;
    l->bytes = free_bytes / 4 < most ? free_bytes / 4 / MIB * MIB : most;
    if (l->bytes < (size_t)BUFFER_MIN_MIB * MIB || l->bytes < 2 * l2_bytes)
        return err_set(ERR_LIMIT, "%zu MiB of GPU memory are free: too few to leave the L2 behind",
                       free_bytes / MIB);
    st = driver_check(l->d, l->d->MemAlloc(&l->from, l->bytes), "memory for the DRAM ceiling");
    if (st == OK)
        st = driver_check(l->d, l->d->MemAlloc(&l->to, l->bytes), "memory for the DRAM ceiling");
    if (st == OK) st = driver_check(l->d, l->d->MemsetD8(l->from, 0x5a, l->bytes), "filling it");
    return st;
}

static enum status lab_open(struct lab *l, struct engine *e)
{
    struct registry_options ro = {.sm = (int)e->limits.sm};
    enum status st = registry_open(&ro, &l->reg);
    l->d = e->bo->driver(e->b);
    l->stream = e->bo->stream(e->b);
    l->sms = e->limits.sms;
    if (st == OK) st = launcher_open(&l->launcher, l->d, 0, l->reg);
    if (st == OK) st = driver_check(l->d, l->d->EventCreate(&l->start, DRV_EVENT_DEFAULT), "event");
    if (st == OK) st = driver_check(l->d, l->d->EventCreate(&l->end, DRV_EVENT_DEFAULT), "event");
    if (st == OK) st = driver_check(l->d, l->d->MemAlloc(&l->sink, 256), "memory");
    return st;
}

static void lab_close(struct lab *l)
{
    if (l->d) {
        if (l->from) l->d->MemFree(l->from);
        if (l->to) l->d->MemFree(l->to);
        if (l->sink) l->d->MemFree(l->sink);
        if (l->start) l->d->EventDestroy(l->start);
        if (l->end) l->d->EventDestroy(l->end);
    }
    launcher_close(l->launcher);
    registry_close(l->reg);
}

/* Launches and waits; ns by the events. */
static enum status run_once(struct lab *l, const struct probe *p, const struct variant *v,
                            int rounds, double *ns)
{
    uint64_t words = l->bytes / 16;
    void *memory[] = {&l->from, &words, p->kind == PROBE_READ ? &l->sink : &l->to};
    void *plain[] = {&rounds, &l->sink};
    const uint32_t grid[3] = {l->sms * BLOCKS_PER_SM, 1, 1};
    float ms = 0;
    enum status st = driver_check(l->d, l->d->EventRecord(l->start, l->stream), "event");
    if (st == OK)
        st = launcher_run_plain(l->launcher, v, grid, p->block, -1,
                                p->kind == PROBE_ROUNDS ? plain : memory, l->stream);
    if (st == OK) st = driver_check(l->d, l->d->EventRecord(l->end, l->stream), "event");
    if (st == OK) st = driver_check(l->d, l->d->EventSynchronize(l->end), p->kernel);
    if (st == OK)
        st = driver_check(l->d, l->d->EventElapsedTime(&ms, l->start, l->end), "event times");
    *ns = (double)ms * 1e6;
    if (st == OK && !(*ns > 0)) st = err_set(ERR_FAILED, "%s took no time", p->kernel);
    return st;
}

/* Bytes, multiply-adds or instructions of one launch. */
static double work_of(const struct lab *l, const struct probe *p, int rounds)
{
    if (p->kind == PROBE_READ) return (double)l->bytes;
    if (p->kind == PROBE_COPY) return 2.0 * (double)l->bytes;
    double groups = (double)l->sms * BLOCKS_PER_SM * (p->block / 32.0 / p->warps);
    return groups * p->work * rounds;
}

/* Until the clock has found its level under this load: twice the same time within STEADY. */
static enum status settle(struct lab *l, const struct probe *p, const struct variant *v, int rounds)
{
    double last = 0, ns = 0;
    int same = 0;
    enum status st = OK;

    for (int i = 0; i < SETTLES && same < 2 && st == OK; i++) {
        st = run_once(l, p, v, rounds, &ns);
        same = fabs(ns - last) < STEADY * ns ? same + 1 : 0;
        last = ns;
    }
    return st;
}

static enum status measure(struct lab *l, const struct probe *p, const struct variant *v,
                           struct msg_ceiling *m)
{
    double rate[LAUNCHES], ns = 0;
    int rounds = FIRST_ROUNDS;
    enum status st = run_once(l, p, v, rounds, &ns); /* loads the code */

    if (st == OK) st = run_once(l, p, v, rounds, &ns);
    if (st == OK && p->kind == PROBE_ROUNDS) {
        double want = rounds * LAUNCH_NS / ns;
        rounds = want > ROUNDS_MAX ? ROUNDS_MAX : want < FIRST_ROUNDS ? FIRST_ROUNDS : (int)want;
        st = settle(l, p, v, rounds);
    }
    for (int i = 0; i < LAUNCHES && st == OK; i++) {
        st = run_once(l, p, v, rounds, &ns);
        rate[i] = work_of(l, p, rounds) / ns * 1e9;
    }
    if (st != OK) return st;
    m->state = VALUE_OK;
    m->v = median_iqr(rate, LAUNCHES, &m->spread);
    m->n = LAUNCHES;
    return OK;
}

/* One probe, sent whatever comes of it. What breaks the device ends the measurement: its status. */
static enum status probe_one(struct engine *e, struct lab *l, const struct probe *p, bool memory)
{
    struct msg_ceiling m = {.state = VALUE_UNAVAILABLE, .spread = -1};
    const struct variant *v = registry_find(l->reg, p->kernel);
    enum status st = OK;

    snprintf(m.key, sizeof m.key, "%s", p->key);
    snprintf(m.unit, sizeof m.unit, "%s", p->unit);
    snprintf(m.source, sizeof m.source, "events");
    if (!v)
        snprintf(m.why, sizeof m.why, "no kernel %s for sm_%u is built", p->kernel, e->limits.sm);
    else if (p->kind != PROBE_ROUNDS && !memory)
        snprintf(m.why, sizeof m.why, "not enough free GPU memory");
    else if ((st = measure(l, p, v, &m)) != OK)
        snprintf(m.why, sizeof m.why, "%.119s", err_msg());
    emit_send(e->emit, FRAME_CEILING, &m);
    return st == ERR_FAILED ? st : OK;
}

enum status ceilings_measure(struct engine *e, char *text, size_t size)
{
    struct lab l = {0};
    enum status st;

    if (!e->bo->driver || !e->bo->driver(e->b))
        return err_set(ERR_UNAVAILABLE, "ceilings are a GPU's; this engine runs on the CPU");
    if ((st = lab_open(&l, e)) != OK) goto out;
    enum status memory = alloc(&l, e->limits.l2_bytes);
    if (memory != OK) emit_log(e->emit, 1, "no DRAM ceiling: %s", err_msg());
    for (int i = 0; i < NPROBES && st == OK; i++) {
        engine_progress(e, "counters", (uint32_t)i, NPROBES);
        st = probe_one(e, &l, &probes[i], memory == OK);
    }
    if (st == OK) snprintf(text, size, "ceilings measured: the detail view has the roofline");
out:
    lab_close(&l);
    return st;
}
