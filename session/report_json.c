/*
 * The JSON report. Other programs depend on its keys: add, never rename.
 *
 * Invariants: every measured figure is an object {v, state, source, why?, spread?, n?}, v = null
 * when it has no value; hashes are hexadecimal strings; times are ns after the start; numbers are
 * %.6g, counts whole; the order is that of the model.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/exact_derived.h"
#include "session/executed.h"
#include "session/lab_ledger.h"
#include "session/report_fmt.h"
#include "session/report_priv.h"

static void add_number(cJSON *o, const char *key, double v, bool whole)
{
    char text[40];
    if (!isfinite(v)) {
        cJSON_AddNullToObject(o, key);
        return;
    }
    fmt_number(v, whole, text, sizeof text);
    cJSON_AddRawToObject(o, key, text);
}

static void add_u64(cJSON *o, const char *key, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    cJSON_AddRawToObject(o, key, text);
}

static void add_hash(cJSON *o, const char *key, uint64_t hash)
{
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    cJSON_AddStringToObject(o, key, text);
}

/* cJSON writes bytes as they are: what is no UTF-8 would make the file no JSON. */
static void add_text(cJSON *o, const char *key, const char *text)
{
    char *copy = strdup(text);
    if (!copy) {
        cJSON_AddNullToObject(o, key);
        return;
    }
    fmt_utf8(copy);
    cJSON_AddStringToObject(o, key, copy);
    free(copy);
}

enum { KEY_SIZE = 64 };

/* A key that came from the stream. */
static const char *clean(const char *name, char key[KEY_SIZE])
{
    snprintf(key, KEY_SIZE, "%s", name);
    fmt_utf8(key);
    return key;
}

static void add_count_of(cJSON *o, const char *name, uint64_t v)
{
    char key[KEY_SIZE];
    add_u64(o, clean(name, key), v);
}

static cJSON *add_object_of(cJSON *o, const char *name)
{
    char key[KEY_SIZE];
    return cJSON_AddObjectToObject(o, clean(name, key));
}

static void add_figure(cJSON *o, const char *name, struct value v, bool whole)
{
    cJSON *f = add_object_of(o, name);
    bool there = value_known(&v);

    if (there)
        add_number(f, "v", v.v, whole);
    else
        cJSON_AddNullToObject(f, "v");
    cJSON_AddStringToObject(f, "state", value_state_name(v.state));
    if (v.source && v.source[0])
        add_text(f, "source", v.source);
    else
        cJSON_AddNullToObject(f, "source");
    if (v.why) add_text(f, "why", v.why);
    if (there && v.spread >= 0) add_number(f, "spread", v.spread, false);
    if (there && v.n) add_u64(f, "n", v.n);
}

/* What the source found, lost and cost. */
static void add_tally(cJSON *o, const struct msg_tally *t)
{
    static const char *const output[] = {"not compared", "equal", "differs"};

    add_u64(o, "windows", t->windows);
    add_u64(o, "items", t->items);
    add_u64(o, "dropped", t->dropped);
    add_u64(o, "invalid", t->invalid);
    add_u64(o, "other", t->other);
    add_u64(o, "overflows", t->overflows);
    add_u64(o, "switch_ns", t->switch_ns);
    add_u64(o, "decode_ns", t->decode_ns);
    add_u64(o, "overheads", t->overheads);
    add_u64(o, "overhead_ns", t->overhead_ns);
    if (!t->passes) return;
    add_text(o, "sets", t->sets);
    add_u64(o, "metrics", t->metrics);
    add_u64(o, "passes", t->passes);
    add_u64(o, "pass_ns", t->pass_ns);
    cJSON_AddStringToObject(o, "output", output[t->output < 3 ? t->output : 0]);
}

