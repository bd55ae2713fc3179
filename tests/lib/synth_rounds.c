/*
 * Rounds of the made-up session: timed ones, and counted ones with a PM window, PC sampling or
 * exact counters. See synth_session.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "synth_priv.h"

enum {
    PERIOD_NS = 20000,
    WINDOW_NS = 16 * 1000 * 1000,
    OFFSET_NS = 3000,
    TIMED_ROUNDS = 5,
};

static void span_agg(struct synth *g, unsigned op)
{
    double us = synth_op_us(g, op) * synth_about(g, 0.004);
    uint32_t hist[256] = {0};
    struct buf b = {0};
    struct msg_span_agg m = {.round = g->round,
                             .row = synth_row_number(g, op),
                             .source = "activity",
                             .calls = synth_ops[op].calls,
                             .sum_ns = (uint64_t)(us * 1e3) * synth_ops[op].calls,
                             .min_ns = (uint64_t)(us * 980),
                             .max_ns = (uint64_t)(us * 1060)};
    hist[hist_bin(m.min_ns)] += m.calls / 4;
    hist[hist_bin((uint64_t)(us * 1e3))] += m.calls - m.calls / 4;
    pack_hist(&b, hist);
    m.hist = (struct blob){b.data, (uint32_t)b.len};
    synth_emit(g, FRAME_SPAN_AGG, &m);
    buf_free(&b);
}

static void text(struct synth *g)
{
    for (uint32_t i = 0; i < 6; i++) {
        unsigned w = (unsigned)(synth_draw(g) % synth_nwords);
        struct msg_text m = {.round = g->round, .pos = 512 + i, .token = 1000 + w};
        m.gap = 0.2 + 4 * synth_uniform(g);
        snprintf(m.piece, sizeof m.piece, "%s", synth_words[w]);
        synth_emit(g, FRAME_TEXT, &m);
    }
}

static void progress(struct synth *g, const char *phase, uint32_t done, uint32_t total)
{
    struct msg_progress m = {.round = g->round, .done = done, .total = total};
    snprintf(m.phase, sizeof m.phase, "%s", phase);
    synth_emit(g, FRAME_PROGRESS, &m);
}

/* A round's two times follow from its kernels; a counted one takes longer. */
static void round_end(struct synth *g, const char *counted)
{
    double prefill_us = 900, decode_us = 64 * 1500;
    struct msg_round m = {.generation = g->generation,
                          .counted = counted[0] != 0,
                          .prefill_tokens = 512,
                          .decode_tokens = 64,
                          .output_hash = 0x5eedull};
    for (unsigned i = 0; i < synth_nops; i++)
        *(strcmp(synth_ops[i].phase, "decode") ? &prefill_us : &decode_us) +=
            synth_op_us(g, i) * synth_ops[i].calls;
    double slow = m.counted ? 1.04 : 1;
    m.round = g->round;
    m.prefill_ns = (uint64_t)(prefill_us * 1e3 * slow * synth_about(g, 0.006));
    m.decode_ns = (uint64_t)(decode_us * 1e3 * slow * synth_about(g, 0.006));
    snprintf(m.source, sizeof m.source, "%s", counted);
    if (!m.counted) snprintf(m.timed_in, sizeof m.timed_in, "own");
    g->t_ns += m.prefill_ns + m.decode_ns;
    synth_emit(g, FRAME_ROUND, &m);
}

void synth_timed_round(struct synth *g)
{
    struct msg_clocks c = {.sm_mhz = 1965, .mem_mhz = 3201, .temp_c = 58};
    g->round++;
    progress(g, "prefill", 512, 512);
    for (unsigned i = 0; i < synth_nops; i++) span_agg(g, i);
    progress(g, "decode", 64, 64);
    text(g);
    c.power_mw = (uint32_t)(520000 * synth_about(g, 0.03));
    synth_emit(g, FRAME_CLOCKS, &c);
    round_end(g, "");
}

/* ---- a PM window ---- */

struct launch {
    uint64_t start, end; /* in the samples' clock */
    unsigned op;
};

enum { LAUNCHES_MAX = 4096 };

static unsigned launches(struct synth *g, struct launch *out)
{
    uint64_t t = 40000;
    unsigned n = 0;

    while (t < WINDOW_NS && n + 2 * synth_nops < LAUNCHES_MAX)
        for (unsigned i = 0; i < synth_nops; i++)
            for (int k = 0; k < synth_ops[i].in_window; k++) {
                uint64_t ns = (uint64_t)(synth_op_us(g, i) * 1e3 * synth_about(g, 0.004));
                out[n++] = (struct launch){t, t + ns, i};
                t += ns + 900 + synth_draw(g) % 400;
            }
    return n;
}

static void send_spans(struct synth *g, const struct launch *l, unsigned n)
{
    struct buf b = {0};
    struct msg_spans m = {.window = g->window, .count = n};
    uint64_t prev = 0;
    for (unsigned i = 0; i < n; i++) {
        struct span_item it = {.row = synth_row_number(g, l[i].op),
                               .start = l[i].start - OFFSET_NS,
                               .dur = l[i].end - l[i].start};
        pack_span(&b, &prev, &it);
    }
    m.spans = (struct blob){b.data, (uint32_t)b.len};
    synth_emit(g, FRAME_SPANS, &m);
    buf_free(&b);
}

