/*
 * Evaluation of experiments and the words of bars; see lab_experiment.h. Invariant: depends on the
 * experiment alone.
 */
#include "session/lab_experiment.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool series_of(const struct msg_pair *p, enum lab_series s, double *a, double *b)
{
    switch (s) {
    case LAB_WARM:
        *a = p->a_us, *b = p->b_us;
        break;
    case LAB_COLD:
        *a = p->a_cold_us, *b = p->b_cold_us;
        break;
    case LAB_CYCLES:
        *a = p->a_cycles, *b = p->b_cycles;
        break;
    case LAB_ALSO:
        *a = p->a_also_us, *b = p->b_also_us;
        break;
    }
    return isfinite(*a) && isfinite(*b) && *a > 0 && *b > 0;
}

uint32_t lab_ratios(const struct lab_experiment *x, const char *kind, enum lab_series s, double *d,
                    uint32_t max)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->npairs && n < max; i++) {
        const struct msg_pair *p = &x->pairs[i];
        double a, b;
        if (p->dropped[0] || strcmp(p->kind, kind) != 0 || !series_of(p, s, &a, &b)) continue;
        d[n++] = log(a / b);
    }
    return n;
}

uint32_t lab_dropped(const struct lab_experiment *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->npairs; i++) n += x->pairs[i].dropped[0] != '\0';
    return n;
}

const struct msg_gate *lab_gate(const struct lab_experiment *x, const char *name)
{
    for (uint32_t i = 0; i < x->ngates; i++)
        if (strcmp(x->gates[i].gate, name) == 0) return &x->gates[i];
    return NULL;
}

const struct msg_gate *lab_failed_gate(const struct lab_experiment *x)
{
    for (uint32_t i = 0; i < x->ngates; i++)
        if (!strcmp(x->gates[i].state, "failed") || !strcmp(x->gates[i].state, "identical"))
            return &x->gates[i];
    return NULL;
}

/* A's own speed over the run: the clock where it is known, else the time of A. */
static void drift_of(const struct lab_experiment *x, struct lab_evidence *e)
{
    double clock[LAB_PAIRS_MAX], time[LAB_PAIRS_MAX];
    uint32_t n = 0, m = 0;
    for (uint32_t i = 0; i < x->npairs && m < LAB_PAIRS_MAX; i++) {
        const struct msg_pair *p = &x->pairs[i];
        if (p->dropped[0] || !(p->a_us > 0) || !strcmp(p->kind, "CC")) continue;
        time[m++] = p->a_us;
        if (p->a_mhz) clock[n++] = p->a_mhz;
    }
    e->drift_of_clock = n > 0 && n == m;
    e->drift = e->drift_of_clock ? lab_drift(clock, n) : lab_drift(time, m);
}

enum status lab_evaluate(const struct lab_experiment *x, struct lab_result *out)
{
    double ab[LAB_PAIRS_MAX], aa[LAB_PAIRS_MAX], cc[LAB_PAIRS_MAX], cycles[LAB_PAIRS_MAX];
    char gate[448];
    const struct msg_gate *failed = lab_failed_gate(x);
    struct lab_evidence e = {
        .bar = x->def.gain,
        .ab = ab,
        .n = lab_ratios(x, "AB", LAB_WARM, ab, LAB_PAIRS_MAX),
        .aa = aa,
        .naa = lab_ratios(x, "AA", LAB_WARM, aa, LAB_PAIRS_MAX),
        .control = cc,
        .ncontrol = lab_ratios(x, "CC", LAB_WARM, cc, LAB_PAIRS_MAX),
        .cycles = cycles,
        .ncycles = lab_ratios(x, "AB", LAB_CYCLES, cycles, LAB_PAIRS_MAX),
    };
    if (e.ncycles < e.n) e.ncycles = 0; /* of some pairs only: not the same thing */
    drift_of(x, &e);
    if (failed) {
        snprintf(gate, sizeof gate, "%s: %s", failed->gate, failed->text);
        e.gate_failed = gate;
    }
    return lab_judge(&e, out);
}

enum status lab_series_interval(const struct lab_experiment *x, enum lab_series s,
                                struct lab_interval *out)
{
    double d[LAB_PAIRS_MAX];
    return lab_interval_of(d, lab_ratios(x, "AB", s, d, LAB_PAIRS_MAX), out);
}

void lab_fill_verdict(const struct lab_experiment *x, const struct lab_result *r,
                      struct msg_verdict *out)
{
    *out = (struct msg_verdict){
        .experiment = x->def.experiment,
        .firm = r->firm,
        .gain = r->ab.n ? lab_gain(r->ab.est) : (double)NAN,
        .lo = r->ab.known ? lab_gain(r->ab.lo) : (double)NAN,
        .hi = r->ab.known ? lab_gain(r->ab.hi) : (double)NAN,
        .band = r->aa.known ? lab_gain(r->band) : (double)NAN,
        .detectable = lab_gain(r->detectable),
        .pairs = r->ab.n,
        .aa = r->aa.n,
        .dropped = lab_dropped(x),
        .more = r->more,
    };
    snprintf(out->verdict, sizeof out->verdict, "%s", lab_verdict_name(r->verdict));
    snprintf(out->why, sizeof out->why, "%s", r->why);
}

/* ---- bars ---- */

static const char *skip_blanks(const char *p)
{
    while (isspace((unsigned char)*p)) p++;
    return p;
}

