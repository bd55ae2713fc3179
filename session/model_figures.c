/*
 * Figures of a row, each with its state, its source and the reason when it has none; see model.h.
 *
 * Invariant: the reason is the nearest true one, asked in this order: the collector lost data, its
 * source can't run, the launches are too short, nothing has been seen yet.
 * Live figures come from PM windows; exact ones from COUNTER frames.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/model_priv.h"

/* Interquartile range of a normal distribution over its standard deviation. */
static const double QUARTILES = 1.349;

enum { SHORT_PERIODS = 2 }; /* a launch this many periods long holds a whole sample for sure */

static struct value rounds_value(const struct session *s, const struct generation *g,
                                 const struct series *st)
{
    struct value none;
    if (g->faulted)
        none = value_missing(VALUE_FAULT, "its variant faulted before a round was timed");
    else if (g == session_current(s) && !s->ended)
        none = value_missing(VALUE_PENDING, "no round after the warm-up has been timed yet");
    else
        none = value_missing(VALUE_UNAVAILABLE, "it ended before a round after the warm-up");
    return stat_median_value(st, "clock", none);
}

struct value generation_prefill(const struct session *s, const struct generation *g)
{
    return rounds_value(s, g, &g->prefill);
}

struct value generation_decode(const struct session *s, const struct generation *g)
{
    return rounds_value(s, g, &g->decode);
}

/* To add a place: a row; ROUND's field names it. */
static const struct {
    const char *name, *cell, *words;
} PLACES[] = {
    {"own", "own process", "in a process of its own that never opened CUPTI"},
    {"here", "with CUPTI",
     "in the counted process: kernel activity leaves about 0.4 us on each launch"},
    {"clean", "clean", "in the engine's process, which never opened CUPTI"},
    {"mixed", "mixed", "in more than one place: its rounds are not to be compared"},
};

static size_t find_place(const struct generation *g)
{
    size_t i = 0, n = sizeof PLACES / sizeof PLACES[0];
    while (i < n && strcmp(PLACES[i].name, g->timed_in) != 0) i++;
    return i;
}

const char *generation_timed_in(const struct generation *g)
{
    size_t i = find_place(g);
    return i < sizeof PLACES / sizeof PLACES[0] ? PLACES[i].cell : "";
}

const char *generation_timed_in_words(const struct generation *g)
{
    size_t i = find_place(g);
    return i < sizeof PLACES / sizeof PLACES[0] ? PLACES[i].words : "";
}

bool generation_controls(const struct session *s, const struct generation *g)
{
    bool decodes = false;
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *r = &s->rows[i];
        if (strcmp(r->def.phase, "decode") || !r->calls || r->def.kernel >= s->nkernels) continue;
        if (!strcmp(s->kernels[r->def.kernel].def.family, g->def.family)) return false;
        decodes = true;
    }
    return decodes;
}

struct value generation_decode_ratio(const struct generation *now, const struct generation *before)
{
    return stat_ratio(&now->decode, &before->decode, "clock");
}

struct value generation_prefill_ratio(const struct session *s, const struct generation *now,
                                      const struct generation *before)
{
    struct value v = stat_ratio(&now->prefill, &before->prefill, "clock");
    struct value control = generation_decode_ratio(now, before);

    if (strcmp(now->def.reason, "flip") || !generation_controls(s, now)) return v;
    if (v.state != VALUE_OK || v.spread < 0 || control.state != VALUE_OK) return v;
    double left = v.v * fabs(control.v - 1);
    if (left > v.spread) v.spread = left;
    return v;
}

struct value row_time_share(const struct session *s, const struct row *r)
{
    const struct generation *g = session_generation(s, r->def.generation);

    if (!g || g->rows_ns == 0 || r->calls == 0)
        return value_missing(VALUE_PENDING, "no launch of it has been timed yet");
    return value_ok(100.0 * (double)r->total_ns / (double)g->rows_ns, r->time_source);
}

