/*
 * Figures and words of executed counts; see executed.h.
 *
 * Invariant: nothing here divides by what may be 0, and what is not known is no number.
 */
#include "session/executed.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WARP = 32 };

static double launches(const struct executed *e)
{
    return e->def.launches ? e->def.launches : 1;
}

/* Of a launch; 0 when the grid or the block isn't known. */
static double warps(const struct session *s, const struct executed *e)
{
    const struct msg_row_def *r = &s->rows[e->row].def;
    uint32_t threads = s->kernels[e->kernel].def.threads;
    return (double)r->grid_x * r->grid_y * r->grid_z * ((threads + WARP - 1) / WARP);
}

struct value exec_launch(const struct executed *e, const struct exec_sum *x)
{
    if (!x->counted) return value_missing(VALUE_UNAVAILABLE, "none of these was counted");
    return value_ok((double)x->inst / launches(e), e->def.source);
}

struct value exec_share(const struct executed *e, const struct exec_sum *x)
{
    if (!e->all.inst) return value_missing(VALUE_UNAVAILABLE, "nothing was executed");
    return value_ok(100.0 * (double)x->inst / (double)e->all.inst, e->def.source);
}

struct value exec_per_mac(const struct session *s, const struct executed *e,
                          const struct exec_sum *x)
{
    double macs = s->rows[e->row].def.macs;
    if (!(macs > 0)) return value_missing(VALUE_UNAVAILABLE, "not a matrix product: no MACs");
    return value_ok((double)x->inst / launches(e) / macs, e->def.source);
}

struct value exec_runs(const struct session *s, const struct executed *e, const struct exec_sum *x)
{
    double w = warps(s, e) * launches(e);
    if (!(w > 0)) return value_missing(VALUE_UNAVAILABLE, "the number of warps is not known");
    if (x->counted == x->never) return value_ok(0, e->def.source);
    return value_ok((double)x->inst / w / (x->counted - x->never), e->def.source);
}

struct value exec_threads(const struct executed *e, const struct exec_sum *x)
{
    if (!(e->def.has & EXEC_HAS_THREADS))
        return value_missing(VALUE_UNAVAILABLE, "this chip does not count threads by instruction");
    if (!x->inst) return value_missing(VALUE_UNAVAILABLE, "it never ran");
    return value_ok((double)x->threads / (double)x->inst, e->def.source);
}

struct value exec_pred(const struct executed *e, const struct exec_sum *x)
{
    if (!(e->def.has & EXEC_HAS_PRED))
        return value_missing(VALUE_UNAVAILABLE, "this chip does not count predicated-on threads");
    if (!x->threads) return value_missing(VALUE_UNAVAILABLE, "it never ran");
    return value_ok(100.0 * (double)x->pred_on / (double)x->threads, e->def.source);
}

struct value exec_in_loop(const struct exec_sum *x)
{
    if (!x->inst) return value_missing(VALUE_UNAVAILABLE, "it never ran");
    return value_ok(100.0 * (double)x->in_loop / (double)x->inst, NULL);
}

/* ---- words ---- */

