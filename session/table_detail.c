/*
 * "detail": every figure of one row, live and exact side by side. First the figures that times
 * give, then one line a metric that the stream defines (metrics of one key are one line), then what
 * follows from exact counters (exact_derived.c). To add a derived figure: a row in `derived`.
 */
#include <stdio.h>
#include <string.h>

#include "session/exact_derived.h"
#include "session/table_priv.h"

static const struct row *focus(const struct table_ctx *x)
{
    return x->row < x->session->nrows ? &x->session->rows[x->row] : NULL;
}

static struct value calls(const struct session *s, const struct row *r)
{
    (void)s;
    if (!r->calls) return value_missing(VALUE_PENDING, "no launch of it has been timed yet");
    return value_ok((double)r->calls, r->time_source);
}

static struct value total_ms(const struct session *s, const struct row *r)
{
    struct value v = calls(s, r);
    if (v.state == VALUE_OK) v.v = (double)r->total_ns / 1e6;
    return v;
}

static struct value shortest_us(const struct session *s, const struct row *r)
{
    struct value v = calls(s, r);
    if (v.state == VALUE_OK) v.v = (double)r->min_ns / 1e3;
    return v;
}

static struct value longest_us(const struct session *s, const struct row *r)
{
    struct value v = calls(s, r);
    if (v.state == VALUE_OK) v.v = (double)r->max_ns / 1e3;
    return v;
}

static struct value gb_per_s(const struct session *s, const struct row *r)
{
    struct value us = row_us(s, r);
    if (!(r->def.bytes > 0)) return value_missing(VALUE_UNAVAILABLE, "its bytes are not known");
    if (us.state != VALUE_OK || !(us.v > 0)) return us;
    return value_ok(r->def.bytes / us.v / 1e3, us.source);
}

static struct value window_calls(const struct session *s, const struct row *r)
{
    (void)s;
    return value_ok((double)r->window_calls, "activity");
}

static struct value shared(const struct session *s, const struct row *r)
{
    (void)s;
    return value_ok((double)r->shared_samples, NULL);
}

static const struct derived {
    const char *label, *unit, *meaning;
    struct value (*get)(const struct session *s, const struct row *r);
} derived[] = {
    {"calls", "", "launches that were timed", calls},
    {"time a call", "us",
     "median of its timed launches; where none was timed, mean of those in PM windows", row_us},
    {"shortest", "us", "the shortest timed launch", shortest_us},
    {"longest", "us", "the longest timed launch", longest_us},
    {"time in all", "ms", "sum of its timed launches", total_ms},
    {"time share", "%", "its part of the time of all kernels of its generation", row_time_share},
    {"time by work", "us/GMAC", "time for 10^9 multiply-adds", row_us_per_gmac},
    {"least traffic", "GB/s", "the least bytes that it can move, over the time a call", gb_per_s},
    {"launches in windows", "", "launches of it that PM sampling windows saw", window_calls},
    {"shared samples", "", "PM samples that it shares with other launches", shared},
};

enum { NDERIVED = NCOLUMNS(derived) };

/* Indexes: the derived ones, the metrics, what follows from exact ones. NULL: none of that kind. */
static const struct msg_metric_def *metric_at(const struct table_ctx *x, uint32_t i)
{
    return i >= NDERIVED && i - NDERIVED < x->session->nmetrics ? &x->session->metrics[i - NDERIVED]
                                                                : NULL;
}

static const struct exact_derived *exact_at(const struct table_ctx *x, uint32_t i)
{
    return i >= NDERIVED + x->session->nmetrics
               ? &exact_derived[i - NDERIVED - x->session->nmetrics]
               : NULL;
}

static uint32_t count(const struct table_ctx *x)
{
    return focus(x) ? NDERIVED + x->session->nmetrics + nexact_derived : 0;
}

static bool keep(const struct table_ctx *x, uint32_t i)
{
    const struct msg_metric_def *d = metric_at(x, i);
    const struct exact_derived *e = exact_at(x, i);
    if (e) return session_metric(x->session, e->needs) != NULL;
    return !d || session_metric(x->session, d->key) == d; /* the first of its key */
}

static const char *label_of(const struct table_ctx *x, uint32_t i)
{
    const struct msg_metric_def *d = metric_at(x, i);
    const struct exact_derived *e = exact_at(x, i);
    return e ? e->label : d ? d->label : derived[i].label;
}

static const char *meaning_of(const struct table_ctx *x, uint32_t i)
{
    const struct msg_metric_def *d = metric_at(x, i);
    const struct exact_derived *e = exact_at(x, i);
    return e ? e->meaning : d ? d->meaning : derived[i].meaning;
}

static void get_label(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", label_of(x, i));
}

static void get_unit(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_metric_def *d = metric_at(x, i);
    const struct exact_derived *e = exact_at(x, i);
    cell_text(c, "%s", e ? e->unit : d ? d->unit : derived[i].unit);
}

static struct value best(const struct table_ctx *x, uint32_t i)
{
    const struct msg_metric_def *d = metric_at(x, i);
    const struct exact_derived *e = exact_at(x, i);
    if (e) return e->get(x->session, focus(x));
    return d ? row_metric_best(x->session, focus(x), d->key) : derived[i].get(x->session, focus(x));
}

