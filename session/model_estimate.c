/*
 * Estimates for kernels that are shorter than a sample: the windows of a generation are one system
 * of levels (levels.h), solved anew as they come. The rows' row_metric hold the outcome; a
 * generation that has ended keeps what it had last. Samples with a kernel that nobody knows are
 * left out.
 *
 * Invariant: a row's row_metric exists wherever a window's sample touched it; those that
 * MAX_ROW_METRICS left no room for get no estimate.
 */
#include <math.h>
#include <string.h>

#include "session/window_priv.h"

/* A standard error of this much is loose, when it is over a tenth of the level too. */
static const double LOOSE_PERCENT = 2;

typedef void sample_fn(struct levels *l, const int *place, const double *part, unsigned n,
                       const double *value);

void estimate_free(struct session *s)
{
    levels_free(s->levels);
    s->levels = NULL;
}

static uint32_t generation_of(const struct session *s, const struct window_fold *w)
{
    for (uint32_t i = 0; i < w->nspans; i++)
        if (w->spans[i].row) return s->rows[w->spans[i].row - 1].def.generation;
    return 0;
}

static unsigned metrics_of(const struct window_fold *w)
{
    return w->nmetrics < LEVELS_METRICS_MAX ? w->nmetrics : LEVELS_METRICS_MAX;
}

static bool is_percent(const struct session *s, uint16_t metric)
{
    return metric != METRIC_UNKNOWN && !strcmp(s->metrics[metric].unit, "%");
}

/* The system of the window's generation; *out NULL: the window is of one that is over. */
static enum status system_of(struct session *s, const struct window_fold *w, struct levels **out)
{
    uint32_t g = generation_of(s, w);
    unsigned n = metrics_of(w);
    double most[LEVELS_METRICS_MAX];

    *out = NULL;
    if (g == 0 || n == 0 || (s->levels && g < s->levels_generation)) return OK;
    if (!s->levels || g != s->levels_generation ||
        memcmp(s->levels_metric, w->metric, n * sizeof w->metric[0])) {
        estimate_free(s);
        for (unsigned i = 0; i < n; i++) most[i] = is_percent(s, w->metric[i]) ? 100 : INFINITY;
        if (!(s->levels = levels_new(n, most)))
            return err_set(ERR_NOMEM, "out of memory for estimates");
        s->levels_generation = g;
        s->levels_solved = 0;
        memcpy(s->levels_metric, w->metric, n * sizeof w->metric[0]);
    }
    *out = s->levels;
    return OK;
}

static void each_sample(const struct window_fold *w, struct levels *l, sample_fn *fn)
{
    struct overlap rows[OVERLAP_MAX];
    struct overlap_walk walk = {0};
    int place[OVERLAP_MAX];
    double part[OVERLAP_MAX];

    for (uint32_t i = 0; i < w->nsamples; i++) {
        const struct pm_item *it = &w->samples[i];
        if (it->dur == 0 || it->start + it->dur > w->cutoff) continue;
        int n = overlap_next(&walk, w->spans, w->nspans, it->start, it->start + it->dur, rows);
        n = levels_parts(l, rows, n, it->dur, place, part);
        if (n > 0) fn(l, place, part, (unsigned)n, it->v);
    }
}

static enum status store(struct session *s, const struct window_fold *w, const struct levels *l)
{
    unsigned n = metrics_of(w);

    for (unsigned p = 0; p < levels_rows(l); p++)
        for (unsigned m = 0; m < n; m++) {
            struct row_metric *rm;
            if (w->metric[m] == METRIC_UNKNOWN) continue;
            enum status st =
                fold_row_metric(s, &s->rows[levels_row_at(l, p) - 1], w->metric[m], &rm);
            if (st != OK) return st;
            if (!rm) continue;
            double loose = is_percent(s, w->metric[m]) ? LOOSE_PERCENT : 0;
            levels_get(l, m, p, loose, &rm->estimate);
            rm->has_estimate = true;
        }
    return OK;
}

/* Solving costs the same however little a window adds: not for a few samples, nor for under a
 * sixteenth of what the system holds. */
static bool due(struct session *s, uint64_t samples)
{
    enum { FEW = 64, PART = 16 };
    uint64_t more = samples - s->levels_solved;
    if (more < FEW || more < samples / PART) return false;
    s->levels_solved = samples;
    return true;
}

enum status estimate_window(struct session *s, const struct window_fold *w)
{
    struct levels *l;
    enum status st = system_of(s, w, &l);

    if (st != OK || !l) return st;
    each_sample(w, l, levels_add);
    if (!due(s, levels_samples(l))) return OK;
    levels_solve(l);
    each_sample(w, l, levels_check);
    return store(s, w, l);
}
