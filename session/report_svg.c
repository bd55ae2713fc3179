/* See report_svg.h. Widths are fixed in user units and scale with the page; numbers are printed
 * with two decimals, so that equal sessions give equal bytes. */
#include "session/report_svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/report_fmt.h"

enum { W = 720, LEFT = 60, RIGHT = 12, BAR_H = 22, BARS_MAX = 14 };

void html_text(struct buf *out, const char *text)
{
    char clean[512];
    snprintf(clean, sizeof clean, "%s", text);
    fmt_utf8(clean);
    for (const char *p = clean; *p; p++) {
        if (*p == '<')
            buf_printf(out, "&lt;");
        else if (*p == '>')
            buf_printf(out, "&gt;");
        else if (*p == '&')
            buf_printf(out, "&amp;");
        else if (*p == '"')
            buf_printf(out, "&quot;");
        else
            buf_u8(out, (uint8_t)*p);
    }
}

static void open_svg(struct buf *out, int height, const char *title)
{
    buf_printf(out, "<figure><figcaption>");
    html_text(out, title);
    buf_printf(out, "</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", W,
               height);
    html_text(out, title);
    buf_printf(out, "\">\n");
}

static void close_svg(struct buf *out)
{
    buf_printf(out, "</svg></figure>\n");
}

static void put_text(struct buf *out, double x, double y, const char *cls, const char *anchor,
                     const char *text)
{
    buf_printf(out, "<text x=\"%.2f\" y=\"%.2f\" class=\"%s\" text-anchor=\"%s\">", x, y, cls,
               anchor);
    html_text(out, text);
    buf_printf(out, "</text>\n");
}

/* ---- an axis of gains ---- */

struct axis {
    double lo, hi;   /* values at the ends */
    double from, to; /* coordinates there */
};

static double place(const struct axis *a, double v)
{
    return a->from + (v - a->lo) / (a->hi - a->lo) * (a->to - a->from);
}

static void widen(struct axis *a, double v)
{
    if (!isfinite(v)) return;
    if (v < a->lo) a->lo = v;
    if (v > a->hi) a->hi = v;
}

/* 1, 2 or 5 times a power of ten, about five of them. */
static double tick_of(const struct axis *a)
{
    double raw = (a->hi - a->lo) / 5, p = pow(10, floor(log10(raw))), m = raw / p;
    return p * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}

static double gain_percent(double a, double b)
{
    return 100 * (a / b - 1);
}

static struct axis gain_axis(const struct lab_experiment *x, double from, double to)
{
    struct axis a = {.lo = 0, .hi = 0, .from = from, .to = to};
    for (uint32_t i = 0; i < x->npairs; i++)
        if (!x->pairs[i].dropped[0] && x->pairs[i].a_us > 0 && x->pairs[i].b_us > 0)
            widen(&a, gain_percent(x->pairs[i].a_us, x->pairs[i].b_us));
    widen(&a, 100 * x->def.gain);
    double pad = 0.08 * (a.hi - a.lo) + 0.01;
    a.lo -= pad;
    a.hi += pad;
    return a;
}

/* ---- pairs ---- */

static void put_line(struct buf *out, double x1, double y1, double x2, double y2, const char *cls)
{
    buf_printf(out, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" class=\"%s\"/>\n", x1,
               y1, x2, y2, cls);
}

static void gain_ticks(struct buf *out, const struct axis *a)
{
    char text[32];
    double step = tick_of(a);
    for (double v = ceil(a->lo / step) * step; v <= a->hi; v += step) {
        double y = place(a, v);
        put_line(out, LEFT, y, W - RIGHT, y, fabs(v) < step / 1000 ? "zero" : "grid");
        snprintf(text, sizeof text, "%+.4g %%", fabs(v) < step / 1000 ? 0.0 : v);
        put_text(out, LEFT - 6, y + 4, "tick", "end", text);
    }
}

static void put_band(struct buf *out, const struct axis *a, double lo, double hi, const char *cls)
{
    if (!isfinite(lo) || !isfinite(hi)) return;
    double y1 = place(a, fmin(hi, a->hi)), y2 = place(a, fmax(lo, a->lo));
    if (y2 > y1)
        buf_printf(out, "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" class=\"%s\"/>\n",
                   LEFT, y1, W - LEFT - RIGHT, y2 - y1, cls);
}

