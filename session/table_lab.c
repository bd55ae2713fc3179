/*
 * Tables of experiments: the list, gates, pairs and figures of the one in the query's `row` (its
 * index in experiments[]; none: the newest). To add a column: a row in its array.
 */
#include <math.h>
#include <string.h>

#include "session/table_priv.h"

static const struct lab_experiment *focus(const struct table_ctx *x)
{
    const struct session *s = x->session;
    if (s->nexperiments == 0) return NULL;
    return &s->experiments[x->row < s->nexperiments ? x->row : s->nexperiments - 1];
}

static void percent(struct cell *c, double v, const char *missing)
{
    cell_value(c, isfinite(v) ? value_ok(100 * v, "clock")
                              : value_missing(VALUE_UNAVAILABLE, missing));
}

/* ---- experiments ---- */

static const struct lab_experiment *at(const struct table_ctx *x, uint32_t i)
{
    return &x->session->experiments[i];
}

static uint32_t experiments_count(const struct table_ctx *x)
{
    return x->session->nexperiments;
}

static void get_number(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, at(x, i)->def.experiment);
}

static void get_a(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", at(x, i)->def.a);
}

static void get_b(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", at(x, i)->def.b);
}

static void get_workload(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s %s", at(x, i)->def.workload, at(x, i)->def.shape);
}

static void get_bar(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", at(x, i)->def.bar);
}

static void get_verdict(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct lab_experiment *e = at(x, i);
    cell_text(c, "%s", e->closed ? e->verdict.verdict : "open");
    if (e->closed)
        c->mark = !strcmp(e->verdict.verdict, "LAND")    ? MARK_GOOD
                  : !strcmp(e->verdict.verdict, "NOISE") ? MARK_WARN
                                                         : MARK_BAD;
}

static void running(const struct lab_experiment *e, struct msg_verdict *v)
{
    struct lab_result r;
    if (e->closed)
        *v = e->verdict;
    else if (lab_evaluate(e, &r) == OK)
        lab_fill_verdict(e, &r, v);
    else
        *v = (struct msg_verdict){.gain = (double)NAN, .lo = (double)NAN, .hi = (double)NAN};
}

static void get_gain(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct msg_verdict v;
    running(at(x, i), &v);
    percent(c, v.gain, "no pair counts");
    if (!c->is_text && isfinite(v.lo)) c->value.n = v.pairs;
}

static void get_interval(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct msg_verdict v;
    running(at(x, i), &v);
    if (isfinite(v.lo) && isfinite(v.hi))
        cell_text(c, "%+.2f to %+.2f", 100 * v.lo, 100 * v.hi);
    else
        cell_text(c, "too few");
}

static void get_band(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct msg_verdict v;
    running(at(x, i), &v);
    percent(c, v.band, "too few A/A pairs");
}

static void get_pairs(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct msg_verdict v;
    running(at(x, i), &v);
    cell_count(c, v.pairs);
}

static void get_why(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct msg_verdict v;
    running(at(x, i), &v);
    cell_text(c, "%s", v.why);
}

static const struct column experiment_columns[] = {
    {"experiment", "no", "", "number within the recording", 3, 1, 0, true, false, false,
     get_number},
    {"a", "A", "", "the incumbent", 18, 1, 0, false, false, false, get_a},
    {"b", "B", "", "the challenger", 18, 1, 0, false, false, false, get_b},
    {"workload", "workload", "", "what was run", 22, 3, 0, false, false, false, get_workload},
    {"bar", "bar", "", "as it was frozen", 16, 2, 0, false, false, false, get_bar},
    {"verdict", "verdict", "", "against the bar", 8, 1, 0, false, false, false, get_verdict},
    {"gain", "gain", "%", "median of paired log-ratios, as a gain in speed of B over A", 7, 1, 2,
     true, false, false, get_gain},
    {"interval", "95 %", "%", "exact signed-rank interval of the gain", 16, 2, 0, false, false,
     false, get_interval},
    {"band", "noise", "%", "largest gain that A against itself is compatible with", 6, 2, 2, true,
     false, false, get_band},
    {"pairs", "pairs", "", "A/B pairs that count", 5, 2, 0, true, false, false, get_pairs},
    {"why", "why", "", "reason of the verdict", 40, 4, 0, false, false, true, get_why},
};