struct value row_us(const struct session *s, const struct row *r)
{
    (void)s;
    if (r->us.n)
        return stat_median_value(&r->us, r->time_source,
                                 value_missing(VALUE_PENDING, "no launch has been timed yet"));
    if (r->window_calls) /* seen inside PM windows only */
        return value_spread((double)r->window_ns / 1e3 / (double)r->window_calls, -1,
                            (uint32_t)r->window_calls, "activity");
    return value_missing(VALUE_PENDING, "no launch of it has been timed yet");
}

struct value row_us_per_gmac(const struct session *s, const struct row *r)
{
    struct value us = row_us(s, r);
    double gmac = r->def.macs / 1e9;

    if (!(gmac > 0) || !isfinite(gmac))
        return value_missing(VALUE_UNAVAILABLE, "not a matrix product");
    if (us.state != VALUE_OK) return us;
    us.v /= gmac;
    if (us.spread > 0) us.spread /= gmac;
    return us;
}

/* Of the row's entries with this key, the one with the most steady samples, or with an exact
 * figure. Several sources may give a key: each is a metric of its own. */
static const struct row_metric *find_metric(const struct session *s, const struct row *r,
                                            const char *key, bool exact)
{
    const struct row_metric *best = NULL;

    for (uint32_t i = 0; i < r->nmetrics; i++) {
        const struct row_metric *rm = &r->metrics[i];
        if (strcmp(s->metrics[rm->metric].key, key) != 0) continue;
        if (exact && !rm->has_exact) continue;
        if (exact && best && best->exact.state == VALUE_OK) continue;
        if (!exact && best && best->steady.n >= rm->steady.n) continue;
        best = rm;
    }
    return best;
}

static bool is_ok(const struct msg_source *src)
{
    return src && strcmp(src->state, "ok") == 0;
}

static bool is_exact_source(const char *source)
{
    return strcmp(source, "range") == 0 || strcmp(source, "sassexec") == 0;
}

/* Whether a live source gives `key`: a definition that names an exact one only has no live figure.
 */
static bool is_live(const struct session *s, const char *key)
{
    for (uint32_t i = 0; i < s->nmetrics; i++)
        if (strcmp(s->metrics[i].key, key) == 0 && !is_exact_source(s->metrics[i].source))
            return true;
    return false;
}

/* The source that live figures come from: that of the windows so far, else the one that is on. */
static const struct msg_source *live_source(const struct session *s)
{
    const struct msg_source *synth = session_source(s, "synth");

    if (s->last_window.source[0]) return session_source(s, s->last_window.source);
    return is_ok(synth) ? synth : session_source(s, "pm");
}

static const struct msg_source *exact_source(const struct session *s, const char *key)
{
    const struct msg_metric_def *d = session_metric(s, key);
    const struct msg_source *synth = session_source(s, "synth");

    if (is_ok(synth)) return synth;
    return session_source(s, d && is_exact_source(d->source) ? d->source : "range");
}

/* What a source that is not ok says; state VALUE_OK when it has nothing to say. */
static struct value source_reason(const struct msg_source *src, const char *absent)
{
    if (!src) return value_missing(VALUE_UNAVAILABLE, absent);
    if (is_ok(src)) return value_ok(0, NULL);
    return value_missing(VALUE_UNAVAILABLE,
                         src->why[0] ? src->why : "its counter source is off in this session");
}

static bool is_current(const struct session *s, const struct row *r)
{
    const struct generation *g = session_current(s);
    return g && !s->ended && g->def.generation == r->def.generation;
}

static bool too_short(const struct session *s, const struct row *r)
{
    return r->window_calls && (double)r->window_ns / (double)r->window_calls <
                                  (double)SHORT_PERIODS * (double)s->last_window.period_ns;
}