void svg_pairs(struct buf *out, const struct lab_experiment *x)
{
    enum { H = 300 };
    struct msg_verdict v;
    struct lab_result r;
    if (!x->npairs || lab_evaluate(x, &r) != OK) return;
    lab_fill_verdict(x, &r, &v);
    struct axis a = gain_axis(x, H - 8, 12);
    open_svg(
        out, H,
        "Gain of B over A, pair by pair. Blue: A/B with its interval; grey: A against A with the "
        "noise band; rings: the third kernel; dashes: the bar");
    put_band(out, &a, -100 * v.band, 100 * v.band, "band");
    put_band(out, &a, 100 * v.lo, 100 * v.hi, "interval");
    gain_ticks(out, &a);
    double bar = place(&a, 100 * x->def.gain);
    put_line(out, LEFT, bar, W - RIGHT, bar, "bar");
    put_text(out, W - RIGHT, bar - 4, "label", "end", "bar");
    for (uint32_t i = 0; i < x->npairs; i++) {
        const struct msg_pair *p = &x->pairs[i];
        if (!(p->a_us > 0 && p->b_us > 0)) continue;
        double g = fmax(a.lo, fmin(a.hi, gain_percent(p->a_us, p->b_us)));
        double px = LEFT + (i + 0.5) * (W - LEFT - RIGHT) / x->npairs;
        buf_printf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%s\" class=\"%s\"/>\n", px,
                   place(&a, g), p->kind[0] == 'A' && p->kind[1] == 'B' ? "4" : "3",
                   p->dropped[0]       ? "dropped"
                   : p->kind[1] == 'B' ? "ab"
                   : p->kind[1] == 'A' ? "aa"
                                       : "cc");
    }
    close_svg(out);
}

enum { BINS = 32 };

static void fill_bins(const struct lab_experiment *x, const char *kind, const struct axis *a,
                      unsigned *bins, unsigned *most)
{
    for (uint32_t i = 0; i < x->npairs; i++) {
        const struct msg_pair *p = &x->pairs[i];
        if (p->dropped[0] || strcmp(p->kind, kind) || !(p->a_us > 0 && p->b_us > 0)) continue;
        int b = (int)((gain_percent(p->a_us, p->b_us) - a->lo) / (a->hi - a->lo) * BINS);
        b = b < 0 ? 0 : b >= BINS ? BINS - 1 : b;
        if (++bins[b] > *most) *most = bins[b];
    }
}

void svg_distribution(struct buf *out, const struct lab_experiment *x)
{
    enum { H = 170, FLOOR = 140 };
    unsigned ab[BINS] = {0}, aa[BINS] = {0}, most = 0;
    char text[32];
    if (!x->npairs) return;
    struct axis a = gain_axis(x, LEFT, W - RIGHT);
    fill_bins(x, "AB", &a, ab, &most);
    fill_bins(x, "AA", &a, aa, &most);
    if (!most) return;
    open_svg(out, H, "Distribution of the pairs: A/B (filled) over A against A (grey)");
    double w = (a.to - a.from) / BINS;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < BINS; i++) {
            double h = (k ? ab : aa)[i] * (FLOOR - 12.0) / most;
            if (h > 0)
                buf_printf(out,
                           "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                           "class=\"%s\"/>\n",
                           a.from + i * w + (k ? 0.25 * w : 1), FLOOR - h, k ? 0.5 * w : w - 2, h,
                           k ? "ab" : "aa");
        }
    double step = tick_of(&a);
    for (double v = ceil(a.lo / step) * step; v <= a.hi; v += step) {
        snprintf(text, sizeof text, "%+.4g %%", fabs(v) < step / 1000 ? 0.0 : v);
        put_text(out, place(&a, v), FLOOR + 18, "tick", "middle", text);
    }
    put_line(out, LEFT, FLOOR, W - RIGHT, FLOOR, "zero");
    put_line(out, place(&a, 100 * x->def.gain), 8, place(&a, 100 * x->def.gain), FLOOR, "bar");
    close_svg(out);
}

/* ---- horizontal bars ---- */

struct bar {
    char name[64], label[48];
    double v;
};

static void put_bars(struct buf *out, const char *title, const struct bar *bars, int n, bool both)
{
    enum { NAME = 290, LABEL = 100 };
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(bars[i].v));
    if (n == 0 || !(most > 0)) return;
    open_svg(out, n * BAR_H + 8, title);
    double room = W - NAME - LABEL, zero = both ? NAME + room / 2 : NAME;
    double scale = (both ? room / 2 : room) / most;
    for (int i = 0; i < n; i++) {
        double y = i * BAR_H + 4, w = fabs(bars[i].v) * scale;
        put_text(out, NAME - 8, y + 15, "name", "end", bars[i].name);
        buf_printf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%d\" class=\"%s\"/>\n",
                   bars[i].v < 0 ? zero - w : zero, y + 3, w, BAR_H - 7,
                   bars[i].v < 0 ? "less" : "more");
        put_text(out, W - 4, y + 15, "tick", "end", bars[i].label);
    }
    if (both) put_line(out, zero, 0, zero, n * BAR_H + 8, "zero");
    close_svg(out);
}

