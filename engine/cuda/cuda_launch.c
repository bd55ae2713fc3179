/*
 * One launch of the CUDA backend: what the loop is told about it, its events, and what is said when
 * it goes wrong.
 *
 * A fault shows at the next synchronisation only. So the first launch of each kernel is waited for,
 * which names a kernel that faults (once, some microseconds); a later fault names the last launch
 * and the selected GEMM.
 */
#include "engine/cuda/cuda_priv.h"

#include "base/clock.h"
#include "sass_view/occupancy.h"

#include <stdlib.h>
#include <string.h>

enum status cuda_wait(struct backend *b)
{
    drv_result r = b->drv->StreamSynchronize(b->stream);
    b->in_flight = false;
    if (r == DRV_SUCCESS) return OK;
    return err_prefix(driver_check(b->drv, r, "a kernel of this step failed"),
                      "last launched: %s (%s), %s selected for q4k_gemm",
                      b->last_role ? b->last_role : "nothing",
                      b->last_kernel ? b->last_kernel : "-", b->gemm ? b->gemm->kernel : "none");
}

/* Warps of the blocks that the driver says fit; what binds them by the chip's limits, as long as
 * these give the same number. */
static void set_occupancy(const struct backend *b, const struct variant *v, uint32_t block,
                          uint32_t dyn, struct launch_info *i)
{
    const struct chip_limits *lim = chip_limits_find(launcher_limits(b->launcher)->sm);
    if (!lim || !i->blocks_per_sm) return;
    int smem = (v->static_smem > 0 ? v->static_smem : 0) + (int)dyn;
    struct occupancy o = occupancy_compute(lim, v->regs, smem, (int)block);
    i->warps_per_sm = i->blocks_per_sm * ((block + 31) / 32);
    i->max_warps = (uint32_t)lim->warps;
    if (o.blocks == (int)i->blocks_per_sm) i->limiter = occupancy_limit_name(o.limit);
}

static struct launch_info describe(struct backend *b, const struct cuda_launch *l,
                                   const struct variant *ran, const uint32_t grid[3],
                                   uint32_t block, uint32_t dyn)
{
    struct launch_info i = {.kernel = (uint32_t)ran->index,
                            .m = l->m,
                            .n = l->n,
                            .k = l->k,
                            .role = l->op->role,
                            .macs = l->macs,
                            .bytes = l->bytes,
                            .grid = {grid[0], grid[1], grid[2]},
                            .smem_dynamic = dyn};
    i.blocks_per_sm = cuda_blocks_per_sm(b, ran, block, dyn);
    set_occupancy(b, ran, block, dyn, &i);
    return i;
}

/* Blocks an SM that `pad_smem` more bytes a block leave; 0 = no padding asked for. */
static int padded_blocks(const struct backend *b, const struct variant *v)
{
    const struct device_limits *lim = launcher_limits(b->launcher);
    if (!b->o.pad_smem) return 0;
    size_t have = b->o.pad_smem + v->dyn_smem + (size_t)lim->smem_reserved;
    if (v->static_smem > 0) have += (size_t)v->static_smem;
    size_t blocks = (size_t)lim->smem_sm / have;
    return blocks ? (int)blocks : 1;
}

int cuda_forced_blocks(const struct backend *b, const struct variant *v)
{
    const struct device_limits *lim = launcher_limits(b->launcher);
    static const struct shape any = {256, 256, 256};
    struct launch_options opt = {.force_blocks_per_sm = (int)b->blocks};
    struct launch_plan plan;
    if (!b->blocks) return padded_blocks(b, v);
    return launch_plan_make(b->reg, lim, v, &any, &opt, &plan) == OK ? (int)b->blocks : 0;
}

static enum status run_gemm(struct backend *b, const struct cuda_launch *l,
                            const struct launch_options *opt)
{
    struct shape s = {(int)l->m, (int)l->n, (int)l->k};
    return launcher_run(b->launcher, l->v, &s, opt, l->args, b->stream, NULL);
}

static enum status plan_gemm(struct backend *b, const struct cuda_launch *l,
                             const struct launch_options *opt, struct launch_plan *plan)
{
    struct shape s = {(int)l->m, (int)l->n, (int)l->k};
    enum status st = launch_plan_make(b->reg, launcher_limits(b->launcher), l->v, &s, opt, plan);
    if (st == OK && plan->fell_back) memcpy(b->gemm_why, plan->why, sizeof b->gemm_why);
    return st;
}

static enum status plan_plain(const struct cuda_launch *l, struct launch_plan *plan)
{
    *plan =
        (struct launch_plan){.asked = l->v,
                             .ran = l->v,
                             .grid = {l->grid[0], l->grid[1], l->grid[2]},
                             .block = l->block,
                             .dyn_smem = l->dyn_smem < 0 ? l->v->dyn_smem : (uint32_t)l->dyn_smem};
    return OK;
}

/* ---- events ---- */