/* Why a live figure is missing, given that it has fewer samples than it needs. */
static struct value why_not_live(const struct session *s, const struct row *r, const char *key,
                                 uint64_t samples)
{
    if (s->last_window.overflow && is_current(s, r))
        return value_missing(VALUE_OVERFLOW, "the sampler's buffer overflowed in the last window");
    struct value reason = source_reason(live_source(s), "no live counter source in this session");
    if (reason.state != VALUE_OK) return reason;
    if (!is_live(s, key))
        return value_missing(VALUE_UNAVAILABLE, "no live counter source gives it here");
    if (s->last_window.window && !s->last_window.offset_ok)
        return value_missing(VALUE_UNAVAILABLE,
                             "the offset between the clocks of samples and spans "
                             "was not measured in the last window");
    if (too_short(s, r) && (samples == 0 || !is_current(s, r)))
        return value_missing(VALUE_UNAVAILABLE, "shorter than the sampling period");
    if (is_current(s, r)) return value_missing(VALUE_PENDING, "fewer than 30 whole samples so far");
    return value_missing(VALUE_UNAVAILABLE,
                         "fewer than 30 whole samples before its generation ended");
}

/* A figure of the running generation whose source has failed since is stale. */
static struct value aged(const struct session *s, const struct row *r, const char *source,
                         struct value v)
{
    const struct msg_source *src = session_source(s, source);
    if (src && strcmp(src->state, "failed") == 0 && is_current(s, r)) {
        v.state = VALUE_STALE;
        v.why = src->why[0] ? src->why : "its counter source has failed";
    }
    return v;
}

struct value row_metric_steady(const struct session *s, const struct row *r, const char *key)
{
    const struct row_metric *rm = find_metric(s, r, key, false);

    if (!rm || rm->steady.n < MIN_STEADY_SAMPLES)
        return why_not_live(s, r, key, rm ? rm->steady.n : 0);
    const char *source = rm->live_source;
    struct value none = value_missing(VALUE_PENDING, NULL);
    return aged(s, r, source, stat_median_value(&rm->steady, source, none));
}

struct value row_metric_whole(const struct session *s, const struct row *r, const char *key)
{
    const struct row_metric *rm = find_metric(s, r, key, false);
    /* The entry with steady samples is the live one; a short kernel's has none, but has whole ones.
     */
    for (uint32_t i = 0; i < r->nmetrics; i++)
        if (strcmp(s->metrics[r->metrics[i].metric].key, key) == 0 && r->metrics[i].whole_samples &&
            (!rm || !rm->whole_samples))
            rm = &r->metrics[i];

    if (!rm || rm->whole_samples < MIN_STEADY_SAMPLES || !(rm->whole_ns > 0))
        return why_not_live(s, r, key, rm ? rm->steady.n : 0);
    const char *source = rm->live_source;
    uint32_t n = rm->whole_samples > UINT32_MAX ? UINT32_MAX : (uint32_t)rm->whole_samples;
    struct value v = value_spread(rm->whole_weighted / rm->whole_ns, -1, n, source);
    if (r->shared_samples)
        v.why = "part of its samples was shared with other kernels, split by time";
    return aged(s, r, source, v);
}

static struct value level_value(const struct session *s, const struct row *r, const char *key,
                                const struct row_metric *rm)
{
    static const char *const refused[] = {
        [LEVEL_FEW] = "fewer than 30 samples saw a launch of it, shared or not",
        [LEVEL_TIED] = "always sampled with the same other kernels: no level of its own follows",
        [LEVEL_LOOSE] = "the samples don't follow one level a kernel: the estimate would be loose",
    };
    if (!rm) return why_not_live(s, r, key, 0);
    const struct level *l = &rm->estimate;
    if (l->state != LEVEL_OK) {
        bool pending = l->state == LEVEL_FEW && is_current(s, r);
        return value_missing(pending ? VALUE_PENDING : VALUE_UNAVAILABLE, refused[l->state]);
    }
    struct value v = value_spread(l->v, QUARTILES * l->error, l->samples, rm->live_source);
    v.state = VALUE_ESTIMATE;
    v.why = "least squares over samples that kernels share";
    return v;
}