void svg_mechanism(struct buf *out, const struct lab_experiment *x)
{
    struct bar bars[BARS_MAX];
    int n = 0;
    for (uint32_t i = 0; i < x->nfigures && n < BARS_MAX; i++) {
        const struct msg_mechanism *m = &x->figures[i];
        if (!(m->a > 0 && m->b > 0) || fabs(m->b / m->a - 1) < 0.0005) continue;
        if (!lab_figure_explains(m)) continue;
        struct bar *b = &bars[n++];
        b->v = 100 * (m->b / m->a - 1);
        snprintf(b->name, sizeof b->name, "%s", m->name);
        snprintf(b->label, sizeof b->label, "%+.1f %%", b->v);
    }
    put_bars(out, "What moved from A to B", bars, n, true);
}

static int by_value(const void *a, const void *b)
{
    const struct bar *x = a, *y = b;
    if (x->v != y->v) return x->v < y->v ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* The stall reasons of the kernel with most samples. */
void svg_stalls(struct buf *out, const struct session *s)
{
    const struct kernel_stalls *k = NULL;
    static const char prefix[] = "stalls of ";
    struct bar bars[MAX_REASONS];
    char title[120];
    int n = 0;
    for (uint32_t i = 0; i < s->nstalls; i++)
        if (!k || s->stalls[i].generation > k->generation ||
            (s->stalls[i].generation == k->generation && s->stalls[i].samples > k->samples))
            k = &s->stalls[i];
    if (!k || !k->samples || k->kernel >= s->nkernels) return;
    for (uint32_t i = 0; i < k->nreasons; i++) {
        double share = 100.0 * (double)k->reasons[i].samples / (double)k->samples;
        if (share < 0.05) continue;
        bars[n].v = share;
        snprintf(bars[n].name, sizeof bars[n].name, "%s", k->reasons[i].reason);
        snprintf(bars[n++].label, sizeof bars[0].label, "%.1f %%", share);
    }
    qsort(bars, (size_t)n, sizeof *bars, by_value);
    snprintf(title, sizeof title, "%s%.60s: share of its PC samples (%s)", prefix,
             s->kernels[k->kernel].def.name, k->source);
    put_bars(out, title, bars, n < BARS_MAX ? n : BARS_MAX, false);
}

void svg_sm(struct buf *out, const struct session *s)
{
    const struct generation *g = session_current(s);
    struct bar bars[64];
    int n = 0;
    for (uint32_t i = 0; g && i < s->nrows && n < 64; i++) {
        const struct row *r = &s->rows[i];
        if (r->def.generation != g->def.generation) continue;
        struct value v = row_metric_best(s, r, "sm_pct");
        if (!value_known(&v)) v = row_metric_best(s, r, "sm_launch_pct");
        if (!value_known(&v)) continue;
        bars[n].v = v.v;
        snprintf(bars[n].name, sizeof bars[n].name, "%.24s %.16s",
                 s->kernels[r->def.kernel].def.name, r->def.role);
        snprintf(bars[n++].label, sizeof bars[0].label, "%s%.1f %%",
                 v.state == VALUE_ESTIMATE ? "~" : "", v.v);
    }
    qsort(bars, (size_t)n, sizeof *bars, by_value);
    put_bars(out, "SM% inside kernels of the newest generation", bars, n < BARS_MAX ? n : BARS_MAX,
             false);
}

/* ---- rates ---- */

static void put_rate(struct buf *out, const float *v, uint32_t n, double top, int y, int h,
                     const char *cls)
{
    bool down = false;
    buf_printf(out, "<path class=\"%s\" d=\"", cls);
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) {
            down = false;
            continue;
        }
        buf_printf(out, "%s%.2f %.2f", down ? " L" : " M",
                   LEFT + (i + 0.5) * (W - LEFT - RIGHT) / n, y + h - v[i] / top * h);
        down = true;
    }
    buf_printf(out, "\"/>\n");
}

static double top_of(const float *v, uint32_t n)
{
    double top = 0;
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(v[i])) top = fmax(top, v[i]);
    return top;
}

void svg_rates(struct buf *out, const struct session *s)
{
    enum { H = 110 };
    const float *series[] = {s->spark_prefill, s->spark_decode};
    const char *const titles[] = {"Prefill, tokens/s of timed rounds",
                                  "Decode, tokens/s of timed rounds"};
    char text[40];
    for (int i = 0; i < 2 && s->nspark > 1; i++) {
        double top = top_of(series[i], s->nspark);
        if (!(top > 0)) continue;
        open_svg(out, H, titles[i]);
        put_line(out, LEFT, H - 10, W - RIGHT, H - 10, "zero");
        put_line(out, LEFT, 10, W - RIGHT, 10, "grid");
        snprintf(text, sizeof text, top < 1000 ? "%.1f" : "%.0f", top);
        put_text(out, LEFT - 6, 14, "tick", "end", text);
        put_text(out, LEFT - 6, H - 6, "tick", "end", "0");
        put_rate(out, series[i], s->nspark, top, 10, H - 20, "rate");
        close_svg(out);
    }
}
