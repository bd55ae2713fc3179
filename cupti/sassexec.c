/*
 * sassexec: the executed count of every instruction of chosen launches, by CUPTI's SASS metrics.
 *
 * The first arm configures; the configuration stays until close, since a second one of a process
 * was refused (OUT_OF_MEMORY, H200, CUDA 13.0) and by itself it patches nothing. Counting is on
 * around each chosen launch alone: enabled before it with lazy patching, so that no other kernel is
 * patched; flushed and disabled after it, when it is through. All other launches run their own
 * code. A counted launch takes several times as long as otherwise: nothing of such a round is
 * timed.
 *
 * Kernel activity must be off: with it a hang was seen on other chips. CUPTI gives a record for
 * each instruction and metric, told apart by the id; they are put together here. Function names
 * belong to CUPTI. A metric that the chip lacks is unknown everywhere; only the executed count
 * itself is a must.
 *
 * To count more: a row in wanted[], a field in struct counter_executed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/driver.h"
#include "cupti/sources.h"

enum { INST, THREADS, PRED_ON, WANTED };
enum { SASS_BYTES = 16, VALUES_MAX = 1 << 22 /* read at once: 64 MiB */ };

/* The names of each figure, tried in order. */
static const char *const wanted[WANTED][2] = {
    [INST] = {"smsp__sass_inst_executed", NULL},
    [THREADS] = {"smsp__sass_thread_inst_executed", NULL},
    [PRED_ON] = {"smsp__sass_thread_inst_executed_pred_on", "smsp__sass_thread_inst_executed_true"},
};

struct sassexec {
    struct counter_source src;
    size_t max; /* instructions of a launch */
    struct cupti_sass_config config[WANTED];
    uint64_t id[WANTED];
    bool has[WANTED];
    size_t n; /* in config */
    bool configured, counting;
    enum status error; /* the first of this window; its text is kept too */
    char text[300];
    struct counter_window w;
};

static void probe(struct counter_source *src)
{
    if (!counter_has_lib(src, "sass_") || !counter_supported(src, CUPTI_API_SASS)) return;
    counter_set_state(src, COUNTER_READY, NULL, NULL);
}

/* Which of the figures this chip has. */
static enum status find_metrics(struct sassexec *s)
{
    const struct cupti_lib *lib = s->src.env.lib;
    s->n = 0;
    for (int m = 0; m < WANTED; m++) {
        s->has[m] = false;
        for (int k = 0; k < 2 && wanted[m][k] && !s->has[m]; k++) {
            struct cupti_sass_properties_params p = {
                .size = sizeof p, .chip = lib->chip, .name = wanted[m][k]};
            cupti_result r = lib->sass_properties(&p);
            if (r != CUPTI_R_SUCCESS && m == INST)
                return cupti_check(lib, r, "asking for executed counts by instruction");
            if (r != CUPTI_R_SUCCESS) continue;
            s->has[m] = true;
            s->id[m] = p.metric.id;
            s->config[s->n++] = (struct cupti_sass_config){p.metric.id, CUPTI_SASS_GPU};
        }
    }
    return OK;
}

static void unconfigure(struct sassexec *s)
{
    struct cupti_sass_unconfig_params u = {
        .size = CUPTI_SIZE(struct cupti_sass_unconfig_params, device),
        .device = (uint32_t)s->src.env.device};
    if (s->configured) s->src.env.lib->sass_unconfig(&u);
    s->configured = false;
}

static enum status configure(struct counter_source *src, const struct counter_config *cfg)
{
    struct sassexec *s = (struct sassexec *)src;
    if (s->configured) return OK; /* the figures are what they are */
    s->max = counter_pick(cfg->exec_insns, EXEC_INSNS, 1, EXEC_INSNS_LIMIT);
    enum status st = find_metrics(s);
    if (st != OK) return st;
    snprintf(src->state.detail, sizeof src->state.detail,
             "%s: executed count of every instruction%s%s", src->env.lib->chip,
             s->has[THREADS] ? ", of its threads" : "; no threads on this chip",
             s->has[PRED_ON] ? ", of threads predicated on" : "; no predication on this chip");
    return OK;
}

static enum status arm(struct counter_source *src)
{
    struct sassexec *s = (struct sassexec *)src;
    if (s->configured) return OK;
    struct cupti_sass_config_params c = {.size =
                                             CUPTI_SIZE(struct cupti_sass_config_params, device),
                                         .n = s->n,
                                         .configs = s->config,
                                         .device = (uint32_t)src->env.device};
    enum status st =
        cupti_check(src->env.lib, src->env.lib->sass_config(&c), "configuring executed counts");
    s->configured = st == OK;
    return st;
}

static enum status start(struct counter_source *src)
{
    struct sassexec *s = (struct sassexec *)src;
    s->error = OK;
    s->w = (struct counter_window){
        .role = COUNTER_EXEC, .window = src->windows, .start_ns = clock_wall_ns()};
    return OK;
}

/* Keeps the first failure for stop() to tell. */
static bool good(struct sassexec *s, cupti_result r, const char *what)
{
    if (r == CUPTI_R_SUCCESS) return true;
    enum status st = cupti_check(s->src.env.lib, r, what);
    if (s->error == OK) {
        s->error = st;
        snprintf(s->text, sizeof s->text, "%s", err_msg());
    }
    return false;
}

static void drain(struct sassexec *s)
{
    const struct counter_env *env = &s->src.env;
    if (env->driver) env->driver->StreamSynchronize(env->stream);
}

