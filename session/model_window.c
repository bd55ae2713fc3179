/*
 * PM windows: samples and spans are kept while a window is open and joined by time when it ends.
 *
 * A sample belongs to the rows whose spans it overlaps, in the one clock (offset_ns applied):
 *  - one known row covers it whole (adjacent launches of that row together): a *steady* sample;
 *  - one known row and idle time: it enters that row's *whole* figure with all its weight, since
 *    an idle chip adds nothing to it;
 *  - several rows, or a row and a kernel nobody knows: shared, attributed to none; only the whole
 *    figure takes its part by overlap, and the row counts it in shared_samples.
 * Invariants: a window that overflowed, or whose offset was not measured, gives no figure; room is
 * bounded by MAX_WINDOW_*; the work of a join is linear in samples and spans.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/window_priv.h"

enum {
    COVER_SLACK = 100
}; /* 1/100 of a sample may be uncovered: launches of one row don't touch */

#define TIME_MAX      ((uint64_t)1 << 61)
#define OFFSET_MAX_NS ((int64_t)1000 * 1000 * 1000) /* a larger one was not measured right */

void window_free(struct window_fold *w)
{
    if (!w) return;
    free(w->samples);
    free(w->spans);
    free(w);
}

enum status fold_window_begin(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_window_begin *d = &m->window_begin;
    struct rd r = rd_make(d->metrics.data, d->metrics.len);
    uint16_t number;

    (void)f;
    window_free(s->window); /* one that never ended: its engine did */
    s->window = NULL;
    if (d->metrics.len > 2 * WIRE_METRICS_MAX || d->metrics.len % 2) return fold_garbled(s);
    struct window_fold *w = calloc(1, sizeof *w);
    if (!w) return err_set(ERR_NOMEM, "out of memory for a PM window");
    w->def = *d;
    w->def.metrics = (struct blob){0};
    w->cutoff = UINT64_MAX;
    while (unpack_metric(&r, &number)) {
        int at = fold_find_metric(s, number);
        w->metric[w->nmetrics++] = at < 0 ? METRIC_UNKNOWN : (uint16_t)at;
    }
    s->window = w;
    return OK;
}

enum status fold_spans(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_spans *d = &m->spans;
    struct window_fold *w = s->window;
    struct rd r = rd_make(d->spans.data, d->spans.len);
    struct span_item it;
    uint64_t prev = 0;

    (void)f;
    if (!w || w->def.window != d->window) return fold_garbled(s);
    while (unpack_span(&r, &prev, &it)) {
        if (it.start > TIME_MAX || it.dur > TIME_MAX) return fold_garbled(s);
        if (w->nspans == MAX_WINDOW_SPANS) {
            s->overflowed++;
            if (it.start < w->cutoff) w->cutoff = it.start;
            continue;
        }
        enum status st = fold_grow(&w->spans, w->nspans, sizeof *w->spans);
        if (st != OK) return st;
        w->spans[w->nspans++] =
            (struct window_span){.start = it.start,
                                 .end = it.start + it.dur,
                                 .row = it.row < MAX_ROWS ? s->row_map[it.row] : 0};
    }
    return r.bad ? fold_garbled(s) : OK;
}

enum status fold_pm_samples(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_pm_samples *d = &m->pm_samples;
    struct window_fold *w = s->window;
    struct rd r = rd_make(d->samples.data, d->samples.len);
    struct pm_item it;
    uint64_t prev = 0;

    (void)f;
    if (!w || w->def.window != d->window) return fold_garbled(s);
    while (unpack_pm(&r, &prev, &it, w->nmetrics)) {
        if (it.start > TIME_MAX || it.dur > TIME_MAX) return fold_garbled(s);
        if (w->nsamples == MAX_WINDOW_SAMPLES) {
            s->overflowed++;
            continue;
        }
        enum status st = fold_grow(&w->samples, w->nsamples, sizeof *w->samples);
        if (st != OK) return st;
        w->samples[w->nsamples++] = it;
    }
    return r.bad ? fold_garbled(s) : OK;
}

static int compare_samples(const void *a, const void *b)
{
    const struct pm_item *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->dur > y->dur) - (x->dur < y->dur);
}

/* Spans into the samples' clock; times are bounded by TIME_MAX, so nothing wraps. */
static void shift_spans(struct window_fold *w, int64_t offset)
{
    for (uint32_t i = 0; i < w->nspans; i++) {
        struct window_span *sp = &w->spans[i];
        int64_t start = (int64_t)sp->start + offset, end = (int64_t)sp->end + offset;
        sp->start = start < 0 ? 0 : (uint64_t)start;
        sp->end = end < 0 ? 0 : (uint64_t)end;
    }
    if (w->cutoff != UINT64_MAX)
        w->cutoff = (int64_t)w->cutoff + offset < 0 ? 0 : (uint64_t)((int64_t)w->cutoff + offset);
}

static void count_launches(struct session *s, const struct window_fold *w)
{
    for (uint32_t i = 0; i < w->nspans; i++) {
        if (w->spans[i].row == 0) continue;
        struct row *r = &s->rows[w->spans[i].row - 1];
        uint64_t ns = w->spans[i].end - w->spans[i].start;
        if (r->window_ns > (1ull << 62) - ns) continue;
        r->window_calls++;
        r->window_ns += ns;
    }
}

