/*
 * See lab_stats.h. Job: interval and verdict of paired timings. Invariant: equal input gives equal
 * output; nothing is drawn at random. To add a reason to refuse: a branch in refuse().
 */
#include "session/lab_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"

enum {
    EXACT_MAX = 60,   /* beyond, the signed-rank distribution is normal to 3 digits */
    MORE_SAID = 1000, /* a forecast beyond is only "over" that */
};

static double sorted_median(const double *v, uint32_t n)
{
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* The largest q with P(W < q) <= alpha/2, W = the signed-rank sum of n pairs: the q-th smallest
 * and q-th largest mean bound the interval. 0: the level can't be reached. The number of subsets of
 * {1..n} with sum w, over 2^n, is the probability of w. */
static uint32_t exact_rank(uint32_t n, double half_alpha)
{
    double p[EXACT_MAX * (EXACT_MAX + 1) / 2 + 1] = {1};
    uint32_t top = 0;
    for (uint32_t i = 1; i <= n; i++) {
        for (uint32_t w = top + 1; w <= top + i; w++) p[w] = 0;
        top += i;
        for (uint32_t w = top; w + 1 > i; w--) p[w] = 0.5 * p[w] + 0.5 * p[w - i];
        for (uint32_t w = 0; w < i && w <= top; w++) p[w] *= 0.5;
    }
    double sum = 0;
    uint32_t q = 0;
    while (q <= top && sum + p[q] <= half_alpha) sum += p[q++];
    return q;
}

static uint32_t rank_bound(uint32_t n)
{
    double half = 0.5 * (1 - LAB_LEVEL);
    if (n <= EXACT_MAX) return exact_rank(n, half);
    double mean = n * (n + 1.0) / 4, sd = sqrt(n * (n + 1.0) * (2.0 * n + 1) / 24);
    double q = floor(mean - 1.959964 * sd);
    return q > 0 ? (uint32_t)q : 0;
}

enum status lab_interval_of(const double *d, uint32_t n, struct lab_interval *out)
{
    *out = (struct lab_interval){0};
    if (n > LAB_PAIRS_MAX) n = LAB_PAIRS_MAX;
    if (n == 0) return OK;
    uint32_t m = n * (n + 1) / 2, at = 0;
    double *w = malloc(m * sizeof *w);
    if (!w) return err_set(ERR_NOMEM, "out of memory for the statistics of %u pairs", n);
    memcpy(w, d, n * sizeof *w);
    sort_doubles(w, n);
    out->median = sorted_median(w, n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i; j < n; j++) w[at++] = 0.5 * (d[i] + d[j]);
    sort_doubles(w, m);
    uint32_t q = rank_bound(n);
    out->n = n;
    out->est = sorted_median(w, m);
    out->known = q > 0;
    if (q > 0) {
        out->lo = w[q - 1];
        out->hi = w[m - q];
    }
    free(w);
    return OK;
}

static double third_median(const double *v, uint32_t from, uint32_t n)
{
    double part[LAB_PAIRS_MAX];
    if (n > LAB_PAIRS_MAX) n = LAB_PAIRS_MAX;
    memcpy(part, v + from, n * sizeof *part);
    sort_doubles(part, n);
    return sorted_median(part, n);
}

double lab_drift(const double *v, uint32_t n)
{
    uint32_t third = n / 3;
    if (n < 6) return 0;
    double first = third_median(v, 0, third), last = third_median(v, n - third, third);
    return first > 0 && last > 0 ? log(last / first) : 0;
}

double lab_gain(double log_ratio)
{
    return expm1(log_ratio);
}

static const char *const verdict_names[] = {"OPEN", "LAND", "REVERT", "NOISE", "INVALID"};

const char *lab_verdict_name(enum lab_verdict v)
{
    return verdict_names[v];
}

enum lab_verdict lab_verdict_parse(const char *name)
{
    for (int i = 0; i <= LAB_INVALID; i++)
        if (strcmp(verdict_names[i], name) == 0) return (enum lab_verdict)i;
    return LAB_OPEN;
}

static double half_width(const struct lab_interval *i)
{
    return 0.5 * (i->hi - i->lo);
}

static uint32_t pairs_at(const struct lab_interval *i, double factor, double target)
{
    if (!(target > 0)) return LAB_MORE_MAX;
    double r = factor * half_width(i) / target, need = ceil(i->n * r * r) - i->n;
    return need <= 0 ? 0 : need > LAB_MORE_MAX ? LAB_MORE_MAX : (uint32_t)need;
}

char *lab_more_text(uint32_t more, char *out, size_t size)
{
    if (more > MORE_SAID)
        snprintf(out, size, "over %d more pairs", MORE_SAID);
    else
        snprintf(out, size, more == 1 ? "1 more pair" : "about %u more pairs", more);
    return out;
}

uint32_t lab_pairs_for(const struct lab_interval *i, double half)
{
    return i->known ? pairs_at(i, 1, half) : LAB_MIN_PAIRS > i->n ? LAB_MIN_PAIRS - i->n : 1;
}

static double percent(double log_ratio)
{
    return 100 * lab_gain(log_ratio);
}

/* 1.43 = (1.96 + 0.84) / 1.96: an effect that far beyond the limit is found four times in five. */
#define POWER_80 1.43

static bool refused(struct lab_result *r)
{
    r->verdict = LAB_INVALID;
    return true;
}

static bool refuse_clock(const struct lab_evidence *e, struct lab_result *r)
{
    double limit = e->drift_of_clock ? LAB_DRIFT_CLOCK : LAB_DRIFT_TIME;
    if (fabs(e->drift) > log1p(limit)) {
        snprintf(r->why, sizeof r->why,
                 "%s drifted by %+.1f %% over the run, more than %.0f %%: let the machine settle, "
                 "or lock its clock, and run again",
                 e->drift_of_clock ? "the SM clock" : "A's own time", percent(e->drift),
                 100 * limit);
        return refused(r);
    }
    if (!e->ncycles || !r->cycles.known) return false;
    double apart = fabs(r->ab.est - r->cycles.est);
    if (apart <= LAB_CLOCK_DISAGREE || apart <= half_width(&r->ab) + half_width(&r->cycles))
        return false;
    snprintf(r->why, sizeof r->why,
             "clock: time says %+.2f %%, SM cycles say %+.2f %%; the two sides ran at different "
             "clocks",
             percent(r->ab.est), percent(r->cycles.est));
    return refused(r);
}

/* Whether no verdict may be given; sets it and why. */
static bool refuse(const struct lab_evidence *e, struct lab_result *r)
{
    if (e->gate_failed) {
        snprintf(r->why, sizeof r->why, "a gate failed: %.200s", e->gate_failed);
        return refused(r);
    }
    if (e->n < LAB_MIN_PAIRS || e->naa < LAB_MIN_AA) {
        snprintf(r->why, sizeof r->why,
                 "too few pairs: %u of A/B and %u of A/A; a verdict needs %d and %d", e->n, e->naa,
                 LAB_MIN_PAIRS, LAB_MIN_AA);
        r->more = e->n < LAB_MIN_PAIRS ? LAB_MIN_PAIRS - e->n : LAB_MIN_AA - e->naa;
        return refused(r);
    }
    if (refuse_clock(e, r)) return true;
    const struct lab_interval *c = &r->control;
    if (c->known && (c->lo > r->band || c->hi < -r->band)) {
        snprintf(r->why, sizeof r->why,
                 "the untouched third kernel moved by %+.2f %% (%+.2f to %+.2f) between the two "
                 "sides: something else differs",
                 percent(c->est), percent(c->lo), percent(c->hi));
        return refused(r);
    }
    return false;
}

/* A bar at or below zero: B is let in unless it loses more than that (hygiene, not speed). */
static void judge_no_worse(double bar, struct lab_result *r)
{
    const struct lab_interval *i = &r->ab;
    r->verdict = i->lo >= bar ? LAB_LAND : i->hi < bar ? LAB_REVERT : LAB_NOISE;
    r->firm = r->verdict != LAB_NOISE;
    if (!r->firm) r->more = pairs_at(i, POWER_80, fabs(i->est - bar));
    snprintf(r->why, sizeof r->why, "%+.2f %% (%+.2f to %+.2f): %s", percent(i->est),
             percent(i->lo), percent(i->hi),
             r->verdict == LAB_LAND     ? "the whole interval meets the bar"
             : r->verdict == LAB_REVERT ? "the whole interval is below the bar"
                                        : "the interval straddles the bar");
}

static void judge_gain(double bar, struct lab_result *r)
{
    const struct lab_interval *i = &r->ab;
    double beyond = fabs(i->est) - r->band;
    if (i->lo <= r->band && i->hi >= -r->band) {
        r->verdict = LAB_NOISE;
        r->firm = i->hi < bar;
        r->more = r->firm ? 0 : pairs_at(i, POWER_80, beyond > 0 ? beyond : bar - r->band);
        snprintf(
            r->why, sizeof r->why,
            "%+.2f %% (%+.2f to %+.2f) can't be told from A against A, whose band is +-%.2f %%",
            percent(i->est), percent(i->lo), percent(i->hi), percent(r->band));
        return;
    }
    r->verdict = i->est >= bar ? LAB_LAND : LAB_REVERT;
    r->firm = r->verdict == LAB_LAND ? i->lo >= bar : i->hi < bar;
    if (!r->firm) r->more = pairs_at(i, 1, fabs(i->est - bar));
    snprintf(r->why, sizeof r->why,
             "%+.2f %% (%+.2f to %+.2f) lies outside the noise band of +-%.2f %% and %s the bar of "
             "%+.2f %%%s",
             percent(i->est), percent(i->lo), percent(i->hi), percent(r->band),
             r->verdict == LAB_LAND ? "meets" : "misses", percent(bar),
             r->firm ? "" : "; its interval straddles the bar");
}

enum status lab_judge(const struct lab_evidence *e, struct lab_result *out)
{
    *out = (struct lab_result){0};
    enum status st = lab_interval_of(e->ab, e->n, &out->ab);
    if (st == OK) st = lab_interval_of(e->aa, e->naa, &out->aa);
    if (st == OK) st = lab_interval_of(e->control, e->ncontrol, &out->control);
    if (st == OK) st = lab_interval_of(e->cycles, e->ncycles, &out->cycles);
    if (st != OK) return st;
    if (out->aa.known) out->band = fmax(fabs(out->aa.lo), fabs(out->aa.hi));
    if (out->ab.known && out->aa.known)
        out->detectable = out->band + POWER_80 * half_width(&out->ab);
    if (refuse(e, out)) return OK;
    double bar = log1p(e->bar);
    if (bar <= 0)
        judge_no_worse(bar, out);
    else
        judge_gain(bar, out);
    return OK;
}
