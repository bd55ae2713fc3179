/*
 * Job: PC samples by instruction for the listing; see listing_heat.h.
 *
 * Invariants: shares are of all the kernel's samples, also those without a place; a loop's samples
 * are those of its own instructions, without the loops inside it, else the outermost one would
 * always win. To give a reason a letter: a row in `letters`.
 */
#include "tui/listing_heat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Per cent of the samples from which an instruction's share is written out. */
static const double HEAT_LEAST = 0.1;

static const struct {
    char letter;
    const char *reason;
} letters[] = {
    {'L', "long_scoreboard"},
    {'S', "short_scoreboard"},
    {'M', "mio_throttle"},
    {'W', "wait"},
    {'B', "barrier"},
    {'P', "math_pipe_throttle"},
    {'G', "lg_throttle"},
    {'T', "tex_throttle"},
    {'F', "membar"},

    {'I', "no_instruction"},
    {'J', "branch_resolving"},
    {'D', "dispatch_stall"},
    {'E', "drain"},
    {'Z', "sleeping"},
    {'N', "not_selected"},
    {'C', "imc_miss"},
    {'A', "gmma"},
    {'X', "misc"},
};

char heat_letter(const char *reason)
{
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (!strcmp(letters[i].reason, reason)) return letters[i].letter;
    return '?';
}

static uint64_t samples_at(const struct listing_heat *h, uint32_t i)
{
    return h->of && i < h->of->ninsns ? h->of->insns[i].samples : 0;
}

double heat_pct(const struct listing_heat *h, uint32_t i)
{
    if (!h->of || !h->of->samples) return NAN;
    return 100.0 * (double)samples_at(h, i) / (double)h->of->samples;
}

/* The loop whose own instructions have the most samples; -1: none has any. */
static int32_t hot_loop(const struct listing_heat *h, const struct flow *f, double *samples)
{
    double *sum = f->nloops ? calloc(f->nloops, sizeof *sum) : NULL;
    int32_t best = -1;
    if (!sum) return -1;
    for (uint32_t i = 0; i < f->ninsns; i++)
        if (f->insn_loop[i] >= 0) sum[f->insn_loop[i]] += (double)samples_at(h, i);
    for (uint32_t l = 0; l < f->nloops; l++)
        if (sum[l] > (best < 0 ? 0 : sum[best])) best = (int32_t)l;
    if (best >= 0) *samples = sum[best];
    free(sum);
    return best;
}

/* Has PC sampling seen the kernel in any generation? */
static bool seen(const struct session *s, uint32_t kernel)
{
    for (uint32_t i = 0; i < s->nstalls; i++)
        if (s->stalls[i].kernel == kernel) return true;
    for (uint32_t i = 0; i < s->nheats; i++)
        if (s->heats[i].kernel == kernel) return true;
    return false;
}

struct listing_heat heat_find(const struct session *s, const struct row *r, const struct flow *f)
{
    struct listing_heat h = {.hot = f->hot, .hottest = -1};
    uint64_t most = 0;
    const struct kernel_heat *of = r ? session_heat(s, r->def.kernel, r->def.generation) : NULL;
    if (!of || !of->samples) {
        h.elsewhere = r && seen(s, r->def.kernel);
        h.gone = r && r->def.generation <= s->heats_gone;
        h.kernel_only = r && session_stalls(s, r->def.kernel, r->def.generation);
        return h;
    }
    h.of = of;
    for (uint32_t i = 0; i < f->ninsns; i++)
        if (samples_at(&h, i) > most) {
            most = samples_at(&h, i);
            h.hottest = (int32_t)i;
        }
    double samples = 0;
    int32_t loop = hot_loop(&h, f, &samples);
    h.hot_by_samples = loop >= 0;
    if (loop >= 0) h.hot = loop;
    h.hot_pct = 100 * samples / (double)of->samples;
    return h;
}

/* The reason with the next most samples after those in `told`; its number, -1: none left. */
static int next_reason(const double *sum, uint32_t n, const bool *told)
{
    int best = -1;
    for (uint32_t i = 0; i < n; i++)
        if (!told[i] && sum[i] > (best < 0 ? 0 : sum[best])) best = (int)i;
    return best;
}

void heat_line(const struct listing_heat *h, char *out, size_t size)
{
    double sum[MAX_REASONS] = {0};
    bool told[MAX_REASONS] = {false};
    size_t at;
    if (!h->of) {
        snprintf(
            out, size, "%s",
            h->gone          ? "samples by instruction of this generation made room for newer ones"
            : h->kernel_only ? "no samples by instruction: the session has the kernel's sums alone"
            : h->elsewhere   ? "no samples: PC sampling has not seen this kernel in this generation"
                             : "no samples: PC sampling has not seen this kernel");
        return;
    }
    /* Only letters that an instruction is drawn with: all of them would fill the line. */
    for (uint32_t k = 0; k < MAX_REASONS; k++) told[k] = true;
    for (uint32_t i = 0; i < h->of->ninsns; i++) {
        const struct heat_insn *in = &h->of->insns[i];
        uint64_t n;
        const char *top = heat_top(h->of, i, &n);
        for (uint32_t k = 0; k < in->nreasons; k++) sum[in->reason[k]] += (double)in->by[k];
        for (uint32_t k = 0; k < h->of->nreasons && heat_pct(h, i) >= HEAT_LEAST; k++)
            if (!strcmp(h->of->reasons[k], top)) told[k] = false;
    }
    at = (size_t)snprintf(out, size, "by pc sampling%s, %llu samples",
                          strcmp(h->of->source, "pc") ? " (synthetic)" : "",
                          (unsigned long long)h->of->samples);
    if (h->hot_by_samples && at < size)
        at += (size_t)snprintf(out + at, size - at, ", %.0f %% in the hot loop", h->hot_pct);
    const char *before = ";";
    for (int i; (i = next_reason(sum, h->of->nreasons, told)) >= 0 && at < size; before = "") {
        const char *reason = h->of->reasons[i];
        told[i] = true;
        at +=
            (size_t)snprintf(out + at, size - at, "%s %c=%s", before, heat_letter(reason), reason);
    }
}

void heat_words(const struct listing_heat *h, uint32_t i, char *out, size_t size)
{
    uint64_t n;
    out[0] = 0;
    if (!samples_at(h, i)) return;
    const char *reason = heat_top(h->of, i, &n);
    int at = snprintf(out, size, "%.1f %% of samples", heat_pct(h, i));
    if (reason[0] && at > 0 && (size_t)at < size)
        snprintf(out + at, size - (size_t)at, ", most stalls %c %s", heat_letter(reason), reason);
}

/* As perf annotate has it: 5 % and more is red. */
static enum role heat_role(double pct)
{
    return pct >= 5 ? ROLE_BAD : pct >= 1 ? ROLE_WARN : ROLE_TEXT;
}

void heat_draw(struct canvas *c, int x, int y, int w, const struct listing_heat *h, uint32_t i)
{
    uint64_t n;
    double pct = heat_pct(h, i);
    if (isnan(pct)) return;
    if (pct < HEAT_LEAST) {
        canvas_text(c, x + 4, y, w - 4, ROLE_DIM, ".");
        return;
    }
    canvas_printf(c, x, y, w, heat_role(pct), "%5.1f", pct);
    const char *reason = heat_top(h->of, i, &n);
    if (reason[0]) canvas_printf(c, x + 6, y, w - 6, ROLE_TEXT, "%c", heat_letter(reason));
}