static enum status add_sample(struct session *s, const struct window_fold *w, uint32_t row,
                              const struct pm_item *it, double weight, double ns, bool steady)
{
    unsigned n = w->nmetrics < PM_METRICS_MAX ? w->nmetrics : PM_METRICS_MAX;

    for (unsigned i = 0; i < n; i++) {
        struct row_metric *rm;
        if (w->metric[i] == METRIC_UNKNOWN || !isfinite(it->v[i])) continue;
        enum status st = fold_row_metric(s, &s->rows[row - 1], w->metric[i], &rm);
        if (st != OK) return st;
        if (!rm) continue;
        memcpy(rm->live_source, w->def.source, sizeof rm->live_source);
        if (steady) stat_add(&rm->steady, it->v[i]);
        rm->whole_weighted += it->v[i] * weight;
        rm->whole_ns += ns;
        rm->whole_samples++;
        rm->live_t_ns = s->t_ns;
    }
    return OK;
}

static enum status attribute(struct session *s, const struct window_fold *w,
                             const struct pm_item *it, const struct overlap *o, unsigned rows,
                             struct window_summary *sum)
{
    uint64_t total = 0;
    enum status st = OK;

    if (rows == 0) {
        sum->idle++;
        return OK;
    }
    if (rows == 1) {
        if (o[0].row == 0) return OK; /* a kernel nobody knows, alone */
        bool steady = it->dur - o[0].ns <= it->dur / COVER_SLACK;
        sum->whole += steady;
        return add_sample(s, w, o[0].row, it, (double)it->dur, (double)o[0].ns, steady);
    }
    sum->shared++;
    for (unsigned i = 0; i < rows; i++) total += o[i].ns;
    for (unsigned i = 0; i < rows && st == OK; i++) {
        if (o[i].row == 0) continue;
        s->rows[o[i].row - 1].shared_samples++;
        double part = (double)it->dur * (double)o[i].ns / (double)total;
        st = add_sample(s, w, o[i].row, it, part, (double)o[i].ns, false);
    }
    return st;
}

/* Walks samples and spans in order of time. */
static enum status join(struct session *s, struct window_fold *w, struct window_summary *sum)
{
    struct overlap rows[OVERLAP_MAX];
    struct overlap_walk walk = {0};
    enum status st = OK;

    for (uint32_t i = 0; i < w->nsamples && st == OK; i++) {
        const struct pm_item *it = &w->samples[i];
        if (it->dur == 0 || it->start + it->dur > w->cutoff) continue;
        int n = overlap_next(&walk, w->spans, w->nspans, it->start, it->start + it->dur, rows);
        if (n < 0) {
            sum->shared++;
            s->overflowed++;
            continue;
        }
        st = attribute(s, w, it, rows, (unsigned)n, sum);
    }
    return st;
}

static void summarise(struct session *s, const struct window_fold *w,
                      const struct msg_window_end *d)
{
    struct window_summary *sum = &s->last_window;

    *sum = (struct window_summary){.window = d->window,
                                   .period_ns = w->def.period_ns,
                                   .samples = w->nsamples,
                                   .spans = w->nspans,
                                   .dropped = d->dropped,
                                   .overflow = d->overflow != 0,
                                   .offset_ok = d->offset_ok != 0,
                                   .offset_ns = d->offset_ns,
                                   .offset_bound_ns = d->offset_bound_ns};
    snprintf(sum->offset_how, sizeof sum->offset_how, "%s", d->offset_how);
    snprintf(sum->offset_why, sizeof sum->offset_why, "%s", d->offset_why);
    if (d->offset_ns > OFFSET_MAX_NS || d->offset_ns < -OFFSET_MAX_NS) sum->offset_ok = false;
    memcpy(sum->source, w->def.source, sizeof sum->source);
}

/* From the start of the first sample to the end of the last. */
static uint64_t length_of(const struct window_fold *w)
{
    uint64_t from = UINT64_MAX, to = 0;
    for (uint32_t i = 0; i < w->nsamples; i++) {
        if (w->samples[i].start < from) from = w->samples[i].start;
        if (w->samples[i].start + w->samples[i].dur > to)
            to = w->samples[i].start + w->samples[i].dur;
    }
    return to > from && to - from < 1ull << 40 ? to - from : 0;
}

enum status fold_window_end(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_window_end *d = &m->window_end;
    struct window_fold *w = s->window;
    enum status st = OK;

    if (!w || w->def.window != d->window) return fold_garbled(s);
    s->window = NULL;
    summarise(s, w, d);
    s->open_ns += length_of(w);
    count_launches(s, w);
    if (s->last_window.offset_ok) shift_spans(w, d->offset_ns);
    if (w->nspans) qsort(w->spans, w->nspans, sizeof *w->spans, overlap_compare_spans);
    if (w->nsamples) qsort(w->samples, w->nsamples, sizeof *w->samples, compare_samples);
    st = trace_keep(s, w, f->t_ns);
    if (st != OK) goto out;
    if (s->last_window.overflow || !s->last_window.offset_ok) {
        s->windows_unused++;
        if (s->last_window.overflow)
            fold_event(s, f->t_ns, "log", 1, "window %u: the sampler overflowed; not used",
                       d->window);
        else if (s->last_window.offset_why[0])
            fold_event(s, f->t_ns, "log", 1, "window %u: no clock offset: %s; not used", d->window,
                       s->last_window.offset_why);
        goto out;
    }
    s->windows++;
    st = join(s, w, &s->last_window);
    if (st == OK) st = estimate_window(s, w);
out:
    window_free(w);
    return st;
}
