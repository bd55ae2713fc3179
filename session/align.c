/* Edge alignment; see align.h. Two passes: eighths of a period over the whole range, then steps of
 * ALIGN_STEP_NS around the best place of each metric. */
#include "session/align.h"

#include <math.h>
#include <string.h>

#include "session/levels.h"

enum {
    PERIODS = 2,
    COARSE = 8,
    POINTS = 2 * PERIODS * COARSE + 1,
    SAMPLES_MAX = 1500,
    RIM = PERIODS + 2
};

/* Least bound, as a part of the period: windows of one clock (H200, 20 us, 27 windows of two
 * sessions) answered -1000 to 250 ns. */
enum { BOUND_PART = 16 };

static const double STEEP_MIN = 2;   /* residual a period away over the least one */
static const double EXPLAINED = 0.5; /* of the variance, at least */
static const double NOISE_FLOOR =
    1e-4; /* of the variance: a perfect fit would be endlessly steep */

struct scan {
    const struct window_span *spans;
    const struct pm_item *samples;
    uint32_t nspans, nsamples;
    unsigned metrics;
    double variance[LEVELS_METRICS_MAX];
};

/* Residuals of all metrics when spans are moved by `offset`. false: no memory. */
static bool residuals(struct scan *s, int64_t offset, double *out)
{
    struct levels *l = levels_new(s->metrics, NULL);
    struct overlap_walk walk = {0};
    struct overlap rows[OVERLAP_MAX];
    int place[OVERLAP_MAX];
    double part[OVERLAP_MAX];

    if (!l) return false;
    for (uint32_t i = 0; i < s->nsamples; i++) {
        const struct pm_item *it = &s->samples[i];
        int64_t from = (int64_t)it->start - offset;
        if (it->dur == 0 || from < 0) continue;
        int n = overlap_next(&walk, s->spans, s->nspans, (uint64_t)from, (uint64_t)from + it->dur,
                             rows);
        n = levels_parts(l, rows, n, it->dur, place, part);
        if (n >= 0) levels_add(l, place, part, (unsigned)n, it->v);
    }
    for (unsigned m = 0; m < s->metrics; m++) {
        out[m] = levels_residual(l, m);
        s->variance[m] = levels_variance(l, m);
        if (out[m] < NOISE_FLOOR * s->variance[m]) out[m] = NOISE_FLOOR * s->variance[m];
    }
    levels_free(l);
    return true;
}

/* Of one metric: where its residual is least, and how steeply it rises within a period. */
struct answer {
    int64_t offset;
    double steep;
};

static struct answer coarse_answer(const struct scan *s, double r[POINTS][LEVELS_METRICS_MAX],
                                   unsigned m, uint32_t period)
{
    struct answer a = {0};
    int best = 0;

    for (int i = 0; i < POINTS; i++) {
        if (!isfinite(r[i][m])) return a;
        if (r[i][m] < r[best][m]) best = i;
    }
    /* At the rim the true place may lie outside. */
    if (best < COARSE || best >= POINTS - COARSE || !(r[best][m] > 0)) return a;
    if (r[best][m] > (1 - EXPLAINED) * s->variance[m]) return a;
    a.offset = ((int64_t)best - PERIODS * COARSE) * (int64_t)period / COARSE;
    a.steep = fmin(r[best - COARSE][m], r[best + COARSE][m]) / r[best][m];
    return a;
}

/* The fine place of every metric within an eighth of a period of its coarse one. */
static bool refine(struct scan *s, struct answer *a, uint32_t period)
{
    double r[LEVELS_METRICS_MAX], least[LEVELS_METRICS_MAX];
    int64_t lo = INT64_MAX, hi = INT64_MIN, eighth = (int64_t)period / COARSE;
    struct answer fine[LEVELS_METRICS_MAX];

    int64_t step = eighth / 16 > ALIGN_STEP_NS ? eighth / 16 : ALIGN_STEP_NS;

    memcpy(fine, a, sizeof fine);
    for (unsigned m = 0; m < s->metrics; m++) {
        least[m] = INFINITY;
        if (!(a[m].steep > 0)) continue;
        if (a[m].offset - eighth < lo) lo = a[m].offset - eighth;
        if (a[m].offset + eighth > hi) hi = a[m].offset + eighth;
    }
    for (int64_t at = lo; at <= hi && lo < hi; at += step) {
        if (!residuals(s, at, r)) return false;
        for (unsigned m = 0; m < s->metrics; m++) {
            bool near = at >= a[m].offset - eighth && at <= a[m].offset + eighth;
            if (!(a[m].steep > 0) || !near || !(r[m] < least[m])) continue;
            least[m] = r[m];
            fine[m].offset = at;
        }
    }
    memcpy(a, fine, sizeof fine);
    return true;
}

/* Takes the steepest; those that have no say get a steepness of 0. */
static void take_steepest(struct answer *a, unsigned metrics, struct align *out)
{
    for (unsigned m = 0; m < metrics; m++)
        if (a[m].steep > a[out->metric].steep) out->metric = m;
    out->steep = a[out->metric].steep;
    for (unsigned m = 0; m < metrics; m++)
        if (a[m].steep < out->steep / 3 || a[m].steep < STEEP_MIN) a[m].steep = 0;
}

static void judge(const struct answer *a, unsigned metrics, uint32_t period_ns, struct align *out)
{
    uint64_t bound = period_ns / BOUND_PART;

    out->why = "the samples show no edges that the launches explain";
    if (out->steep < STEEP_MIN) return;
    for (unsigned m = 0; m < metrics; m++) {
        if (!(a[m].steep > 0)) continue;
        int64_t d = a[m].offset - a[out->metric].offset;
        if ((uint64_t)(d < 0 ? -d : d) > bound) bound = (uint64_t)(d < 0 ? -d : d);
    }
    out->ok = true;
    out->why = NULL;
    out->offset_ns = a[out->metric].offset;
    out->bound_ns = (uint32_t)bound;
}

enum status align_clocks(const struct window_span *spans, uint32_t nspans,
                         const struct pm_item *samples, uint32_t nsamples, unsigned metrics,
                         uint32_t period_ns, struct align *out)
{
    struct scan s = {.spans = spans, .samples = samples, .nspans = nspans, .metrics = metrics};
    double r[POINTS][LEVELS_METRICS_MAX];
    struct answer a[LEVELS_METRICS_MAX] = {{0}};

    *out = (struct align){.why = "too few samples or launches to align"};
    s.nsamples = nsamples < SAMPLES_MAX ? nsamples : SAMPLES_MAX;
    /* Launches outside the samples aren't known, so samples near the rim can't be moved. */
    if (s.nsamples > 2 * RIM) s.samples += RIM, s.nsamples -= 2 * RIM;
    if (s.metrics > LEVELS_METRICS_MAX) s.metrics = LEVELS_METRICS_MAX;
    if (s.nsamples < ALIGN_MIN_SAMPLES || nspans < 2 || period_ns < COARSE || period_ns > 100000000)
        return OK;
    for (int i = 0; i < POINTS; i++)
        if (!residuals(&s, ((int64_t)i - PERIODS * COARSE) * (int64_t)period_ns / COARSE, r[i]))
            return err_set(ERR_NOMEM, "out of memory for aligning a window");
    for (unsigned m = 0; m < s.metrics; m++) a[m] = coarse_answer(&s, r, m, period_ns);
    take_steepest(a, s.metrics, out);
    if (!refine(&s, a, period_ns)) return err_set(ERR_NOMEM, "out of memory for aligning a window");
    judge(a, s.metrics, period_ns, out);
    return OK;
}