struct value row_metric_estimate(const struct session *s, const struct row *r, const char *key)
{
    const struct row_metric *best = NULL;

    for (uint32_t i = 0; i < r->nmetrics; i++) {
        const struct row_metric *rm = &r->metrics[i];
        if (!rm->has_estimate || strcmp(s->metrics[rm->metric].key, key) != 0) continue;
        if (!best || best->estimate.state != LEVEL_OK) best = rm;
    }
    return level_value(s, r, key, best);
}

/* Has a pass of exact counters run on it, of whatever metrics? */
static bool had_pass(const struct row *r)
{
    for (uint32_t i = 0; i < r->nmetrics; i++)
        if (r->metrics[i].has_exact && strcmp(r->metrics[i].exact_source, "sassexec") != 0)
            return true;
    return false;
}

struct value row_metric_exact(const struct session *s, const struct row *r, const char *key)
{
    const struct row_metric *rm = find_metric(s, r, key, true);

    if (rm) {
        struct value v = rm->exact;
        v.source = rm->exact_source;
        v.why = rm->exact_why[0] ? rm->exact_why : NULL;
        return v;
    }
    struct value reason =
        source_reason(exact_source(s, key), "no exact counter source in this session");
    if (reason.state != VALUE_OK) return reason;
    if (had_pass(r))
        return value_missing(VALUE_UNAVAILABLE, "not among what exact passes were asked to count");
    return is_current(s, r) ? value_missing(VALUE_PENDING, "no exact pass has run on it yet")
                            : value_missing(VALUE_UNAVAILABLE, "no exact pass ran on it");
}

struct value row_metric_best(const struct session *s, const struct row *r, const char *key)
{
    struct value exact = row_metric_exact(s, r, key);
    if (exact.state == VALUE_OK) return exact;
    struct value steady = row_metric_steady(s, r, key);
    if (steady.state == VALUE_OK || steady.state == VALUE_STALE) return steady;
    /* A source that only counts exactly has its own reason; so has a count that went wrong. */
    if (exact.state == VALUE_FAULT || exact.state == VALUE_OVERFLOW) return exact;
    struct value estimate = row_metric_estimate(s, r, key);
    if (estimate.state == VALUE_ESTIMATE) return estimate;
    return session_metric(s, key) && !is_live(s, key) ? exact : steady;
}

struct value row_ipc(const struct session *s, const struct row *r)
{
    struct value active = row_metric_best(s, r, "ipc");
    if (value_known(&active)) return active;
    struct value elapsed = row_metric_best(s, r, "ipc_elapsed");
    if (elapsed.state == VALUE_OK)
        elapsed.why = "of elapsed cycles inside the kernel, not of active ones";
    return session_metric(s, "ipc_elapsed") ? elapsed : active;
}

struct value row_top_stall(const struct session *s, const struct row *r, char *name, size_t size)
{
    const struct kernel_stalls *ks = session_stalls(s, r->def.kernel, r->def.generation);
    const struct stall_sum *top = NULL;
    uint64_t total = 0;

    if (size) name[0] = '\0';
    for (uint32_t i = 0; ks && i < ks->nreasons; i++) {
        const struct stall_sum *sum = &ks->reasons[i];
        total += sum->samples;
        if (strcmp(sum->reason, "selected") == 0) continue;
        if (!top || sum->samples > top->samples) top = sum;
    }
    if (top && total) {
        snprintf(name, size, "%s", top->reason);
        uint32_t n = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
        return value_spread(100.0 * (double)top->samples / (double)total, -1, n, ks->source);
    }
    const struct msg_source *synth = session_source(s, "synth");
    struct value reason = source_reason(is_ok(synth) ? synth : session_source(s, "pc"),
                                        "no source of stall reasons in this session");
    if (reason.state != VALUE_OK) return reason;
    return is_current(s, r) ? value_missing(VALUE_PENDING, "no PC-sampling window has seen it yet")
                            : value_missing(VALUE_UNAVAILABLE, "no PC-sampling window saw it");
}