static void say(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void say(char *out, size_t size, const char *fmt, ...)
{
    size_t n = strlen(out);
    va_list ap;
    if (n && n + 2 < size) {
        memcpy(out + n, "; ", 3);
        n += 2;
    }
    va_start(ap, fmt);
    vsnprintf(out + n, size - n, fmt, ap);
    va_end(ap);
}

static void say_runs(const struct session *s, const struct executed *e, const struct exec_sum *x,
                     char *out, size_t size)
{
    struct value runs = exec_runs(s, e, x), loop = exec_in_loop(x);
    if (runs.state != VALUE_OK) return;
    double in = loop.state == VALUE_OK ? loop.v : 0;
    if (runs.v > 1.05 && in > 99.5)
        say(out, size, "loops x%.3g", runs.v);
    else if (runs.v > 1.05)
        say(out, size, "loops x%.3g (%.0f%%)", runs.v, in);
    else if (runs.v < 0.95)
        say(out, size, "x%.2g: not all warps come here", runs.v);
}

void exec_gap(const struct session *s, const struct executed *e, const struct exec_sum *x,
              char *out, size_t size)
{
    out[0] = '\0';
    if (x->never == x->counted) {
        if (x->counted) say(out, size, "never runs");
        if (x->count > x->counted) say(out, size, "%u not counted", x->count - x->counted);
        return;
    }
    say_runs(s, e, x, out, size);
    struct value pred = exec_pred(e, x), threads = exec_threads(e, x);
    if (pred.state == VALUE_OK && pred.v < 99.5)
        say(out, size, "%.0f%% of threads guarded off", 100 - pred.v);
    if (threads.state == VALUE_OK && threads.v < 31.95)
        say(out, size, "%.1f of 32 threads active", threads.v);
    if (x->never) say(out, size, "%u of %u never run", x->never, x->counted);
    if (x->count > x->counted) say(out, size, "%u not counted", x->count - x->counted);
}

/* Whole numbers with thousands set apart. */
static char *grouped(double v, char *out, size_t size)
{
    char digits[32];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%.0f", v), at = 0;
    for (size_t i = 0; i < n && at + 2 < size; i++) {
        if (i && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

static void say_check(const struct session *s, const struct executed *e, char *out, size_t size)
{
    struct value c = executed_check(s, e);
    if (c.state != VALUE_OK)
        say(out, size, "not held against a range pass: %s", c.why);
    else if (fabs(c.v) < 5e-7)
        say(out, size, "equal to the %s pass", c.source);
    else
        say(out, size, "differs from the %s pass by %+.3g%%", c.source, c.v);
}

void exec_words(const struct session *s, const struct executed *e, bool own, char *out, size_t size)
{
    const struct msg_row_def *r = &s->rows[e->row].def;
    char n[40];
    struct value mac = exec_per_mac(s, e, &e->all);
    snprintf(out, size, "%s: %s instructions a launch", e->def.source,
             grouped((double)e->all.inst / launches(e), n, sizeof n));
    if (mac.state == VALUE_OK) say(out, size, "%.3fM/GMAC", mac.v * 1e3);
    say_check(s, e, out, size);
    if (e->all.never) say(out, size, "%u of %u never ran", e->all.never, e->all.counted);
    if (e->all.count > e->all.counted)
        say(out, size, "%u not counted", e->all.count - e->all.counted);
    if (!own) say(out, size, "counted as %s %u x %u x %u", r->role, r->m, r->n, r->k);
}

/* ---- surplus ---- */

static void side_of(const struct session *s, uint32_t row, struct surplus_side *out)
{
    *out = (struct surplus_side){0};
    if (row >= s->nrows || s->rows[row].def.kernel >= s->nkernels) return;
    out->k = &s->kernels[s->rows[row].def.kernel];
    out->e = session_executed_like(s, row);
    if (out->e) out->macs = s->rows[out->e->row].def.macs * launches(out->e);
    if (!(out->macs > 0)) out->e = NULL;
    struct value inst = row_metric_exact(s, &s->rows[row], "inst");
    double macs = s->rows[row].def.macs;
    if (inst.state == VALUE_OK && macs > 0) out->whole = inst.v / macs;
}

static bool has_static(const struct surplus_side *x)
{
    return x->k && x->k->has_census && x->k->has_hot && x->k->census.hot_macs;
}

/* The name and count at an index of one side; false when there is nothing of its own. */
static bool entry(const struct surplus *x, const struct surplus_side *side, uint32_t i,
                  struct surplus_row *out, double *n)
{
    if (x->basis == SURPLUS_EXECUTED) {
        const struct executed *e = side->e;
        out->name = x->by_class ? e->classes[i] : e->keys[i].opcode;
        out->cls = x->by_class ? e->classes[i] : e->keys[i].cls;
        *n = (double)(x->by_class ? e->of_class[i].inst : e->of_key[i].inst) / side->macs;
        return true;
    }
    const struct census_item *it = side->k->items;
    double sum = it[i].hot;
    for (uint32_t j = 0; x->by_class && j < side->k->nitems; j++) {
        if (j == i || strcmp(it[j].cls, it[i].cls) != 0) continue;
        if (j < i) return false; /* the class was told there */
        sum += it[j].hot;
    }
    out->name = x->by_class ? it[i].cls : it[i].opcode;
    out->cls = it[i].cls;
    *n = sum / (double)side->k->census.hot_macs;
    return true;
}

static uint32_t length(const struct surplus *x, const struct surplus_side *side)
{
    if (x->basis == SURPLUS_NONE) return 0;
    if (x->basis == SURPLUS_STATIC) return side->k->nitems;
    return x->by_class ? side->e->nclasses : side->e->nkeys;
}

/* Of the same name on another side; false: it has none. */
static bool find(const struct surplus *x, const struct surplus_side *side, const char *name,
                 double *n)
{
    struct surplus_row r;
    for (uint32_t i = 0; i < length(x, side); i++)
        if (entry(x, side, i, &r, n) && !strcmp(r.name, name)) return true;
    *n = 0;
    return false;
}

static double total(const struct surplus *x, const struct surplus_side *side)
{
    struct surplus_row r;
    double sum = 0, n;
    for (uint32_t i = 0; i < length(x, side); i++)
        if (entry(x, side, i, &r, &n)) sum += n;
    return sum;
}

static const char *lacking(const struct surplus *x)
{
    return !x->a.e && !x->b.e ? "neither kernel has executed counts"
           : !x->a.e          ? "this kernel has no executed counts"
                              : "the reference has no executed counts";
}

void surplus_open(const struct session *s, uint32_t row, uint32_t other, bool by_class,
                  struct surplus *out)
{
    *out = (struct surplus){.by_class = by_class};
    side_of(s, row, &out->a);
    side_of(s, other, &out->b);
    if (!out->a.k || !out->b.k) {
        snprintf(out->why, sizeof out->why, "%s",
                 out->a.k ? "no reference: no other kernel has done this work before"
                          : "no kernel is selected");
        return;
    }
    if (out->a.e && out->b.e) {
        out->basis = SURPLUS_EXECUTED;
    } else if (has_static(&out->a) && has_static(&out->b)) {
        out->basis = SURPLUS_STATIC;
        snprintf(out->why, sizeof out->why, "%s", lacking(out));
    } else {
        bool loops = (!out->a.k->has_census || out->a.k->has_hot) &&
                     (!out->b.k->has_census || out->b.k->has_hot);
        snprintf(out->why, sizeof out->why, "%s, and %s", lacking(out),
                 loops ? "there is no hot loop with matrix instructions on both sides"
                       : "this session is older than censuses of hot loops");
    }
    out->sum_a = total(out, &out->a);
    out->sum_b = total(out, &out->b);
}

uint32_t surplus_count(const struct surplus *x)
{
    return length(x, &x->a) + length(x, &x->b);
}

bool surplus_at(const struct surplus *x, uint32_t index, struct surplus_row *out)
{
    uint32_t na = length(x, &x->a);
    double excess = x->sum_a - x->sum_b, n;
    if (index < na) {
        if (!entry(x, &x->a, index, out, &out->a)) return false;
        find(x, &x->b, out->name, &out->b);
    } else {
        if (!entry(x, &x->b, index - na, out, &out->b)) return false;
        if (find(x, &x->a, out->name, &n)) return false; /* told with the first side's */
        out->a = 0;
    }
    out->delta = out->a - out->b;
    out->pct = !(fabs(excess) > 1e-9 * x->sum_b) ? NAN
               : out->delta == 0                 ? 0 /* not -0 of a saving */
                                                 : 100 * out->delta / excess;
    return true;
}

void surplus_words(const struct surplus *x, char *out, size_t size)
{
    if (x->basis == SURPLUS_NONE) {
        snprintf(out, size, "%s", x->why);
        return;
    }
    double more = x->sum_b > 0 ? 100 * (x->sum_a / x->sum_b - 1) : 0;
    snprintf(out, size, "%s %s %.3fM %s/GMAC, %s %.3fM: %+.1f%%",
             x->basis == SURPLUS_EXECUTED ? "executed:" : "static hot loop:", x->a.k->def.name,
             x->sum_a * 1e3, "instructions", x->b.k->def.name, x->sum_b * 1e3, more);
    if (x->basis != SURPLUS_STATIC) return;
    /* What stands outside the hot loop, or runs in it more than once, may turn the sign. */
    if (x->a.whole > 0 && x->b.whole > 0)
        say(out, size, "whole launches by range: %.3fM, %.3fM: %+.1f%%", x->a.whole * 1e3,
            x->b.whole * 1e3, 100 * (x->a.whole / x->b.whole - 1));
    say(out, size, "%s", x->why);
}