const struct table_def table_experiments = {
    .id = "experiments",
    .title = "experiments",
    .empty = "no experiment was made",
    .columns = experiment_columns,
    .ncolumns = NCOLUMNS(experiment_columns),
    .count = experiments_count,
};

/* ---- gates ---- */

static uint32_t gates_count(const struct table_ctx *x)
{
    return focus(x) ? focus(x)->ngates : 0;
}

static void get_gate(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", focus(x)->gates[i].gate);
}

static void get_gate_state(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const char *s = focus(x)->gates[i].state;
    cell_text(c, "%s", s);
    c->mark = !strcmp(s, "failed") || !strcmp(s, "identical") ? MARK_BAD
              : !strcmp(s, "forced") || !strcmp(s, "unmet")   ? MARK_WARN
              : !strcmp(s, "ok")                              ? MARK_GOOD
                                                              : MARK_NONE;
}

static void get_gate_text(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", focus(x)->gates[i].text);
}

static const struct column gate_columns[] = {
    {"gate", "gate", "", "in the order they were held", 10, 1, 0, false, false, false, get_gate},
    {"state", "state", "", "ok, met, unmet, failed, forced, identical, skipped", 9, 1, 0, false,
     false, false, get_gate_state},
    {"text", "what was found", "", "", 40, 2, 0, false, false, true, get_gate_text},
};

const struct table_def table_gates = {
    .id = "gates",
    .title = "gates",
    .empty = "no gate was held",
    .columns = gate_columns,
    .ncolumns = NCOLUMNS(gate_columns),
    .count = gates_count,
};

/* ---- pairs ---- */

static uint32_t pairs_count(const struct table_ctx *x)
{
    return focus(x) ? focus(x)->npairs : 0;
}

static const struct msg_pair *pair(const struct table_ctx *x, uint32_t i)
{
    return &focus(x)->pairs[i];
}

static void figure(struct cell *c, double v)
{
    cell_value(c, v > 0 && isfinite(v) ? value_ok(v, "clock")
                                       : value_missing(VALUE_UNAVAILABLE, "not known here"));
}

static void get_pair(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, pair(x, i)->pair);
}

static void get_kind(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const char *k = pair(x, i)->kind;
    cell_text(c, "%c/%c", k[0] ? k[0] : '?', k[0] && k[1] ? k[1] : '?');
}

static void get_order(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", pair(x, i)->swapped ? "second first" : "first first");
}

static void get_a_us(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    figure(c, pair(x, i)->a_us);
}

static void get_b_us(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    figure(c, pair(x, i)->b_us);
}

static void pair_gain(struct cell *c, double a, double b)
{
    percent(c, a > 0 && b > 0 ? a / b - 1 : (double)NAN, "not timed");
}

static void get_pair_gain(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    pair_gain(c, pair(x, i)->a_us, pair(x, i)->b_us);
}

static void get_cold_gain(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    pair_gain(c, pair(x, i)->a_cold_us, pair(x, i)->b_cold_us);
}

static void get_cycles_gain(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    pair_gain(c, pair(x, i)->a_cycles, pair(x, i)->b_cycles);
}

static void get_also_gain(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    pair_gain(c, pair(x, i)->a_also_us, pair(x, i)->b_also_us);
}

static void get_a_mhz(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    figure(c, pair(x, i)->a_mhz);
}

static void get_b_mhz(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    figure(c, pair(x, i)->b_mhz);
}

static void get_power(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    figure(c, pair(x, i)->power_mw / 1000.0);
}

