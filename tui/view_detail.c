/* Detail: everything known of one kernel on one shape: what it is, every figure (steady, whole,
 * exact), stalls beside those of the generation before, the histogram of its times. */
#include "tui/view.h"

#include "session/timeline.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WRAP_FROM_H = 19 }; /* from this height on, lines that are too long may take a second row */

struct detail {
    struct pane figures, stalls;
    bool second;
};

static void detail_init(void *data)
{
    struct detail *v = data;
    pane_init(&v->figures, "detail");
    pane_init(&v->stalls, "stalls");
    pane_column(&v->figures, "value");
    pane_column(&v->stalls, "share");
}

static void detail_done(void *data)
{
    struct detail *v = data;
    pane_free(&v->figures);
    pane_free(&v->stalls);
}

static struct pane *detail_pane(void *data)
{
    struct detail *v = data;
    return v->second ? &v->stalls : &v->figures;
}

static void detail_update(struct app *a, void *data)
{
    struct detail *v = data;
    const struct session *s = app_session(a);
    const struct row *r = app_row(a);

    v->figures.query.row = v->stalls.query.row = r ? a->row : TABLE_NONE;
    v->stalls.query.kernel = r ? r->def.kernel : TABLE_NONE;
    v->stalls.query.other = r ? session_counterpart(s, r, r->def.generation) : TABLE_NONE;
    pane_update(&v->figures, s);
    pane_update(&v->stalls, s);
    /* Without the cursor in it the table shows its top, whatever kernel it was moved in before. */
    if (!v->second) pane_enter(&v->stalls, REQ_DOWN);
}

static void add(char *text, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t size, const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, size - n, fmt, ap);
    va_end(ap);
}

/* The work, and what a launch of it takes: "14336x512x4096  grid 8x112  256 threads ...". */
static void put_work(const struct kernel *k, const struct msg_row_def *d, char *text, size_t size)
{
    snprintf(text, size, "%ux%u", d->m, d->n);
    if (d->k) add(text, size, "x%u", d->k);
    if (!k->def.arch) return;
    add(text, size, "  grid %u", d->grid_x);
    if (d->grid_y > 1 || d->grid_z > 1) add(text, size, "x%u", d->grid_y);
    if (d->grid_z > 1) add(text, size, "x%u", d->grid_z);
    add(text, size, "  %u threads  %u regs  ", k->def.threads, k->def.regs);
    if (k->def.smem_static && d->smem_dynamic)
        add(text, size, "%.4g+", k->def.smem_static / 1024.0);
    add(text, size, "%.4g KiB smem",
        (d->smem_dynamic ? d->smem_dynamic : k->def.smem_static) / 1024.0);
    if (d->blocks_per_sm)
        add(text, size, "  %u block%s/SM", d->blocks_per_sm, d->blocks_per_sm == 1 ? "" : "s");
    if (k->def.spill) add(text, size, "  spills %u B", k->def.spill);
}

/* Who it is, in at most four rows; returns how many. */
static int draw_head(struct app *a, struct area area)
{
    const struct row *r = app_row(a);
    const struct kernel *k = app_kernel(a);
    const struct msg_row_def *d = &r->def;
    struct canvas *c = &a->canvas;
    char line[400];
    int y = area.y;

    int x = 1 + canvas_printf(c, 1, y, area.w - 2, ROLE_ACCENT | STYLE_BOLD, "%s", k->def.name);
    canvas_printf(c, x + 2, y++, area.w - x - 3, k->faulted ? ROLE_BAD : ROLE_TEXT,
                  "%s, %s, g%u%s%s", d->role, d->phase, d->generation,
                  k->faulted ? ", FAULTED" : "", "");
    if (k->def.note[0] && area.h >= 14) canvas_text(c, 1, y++, area.w - 2, ROLE_DIM, k->def.note);
    put_work(k, d, line, sizeof line);
    canvas_text(c, 1, y++, area.w - 2, ROLE_TEXT, line);
    if (d->asked[0])
        canvas_printf(c, 1, y++, area.w - 2, ROLE_WARN, "asked for %s: %s", d->asked, d->why);
    return y - area.y;
}