static enum status bad_bar(const char *text)
{
    return err_set(ERR_USAGE,
                   "the bar '%s' isn't understood; write \">= +4%% prefill\", \">= 1.5%%\", \">= "
                   "-0.5%% decode\" (no worse than that) or \"<= -3%% time\"",
                   text);
}

enum status lab_parse_bar(const char *text, char metric[16], double *gain)
{
    const char *p = skip_blanks(text);
    bool less = !strncmp(p, "<=", 2), more = !strncmp(p, ">=", 2);
    char *end, word[16] = "";

    if (less || more) p = skip_blanks(p + 2);
    double v = strtod(p, &end);
    if (end == p || !isfinite(v)) return bad_bar(text);
    p = skip_blanks(end);
    if (*p++ != '%') return bad_bar(text);
    p = skip_blanks(p);
    size_t n = strcspn(p, " \t");
    if (n >= sizeof word || *skip_blanks(p + n)) return bad_bar(text);
    memcpy(word, p, n);
    if (less) { /* of the time, so that less is better */
        if (strcmp(word, "time") != 0 || !(v > -100 && v < 100)) return bad_bar(text);
        *gain = 1 / (1 + v / 100) - 1;
        return OK;
    }
    if (!(v > -50 && v < 1000)) return bad_bar(text);
    if (n && strcmp(word, "prefill") && strcmp(word, "decode") && strcmp(word, "kernel"))
        return bad_bar(text);
    if (n) snprintf(metric, 16, "%s", word);
    *gain = v / 100;
    return OK;
}

/* ---- the sentence ---- */

enum { MOVED_MAX = 6 };
#define MOVED       0.005 /* below that a figure counts as unmoved */
#define STALL_MOVED 0.05  /* warps per issue: a rare reason that doubles is still rare */

/* The time is what is to be explained, and elapsed cycles are the time by another clock; how far a
 * loop was unrolled and how long the code is explain nothing by themselves. */
bool lab_figure_explains(const struct msg_mechanism *f)
{
    return strcmp(f->unit, "us") != 0 && strncmp(f->name, "elapsed ", 8) != 0 &&
           strcmp(f->name, "tensor in the hot loop") != 0 && strcmp(f->name, "instructions") != 0;
}

/* How far a figure moved, as a logarithm; 0 = it didn't. */
static double move(const struct msg_mechanism *f)
{
    if (!lab_figure_explains(f) || !isfinite(f->a) || !isfinite(f->b)) return 0;
    if (strcmp(f->unit, "/issue") == 0 && fabs(f->b - f->a) < STALL_MOVED) return 0;
    if (f->a == 0 || f->b == 0) return f->a != f->b;
    if ((f->a < 0) != (f->b < 0)) return 1;
    double d = fabs(log(fabs(f->b / f->a)));
    return d >= MOVED ? d : 0;
}

/* Work comes first, then what moved farthest. */
static double weight(const struct msg_mechanism *f)
{
    double d = move(f);
    return d > 0 && strcmp(f->name, "executed instructions") == 0 ? INFINITY : d;
}

/* Is figure i among the MOVED_MAX that moved farthest? Of equals the first counts. */
static bool tells(const struct lab_experiment *x, uint32_t i)
{
    double w = weight(&x->figures[i]);
    unsigned before = 0;
    for (uint32_t j = 0; j < x->nfigures; j++) {
        double v = weight(&x->figures[j]);
        before += v > w || (v == w && j < i);
    }
    return w > 0 && before < MOVED_MAX;
}

static void put(char *out, size_t size, const char *text)
{
    size_t n = strlen(out);
    if (n + strlen(text) < size) snprintf(out + n, size - n, "%s", text);
}

static void put_figure(const struct msg_mechanism *f, bool first, char *out, size_t size)
{
    char text[200];
    bool large = fabs(f->a) >= 1e4 && fabs(f->a) < 1e15;
    int n = snprintf(text, sizeof text, large ? "%s%s %.0f -> %.0f" : "%s%s %.4g -> %.4g",
                     first ? "" : ", ", f->name, f->a, f->b);
    if (f->unit[0]) n += snprintf(text + n, sizeof text - (size_t)n, " %s", f->unit);
    if (f->a > 0 && f->b > 0 && strcmp(f->unit, "%") != 0)
        snprintf(text + n, sizeof text - (size_t)n, " (%+.1f %%)", 100 * (f->b / f->a - 1));
    put(out, size, text);
}

void lab_sentence(const struct lab_experiment *x, const struct lab_result *r, char *out,
                  size_t size)
{
    unsigned shown = 0, still = 0;
    if (size) out[0] = '\0';
    if (!x->nfigures || !size) return;
    for (uint32_t i = 0; i < x->nfigures; i++) {
        if (move(&x->figures[i]) == 0)
            still += isfinite(x->figures[i].a) && isfinite(x->figures[i].b) &&
                     lab_figure_explains(&x->figures[i]);
        if (!tells(x, i)) continue;
        if (!shown) put(out, size, "From A to B: ");
        put_figure(&x->figures[i], shown++ == 0, out, size);
    }
    if (!shown && still) put(out, size, "No figure beside the time differs by 0.5 % or more");
    if (!shown && !still) put(out, size, "No figure beside the time was taken of both sides");
    if (r->ab.known && shown) {
        char text[120];
        snprintf(text, sizeof text, "; time answered with %+.2f %% speed (%+.2f to %+.2f)",
                 100 * lab_gain(r->ab.est), 100 * lab_gain(r->ab.lo), 100 * lab_gain(r->ab.hi));
        put(out, size, text);
    }
    put(out, size, ".");
}
