/*
 * What both sides are made of and what they did: taken after the timing, so that nothing counts
 * while anything is timed. Static figures come from the cubins, clocks and cycles from the pairs,
 * exact counters from one engine with a counter source for each side (where that works).
 *
 * Invariant: a figure that one side lacks is written as unknown with the reason. To add a figure:
 * a call in the function of its source; to count another metric: a row in `counted`.
 */
#include "tui/lab_run.h"

#include "base/clock.h"
#include "base/median.h"
#include "cupti/metrics.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNKNOWN ((double)NAN)

static enum status put(struct lab_run *r, const char *name, const char *unit, const char *source,
                       double a, double b, const char *why)
{
    struct msg_mechanism m = {.experiment = r->def.experiment, .a = a, .b = b};
    snprintf(m.name, sizeof m.name, "%s", name);
    snprintf(m.unit, sizeof m.unit, "%s", unit);
    snprintf(m.source, sizeof m.source, "%s", source);
    if (!isfinite(a) || !isfinite(b)) snprintf(m.why, sizeof m.why, "%s", why);
    return lab_emit(r, FRAME_MECHANISM, &m);
}

static double stated(int v)
{
    return v == CUBIN_UNKNOWN ? UNKNOWN : v;
}

/* ---- the cubins ---- */

static enum status static_figures(struct lab_run *r)
{
    static const enum insn_class classes[] = {
        INSN_CLASS_INT,    INSN_CLASS_FLOAT,  INSN_CLASS_CONVERT, INSN_CLASS_MOVE,
        INSN_CLASS_SHARED, INSN_CLASS_GLOBAL, INSN_CLASS_LOCAL};
    const struct census *a = &r->o->a.code.census, *b = &r->o->b.code.census;
    double ta = a->classes[INSN_CLASS_TENSOR][CENSUS_HOT],
           tb = b->classes[INSN_CLASS_TENSOR][CENSUS_HOT];
    enum status st = put(r, "tensor in the hot loop", "", "census", ta, tb, "");
    /* Hot loops of other lengths hold other amounts of work: a tensor instruction is the unit. */
    for (size_t i = 0; st == OK && ta > 0 && tb > 0 && i < sizeof classes / sizeof *classes; i++) {
        char name[48];
        uint32_t x = a->classes[classes[i]][CENSUS_HOT], y = b->classes[classes[i]][CENSUS_HOT];
        if (!x && !y) continue;
        snprintf(name, sizeof name, "%s per tensor instr", insn_class_name(classes[i]));
        st = put(r, name, "", "census", x / ta, y / tb, "");
    }
    if (st == OK && ta > 0 && tb > 0)
        st = put(r, "all instr per tensor instr", "", "census", a->sum[CENSUS_HOT] / ta,
                 b->sum[CENSUS_HOT] / tb, "");
    if (st == OK) st = put(r, "instructions", "", "census", a->total, b->total, "");
    if (st == OK) st = put(r, "registers", "", "cubin", stated(a->regs), stated(b->regs), "");
    if (st == OK)
        st = put(r, "spilled", "B", "cubin", stated(a->spill_bytes), stated(b->spill_bytes),
                 "the cubin doesn't state it");
    return st;
}

/* ---- the pairs ---- */

static enum status timed_figures(struct lab_run *r)
{
    const struct lab_experiment *x = lab_run_experiment(r);
    double v[6][LAB_PAIRS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->npairs && n < LAB_PAIRS_MAX; i++) {
        const struct msg_pair *p = &x->pairs[i];
        if (p->dropped[0] || strcmp(p->kind, "AB") != 0) continue;
        v[0][n] = p->a_us, v[1][n] = p->b_us;
        v[2][n] = p->a_cycles, v[3][n] = p->b_cycles;
        v[4][n] = p->a_mhz, v[5][n++] = p->b_mhz;
    }
    double m[6];
    for (int i = 0; i < 6; i++) m[i] = median_iqr(v[i], n, NULL);
    enum status st = put(r, r->o->engine ? "time a token" : "time a launch", "us", "clock", m[0],
                         m[1], "no pair counts");
    if (st == OK && m[2] > 0) st = put(r, "elapsed SM cycles", "cycles", "clock", m[2], m[3], "");
    if (st == OK && m[4] > 0) st = put(r, "SM clock", "MHz", "clock", m[4], m[5], "");
    if (st == OK && !r->o->engine && r->child[LAB_B].blocks_per_sm)
        st = put(r, "blocks/SM", "", "driver", r->child[LAB_A].blocks_per_sm,
                 r->child[LAB_B].blocks_per_sm, "");
    return st;
}

