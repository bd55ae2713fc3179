/*
 * PM windows: spans from the launching thread and samples from the decode thread meet here, and
 * leave together as frames when both are complete.
 *
 * Invariant, under `lock`: an open window is sent exactly once, by whichever side completes it. At
 * most COLLECT_WINDOW_SAMPLES samples are kept, the earliest; spans that end before the first or
 * start after the last kept sample are left out, since nothing can be joined to them. Spans and
 * samples are meant to be in CUPTI's one clock; what is between them is measured in every window by
 * its edges (session/align.h), since all attribution rests on it. A window that has no edges to
 * measure by carries the offset of one that was measured at most CARRY_NS before, with a wider
 * bound; else it goes without, and no figure is made of it.
 */
#include "engine/collect_priv.h"

#include "session/align.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void window_begin(struct collect *c, uint32_t period_ns)
{
    struct window *w = &c->w;
    pthread_mutex_lock(&c->lock);
    w->number = ++c->windows;
    w->round = c->round;
    w->period_ns = period_ns;
    w->open = true;
    w->spans_done = w->samples_done = w->overflow = false;
    w->nids = w->nsamples = w->nspans = 0;
    w->cut = w->lost = 0;
    pthread_mutex_unlock(&c->lock);
}

void window_span(struct collect *c, const struct span_item *s)
{
    struct window *w = &c->w;
    pthread_mutex_lock(&c->lock);
    if (w->open && w->nspans < COLLECT_WINDOW_SPANS) w->spans[w->nspans++] = *s;
    pthread_mutex_unlock(&c->lock);
}

void window_sample(struct collect *c, const struct counter_pm_sample *s)
{
    struct window *w = &c->w;
    pthread_mutex_lock(&c->lock);
    if (!w->open) {
        pthread_mutex_unlock(&c->lock);
        return;
    }
    if (!w->nids) {
        w->nids = s->n < PM_METRICS_MAX ? s->n : (unsigned)PM_METRICS_MAX;
        memcpy(w->ids, s->ids, w->nids * sizeof w->ids[0]);
    }
    if (w->nsamples == COLLECT_WINDOW_SAMPLES) {
        w->cut++;
    } else {
        struct window_sample *to = &w->samples[w->nsamples++];
        to->start = s->start_ns;
        to->end = s->end_ns;
        for (unsigned i = 0; i < w->nids; i++) to->v[i] = i < s->n ? (float)s->values[i] : NAN;
    }
    pthread_mutex_unlock(&c->lock);
}