/* Bins of a quarter octave, drawn as one line with the shortest and the longest at its ends. */
static void draw_histogram(struct app *a, struct area area)
{
    const struct row *r = app_row(a);
    float bins[256];
    int lo = 256, hi = -1;
    char from[32], to[32];

    for (int i = 0; i < 256; i++) {
        bins[i] = r->hist[i] ? (float)(log1p(r->hist[i])) : NAN;
        if (!r->hist[i]) continue;
        if (i < lo) lo = i;
        hi = i;
    }
    if (hi < 0) return;
    snprintf(from, sizeof from, "times %.1f us", exp2(lo / 4.0) / 1e3);
    snprintf(to, sizeof to, "%.1f us (log counts)", exp2((hi + 1) / 4.0) / 1e3);
    int x = 1 + canvas_text(&a->canvas, 1, area.y, 24, ROLE_DIM, from) + 1, w = hi - lo + 1;
    if (w > area.w - x - 24) w = area.w - x - 24;
    canvas_spark(&a->canvas, x, area.y, w, bins + lo, (unsigned)(hi - lo + 1), ROLE_BAR);
    canvas_text(&a->canvas, x + w + 1, area.y, 24, ROLE_DIM, to);
}

/* A metric from a launch's start to its end, with its name and its largest value, to which it is
 * scaled. More samples than columns: each column is the mean of those in it. */
static void draw_inside_graph(struct app *a, const struct timeline_launch *l, int metric,
                              struct area area)
{
    enum { SAMPLES_MAX = 512, NUMBER_W = 5 };
    struct canvas *c = &a->canvas;
    const char *label = app_session(a)->metrics[l->window->metric[metric]].label;
    int from = area.x + canvas_text(c, area.x, area.y, area.w + 1, ROLE_TEXT, label) + 1;
    int w = area.x + area.w - from - NUMBER_W;
    float v[SAMPLES_MAX], most = 0;

    if (w < 3) return;
    unsigned columns = l->n < SAMPLES_MAX ? l->n : SAMPLES_MAX;
    if (columns > (unsigned)w) columns = (unsigned)w;
    for (unsigned i = 0; i < columns; i++) {
        uint64_t step = l->span->dur_ns / columns, t = l->span->t_ns + i * step;
        v[i] = (float)timeline_mean(l->window, metric, t, t + step);
        if (v[i] > most) most = v[i];
    }
    canvas_spark(c, from, area.y, w, v, columns, ROLE_BAR);
    canvas_printf(c, from + (int)columns + 1, area.y, NUMBER_W - 1, ROLE_DIM, "%.3g", (double)most);
}

/* SM%, tensor%, DRAM% inside the newest launch that holds enough samples. One line. */
static void draw_inside(struct app *a, struct area area)
{
    enum { LEAST = 4 };
    const struct session *s = app_session(a);
    struct canvas *c = &a->canvas;
    struct timeline_launch l;
    int at[TIMELINE_GRAPHS];

    if (!timeline_newest(s, a->row, LEAST, &l)) {
        canvas_text(c, 1, area.y, area.w - 2, ROLE_DIM,
                    s->ntrace ? "inside a launch: none of those kept holds 4 samples; t shows the "
                                "timeline"
                              : "inside a launch: no window has been sampled");
        return;
    }
    timeline_graphs(s, l.window, at);
    int x = 1 + canvas_printf(c, 1, area.y, area.w - 2, ROLE_DIM,
                              "inside %.1f us:", l.span->dur_ns / 1e3);
    int each = (area.w - x - 1) / TIMELINE_GRAPHS;
    for (int g = 0; g < TIMELINE_GRAPHS; g++, x += each)
        if (at[g] >= 0) draw_inside_graph(a, &l, at[g], (struct area){x + 1, area.y, each - 1, 1});
}

/* A line of the regime; in a live session with the key that measures what it lacks. */
static void draw_line(struct app *a, int y, int w, unsigned style, const char *text,
                      const char *lacks)
{
    bool hint = lacks && !a->feed->replay && app_session(a)->hello.sm;
    canvas_printf(&a->canvas, 1, y, w, style, "%s%s", text, hint ? lacks : "");
}