/* ---- exact counters ---- */

static const struct {
    const char *key, *name, *unit;
} counted[] = {
    {"inst", "executed instructions", ""},
    {"sm_launch_pct", "SM% of the launch", "%"},
    {"cycles_elapsed", "elapsed cycles, counted", "cycles"},
    {"cycles_active", "active cycles, mean of SMs", "cycles"},
    {"cycles_active_min", "active cycles, least of SMs", "cycles"},
    {"cycles_active_max", "active cycles, most of SMs", "cycles"},
    {"issue_pct", "issue slots used while active", "%"},
    {"occupancy_pct", "achieved occupancy", "%"},
    {"bank_conflicts", "bank conflicts", ""},
    {"dram_read_bytes", "DRAM read", "B"},
    {"l2_hit_pct", "L2 hits", "%"},
    {"tensor_pct", "tensor pipe", "%"},
};
enum { NCOUNTED = sizeof counted / sizeof *counted, COUNT_S = 60, LATE_S = 1 };
static const double stall_least = 0.25; /* warps per issue: less isn't listed */

/* The GEMM row with most work on the side's variant; of the wanted shape when there is one. */
static const struct row *row_of(const struct session *s, const struct lab_side *side,
                                const char *shape)
{
    unsigned m = 0, n = 0, k = 0;
    const struct row *best = NULL;
    if (sscanf(shape, "%u,%u,%u", &m, &n, &k) != 3) m = 0;
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *row = &s->rows[i];
        const struct msg_kernel_def *d = &s->kernels[row->def.kernel].def;
        if (strcmp(d->variant, side->variant) != 0 || d->kd != side->kd) continue;
        if (m && row->def.m == m && row->def.n == n && row->def.k == k) return row;
        if (!best || row->def.macs > best->def.macs) best = row;
    }
    return best;
}

static bool counted_at_all(const struct session *s, const struct lab_side *side, const char *shape)
{
    const struct row *row = row_of(s, side, shape);
    for (int i = 0; row && i < NCOUNTED; i++)
        if (row_metric_exact(s, row, counted[i].key).state == VALUE_OK) return true;
    return false;
}

/* Folds what the engine says until it has counted, or time is up. */
static void follow(struct lab_run *r, struct engine_child *c, const struct lab_side *side,
                   struct session *s)
{
    uint64_t end = clock_mono_ns() + COUNT_S * 1000000000ull;
    struct buf in = {0};
    char bytes[16384];
    bool seen = false;
    while (!lab_interrupted && clock_mono_ns() < end && !s->ended) {
        struct pollfd p[2] = {{.fd = c->fd, .events = POLLIN}, {.fd = c->err_fd, .events = POLLIN}};
        struct frame f;
        size_t used = 0, at = 0;
        if (poll(p, 2, 500) < 0) continue;
        if (p[1].revents && read(c->err_fd, bytes, sizeof bytes) == 0) break;
        if (!p[0].revents) continue;
        ssize_t n = read(c->fd, bytes, sizeof bytes);
        if (n == 0) break;
        if (n > 0) buf_put(&in, bytes, (size_t)n);
        enum status st;
        while ((st = proto_next(in.data + at, in.len - at, &f, &used)) != ERR_AGAIN) {
            if (st == OK && session_apply(s, &f) != OK) break;
            at += used;
        }
        memmove(in.data, in.data + at, in.len - at);
        in.len -= at;
        /* Figures come a frame each after the last pass; what this GPU doesn't count never comes.
         */
        if (!seen && counted_at_all(s, side, r->o->shape)) {
            seen = true;
            uint64_t late = clock_mono_ns() + LATE_S * 1000000000ull;
            if (end > late) end = late;
        }
    }
    buf_free(&in);
}