static void get_dropped(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", pair(x, i)->dropped);
    c->mark = MARK_WARN;
}

static const struct column pair_columns[] = {
    {"pair", "pair", "", "in the order of measurement", 4, 1, 0, true, false, false, get_pair},
    {"kind", "kind", "", "A/B; A/A control; C/C the third kernel beside A and beside B", 4, 1, 0,
     false, false, false, get_kind},
    {"order", "order", "", "which was timed first", 12, 4, 0, false, false, false, get_order},
    {"a_us", "first us", "us", "time of the bar's metric: a launch, or a token", 10, 2, 3, true,
     false, false, get_a_us},
    {"b_us", "second us", "us", "", 10, 2, 3, true, false, false, get_b_us},
    {"gain", "gain", "%", "of the second over the first, warmed", 7, 1, 2, true, false, false,
     get_pair_gain},
    {"cold_gain", "un-warmed", "%", "the same, un-warmed", 9, 2, 2, true, false, false,
     get_cold_gain},
    {"cycles_gain", "cycles", "%", "the same in SM cycles", 7, 3, 2, true, false, false,
     get_cycles_gain},
    {"also_gain", "other phase", "%", "the engine's other phase: prefill or decode", 11, 4, 2, true,
     false, false, get_also_gain},
    {"a_mhz", "first MHz", "MHz", "SM clock", 9, 4, 0, true, false, false, get_a_mhz},
    {"b_mhz", "second MHz", "MHz", "SM clock", 10, 4, 0, true, false, false, get_b_mhz},
    {"power", "W", "W", "power", 6, 5, 0, true, false, false, get_power},
    {"dropped", "left out", "", "why the pair doesn't count", 20, 3, 0, false, false, true,
     get_dropped},
};

const struct table_def table_pairs = {
    .id = "pairs",
    .title = "pairs",
    .empty = "no pair was measured",
    .columns = pair_columns,
    .ncolumns = NCOLUMNS(pair_columns),
    .count = pairs_count,
};

/* ---- mechanism ---- */

static uint32_t figures_count(const struct table_ctx *x)
{
    return focus(x) ? focus(x)->nfigures : 0;
}

static const struct msg_mechanism *mech(const struct table_ctx *x, uint32_t i)
{
    return &focus(x)->figures[i];
}

static void get_name(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", mech(x, i)->name);
}

static void either(struct cell *c, const struct msg_mechanism *m, double v)
{
    cell_value(c, isfinite(v) ? value_ok(v, m->source) : value_missing(VALUE_UNAVAILABLE, m->why));
}

static void get_mech_a(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    either(c, mech(x, i), mech(x, i)->a);
}

static void get_mech_b(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    either(c, mech(x, i), mech(x, i)->b);
}

static void get_change(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct msg_mechanism *m = mech(x, i);
    percent(c, m->a > 0 && m->b > 0 ? m->b / m->a - 1 : (double)NAN, "no ratio");
}

static void get_unit(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", mech(x, i)->unit);
}

static void get_source(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", mech(x, i)->source);
}

static const struct column mechanism_columns[] = {
    {"name", "figure", "", "taken of both sides after the timing", 30, 1, 0, false, false, true,
     get_name},
    {"a", "A", "", "", 10, 1, 2, true, true, false, get_mech_a},
    {"b", "B", "", "", 10, 1, 2, true, true, false, get_mech_b},
    {"change", "change", "%", "of B against A", 8, 1, 2, true, false, false, get_change},
    {"unit", "unit", "", "", 8, 2, 0, false, false, false, get_unit},
    {"source", "source", "", "where the figure comes from", 8, 2, 0, false, false, false,
     get_source},
};

const struct table_def table_mechanism = {
    .id = "mechanism",
    .title = "mechanism",
    .empty = "no figure was taken of both sides",
    .columns = mechanism_columns,
    .ncolumns = NCOLUMNS(mechanism_columns),
    .count = figures_count,
};
