/*
 * See serve.h. A batch is one CUDA graph of launches of about BATCH_US, so that the host's launch
 * cost doesn't enter; weights are rotated over L2_TIMES the L2, so that none is found there.
 */
#include "kernels/kcheck/serve.h"

#include "base/median.h"
#include "kernels/kcheck/gpu.h"
#include "kernels/kcheck/kcheck.h"
#include "kernels/kcheck/nvml.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARM = 1,
    TIMED = 3,
    BATCH_US = 15000,
    LAUNCHES_MAX = 512,
    COPIES_MAX = 256,
    L2_TIMES = 4,
    SMS_MAX = 1024,
    PAD = 64, /* weights may be read by whole words */
};

struct serve {
    const struct serve_options *o;
    struct gpu gpu;
    struct registry *reg;
    const struct variant *v, *probe;
    struct gpu_case c;
    struct nvml nvml;
    drv_ptr weights, clocks; /* clocks: {cycles, ns} of each SM, before and after */
    int copies, launches, sms, occupancy;
    struct drv_graph *graph;
    struct drv_graph_exec *exec;
    struct drv_event *start, *end;
};

struct timing {
    double cold_us, us, mhz; /* mhz: NAN = not known */
};

static enum status launch(struct serve *s, drv_ptr weights)
{
    drv_ptr y = s->c.y + CHECK_GUARD_BYTES;
    void *args[] = {&weights, &s->c.a, &y, &s->c.shape.m, &s->c.shape.n, &s->c.shape.k};
    struct launch_options opt = {.strict = true, .force_blocks_per_sm = s->o->blocks};
    return launcher_run(s->gpu.launcher, s->v, &s->c.shape, &opt, args, s->gpu.stream, &s->c.plan);
}

static enum status launches(struct serve *s, int n)
{
    enum status st = OK;
    for (int i = 0; st == OK && i < n; i++)
        st = launch(s, s->weights + (size_t)(i % s->copies) * s->c.b_bytes);
    return st;
}

static enum status batch_us(struct serve *s, double *us)
{
    const struct driver *d = s->gpu.drv;
    float ms = 0;
    enum status st = driver_check(d, d->EventRecord(s->start, s->gpu.stream), "event");
    if (st == OK && s->exec) st = driver_check(d, d->GraphLaunch(s->exec, s->gpu.stream), "graph");
    if (st == OK && !s->exec) st = launches(s, 1);
    if (st == OK) st = driver_check(d, d->EventRecord(s->end, s->gpu.stream), "event");
    if (st == OK) st = driver_check(d, d->EventSynchronize(s->end), s->v->kernel);
    if (st == OK) st = driver_check(d, d->EventElapsedTime(&ms, s->start, s->end), "event");
    *us = 1000.0 * ms / (s->exec ? s->launches : 1);
    return st;
}

static enum status make_graph(struct serve *s)
{
    const struct driver *d = s->gpu.drv;
    double once = 0;
    enum status st = batch_us(s, &once);
    if (st == OK) st = batch_us(s, &once);
    if (st != OK) return st;
    double n = BATCH_US / (once > 1 ? once : 1);
    s->launches = n < 2 ? 2 : n > LAUNCHES_MAX ? LAUNCHES_MAX : (int)n;
    st = driver_check(d, d->StreamBeginCapture(s->gpu.stream, DRV_CAPTURE_THREAD_LOCAL), "capture");
    if (st != OK) return st;
    enum status in = launches(s, s->launches);
    st = driver_check(d, d->StreamEndCapture(s->gpu.stream, &s->graph), "capture");
    if (in != OK) return in;
    if (st == OK) st = driver_check(d, d->GraphInstantiate(&s->exec, s->graph, 0), "graph");
    return st;
}

static enum status read_clocks(struct serve *s, int which)
{
    drv_ptr out = s->clocks + (size_t)which * 16 * (size_t)s->sms;
    const uint32_t grid[3] = {(uint32_t)s->sms, 1, 1};
    void *args[] = {&out, &s->sms};
    if (!s->probe) return OK;
    return launcher_run_plain(s->gpu.launcher, s->probe, grid, 32, 0, args, s->gpu.stream);
}

