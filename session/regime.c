/* What sets a kernel's time; see regime.h. Invariant: no word here that a figure beside it doesn't
 * show; a figure that is an estimate carries its mark. */
#include "session/regime.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *regime_name(enum regime_kind k)
{
    static const char *const names[] = {"not known", "memory bound", "pipe bound", "issue bound",
                                        "latency bound"};
    return (unsigned)k < sizeof names / sizeof *names ? names[k] : names[0];
}

/* A part of the chip that can set the time. `must`: without its figure nothing is decided. */
struct part {
    const char *name;
    const struct value *use;
    enum regime_kind kind;
    bool must;
};

enum { PARTS = 7 };

/* Appends; what doesn't fit is cut (a stream may hold any number, of any length). */
__attribute__((format(printf, 4, 5))) static void put(char *text, size_t size, size_t *at,
                                                      const char *fmt, ...)
{
    va_list ap;
    if (*at >= size) return;
    va_start(ap, fmt);
    int n = vsnprintf(text + *at, size - *at, fmt, ap);
    va_end(ap);
    if (n > 0) *at += (size_t)n;
}

/* ", DRAM 42%": `before`, the name and its figure. */
static void put_percent(char *text, size_t size, size_t *at, const char *before, const char *name,
                        const struct value *v)
{
    char number[24];
    struct value shown = *v;
    bool under = v->v < REGIME_BUSY && v->v >= REGIME_BUSY - 0.5; /* never rounded up to it */
    if (under) shown.v = floor(10 * v->v) / 10;
    put(text, size, at, "%s%s %s%%", before, name,
        value_format(&shown, 7, under || v->v < 10 ? 1 : 0, 0, number, sizeof number));
}

/* ---- roofline ---- */

/* 1.52e15 -> "1520 T", 4.1e12 -> "4.10 T". */
static const char *tera(double v, char *text, size_t size)
{
    double t = v / 1e12;
    if (t < 0.1)
        snprintf(text, size, "%.3g G", v / 1e9);
    else
        snprintf(text, size, t < 10 ? "%.2f T" : t < 100 ? "%.1f T" : "%.0f T", t);
    return text;
}

static void put_roofline(const struct regime_in *in, bool counted, struct regime *out)
{
    char number[24], *text = out->roofline;
    size_t at = 0, size = sizeof out->roofline;

    if (out->rate.state != VALUE_OK) {
        put(text, size, &at, "%s", out->rate.why);
        return;
    }
    put(text, size, &at, "%sop/s", tera(out->rate.v, number, sizeof number));
    if (value_known(&out->intensity))
        put(text, size, &at, " at %.*f op/B%s", out->intensity.v < 100 ? 1 : 0, out->intensity.v,
            counted ? "" : " at least traffic");
    if (out->roof.state != VALUE_OK) {
        put(text, size, &at, "; roof: %s", out->roof.why);
        return;
    }
    bool memory = out->roof.v < 2 * in->compute_ceiling.v;
    put(text, size, &at, ": ");
    if (value_known(&out->roof_share)) put(text, size, &at, "%.0f%% of ", out->roof_share.v);
    put(text, size, &at, "%sop/s, the %s roof%s", tera(out->roof.v, number, sizeof number),
        memory ? "DRAM" : in->compute_name, memory ? " at that intensity" : "");
}

static void roofline(const struct regime_in *in, struct regime *out)
{
    bool counted = value_known(&in->dram_rate) && in->dram_rate.v > 0 && value_known(&in->us);
    double ops = 2 * in->macs;
    double bytes = counted ? in->dram_rate.v * in->us.v / 1e6 : in->least_bytes;

    out->rate = out->roof = out->roof_share = out->intensity =
        value_missing(VALUE_UNAVAILABLE, "not a matrix product: no operations to count");
    if (in->macs > 0) {
        out->rate = value_missing(VALUE_PENDING, "no launch of it has been timed yet");
        out->roof = out->roof_share =
            value_missing(VALUE_UNAVAILABLE, "not measured in this session");
        if (value_known(&in->us) && in->us.v > 0)
            out->rate = value_ok(ops / in->us.v * 1e6, in->us.source);
        out->intensity = value_missing(VALUE_UNAVAILABLE, "its bytes are not known");
        if (bytes > 0)
            out->intensity = value_ok(ops / bytes, counted ? in->dram_rate.source : NULL);
    }
    bool ceilings = in->dram_ceiling.state == VALUE_OK && in->compute_ceiling.state == VALUE_OK;
    if (ceilings && value_known(&out->intensity) && value_known(&out->rate)) {
        out->roof = value_ok(fmin(2 * in->compute_ceiling.v, out->intensity.v * in->dram_ceiling.v),
                             in->dram_ceiling.source);
        out->roof_share = value_ok(100 * out->rate.v / out->roof.v, in->us.source);
    }
    put_roofline(in, counted, out);
}

/* ---- regime ---- */

