/*
 * PM windows: spans from the launching thread and samples from the decode thread meet here, and
 * leave together as frames when both are complete.
 *
 * Invariant, under `lock`: an open window is sent exactly once, by whichever side completes it. At
 * most COLLECT_WINDOW_SAMPLES samples are kept, the earliest; spans that end before the first or
 * start after the last kept sample are left out, since nothing can be joined to them. Spans and
 * samples are in CUPTI's one clock (offset 0 was measured right), so the offset is sent as known
 * and 0.
 */
#include "engine/collect_priv.h"

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
                               .overflow = w->overflow,
                               .offset_ok = 1};
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