/* The lines between head and tables, as far as there is room for them; returns how many. */
static int draw_lines(struct app *a, struct area area, bool roomy)
{
    enum { TABLES_MIN = 8, ROOMY = 17 };
    struct canvas *c = &a->canvas;
    struct regime r;
    int y = area.y, end = area.y + area.h - TABLES_MIN;

    if (!strcmp(app_session(a)->hello.backend, "cpu")) {
        canvas_text(c, 1, y, area.w - 2, ROLE_DIM,
                    "a CPU's operators are timed, not counted: what limits them isn't known");
        return 1;
    }
    row_regime(app_session(a), app_row(a), &r);
    unsigned known = r.kind == REGIME_UNKNOWN ? ROLE_DIM : ROLE_ACCENT;
    int rows = roomy && y + 1 < end ? 2 : 1;
    if (y < end) y += canvas_wrap(c, (struct area){1, y, area.w - 2, rows}, known, r.decided);
    const char *count = value_known(&r.saving) ? NULL : "; x counts them";
    bool product = app_row(a)->def.macs > 0;
    const char *measure = product && !app_session(a)->nceilings ? "; c measures it" : NULL;
    if (y < end) draw_line(a, y++, area.w - 2, ROLE_TEXT, r.payoff, count);
    if (y < end) draw_line(a, y++, area.w - 2, ROLE_TEXT, r.roofline, measure);
    if (y < end) draw_inside(a, (struct area){area.x, y++, area.w, 1});
    if (area.h >= ROOMY) draw_histogram(a, (struct area){area.x, y++, area.w, 1});
    return y - area.y;
}

static void detail_draw(struct app *a, void *data, struct area area)
{
    struct detail *v = data;

    if (!app_kernel(a)) {
        canvas_text(&a->canvas, 1, area.y, area.w - 2, ROLE_DIM, "no kernel has run yet");
        return;
    }
    bool roomy = area.h >= WRAP_FROM_H;
    int used = draw_head(a, area);
    area.y += used;
    area.h -= used;
    used = draw_lines(a, area, roomy);
    area.y += used;
    area.h -= used;
    if (area.w >= 150) {
        int left = area.w * 3 / 5;
        pane_draw(&v->figures, &a->canvas, (struct area){area.x, area.y, left - 1, area.h},
                  !v->second);
        pane_draw(&v->stalls, &a->canvas, (struct area){left, area.y, area.w - left, area.h},
                  v->second);
        return;
    }
    /* The stalls take the rows they have, up to two fifths; one row says that there are none. */
    int low = area.h >= 11 ? area.h * 2 / 5 : 0, want = (int)v->stalls.table.nrows + 2;
    if (want < 3) want = 2;
    if (low > want) low = want;
    if (v->second && !low) {
        pane_draw(&v->stalls, &a->canvas, area, true);
        return;
    }
    pane_draw(&v->figures, &a->canvas, (struct area){area.x, area.y, area.w, area.h - low},
              !v->second);
    if (low)
        pane_draw(&v->stalls, &a->canvas, (struct area){area.x, area.y + area.h - low, area.w, low},
                  v->second);
}

static bool detail_request(struct app *a, void *data, enum request r)
{
    struct detail *v = data;
    bool down = r == REQ_DOWN || r == REQ_PAGE_DOWN;
    struct pane *next = v->second ? &v->figures : &v->stalls;
    if (v->second != down && next->table.nrows && pane_leaves(detail_pane(v), r)) {
        pane_enter(next, r);
        v->second = down;
        return true;
    }
    if (r != REQ_MODE && r != REQ_ENTER) return false;
    v->second = !v->second;
    app_say(a, ROLE_TEXT,
            v->second ? "the cursor is in the stall reasons; Enter goes back"
                      : "the cursor is in the figures");
    return true;
}

const struct view_ops detail_ops = {
    .name = "detail",
    .title = "every figure of one kernel",
    .size = sizeof(struct detail),
    .init = detail_init,
    .done = detail_done,
    .update = detail_update,
    .draw = detail_draw,
    .request = detail_request,
    .pane = detail_pane,
};