static void get_best(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct value v = best(x, i);
    const struct msg_metric_def *d = metric_at(x, i);
    cell_value(c, v);
    c->whole = !d && !exact_at(x, i) && !derived[i].unit[0]; /* launches, samples */
}

static void get_steady(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_metric_def *d = metric_at(x, i);
    if (d)
        cell_value(c, row_metric_steady(x->session, focus(x), d->key));
    else
        cell_text(c, "%s", "");
}

static void get_whole(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_metric_def *d = metric_at(x, i);
    if (d)
        cell_value(c, row_metric_whole(x->session, focus(x), d->key));
    else
        cell_text(c, "%s", "");
}

static void get_exact(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_metric_def *d = metric_at(x, i);
    if (d)
        cell_value(c, row_metric_exact(x->session, focus(x), d->key));
    else
        cell_text(c, "%s", "");
}

static void get_estimate(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_metric_def *d = metric_at(x, i);
    if (d)
        cell_value(c, row_metric_estimate(x->session, focus(x), d->key));
    else
        cell_text(c, "%s", "");
}

static void get_spread(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct value v = best(x, i);
    if (value_known(&v) && v.spread >= 0)
        cell_value(c, value_ok(v.spread, v.source));
    else
        cell_text(c, "%s", "");
}

static void get_n(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct value v = best(x, i);
    if (value_known(&v) && v.n)
        cell_count(c, v.n);
    else
        cell_text(c, "%s", "");
}

static void get_source(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct value v = best(x, i);
    cell_text(c, "%s", v.source ? v.source : "");
}

/* When the figure was refreshed last; 0 = never, or it has no time of its own. */
static uint64_t refreshed(const struct table_ctx *x, uint32_t i)
{
    const struct msg_metric_def *d = metric_at(x, i);
    const struct row *r = focus(x);
    struct value v = best(x, i);
    uint64_t t = 0;

    const struct exact_derived *e = exact_at(x, i);
    if (!value_known(&v)) return 0;
    const char *key = e ? e->needs : d ? d->key : NULL;
    if (!key) return derived[i].get == shared ? 0 : r->t_ns;
    bool exact = row_metric_exact(x->session, r, key).state == VALUE_OK;
    for (uint32_t k = 0; k < r->nmetrics; k++) {
        const struct row_metric *rm = &r->metrics[k];
        if (strcmp(x->session->metrics[rm->metric].key, key) != 0) continue;
        uint64_t at = exact ? rm->exact_t_ns : rm->live_t_ns;
        if (at > t) t = at;
    }
    return t;
}

static void get_age(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    uint64_t t = refreshed(x, i);
    if (t)
        cell_value(c, value_ok((double)(x->session->t_ns - t) / 1e9, NULL));
    else
        cell_text(c, "%s", "");
}

static void get_why(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct value v = best(x, i);
    if (v.state == VALUE_OK)
        cell_text(c, "%s", v.why ? v.why : "");
    else
        cell_text(c, "%s%s%s", value_state_name(v.state), v.why ? ": " : "", v.why ? v.why : "");
    c->mark = MARK_DIM;
}

static void get_ncu(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_metric_def *d = metric_at(x, i);
    cell_text(c, "%s", d ? d->ncu : "");
    c->mark = MARK_DIM;
}

static const struct column columns[] = {
    {"figure", "figure", "", "what is measured", 19, 1, 0, 0, 0, 0, get_label},
    {"unit", "unit", "", "of every figure in the row", 7, 1, 0, 0, 0, 0, get_unit},
    {"value", "value", "", "exact where there, else steady, else an estimate (~)", 10, 1, 2, 1, 1,
     0, get_best},
    {"spread", "IQR", "", "interquartile range", 7, 3, 2, 1, 1, 0, get_spread},
    {"n", "n", "", "samples or rounds behind it", 6, 5, 0, 1, 1, 0, get_n},
    {"steady", "steady", "", "samples wholly inside a launch", 9, 2, 2, 1, 1, 0, get_steady},
    {"whole", "whole", "", "samples split over launches by overlap, ramp and tail included", 9, 2,
     2, 1, 1, 0, get_whole},
    {"exact", "exact", "", "counted over whole launches", 9, 2, 2, 1, 1, 0, get_exact},
    {"estimate", "estim.", "", "least squares over samples that several kernels share", 9, 3, 2, 1,
     1, 0, get_estimate},
    {"source", "source", "", "counter source of the value", 8, 3, 0, 0, 0, 0, get_source},
    {"age", "age", "s", "seconds since it was refreshed: counters take turns", 5, 2, 1, 1, 0, 0,
     get_age},
    {"state", "state", "", "reason when there is no value", 12, 3, 0, 0, 0, 1, get_why},
    {"ncu", "name in ncu", "", "metric as ncu and CUPTI write it", 30, 6, 0, 0, 0, 0, get_ncu},
};

const struct table_def table_detail = {
    .id = "detail",
    .title = "figures of the kernel",
    .empty = "no row is selected",
    .columns = columns,
    .ncolumns = NCOLUMNS(columns),
    .count = count,
    .keep = keep,
    .row_name = label_of,
    .row_help = meaning_of,
};