static void add_session(cJSON *root, const struct session *s)
{
    char started[32];
    cJSON *o = cJSON_AddObjectToObject(root, "session");

    fmt_time(s->hello.wall_ns, started, sizeof started);
    add_text(o, "id", s->hello.session);
    cJSON_AddStringToObject(o, "started", started);
    cJSON *d = cJSON_AddObjectToObject(o, "device");
    add_text(d, "name", s->hello.device);
    add_u64(d, "sm", s->hello.sm);
    add_u64(d, "sms", s->hello.sms);
    add_text(d, "driver", s->hello.driver);
    add_text(d, "backend", s->hello.backend);
    add_u64(d, "clock_mhz", s->hello.clock_mhz);
    add_u64(d, "memory", s->hello.memory);
    add_text(o, "toolkit", s->hello.toolkit);
    add_text(o, "cupti", s->hello.cupti);
    add_text(o, "commit", s->hello.commit);
    add_text(o, "model", s->model.name);
    add_hash(o, "model_hash", s->model.hash);
    add_text(o, "workload", s->model.workload);
    add_text(o, "command", s->hello.command);
    add_u64(o, "seed", s->hello.seed);
    add_u64(o, "frames", s->frames);
    add_u64(o, "t_ns", s->t_ns);
    cJSON *sources = cJSON_AddArrayToObject(o, "sources");
    for (uint32_t i = 0; i < s->nsources; i++) {
        cJSON *e = cJSON_CreateObject();
        cJSON_AddItemToArray(sources, e);
        add_text(e, "name", s->sources[i].name);
        add_text(e, "state", s->sources[i].state);
        add_text(e, "why", s->sources[i].why);
        for (uint32_t j = 0; j < s->ntallies; j++)
            if (!strcmp(s->tallies[j].name, s->sources[i].name)) add_tally(e, &s->tallies[j]);
    }
}

static void add_regime(cJSON *o, const struct session *s, const struct row *r)
{
    struct regime g;
    row_regime(s, r, &g);
    add_text(o, "regime", regime_name(g.kind));
    add_text(o, "regime_figures", g.decided);
    add_figure(o, "op_per_byte", g.intensity, false);
    add_figure(o, "op_per_s", g.rate, false);
    add_figure(o, "roof_share_pct", g.roof_share, false);
    add_figure(o, "tenth_fewer_inst_saves_pct", g.saving, false);
}

/* Every exact figure that came, by key: those of a set that was not counted are not there. */
static void add_exact(cJSON *o, const struct session *s, const struct row *r)
{
    cJSON *list = cJSON_AddObjectToObject(o, "exact");

    for (uint32_t i = 0; i < r->nmetrics; i++) {
        const char *key = s->metrics[r->metrics[i].metric].key;
        if (r->metrics[i].has_exact) add_figure(list, key, row_metric_exact(s, r, key), false);
    }
    cJSON *more = cJSON_AddObjectToObject(o, "derived");
    for (uint32_t i = 0; i < nexact_derived; i++) {
        struct value v = exact_derived[i].get(s, r);
        if (v.state == VALUE_OK) add_figure(more, exact_derived[i].key, v, false);
    }
}

static void add_kd(cJSON *o, uint32_t kd)
{
    if (kd)
        add_u64(o, "kd", kd);
    else
        cJSON_AddNullToObject(o, "kd");
}