/* Counts one side; the caller frees the session. */
static enum status count_side(struct lab_run *r, const struct lab_side *side, struct session *s)
{
    struct run_options ro = r->o->engine_options;
    struct lab_side_text text;
    char program[512];
    struct engine_child c;
    enum status st = engine_program(program, sizeof program);
    if (st == OK) st = session_init(s);
    if (st != OK) return st;
    lab_side_options(side, &text, &ro);
    ro.sources = r->o->counters;
    ro.schedule = "1:3";
    ro.timer = "here"; /* its times are not used */
    if (!r->o->engine) { /* a model that has the shape, and short rounds */
        ro.bench = "pp512,tg1";
        if (!ro.model) ro.model = "synth:llama3-8b";
    }
    struct engine_spawn how = {.program = program,
                               .options = &ro,
                               .epoch_ns = clock_mono_ns(),
                               .instance = 1,
                               .session_id = "lab"};
    lab_side_enter(side);
    if (!getenv("SASSTOP_EXACT")) ro.exact = "all";
    st = engine_spawn(&how, &c);
    lab_side_leave(side);
    if (st != OK) return st;
    follow(r, &c, side, s);
    engine_child_end(&c);
    engine_child_close(&c);
    return OK;
}

/* The stall reasons that either side spends time in. */
static enum status stalls(struct lab_run *r, const struct session *a, const struct row *x,
                          const struct session *b, const struct row *y)
{
    enum status st = OK;
    for (size_t i = 0; st == OK && x && y && i < metric_count(); i++) {
        const struct metric *m = metric_at(i);
        if (strncmp(m->key, "stall_", 6) != 0) continue;
        struct value va = row_metric_exact(a, x, m->key), vb = row_metric_exact(b, y, m->key);
        char name[48];
        if (va.state != VALUE_OK || vb.state != VALUE_OK) continue;
        if (va.v < stall_least && vb.v < stall_least) continue;
        snprintf(name, sizeof name, "stall %s", m->label);
        st = put(r, name, m->unit, r->o->counters, va.v, vb.v, "");
    }
    return st;
}

static enum status counters(struct lab_run *r)
{
    struct session a, b;
    enum status st = count_side(r, &r->o->a, &a);
    if (st != OK) return OK; /* the timing stands without it */
    st = count_side(r, &r->o->b, &b);
    if (st != OK) {
        session_free(&a);
        return OK;
    }
    const struct row *x = row_of(&a, &r->o->a, r->o->shape), *y = row_of(&b, &r->o->b, r->o->shape);
    for (int i = 0; st == OK && i < NCOUNTED; i++) {
        struct value va = {0}, vb = {0};
        if (x) va = row_metric_exact(&a, x, counted[i].key);
        if (y) vb = row_metric_exact(&b, y, counted[i].key);
        bool both = va.state == VALUE_OK && vb.state == VALUE_OK;
        const char *why = va.state != VALUE_OK ? va.why : vb.why;
        if (!both && i && !why) continue;
        st = put(r, counted[i].name, counted[i].unit, r->o->counters, both ? va.v : UNKNOWN,
                 both ? vb.v : UNKNOWN, why ? why : "no counter source gave it");
    }
    if (st == OK) st = stalls(r, &a, x, &b, y);
    session_free(&a);
    session_free(&b);
    return st;
}

enum status lab_figures(struct lab_run *r)
{
    enum status st = OK;
    if (r->o->counters && !r->o->no_counters) {
        if (!r->o->quiet) fprintf(stderr, "counting both sides\n");
        st = counters(r);
    }
    if (st == OK) st = timed_figures(r);
    if (st == OK && r->o->a.has_code && r->o->b.has_code) st = static_figures(r);
    return st;
}