/* After a failure nothing more is patched in this window. */
static void launch_begin(struct counter_source *src, const struct counter_launch *l)
{
    struct sassexec *s = (struct sassexec *)src;
    if (!l->chosen || s->error != OK) return;
    drain(s); /* what came before is none of this */
    struct cupti_sass_enable_params e = {
        .size = CUPTI_SIZE(struct cupti_sass_enable_params, lazy), .ctx = src->env.ctx, .lazy = 1};
    s->counting = good(s, src->env.lib->sass_enable(&e), "patching for executed counts");
}

/* ---- results ---- */

/* Of one instruction. */
struct sums {
    bool there;
    uint32_t cubin_crc;
    uint64_t v[WANTED];
};

static void add_values(const struct sassexec *s, struct sums *to, const struct cupti_sass_record *r,
                       size_t values)
{
    to->there = true;
    to->cubin_crc = r->cubin_crc;
    for (size_t i = 0; i < values; i++)
        for (int m = 0; m < WANTED; m++)
            if (s->has[m] && r->values[i].id == s->id[m]) to->v[m] += r->values[i].value;
}

static uint64_t sum_of(const struct sassexec *s, const struct sums *x, int metric)
{
    return s->has[metric] ? x->v[metric] : COUNTER_UNKNOWN;
}

static void deliver(struct sassexec *s, const struct counter_launch *l, const struct sums *sums)
{
    for (size_t i = 0; i < s->max; i++) {
        if (!sums[i].there) continue;
        struct counter_executed x = {.tag = l->tag,
                                     .function = l->kernel,
                                     .cubin_crc = sums[i].cubin_crc,
                                     .pc = i * SASS_BYTES,
                                     .inst = sum_of(s, &sums[i], INST),
                                     .threads = sum_of(s, &sums[i], THREADS),
                                     .pred_on = sum_of(s, &sums[i], PRED_ON)};
        s->w.items++;
        if (s->src.env.sink.executed) s->src.env.sink.executed(s->src.env.sink.user, &x);
    }
}

/* Puts together what belongs to one instruction of the launched kernel. */
static void put_together(struct sassexec *s, const struct counter_launch *l,
                         const struct cupti_sass_record *r, size_t n, size_t values)
{
    struct sums *sums = calloc(s->max, sizeof *sums);
    for (size_t i = 0; i < n; i++) {
        if (!r[i].function || strcmp(r[i].function, l->kernel) != 0)
            s->w.other++;
        else if (!sums || r[i].pc / SASS_BYTES >= s->max)
            s->w.dropped++;
        else
            add_values(s, &sums[r[i].pc / SASS_BYTES], &r[i], values);
    }
    if (sums) deliver(s, l, sums);
    free(sums);
}

/* Reads what one launch counted. Whether CUPTI's "instances" are values of one metric or of all is
 * not said: there is room for all, and what it leaves untouched has the id 0, which is no metric.
 */
static void flush(struct sassexec *s, const struct counter_launch *l)
{
    const struct cupti_lib *lib = s->src.env.lib;
    struct cupti_sass_size_params q = {.size = sizeof q, .ctx = s->src.env.ctx};
    if (!good(s, lib->sass_size(&q), "sizing executed counts")) return;
    if (q.records == 0) return;
    if (q.records > WANTED * s->max || q.instances > VALUES_MAX / (q.records * s->n)) {
        s->w.dropped += q.records;
        return;
    }
    size_t room = q.instances * s->n;
    struct cupti_sass_record *r = calloc(q.records, sizeof *r);
    struct cupti_sass_value *v = calloc(q.records * room + 1, sizeof *v);
    if (!r || !v) {
        s->w.dropped += q.records;
        goto out;
    }
    for (size_t i = 0; i < q.records; i++) {
        r[i].size = sizeof r[i];
        r[i].values = v + i * room;
    }
    struct cupti_sass_flush_params f = {.size =
                                            CUPTI_SIZE(struct cupti_sass_flush_params, instances),
                                        .ctx = s->src.env.ctx,
                                        .records = q.records,
                                        .instances = q.instances,
                                        .data = r};
    if (!good(s, lib->sass_flush(&f), "reading executed counts")) goto out;
    put_together(s, l, r, q.records, room);
out:
    free(r);
    free(v);
}

static void launch_end(struct counter_source *src, const struct counter_launch *l)
{
    struct sassexec *s = (struct sassexec *)src;
    if (!s->counting) return;
    drain(s);
    uint64_t t0 = clock_wall_ns();
    flush(s, l);
    struct cupti_sass_disable_params d = {
        .size = CUPTI_SIZE(struct cupti_sass_disable_params, dropped), .ctx = src->env.ctx};
    if (good(s, src->env.lib->sass_disable(&d), "taking the patches out"))
        s->w.dropped += d.dropped;
    s->counting = false;
    s->w.decode_ns += clock_wall_ns() - t0;
}

static enum status stop(struct counter_source *src)
{
    struct sassexec *s = (struct sassexec *)src;
    if (s->counting) launch_end(src, &(struct counter_launch){.kernel = ""}); /* given up */
    s->w.end_ns = clock_wall_ns();
    s->w.overflow = s->w.dropped > 0;
    if (src->env.sink.window) src->env.sink.window(src->env.sink.user, &s->w);
    return s->error == OK ? OK : err_set(s->error, "%s", s->text);
}

static enum status disarm(struct counter_source *src)
{
    (void)src; /* nothing is patched: see the top */
    return OK;
}

static void close_(struct counter_source *src)
{
    unconfigure((struct sassexec *)src);
}

const struct counter_source_ops counter_sassexec_ops = {
    .name = "sassexec",
    .role = COUNTER_EXEC,
    .size = sizeof(struct sassexec),
    .probe = probe,
    .configure = configure,
    .arm = arm,
    .start = start,
    .launch_begin = launch_begin,
    .launch_end = launch_end,
    .stop = stop,
    .disarm = disarm,
    .close = close_,
};