static void add_generations(cJSON *root, const struct session *s)
{
    cJSON *list = cJSON_AddArrayToObject(root, "generations");

    for (uint32_t i = 0; i < s->ngenerations; i++) {
        const struct generation *g = &s->generations[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToArray(list, o);
        add_u64(o, "id", g->def.generation);
        add_text(o, "family", g->def.family);
        add_text(o, "variant", g->def.variant);
        add_kd(o, g->def.kd);
        add_u64(o, "t_ns", g->t_ns);
        add_text(o, "reason", g->def.reason);
        add_figure(o, "prefill_tok_s", generation_prefill(s, g), false);
        add_figure(o, "decode_tok_s", generation_decode(s, g), false);
        add_text(o, "parity", g->def.parity);
        add_u64(o, "timed_rounds", g->timed_rounds);
        add_text(o, "timed_in", g->timed_in);
        add_u64(o, "counted_rounds", g->counted_rounds);
        cJSON_AddBoolToObject(o, "faulted", g->faulted);
    }
}

/* Shares are parts of 1 of all samples of the kernel. */
static void add_stalls(cJSON *o, const struct session *s, const struct row *r)
{
    const struct kernel_stalls *ks = session_stalls(s, r->def.kernel, r->def.generation);
    cJSON *stalls = cJSON_AddObjectToObject(o, "stalls");
    double total = 0;
    char name[40];

    for (uint32_t i = 0; ks && i < ks->nreasons; i++) total += (double)ks->reasons[i].samples;
    uint32_t n = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
    for (uint32_t i = 0; ks && i < ks->nreasons && total > 0; i++) {
        double part = (double)ks->reasons[i].samples / total;
        add_figure(stalls, ks->reasons[i].reason, value_spread(part, -1, n, ks->source), false);
    }
    add_figure(o, "top_stall_pct", row_top_stall(s, r, name, sizeof name), false);
}

static struct value row_calls(const struct row *r)
{
    if (r->calls) return value_ok((double)r->calls, r->time_source);
    return value_missing(VALUE_PENDING, "no launch of it has been timed yet");
}

static void add_row(cJSON *list, const struct session *s, const struct row *r)
{
    const struct kernel *k = &s->kernels[r->def.kernel];
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    add_text(o, "name", k->def.name);
    add_text(o, "family", k->def.family);
    add_text(o, "variant", k->def.variant);
    add_kd(o, k->def.kd);
    add_u64(o, "generation", r->def.generation);
    add_text(o, "role", r->def.role);
    add_text(o, "phase", r->def.phase);
    cJSON *shape = cJSON_AddObjectToObject(o, "shape");
    add_u64(shape, "m", r->def.m);
    add_u64(shape, "n", r->def.n);
    add_u64(shape, "k", r->def.k);
    add_figure(o, "calls", row_calls(r), true);
    add_figure(o, "time_us", row_us(s, r), false);
    add_figure(o, "time_share_pct", row_time_share(s, r), false);
    add_number(o, "gmac", r->def.macs / 1e9, false);
    add_figure(o, "us_per_gmac", row_us_per_gmac(s, r), false);
    add_figure(o, "sm_pct", row_metric_best(s, r, "sm_pct"), false);
    add_figure(o, "sm_pct_whole", row_metric_whole(s, r, "sm_pct"), false);
    add_figure(o, "sm_launch_pct", row_metric_exact(s, r, "sm_launch_pct"), false);
    add_figure(o, "ipc", row_ipc(s, r), false);
    add_figure(o, "tensor_pct", row_metric_best(s, r, "tensor_pct"), false);
    add_figure(o, "dram_pct", row_metric_best(s, r, "dram_pct"), false);
    add_figure(o, "inst", row_metric_best(s, r, "inst"), true);
    add_exact(o, s, r);
    add_regime(o, s, r);
    add_u64(o, "regs", k->def.regs);
    add_u64(o, "smem", (uint64_t)k->def.smem_static + r->def.smem_dynamic);
    add_stalls(o, s, r);
    if (r->def.asked[0]) {
        add_text(o, "asked", r->def.asked);
        add_text(o, "why", r->def.why);
    }
}

/* Counts summed by class, in the order in which the classes first occur. */
static void add_classes(cJSON *o, const struct kernel *k)
{
    cJSON *classes = cJSON_AddObjectToObject(o, "classes");

    for (uint32_t i = 0; i < k->nitems; i++) {
        uint64_t sum = 0;
        bool first = true;
        for (uint32_t j = 0; j < k->nitems; j++) {
            if (strcmp(k->items[j].cls, k->items[i].cls) != 0) continue;
            if (j < i) first = false;
            sum += k->items[j].count;
        }
        if (first) add_count_of(classes, k->items[i].cls, sum);
    }
}

static void add_exec_sum(cJSON *list, const char *name, const struct executed *e,
                         const struct exec_sum *x)
{
    cJSON *o = add_object_of(list, name);
    add_u64(o, "static", x->count);
    add_figure(o, "executed", exec_launch(e, x), true);
    add_figure(o, "threads_of_32", exec_threads(e, x), false);
    add_figure(o, "pred_on_pct", exec_pred(e, x), false);
    add_figure(o, "in_loop_pct", exec_in_loop(x), false);
    add_u64(o, "never", x->never);
}

static void add_surplus(cJSON *o, const struct session *s, const struct executed *e)
{
    const struct row *r = &s->rows[e->row];
    uint32_t other = session_counterpart(s, r, r->def.generation);
    struct surplus_row x;
    struct surplus p;
    surplus_open(s, e->row, other, true, &p);
    if (p.basis == SURPLUS_NONE) return;
    cJSON *u = cJSON_AddObjectToObject(o, "surplus");
    add_text(u, "against", p.b.k->def.name);
    add_u64(u, "against_generation", s->rows[other].def.generation);
    cJSON_AddStringToObject(u, "basis",
                            p.basis == SURPLUS_EXECUTED ? "executed" : "static hot loop");
    add_number(u, "per_gmac", p.sum_a * 1e9, false);
    add_number(u, "against_per_gmac", p.sum_b * 1e9, false);
    cJSON *classes = cJSON_AddObjectToObject(u, "classes");
    for (uint32_t i = 0; i < surplus_count(&p); i++) {
        if (!surplus_at(&p, i, &x)) continue;
        cJSON *c = add_object_of(classes, x.name);
        add_number(c, "per_gmac", x.a * 1e9, false);
        add_number(c, "against_per_gmac", x.b * 1e9, false);
        add_number(c, "part_pct", x.pct, false);
    }
}

/* Of one kernel: an entry for each row of it that was counted. */
static void add_executed(cJSON *o, const struct session *s, uint32_t kernel)
{
    cJSON *list = NULL;
    for (uint32_t i = 0; i < s->nexecuted; i++) {
        const struct executed *e = &s->executed[i];
        const struct msg_row_def *r = &s->rows[e->row].def;
        if (e->kernel != kernel) continue;
        if (!list) list = cJSON_AddArrayToObject(o, "executed");
        cJSON *x = cJSON_CreateObject();
        cJSON_AddItemToArray(list, x);
        add_text(x, "role", r->role);
        add_text(x, "phase", r->phase);
        cJSON *shape = cJSON_AddObjectToObject(x, "shape");
        add_u64(shape, "m", r->m);
        add_u64(shape, "n", r->n);
        add_u64(shape, "k", r->k);
        add_u64(x, "generation", e->def.generation);
        add_u64(x, "launches", e->def.launches);
        add_figure(x, "inst", exec_launch(e, &e->all), true);
        struct value gmac = exec_per_mac(s, e, &e->all);
        gmac.v *= 1e9;
        add_figure(x, "per_gmac", gmac, false);
        add_figure(x, "range_delta_pct", executed_check(s, e), false);
        add_u64(x, "static", e->all.count);
        add_u64(x, "counted", e->all.counted);
        add_u64(x, "never", e->all.never);
        cJSON *opcodes = cJSON_AddObjectToObject(x, "opcodes");
        for (uint32_t k = 0; k < e->nkeys; k++)
            add_exec_sum(opcodes, e->keys[k].opcode, e, &e->of_key[k]);
        cJSON *classes = cJSON_AddObjectToObject(x, "classes");
        for (uint32_t k = 0; k < e->nclasses; k++)
            add_exec_sum(classes, e->classes[k], e, &e->of_class[k]);
        add_surplus(x, s, e);
    }
}

static void add_census(cJSON *root, const struct session *s)
{
    cJSON *list = cJSON_AddArrayToObject(root, "census");

    for (uint32_t i = 0; i < s->nkernels; i++) {
        const struct kernel *k = &s->kernels[i];
        if (!k->has_census) continue;
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToArray(list, o);
        add_text(o, "kernel", k->def.name);
        cJSON_AddBoolToObject(o, "launched", report_launched(s, i));
        add_u64(o, "arch", k->census.arch);
        add_hash(o, "cubin_hash", k->def.cubin_hash);
        add_hash(o, "code_hash", k->census.code_hash);
        add_u64(o, "total", k->census.total);
        add_u64(o, "padding", k->census.padding);
        add_u64(o, "unknown", k->census.unknown);
        cJSON *opcodes = cJSON_AddObjectToObject(o, "opcodes");
        for (uint32_t j = 0; j < k->nitems; j++)
            add_count_of(opcodes, k->items[j].opcode, k->items[j].count);
        cJSON *in_loop = cJSON_AddObjectToObject(o, "in_loop");
        for (uint32_t j = 0; j < k->nitems; j++)
            if (k->items[j].in_loop) add_count_of(in_loop, k->items[j].opcode, k->items[j].in_loop);
        add_classes(o, k);
        add_u64(o, "regs", k->def.regs);
        add_u64(o, "smem", k->def.smem_static);
        add_u64(o, "spill_bytes", k->def.spill);
        add_executed(o, s, i);
    }
}

static void add_events(cJSON *root, const struct session *s)
{
    cJSON *list = cJSON_AddArrayToObject(root, "events");

    for (uint32_t i = 0; i < s->nevents; i++) {
        const struct event *e = &s->events[(s->first_event + i) % MAX_EVENTS];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToArray(list, o);
        add_u64(o, "t_ns", e->t_ns);
        add_text(o, "kind", e->kind);
        add_text(o, "text", e->text);
    }
}

static void add_drops(cJSON *root, const struct session *s)
{
    cJSON *o = cJSON_AddObjectToObject(root, "drops");

    for (unsigned i = 0; i < FRAME_TYPE_END; i++)
        if (s->drops[i]) add_u64(o, proto_name(i), s->drops[i]);
    if (s->lost_events) add_u64(o, "events", s->lost_events);
    if (s->garbled_frames) add_u64(o, "garbled_frames", s->garbled_frames);
    if (s->unknown_frames) add_u64(o, "unknown_frames", s->unknown_frames);
    if (s->overflowed) add_u64(o, "over_limits", s->overflowed);
    if (s->windows_unused) add_u64(o, "windows_unused", s->windows_unused);
}

static void add_experiments(cJSON *root, const struct session *s)
{
    if (s->nexperiments == 0) return;
    cJSON *list = cJSON_AddArrayToObject(root, "experiments");
    for (uint32_t i = 0; i < s->nexperiments; i++) {
        char *text = ledger_json("", &s->hello, &s->experiments[i], true, false);
        if (text) cJSON_AddItemToArray(list, cJSON_CreateRaw(text));
        cJSON_free(text);
    }
}

static enum status write_json(const struct session *s, struct buf *out)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *rows;
    char *text;

    add_session(root, s);
    add_generations(root, s);
    rows = cJSON_AddArrayToObject(root, "kernels");
    for (uint32_t i = 0; i < s->nrows; i++) add_row(rows, s, &s->rows[i]);
    add_experiments(root, s);
    add_census(root, s);
    add_events(root, s);
    add_drops(root, s);
    text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) return err_set(ERR_NOMEM, "out of memory for the JSON report");
    buf_put(out, text, strlen(text));
    buf_u8(out, '\n');
    cJSON_free(text);
    return out->failed ? err_set(ERR_NOMEM, "out of memory for the JSON report") : OK;
}

const struct report_ops report_json_ops = {
    .ext = "json",
    .title = "JSON, for other programs",
    .write = write_json,
};