static enum status timed_slot(struct backend *b, struct cuda_timed **out)
{
    if (b->n_timed == b->cap_timed) {
        uint32_t cap = b->cap_timed ? b->cap_timed * 2 : 512;
        struct cuda_timed *t = realloc(b->timed, cap * sizeof *t);
        if (!t) return err_set(ERR_NOMEM, "out of memory for kernel times");
        b->timed = t;
        b->cap_timed = cap;
    }
    struct cuda_timed *t = &b->timed[b->n_timed];
    if (b->n_timed == b->events_made) {
        *t = (struct cuda_timed){0};
        drv_result r = b->drv->EventCreate(&t->start, DRV_EVENT_DEFAULT);
        if (r == DRV_SUCCESS) {
            r = b->drv->EventCreate(&t->end, DRV_EVENT_DEFAULT);
            if (r != DRV_SUCCESS) b->drv->EventDestroy(t->start);
        }
        if (r != DRV_SUCCESS) return driver_check(b->drv, r, "an event");
        b->events_made++;
    }
    b->n_timed++;
    *out = t;
    return OK;
}

enum status cuda_timing_start(struct backend *b, enum timing timing)
{
    b->timing = timing;
    b->n_timed = 0;
    /* Kernels overlap unless each is looked at by itself. */
    launcher_serial(b->launcher, timing != TIMING_NONE);
    if (timing != TIMING_LAUNCH) return OK;
    drv_result r = DRV_SUCCESS;
    if (!b->base) r = b->drv->EventCreate(&b->base, DRV_EVENT_DEFAULT);
    b->base_wall = clock_wall_ns();
    if (r == DRV_SUCCESS) r = b->drv->EventRecord(b->base, b->stream);
    return driver_check(b->drv, r, "an event");
}

static enum status event_ns(const struct backend *b, struct drv_event *from, struct drv_event *to,
                            uint64_t *ns)
{
    float ms = 0;
    enum status st = driver_check(b->drv, b->drv->EventElapsedTime(&ms, from, to), "kernel times");
    *ns = ms > 0 ? (uint64_t)((double)ms * 1e6 + 0.5) : 0;
    return st;
}

/* The stream has been waited for. */
enum status cuda_timing_tell(struct backend *b)
{
    const struct backend_hooks *h = &b->o.hooks;
    for (uint32_t i = 0; i < b->n_timed && h->on_time; i++) {
        const struct cuda_timed *t = &b->timed[i];
        uint64_t at, dur;
        enum status st = event_ns(b, b->base, t->start, &at);
        if (st == OK) st = event_ns(b, t->start, t->end, &dur);
        if (st != OK) return st;
        h->on_time(h->ctx, &t->info, b->base_wall + at, dur);
    }
    b->n_timed = 0;
    return OK;
}

void cuda_timing_free(struct backend *b)
{
    for (uint32_t i = 0; i < b->events_made; i++) {
        b->drv->EventDestroy(b->timed[i].start);
        b->drv->EventDestroy(b->timed[i].end);
    }
    if (b->base) b->drv->EventDestroy(b->base);
    free(b->timed);
    b->timed = NULL;
}

/* ---- the launch ---- */

static enum status enqueue(struct backend *b, const struct cuda_launch *l,
                           const struct launch_options *opt)
{
    if (l->gemm) return run_gemm(b, l, opt);
    return launcher_run_plain(b->launcher, l->v, l->grid, l->block, l->dyn_smem, l->args,
                              b->stream);
}

/* Around the launch: hooks or events, as the step's timing asks. */
static enum status measured(struct backend *b, const struct cuda_launch *l,
                            const struct launch_options *opt, const struct launch_plan *plan)
{
    const struct backend_hooks *h = &b->o.hooks;
    struct cuda_timed *t = NULL;
    struct launch_info info = describe(b, l, plan->ran, plan->grid, plan->block, plan->dyn_smem);
    if (plan->fell_back) {
        info.asked = plan->asked->kernel;
        info.why = b->gemm_why;
    }
    enum status st = OK;
    if (b->timing == TIMING_LAUNCH) {
        st = timed_slot(b, &t);
        if (st != OK) return st;
        t->info = info;
        st = driver_check(b->drv, b->drv->EventRecord(t->start, b->stream), "an event");
    } else if (h->on_launch) {
        h->on_launch(h->ctx, &info);
    }
    if (st == OK) st = enqueue(b, l, opt);
    if (st != OK) return st;
    if (t) return driver_check(b->drv, b->drv->EventRecord(t->end, b->stream), "an event");
    if (h->on_launched) h->on_launched(h->ctx, &info);
    return OK;
}

/* Waits for a kernel's first launch. */
static enum status prove(struct backend *b, const struct variant *v)
{
    if (b->proven[v->index] || b->capturing) return OK;
    enum status st =
        driver_check(b->drv, b->drv->StreamSynchronize(b->stream), "it ran and failed");
    if (st == OK) b->proven[v->index] = true;
    return st;
}

enum status cuda_launch(struct backend *b, const struct cuda_launch *l)
{
    struct launch_options opt = {.force_blocks_per_sm = l->gemm ? cuda_forced_blocks(b, l->v) : 0};
    struct launch_plan plan;
    b->last_role = l->op->role;
    b->last_kernel = l->v->kernel;
    enum status st = l->gemm ? plan_gemm(b, l, &opt, &plan) : plan_plain(l, &plan);
    if (st == OK) {
        b->last_kernel = plan.ran->kernel;
        b->in_flight = true;
        st = b->timing == TIMING_NONE ? enqueue(b, l, &opt) : measured(b, l, &opt, &plan);
    }
    if (st == OK) st = prove(b, plan.ran);
    if (st != OK) return err_prefix(st, "%s (%s)", l->op->role, b->last_kernel);
    return OK;
}