/* Median over the SMs that were read both times. */
static double clock_mhz(struct serve *s)
{
    const struct driver *d = s->gpu.drv;
    uint64_t t[SMS_MAX * 4];
    double mhz[SMS_MAX];
    int n = 0;
    size_t bytes = 32 * (size_t)s->sms;
    if (!s->probe || d->MemcpyDtoH(t, s->clocks, bytes) != DRV_SUCCESS) return (double)NAN;
    for (int i = 0; i < s->sms; i++) {
        const uint64_t *a = t + 2 * i, *b = t + 2 * (s->sms + i);
        if (a[1] && b[1] > a[1] && b[0] > a[0])
            mhz[n++] = 1000.0 * (double)(b[0] - a[0]) / (double)(b[1] - a[1]);
    }
    d->MemsetD8(s->clocks, 0, bytes);
    d->CtxSynchronize();
    return median_iqr(mhz, (size_t)n, NULL);
}

static enum status time_once(struct serve *s, struct timing *t)
{
    double us[TIMED], warm;
    enum status st = batch_us(s, &t->cold_us);
    for (int i = 0; st == OK && i < WARM; i++) st = batch_us(s, &warm);
    if (st == OK) st = read_clocks(s, 0);
    for (int i = 0; st == OK && i < TIMED; i++) st = batch_us(s, &us[i]);
    if (st == OK) st = read_clocks(s, 1);
    if (st == OK)
        st = driver_check(s->gpu.drv, s->gpu.drv->StreamSynchronize(s->gpu.stream), "clocks");
    if (st != OK) return st;
    t->us = median_iqr(us, TIMED, NULL);
    t->mhz = clock_mhz(s);
    return OK;
}

/* ---- setting up ---- */

static enum status copy_weights(struct serve *s)
{
    const struct driver *d = s->gpu.drv;
    size_t l2 = (size_t)driver_attribute(d, s->gpu.dev, DRV_DEV_L2_BYTES, 64 << 20);
    size_t copies = L2_TIMES * l2 / s->c.b_bytes + 1;
    s->copies = copies > COPIES_MAX ? COPIES_MAX : (int)copies;
    enum status st =
        driver_check(d, d->MemAlloc(&s->weights, (size_t)s->copies * s->c.b_bytes + PAD),
                     "copies of the weights");
    for (int i = 0; st == OK && i < s->copies; i++)
        st = driver_check(
            d, d->MemcpyDtoD(s->weights + (size_t)i * s->c.b_bytes, s->c.b, s->c.b_bytes), "copy");
    if (st == OK) st = driver_check(d, d->CtxSynchronize(), "copy");
    return st;
}

static enum status find_kernel(struct serve *s)
{
    struct registry_options ro = {.dir = s->o->cubins,
                                  .sm = s->gpu.sm,
                                  .include_broken = !strncmp(s->o->kernel, "broken_", 7)};
    enum status st = registry_open(&ro, &s->reg);
    if (st != OK) return st;
    s->v = registry_find(s->reg, s->o->kernel);
    s->probe = registry_find(s->reg, "clock_probe");
    if (s->v) return OK;
    return err_set(ERR_USAGE, "no kernel %s in %s; kcheck --list shows what is there", s->o->kernel,
                   registry_dir(s->reg));
}

static enum status upload(struct serve *s)
{
    struct family_inputs in = {0};
    enum status st = gpu_case_open(&s->gpu, &s->c, s->v, &s->o->shape);
    if (st == OK) st = s->c.fam->make_inputs(&s->o->shape, INPUT_RANDOM, 1, &in);
    if (st == OK) st = gpu_case_upload(&s->gpu, &s->c, &in);
    family_inputs_free(&in);
    return st == OK ? copy_weights(s) : st;
}

static enum status make_clocks(struct serve *s)
{
    const struct driver *d = s->gpu.drv;
    s->sms = driver_attribute(d, s->gpu.dev, DRV_DEV_SM_COUNT, 0);
    if (s->sms < 1 || s->sms > SMS_MAX) s->probe = NULL;
    if (!s->probe) return OK;
    enum status st = driver_check(d, d->MemAlloc(&s->clocks, 32 * (size_t)s->sms), "clocks");
    if (st == OK) st = driver_check(d, d->MemsetD8(s->clocks, 0, 32 * (size_t)s->sms), "clocks");
    return st;
}

