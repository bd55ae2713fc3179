/* Stretches of a window; see timeline.h. Invariant: samples and spans are in order of start. */
#include "session/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = 256 }; /* told apart in one stretch */

void timeline_bounds(const struct trace_window *w, uint64_t *from, uint64_t *to)
{
    *from = UINT64_MAX;
    *to = 0;
    for (uint32_t i = 0; i < w->nspans; i++) {
        if (w->spans[i].t_ns < *from) *from = w->spans[i].t_ns;
        if (w->spans[i].t_ns + w->spans[i].dur_ns > *to)
            *to = w->spans[i].t_ns + w->spans[i].dur_ns;
    }
    for (uint32_t i = 0; i < w->nsamples; i++) {
        if (w->samples[i].t_ns < *from) *from = w->samples[i].t_ns;
        if (w->samples[i].t_ns + w->samples[i].dur_ns > *to)
            *to = w->samples[i].t_ns + w->samples[i].dur_ns;
    }
    if (*from > *to) *from = *to = 0;
}

static uint64_t shared(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t from = a > c ? a : c, to = b < d ? b : d;
    return to > from ? to - from : 0;
}

/* The first sample that starts at t or later. */
static uint32_t sample_from(const struct trace_window *w, uint64_t t)
{
    uint32_t lo = 0, hi = w->nsamples;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (w->samples[mid].t_ns < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

double timeline_mean(const struct trace_window *w, int m, uint64_t from, uint64_t to)
{
    double sum = 0, ns = 0;

    if (m < 0 || m >= PM_METRICS_MAX) return NAN;
    /* Samples follow each other: at most the one before `from` reaches past it. */
    uint32_t first = sample_from(w, from);
    for (uint32_t i = first ? first - 1 : 0; i < w->nsamples && w->samples[i].t_ns < to; i++) {
        const struct trace_sample *t = &w->samples[i];
        double part = (double)shared(t->t_ns, t->t_ns + t->dur_ns, from, to);
        if (!isfinite(t->v[m]) || !(part > 0)) continue;
        sum += (double)t->v[m] * part;
        ns += part;
    }
    return ns > 0 ? sum / ns : (double)NAN;
}

uint32_t timeline_window(const struct session *s, uint64_t t)
{
    uint64_t from, to;
    for (uint32_t i = s->ntrace; i-- > 0;) {
        timeline_bounds(&s->trace[i], &from, &to);
        if (from <= t) return i;
    }
    return 0;
}

static int most_time_first(const void *a, const void *b)
{
    const struct timeline_lane *x = a, *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

uint32_t timeline_lanes(const struct trace_window *w, uint64_t from, uint64_t to,
                        struct timeline_lane *lanes, uint32_t max)
{
    struct timeline_lane all[LANES_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->nspans && w->spans[i].t_ns < to; i++) {
        const struct trace_span *t = &w->spans[i];
        uint64_t ns = shared(t->t_ns, t->t_ns + t->dur_ns, from, to);
        uint32_t k = 0;
        if (!ns) continue;
        while (k < n && all[k].row != t->row) k++;
        if (k == LANES_MAX) continue;
        if (k == n) all[n++] = (struct timeline_lane){.row = t->row};
        all[k].ns += ns;
        all[k].launches++;
    }
    qsort(all, n, sizeof *all, most_time_first);
    memcpy(lanes, all, (n < max ? n : max) * sizeof *all);
    return n;
}

void timeline_busy(const struct trace_window *w, uint32_t row, uint64_t from, uint64_t to,
                   float *busy, uint32_t n)
{
    double piece = (double)(to - from) / n;

    for (uint32_t i = 0; i < n; i++) busy[i] = 0;
    if (to <= from || !(piece > 0)) return;
    for (uint32_t i = 0; i < w->nspans && w->spans[i].t_ns < to; i++) {
        const struct trace_span *t = &w->spans[i];
        uint64_t a = t->t_ns > from ? t->t_ns : from, end = t->t_ns + t->dur_ns;
        uint64_t b = end < to ? end : to;
        if (t->row != row || a >= b) continue;
        double first = (double)(a - from) / piece, last = (double)(b - from) / piece;
        for (uint32_t k = (uint32_t)first; k < n && k < last; k++)
            busy[k] += (float)(fmin(last, k + 1.0) - fmax(first, k));
    }
    for (uint32_t i = 0; i < n; i++)
        if (busy[i] > 1) busy[i] = 1;
}

const struct trace_span *timeline_next(const struct trace_window *w, uint32_t row, uint64_t t,
                                       int dir)
{
    const struct trace_span *found = NULL;
    for (uint32_t i = 0; i < w->nspans; i++) {
        const struct trace_span *sp = &w->spans[i];
        if (sp->row != row) continue;
        if (dir > 0 && sp->t_ns > t) return sp;
        if (dir < 0 && sp->t_ns < t) found = sp;
    }
    return found;
}

bool timeline_name(const struct trace_window *w, uint64_t from, uint64_t to, uint32_t prefer,
                   struct timeline_named *out)
{
    struct timeline_lane lanes[LANES_MAX];
    uint32_t n = timeline_lanes(w, from, to, lanes, LANES_MAX), at = 0;

    *out = (struct timeline_named){.rows = n};
    if (!n) return false;
    for (uint32_t i = 0; i < n; i++) {
        out->launches += lanes[i].launches;
        if (lanes[i].row == prefer) at = i;
    }
    out->row = lanes[at].row;
    out->ns = lanes[at].ns;
    for (uint32_t i = 0; i < w->nspans && !out->span; i++) {
        const struct trace_span *sp = &w->spans[i];
        if (sp->row == out->row && shared(sp->t_ns, sp->t_ns + sp->dur_ns, from, to))
            out->span = sp;
    }
    return true;
}

static int metric_of(const struct session *s, const struct trace_window *w, const char *key)
{
    for (unsigned m = 0; m < w->nmetrics; m++)
        if (w->metric[m] < s->nmetrics && !strcmp(s->metrics[w->metric[m]].key, key)) return (int)m;
    return -1;
}

void timeline_graphs(const struct session *s, const struct trace_window *w, int at[TIMELINE_GRAPHS])
{
    static const char *const keys[TIMELINE_GRAPHS][3] = {
        {"sm_pct", "inst_pct", "sm_active_pct"}, {"tensor_pct"}, {"dram_pct", "l2_pct"}};

    for (int g = 0; g < TIMELINE_GRAPHS; g++) {
        at[g] = -1;
        for (int k = 0; k < 3 && keys[g][k] && at[g] < 0; k++) at[g] = metric_of(s, w, keys[g][k]);
    }
}

/* The samples that lie wholly inside the span. */
static void samples_in(const struct trace_window *w, const struct trace_span *sp,
                       struct timeline_launch *out)
{
    uint32_t i = sample_from(w, sp->t_ns);

    *out = (struct timeline_launch){.window = w, .span = sp, .first = i};
    while (i < w->nsamples && w->samples[i].t_ns + w->samples[i].dur_ns <= sp->t_ns + sp->dur_ns)
        i++;
    out->n = i - out->first;
}

bool timeline_newest(const struct session *s, uint32_t index, uint32_t least,
                     struct timeline_launch *out)
{
    for (uint32_t i = s->ntrace; i-- > 0;) {
        const struct trace_window *w = &s->trace[i];
        for (uint32_t k = w->used ? w->nspans : 0; k-- > 0;) {
            if (w->spans[k].row != index + 1) continue;
            samples_in(w, &w->spans[k], out);
            /* One that the window's end cut has fewer samples than it has room for. */
            bool covered = (uint64_t)(out->n + 2) * w->period_ns >= w->spans[k].dur_ns;
            if (out->n >= least && covered) return true;
        }
    }
    return false;
}
