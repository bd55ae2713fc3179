/*
 * The fold's part for timelines and traces: the newest windows as they were sampled, whole, up to
 * MAX_TRACE_* over all of them. The oldest leave first; their launches are counted.
 *
 * Times are the session's. CUPTI's clock is the wall clock; where a recording's is another, a
 * window is taken to end at its last frame.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/window_priv.h"

static void drop_oldest(struct session *s)
{
    struct trace_window *w = &s->trace[0];

    s->trace_left_out += w->nspans;
    s->trace_spans -= w->nspans;
    s->trace_samples -= w->nsamples;
    free(w->samples);
    free(w->spans);
    s->ntrace--;
    memmove(s->trace, s->trace + 1, s->ntrace * sizeof *s->trace);
}

void trace_free(struct session *s)
{
    while (s->ntrace) drop_oldest(s);
    free(s->trace);
    s->trace = NULL;
}

static uint64_t start_of(const struct session *s, const struct window_fold *w, uint64_t end_t_ns)
{
    uint64_t wall = s->hello.wall_ns, base = w->def.base_ns, longest = 0;

    for (uint32_t i = 0; i < w->nspans; i++)
        if (w->spans[i].end > longest) longest = w->spans[i].end;
    if (base >= wall && base - wall + longest <= end_t_ns + 1000000000u) return base - wall;
    return end_t_ns > longest ? end_t_ns - longest : 0;
}

static uint32_t clip32(uint64_t v)
{
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static void copy_spans(struct session *s, struct trace_window *to, const struct window_fold *w,
                       uint64_t at)
{
    for (uint32_t i = 0; i < w->nspans; i++) {
        const struct window_span *sp = &w->spans[i];
        if (sp->end <= sp->start) continue;
        if (!to->generation && sp->row) to->generation = s->rows[sp->row - 1].def.generation;
        to->spans[to->nspans++] = (struct trace_span){
            .t_ns = at + sp->start, .dur_ns = clip32(sp->end - sp->start), .row = sp->row};
    }
}

static void copy_samples(struct trace_window *to, const struct window_fold *w, uint64_t at)
{
    for (uint32_t i = 0; i < w->nsamples; i++) {
        const struct pm_item *it = &w->samples[i];
        struct trace_sample *t = &to->samples[to->nsamples++];
        t->t_ns = at + it->start;
        t->dur_ns = clip32(it->dur);
        for (unsigned m = 0; m < PM_METRICS_MAX; m++)
            t->v[m] = m < to->nmetrics ? (float)it->v[m] : NAN;
    }
}

enum status trace_keep(struct session *s, const struct window_fold *w, uint64_t end_t_ns)
{
    struct trace_window t = {.window = w->def.window,
                             .round = w->def.round,
                             .period_ns = w->def.period_ns,
                             .used = !s->last_window.overflow && s->last_window.offset_ok};

    if (!w->nspans && !w->nsamples) return OK;
    t.nmetrics = w->nmetrics < PM_METRICS_MAX ? w->nmetrics : PM_METRICS_MAX;
    memcpy(t.metric, w->metric, t.nmetrics * sizeof t.metric[0]);
    while (s->ntrace &&
           (s->ntrace == MAX_TRACE_WINDOWS || s->trace_spans + w->nspans > MAX_TRACE_SPANS ||
            s->trace_samples + w->nsamples > MAX_TRACE_SAMPLES))
        drop_oldest(s);
    if (!s->trace && !(s->trace = calloc(MAX_TRACE_WINDOWS, sizeof *s->trace)))
        return err_set(ERR_NOMEM, "out of memory for the timeline");
    t.spans = malloc((w->nspans + 1) * sizeof *t.spans);
    t.samples = malloc((w->nsamples + 1) * sizeof *t.samples);
    if (!t.spans || !t.samples) {
        free(t.spans);
        free(t.samples);
        return err_set(ERR_NOMEM, "out of memory for the timeline");
    }
    uint64_t at = start_of(s, w, end_t_ns);
    copy_spans(s, &t, w, at);
    copy_samples(&t, w, at);
    s->trace_spans += t.nspans;
    s->trace_samples += t.nsamples;
    s->trace[s->ntrace++] = t;
    return OK;
}