static void put_decided(const struct regime_in *in, const struct part *parts,
                        const struct part *top, const char *missing, struct regime *out)
{
    char *text = out->decided;
    size_t size = sizeof out->decided, at = 0;

    put(text, size, &at, "%s%s", out->kind == REGIME_UNKNOWN ? "its limit is " : "",
        regime_name(out->kind));
    if (out->kind == REGIME_UNKNOWN) {
        put(text, size, &at, ": %s has no figure", missing);
        for (int i = 0; i < PARTS; i++)
            if (value_known(parts[i].use))
                put_percent(text, size, &at, ", ", parts[i].name, parts[i].use);
        return;
    }
    put_percent(text, size, &at, ": ", top->name, top->use);
    for (int i = 0; i < PARTS; i++)
        if (&parts[i] != top && value_known(parts[i].use) &&
            (parts[i].must || parts[i].use->v >= 20))
            put_percent(text, size, &at, ", ", parts[i].name, parts[i].use);
    if (out->kind == REGIME_LATENCY)
        put(text, size, &at, " of peak, none at %d%s", REGIME_BUSY,
            value_known(&in->l1) ? "" : ", L1/shared not known");
    if (value_known(&in->stall) && in->stall_name && in->stall_name[0])
        put_percent(text, size, &at, "; waits: ", in->stall_name, &in->stall);
    if (value_known(&in->sm_active) && in->sm_active.v < 80) {
        put_percent(text, size, &at, "; ", "an SM has warps", &in->sm_active);
        put(text, size, &at, " of the time");
    }
}

static void put_payoff(const struct regime_in *in, const struct part *top, struct regime *out)
{
    char freed[24];

    out->saving = value_missing(VALUE_UNAVAILABLE, "issue slots are not counted in this session");
    if (!value_known(&in->issue)) {
        snprintf(out->payoff, sizeof out->payoff, "-10%% instructions: not known, %s",
                 out->saving.why);
        return;
    }
    /* A tenth of the instructions is a tenth of the issuing cycles; SMs without warps issue none.
     */
    bool idle = value_known(&in->sm_active) && !in->issue_elapsed;
    double share = idle ? fmin(in->sm_active.v, 100) / 100 : 1;
    struct value slots = in->issue;
    slots.v = 0.1 * in->issue.v * share;
    slots.spread = -1;
    value_format(&slots, 7, 1, 0, freed, sizeof freed);
    out->saving = slots;
    char *text = out->payoff;
    size_t size = sizeof out->payoff;
    switch (out->kind) {
    case REGIME_ISSUE:
        snprintf(text, size, "-10%% instructions: saves up to %s%% of its time", freed);
        break;
    case REGIME_MEMORY:
    case REGIME_PIPE:
        out->saving.v = 0;
        if (top->use == &in->l1)
            snprintf(text, size,
                     "-10%% instructions: only shared-memory ones save time, %s sets it",
                     top->name);
        else
            snprintf(text, size,
                     "-10%% instructions: saves nothing, %s sets the time (%s%% of slots freed)",
                     top->name, freed);
        break;
    case REGIME_LATENCY:
        snprintf(text, size,
                 "-10%% instructions: saves at most %s%% of its time, where warps wait on them",
                 freed);
        break;
    case REGIME_UNKNOWN:
        snprintf(text, size,
                 "-10%% instructions: frees %s%% of issue slots; what it saves is not known",
                 freed);
        break;
    }
}

/* Where many operations come on a byte, the tensor pipe may be the limit: its figure must be there.
 * A product of few (a matrix by a vector) can't fill it. */
static bool needs_tensor(const struct regime_in *in, const struct regime *out)
{
    enum { MANY = 50 };
    if (!(in->macs > 0)) return false;
    return !value_known(&out->intensity) || out->intensity.v >= MANY;
}

void regime_of(const struct regime_in *in, struct regime *out)
{
    const struct part *top = NULL;
    const char *missing = NULL;

    memset(out, 0, sizeof *out);
    roofline(in, out);
    const struct part parts[PARTS] = {
        {"issue", &in->issue, REGIME_ISSUE, true},
        {"DRAM", &in->dram, REGIME_MEMORY, true},
        {"tensor", &in->tensor, REGIME_PIPE, needs_tensor(in, out)},
        /* Shared memory is a part of L1, and often the limit of a product. */
        {"L1/shared", &in->l1, REGIME_MEMORY, in->l1.state == VALUE_PENDING},
        {"L2", &in->l2, REGIME_MEMORY, false},
        {"ALU", &in->alu, REGIME_PIPE, false},
        {"FMA", &in->fma, REGIME_PIPE, false},
    };
    for (int i = 0; i < PARTS; i++) {
        const struct part *p = &parts[i];
        if (!value_known(p->use)) {
            if (p->must && !missing) missing = p->name;
            continue;
        }
        if (!top || p->use->v > top->use->v) top = p;
    }
    if (top && top->use->v >= REGIME_BUSY)
        out->kind = top->kind;
    else if (top && !missing)
        out->kind = REGIME_LATENCY;
    put_decided(in, parts, top, missing ? missing : "nothing", out);
    put_payoff(in, top, out);
}