/* What a kernel does to the four live metrics, with the noise of one sample. */
static void add_values(struct synth *g, unsigned op, double part, double v[LIVE_METRICS])
{
    const struct synth_op *o = &synth_ops[op];
    const double own[LIVE_METRICS] = {o->kernel ? o->sm : g->v->sm, o->kernel ? o->ipc : g->v->ipc,
                                      o->kernel ? o->tensor : g->v->tensor,
                                      o->kernel ? o->dram : g->v->dram};
    for (int i = 0; i < LIVE_METRICS; i++) v[i] += part * own[i] * synth_about(g, 0.01);
}

static void send_samples(struct synth *g, const struct launch *l, unsigned n)
{
    struct buf b = {0};
    struct msg_pm_samples m = {.window = g->window};
    uint64_t prev = 0;
    unsigned at = 0;
    for (uint64_t t = PERIOD_NS; t + PERIOD_NS <= WINDOW_NS; t += PERIOD_NS) {
        struct pm_item it = {.start = t, .dur = PERIOD_NS};
        while (at < n && l[at].end <= t) at++;
        for (unsigned i = at; i < n && l[i].start < t + PERIOD_NS; i++) {
            uint64_t from = l[i].start > t ? l[i].start : t;
            uint64_t to = l[i].end < t + PERIOD_NS ? l[i].end : t + PERIOD_NS;
            add_values(g, l[i].op, (double)(to - from) / PERIOD_NS, it.v);
        }
        pack_pm(&b, &prev, &it, LIVE_METRICS);
        m.count++;
    }
    m.samples = (struct blob){b.data, (uint32_t)b.len};
    synth_emit(g, FRAME_PM_SAMPLES, &m);
    buf_free(&b);
}

static void pm_round(struct synth *g, uint8_t overflow)
{
    struct launch *l = calloc(LAUNCHES_MAX, sizeof *l);
    struct buf b = {0};
    struct msg_window_begin begin = {.window = ++g->window,
                                     .round = ++g->round,
                                     .source = "pm",
                                     .period_ns = PERIOD_NS,
                                     .base_ns = 1700000000000000000ull + g->t_ns};
    struct msg_window_end end = {.window = g->window,
                                 .overflow = overflow,
                                 .offset_ok = 1,
                                 .offset_ns = OFFSET_NS,
                                 .offset_how = "edges",
                                 .offset_bound_ns = PERIOD_NS / 16};
    if (!l) {
        g->st = err_set(ERR_NOMEM, "out of memory for a made-up session");
        return;
    }
    progress(g, "counters", 0, 1);
    for (int i = 0; i < LIVE_METRICS; i++) pack_metric(&b, synth_metrics[i].metric);
    begin.metrics = (struct blob){b.data, (uint32_t)b.len};
    synth_emit(g, FRAME_WINDOW_BEGIN, &begin);
    unsigned n = launches(g, l);
    send_spans(g, l, n);
    send_samples(g, l, n);
    end.dropped = overflow ? 212 : 0;
    synth_emit(g, FRAME_WINDOW_END, &end);
    round_end(g, "pm");
    buf_free(&b);
    free(l);
}

/* ---- the other counted rounds ---- */

static void pc_round(struct synth *g)
{
    static const char *const reasons[] = {"selected",    "math_pipe_throttle", "short_scoreboard",
                                          "barrier",     "long_scoreboard",    "wait",
                                          "not_selected"};
    static const int weight[] = {22, 26, 17, 9, 8, 12, 6};
    g->round++;
    for (unsigned op = 0; op < synth_nops; op++) {
        struct msg_stalls m = {.kernel = synth_op_kernel(g, op),
                               .generation = g->generation,
                               .round = g->round,
                               .source = "pc"};
        struct buf b = {0};
        if (op != 0 && op != 7) continue; /* the GEMM and attention */
        for (unsigned i = 0; i < sizeof weight / sizeof *weight; i++) {
            double w = weight[i] * (i == 3 && !strcmp(g->v->variant, "nb") ? 0.3 : 1);
            uint64_t count = (uint64_t)(w * 900 * synth_about(g, 0.05));
            m.samples += count;
            pack_stall(&b, reasons[i], count, i ? count / 3 : 0);
        }
        m.reasons = (struct blob){b.data, (uint32_t)b.len};
        synth_emit(g, FRAME_STALLS, &m);
        buf_free(&b);
    }
    round_end(g, "pc");
}

static void counter(struct synth *g, unsigned op, uint16_t metric, double v)
{
    struct msg_counter m = {.row = synth_row_number(g, op),
                            .metric = metric,
                            .source = "range",
                            .state = VALUE_OK,
                            .v = v,
                            .spread = 0,
                            .n = 4};
    synth_emit(g, FRAME_COUNTER, &m);
}

static void range_round(struct synth *g)
{
    g->round++;
    for (unsigned op = 0; op < 4; op++) {
        double macs = (double)synth_ops[op].m * synth_ops[op].n * synth_ops[op].k;
        double inst = floor(macs / 4096 * (60 + g->v->lds) / 32);
        counter(g, op, 23, inst);
        counter(g, op, 25, g->v->ipc * 1.01);
        counter(g, op, 22, floor(inst / g->v->ipc / 132));
    }
    round_end(g, "range");
}

void synth_rounds(struct synth *g)
{
    for (int i = 0; i < TIMED_ROUNDS; i++) {
        synth_timed_round(g);
        if (i == 1) pm_round(g, g->generation == 2);
        if (i == 2) pc_round(g);
        if (i == 3) range_round(g);
    }
}