static enum status setup(struct serve *s)
{
    enum status st = gpu_open(&s->gpu);
    const struct driver *d = s->gpu.drv;
    if (st == OK) st = find_kernel(s);
    if (st == OK) st = launcher_open(&s->gpu.launcher, d, s->gpu.dev, s->reg);
    if (st == OK) st = upload(s);
    if (st == OK) st = make_clocks(s);
    if (st == OK) st = driver_check(d, d->EventCreate(&s->start, DRV_EVENT_DEFAULT), "event");
    if (st == OK) st = driver_check(d, d->EventCreate(&s->end, DRV_EVENT_DEFAULT), "event");
    if (st == OK) st = make_graph(s);
    if (st == OK) st = launcher_occupancy(s->gpu.launcher, &s->c.plan, &s->occupancy);
    if (st == OK) nvml_open(&s->nvml, d, s->gpu.dev);
    return st;
}

/* ---- talking ---- */

static void add_known(cJSON *o, const char *key, double v)
{
    if (isfinite(v))
        cJSON_AddNumberToObject(o, key, v);
    else
        cJSON_AddNullToObject(o, key);
}

static void say(cJSON *o)
{
    char *text = cJSON_PrintUnformatted(o);
    if (text) puts(text);
    fflush(stdout);
    free(text);
    cJSON_Delete(o);
}

static void say_ready(const struct serve *s)
{
    cJSON *o = cJSON_CreateObject();
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, s->v->code_hash);
    cJSON_AddTrueToObject(o, "ready");
    cJSON_AddStringToObject(o, "kernel", s->v->kernel);
    cJSON_AddStringToObject(o, "device", s->gpu.name);
    cJSON_AddNumberToObject(o, "sm", s->gpu.sm);
    cJSON_AddNumberToObject(o, "sms", s->sms);
    cJSON_AddNumberToObject(o, "clock_mhz",
                            driver_attribute(s->gpu.drv, s->gpu.dev, DRV_DEV_CLOCK_KHZ, 0) / 1000);
    cJSON_AddNumberToObject(o, "l2_bytes",
                            driver_attribute(s->gpu.drv, s->gpu.dev, DRV_DEV_L2_BYTES, 0));
    char driver[64];
    driver_name(s->gpu.drv, driver, sizeof driver);
    cJSON_AddStringToObject(o, "driver", driver);
    cJSON_AddStringToObject(o, "code_hash", hash);
    cJSON_AddNumberToObject(o, "regs", s->v->regs);
    cJSON_AddNumberToObject(o, "smem", s->c.plan.dyn_smem);
    cJSON_AddNumberToObject(o, "pad", s->c.plan.pad);
    cJSON_AddNumberToObject(o, "blocks_per_sm", s->occupancy);
    cJSON_AddNumberToObject(o, "launches", s->launches);
    say(o);
}

static void say_timing(const struct serve *s, const struct timing *t)
{
    struct nvml_reading r;
    cJSON *o = cJSON_CreateObject();
    nvml_read(&s->nvml, &r);
    cJSON_AddNumberToObject(o, "cold_us", t->cold_us);
    cJSON_AddNumberToObject(o, "us", t->us);
    add_known(o, "cycles", t->us * t->mhz);
    add_known(o, "mhz", t->mhz);
    cJSON_AddNumberToObject(o, "nvml_mhz", r.mhz);
    cJSON_AddNumberToObject(o, "mw", r.mw);
    cJSON_AddStringToObject(o, "throttle", r.throttle);
    say(o);
}

int serve_run(const struct serve_options *o)
{
    struct serve s = {.o = o};
    char line[64];
    enum status st = setup(&s);
    if (st == OK) say_ready(&s);
    while (st == OK && fgets(line, sizeof line, stdin)) {
        struct timing t = {.mhz = (double)NAN};
        st = time_once(&s, &t);
        if (st == OK) say_timing(&s, &t);
    }
    if (st != OK) {
        cJSON *e = cJSON_CreateObject();
        cJSON_AddStringToObject(e, "error", err_msg());
        say(e);
    }
    return err_exit_code(st); /* the context goes with the process */
}