static int by_start(const void *a, const void *b)
{
    const struct span_item *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void send_begin(struct collect *c, uint64_t base)
{
    struct window *w = &c->w;
    struct msg_window_begin m = {
        .window = w->number, .round = w->round, .period_ns = w->period_ns, .base_ns = base};
    snprintf(m.source, sizeof m.source, "%s", collect_label(c, COUNTER_PM));
    buf_reset(&w->bytes);
    for (unsigned i = 0; i < w->nids; i++) pack_metric(&w->bytes, w->ids[i]);
    m.metrics = (struct blob){w->bytes.data, (uint32_t)w->bytes.len};
    emit_send(c->e->emit, FRAME_WINDOW_BEGIN, &m);
}

static void send_spans(struct collect *c, uint64_t base, uint64_t first, uint64_t last)
{
    struct window *w = &c->w;
    uint32_t i = 0;
    qsort(w->spans, w->nspans, sizeof *w->spans, by_start);
    while (i < w->nspans && w->spans[i].start + w->spans[i].dur < first) i++;
    while (i < w->nspans && w->spans[i].start <= last) {
        struct msg_spans m = {.window = w->number};
        uint64_t prev = 0;
        buf_reset(&w->bytes);
        for (; i < w->nspans && w->spans[i].start <= last && w->bytes.len < COLLECT_FRAME_BYTES;
             i++, m.count++) {
            struct span_item s = w->spans[i];
            s.start -= base;
            pack_span(&w->bytes, &prev, &s);
        }
        m.spans = (struct blob){w->bytes.data, (uint32_t)w->bytes.len};
        emit_send(c->e->emit, FRAME_SPANS, &m);
    }
}

static void send_samples(struct collect *c, uint64_t base)
{
    struct window *w = &c->w;
    uint32_t i = 0;
    while (i < w->nsamples) {
        struct msg_pm_samples m = {.window = w->number};
        uint64_t prev = 0;
        buf_reset(&w->bytes);
        for (; i < w->nsamples && w->bytes.len < COLLECT_FRAME_BYTES; i++, m.count++) {
            const struct window_sample *s = &w->samples[i];
            struct pm_item it = {.start = s->start - base, .dur = s->end - s->start};
            for (unsigned j = 0; j < w->nids; j++) it.v[j] = (double)s->v[j];
            pack_pm(&w->bytes, &prev, &it, w->nids);
        }
        m.samples = (struct blob){w->bytes.data, (uint32_t)w->bytes.len};
        emit_send(c->e->emit, FRAME_PM_SAMPLES, &m);
    }
}

/* H200, driver 580: no drift was seen in 48 s; this allows for 20 ns a second. */
static const uint64_t CARRY_NS = 60000000000ull;
enum { CARRY_BOUND_NS = 1200 };

static int by_sample_start(const void *a, const void *b)
{
    const struct pm_item *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* The window's spans and samples as the aligner wants them, and its answer. */
static enum status align_window(const struct window *w, uint64_t base, struct align *out)
{
    struct window_span *spans = calloc(w->nspans + 1u, sizeof *spans);
    struct pm_item *items = calloc(w->nsamples + 1u, sizeof *items);
    uint32_t n = 0, m = 0;
    enum status st = OK;

    if (!spans || !items) {
        st = err_set(ERR_NOMEM, "out of memory for aligning a window");
        goto out;
    }
    for (uint32_t i = 0; i < w->nspans; i++) {
        const struct span_item *s = &w->spans[i];
        if (s->start < base) continue;
        spans[n++] = (struct window_span){s->start - base, s->start - base + s->dur, s->row};
    }
    for (uint32_t i = 0; i < w->nsamples; i++) {
        const struct window_sample *s = &w->samples[i];
        if (s->start < base) continue;
        items[m] = (struct pm_item){.start = s->start - base, .dur = s->end - s->start};
        for (unsigned j = 0; j < w->nids; j++) items[m].v[j] = (double)s->v[j];
        m++;
    }
    qsort(spans, n, sizeof *spans, overlap_compare_spans);
    qsort(items, m, sizeof *items, by_sample_start);
    st = align_clocks(spans, n, items, m, w->nids, w->period_ns, out);
out:
    free(spans);
    free(items);
    return st;
}

/* What the window's last frame says of the clocks. */
static void measure_offset(struct collect *c, uint64_t base, uint64_t last,
                           struct msg_window_end *m)
{
    struct align a = {0};
    struct clock_offset *known = &c->offset;

    if (c->synthetic) { /* spans and samples are made in one virtual clock */
        m->offset_ok = 1;
        snprintf(m->offset_how, sizeof m->offset_how, "one clock");
        return;
    }
    if (align_window(&c->w, base, &a) != OK) a.why = "out of memory for aligning a window";
    if (a.ok) {
        *known = (struct clock_offset){last, a.offset_ns, a.bound_ns};
        snprintf(m->offset_how, sizeof m->offset_how, "edges");
    } else if (known->at && last - known->at < CARRY_NS) {
        snprintf(m->offset_how, sizeof m->offset_how, "carried");
        snprintf(m->offset_why, sizeof m->offset_why, "%s", a.why);
    } else {
        snprintf(m->offset_how, sizeof m->offset_how, "none");
        snprintf(m->offset_why, sizeof m->offset_why, "%s", a.why);
        return;
    }
    m->offset_ok = 1;
    m->offset_ns = known->ns;
    m->offset_bound_ns = known->bound_ns + (a.ok ? 0 : CARRY_BOUND_NS);
}

/* Start of the earliest sample and end of the latest; 0, 0 without samples. */
static uint64_t bounds(const struct window *w, uint64_t *last)
{
    uint64_t first = UINT64_MAX;
    *last = 0;
    for (uint32_t i = 0; i < w->nsamples; i++) {
        if (w->samples[i].start < first) first = w->samples[i].start;
        if (w->samples[i].end > *last) *last = w->samples[i].end;
    }
    return w->nsamples ? first : 0;
}

/* The earliest time of what is sent: a span may have begun before the first sample. */
static uint64_t base_of(const struct window *w, uint64_t first)
{
    uint64_t base = first;
    for (uint32_t i = 0; i < w->nspans; i++)
        if (w->spans[i].start < base && w->spans[i].start + w->spans[i].dur >= first)
            base = w->spans[i].start;
    return base;
}

/* Under the lock. */
static void send_if_complete(struct collect *c)
{
    struct window *w = &c->w;
    uint64_t first, last, base;
    if (!w->open || !w->spans_done || !w->samples_done) return;
    w->open = false;
    first = bounds(w, &last);
    base = base_of(w, first);
    send_begin(c, base);
    send_spans(c, base, first, last);
    send_samples(c, base);
    uint64_t dropped = w->cut + w->lost;
    struct msg_window_end m = {.window = w->number,
                               .dropped = dropped > UINT32_MAX ? UINT32_MAX : (uint32_t)dropped,
                               .overflow = w->overflow};
    if (w->nsamples && !w->overflow) measure_offset(c, base, last, &m);
    emit_send(c->e->emit, FRAME_WINDOW_END, &m);
}

void window_samples_done(struct collect *c, const struct counter_window *cw)
{
    pthread_mutex_lock(&c->lock);
    c->w.samples_done = true;
    c->w.lost += cw->dropped;
    c->w.overflow |= cw->overflow;
    send_if_complete(c);
    pthread_mutex_unlock(&c->lock);
}

void window_spans_done(struct collect *c)
{
    pthread_mutex_lock(&c->lock);
    c->w.spans_done = true;
    send_if_complete(c);
    pthread_mutex_unlock(&c->lock);
}

void window_abandon(struct collect *c)
{
    pthread_mutex_lock(&c->lock);
    c->w.open = false;
    pthread_mutex_unlock(&c->lock);
}
