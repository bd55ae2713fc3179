/*
 * Timeline: the sampled windows as they were, one at a time: SM%, tensor%, DRAM% over time, under
 * them the kernels that ran, a lane each, and what the cursor reads. The newest window is followed
 * until the cursor is moved; End follows again.
 *
 * Invariant: the cursor is a place in time inside a kept window, so that it stays where it is when
 * other windows come and go; where its window has left, it moves to the nearest one. What is drawn
 * between two samples is nothing: a gap is no zero.
 */
#include "tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/timeline.h"

enum { COLUMNS_MAX = CANVAS_MAX_W, LANES_MAX = 48, ZOOM_MAX = 24 };
static const uint64_t COLUMN_MIN_NS = 100; /* nothing is known more finely */

struct timeline {
    bool placed, moved;    /* moved: by hand, so it doesn't follow */
    uint64_t cursor, left; /* session ns */
    int zoom;              /* the window's length is halved this often */
    int columns;           /* at the last draw */
    uint32_t sought;       /* row + 1 whose launch n went to, */
    uint64_t sought_at;    /* and where it put the cursor */
};

/* The stretch of a window that is on the screen. */
struct stretch {
    const struct trace_window *w;
    uint64_t start, end; /* of the window */
    uint64_t from, to;   /* on the screen */
    double column;       /* ns */
    int columns;
};

/* Rows of a screen by what they show. */
struct layout {
    int label, graph[TIMELINE_GRAPHS], axis, lanes, readout;
};

static int columns_of(const struct timeline *v)
{
    return v->columns > 0 ? v->columns : 60;
}

/* Brings cursor and left edge into a window that is kept; false: there is none. */
static bool settle(const struct session *s, struct timeline *v, struct stretch *x)
{
    if (!s->ntrace) {
        v->placed = v->moved = false;
        return false;
    }
    uint32_t at = v->moved ? timeline_window(s, v->cursor) : s->ntrace - 1;
    *x = (struct stretch){.w = &s->trace[at], .columns = columns_of(v)};
    timeline_bounds(x->w, &x->start, &x->end);
    uint64_t length = x->end > x->start ? x->end - x->start : 1, seen;
    while (v->zoom > 0 && (length >> v->zoom) < COLUMN_MIN_NS * (uint64_t)x->columns) v->zoom--;
    seen = length >> v->zoom;
    if (!v->placed || (!v->moved && (v->cursor < x->start || v->cursor >= x->end))) {
        v->cursor = x->start + length / 2;
        v->left = v->cursor - seen / 2;
        v->placed = true;
    }
    if (v->cursor < x->start) v->cursor = x->start;
    if (v->cursor >= x->end) v->cursor = x->end - 1;
    if (v->left > v->cursor) v->left = v->cursor;
    if (v->left + seen <= v->cursor) v->left = v->cursor - seen + 1;
    if (v->left + seen > x->end) v->left = x->end - seen;
    if (v->left < x->start) v->left = x->start;
    x->from = v->left;
    x->to = v->left + seen;
    x->column = (double)seen / x->columns;
    return true;
}

static uint64_t edge(const struct stretch *x, int column)
{
    return x->from + (uint64_t)(x->column * column);
}

static int cursor_column(const struct timeline *v, const struct stretch *x)
{
    int c = (int)((double)(v->cursor - x->from) / x->column);
    return c < 0 ? 0 : c >= x->columns ? x->columns - 1 : c;
}

/* ---- keys ---- */

static void move_by(const struct session *s, struct timeline *v, const struct stretch *x,
                    double columns)
{
    double ns = columns * x->column;
    uint32_t at = (uint32_t)(x->w - s->trace);
    uint64_t from, to, step = (uint64_t)fabs(ns);

    v->moved = true;
    if (step < 1) step = 1;
    if (ns < 0 && v->cursor < x->start + step) {
        if (at > 0 && v->cursor == x->start) {
            timeline_bounds(&s->trace[at - 1], &from, &to);
            v->cursor = v->left = to - 1;
        } else {
            v->cursor = x->start;
        }
    } else if (ns > 0 && v->cursor + step >= x->end) {
        if (at + 1 < s->ntrace && v->cursor == x->end - 1) {
            timeline_bounds(&s->trace[at + 1], &from, &to);
            v->cursor = v->left = from;
        } else {
            v->cursor = x->end - 1;
        }
    } else {
        v->cursor = ns < 0 ? v->cursor - step : v->cursor + step;
    }
}

/* The cursor stays in its column. */
static void zoom_by(struct timeline *v, const struct stretch *x, int by)
{
    uint64_t length = x->end - x->start;
    int to = v->zoom + by;
    if (to < 0 || to > ZOOM_MAX) return;
    if (by > 0 && (length >> to) < COLUMN_MIN_NS * (uint64_t)x->columns) return;
    uint64_t before = v->cursor - x->from, seen = length >> to;
    uint64_t after = (uint64_t)((double)before / (double)(x->to - x->from) * (double)seen);
    v->zoom = to;
    v->moved = true;
    v->left = v->cursor > x->start + after ? v->cursor - after : x->start;
}

/* What the cursor's column is named after: what n was after as long as the cursor stands on it. */
static bool under_cursor(const struct timeline *v, const struct stretch *x,
                         struct timeline_named *here)
{
    int c = cursor_column(v, x);
    uint32_t prefer = v->sought && v->cursor == v->sought_at ? v->sought : TABLE_NONE;
    return timeline_name(x->w, edge(x, c), edge(x, c + 1), prefer, here);
}

/* To the next launch of the kernel under the cursor, or of the selected one where none runs. Where
 * several share a column, the next one is outside of it. */
static void next_launch(struct app *a, struct timeline *v, const struct stretch *x, int dir)
{
    struct timeline_named here;
    uint64_t from = v->cursor;
    int c = cursor_column(v, x);
    v->moved = true;
    if (!under_cursor(v, x, &here))
        here.row = a->row != TABLE_NONE ? a->row + 1 : 0;
    else if (here.launches == 1)
        from = here.span->t_ns;
    else
        from = dir > 0 ? edge(x, c + 1) - 1 : edge(x, c);
    const struct trace_span *to = timeline_next(x->w, here.row, from, dir);
    if (to) v->sought = here.row;
    if (to)
        v->cursor = v->sought_at = to->t_ns + to->dur_ns / 2;
    else
        app_say(a, ROLE_TEXT, "no other launch of it %s in this window",
                dir > 0 ? "after" : "before");
}

static void open_kernel(struct app *a, const struct timeline *v, const struct stretch *x)
{
    struct timeline_named here;
    if (!under_cursor(v, x, &here)) {
        app_say(a, ROLE_TEXT, "no kernel runs there");
    } else if (!here.row) {
        app_say(a, ROLE_TEXT, "that kernel is none of this engine's");
    } else {
        app_pick_row(a, here.row - 1);
        app_show_view(a, VIEW_DETAIL);
    }
}

static bool timeline_request(struct app *a, void *data, enum request r)
{
    struct timeline *v = data;
    const struct session *s = app_session(a);
    struct stretch x;

    if (!settle(s, v, &x)) return false;
    switch (r) {
    case REQ_LEFT:
    case REQ_RIGHT:
        move_by(s, v, &x, r == REQ_LEFT ? -1 : 1);
        return true;
    case REQ_PAGE_UP:
    case REQ_PAGE_DOWN:
        move_by(s, v, &x, (r == REQ_PAGE_UP ? -0.5 : 0.5) * x.columns);
        return true;
    case REQ_UP:
    case REQ_DOWN:
        zoom_by(v, &x, r == REQ_UP ? 1 : -1);
        return true;
    case REQ_HOME:
        v->moved = true;
        v->cursor = v->left = 0;
        return true;
    case REQ_END:
        v->moved = v->placed = false;
        return true;
    case REQ_FIND_NEXT:
    case REQ_FIND_PREV:
        next_launch(a, v, &x, r == REQ_FIND_NEXT ? 1 : -1);
        return true;
    case REQ_ENTER:
        open_kernel(a, v, &x);
        return true;
    default:
        return false;
    }
}

/* ---- drawing ---- */

static struct layout layout_of(struct area area)
{
    struct layout l = {.label = area.w >= 100 ? 28 : area.w >= 70 ? 23 : 10};
    l.readout = area.h >= 16 ? 4 : 2;
    l.axis = area.h >= 9;
    int room = area.h - 1 - l.axis - l.readout;
    int each = room >= 30 ? 5 : room >= 24 ? 4 : room >= 18 ? 3 : room >= 10 ? 2 : 1;
    for (int g = 0; g < TIMELINE_GRAPHS; g++) l.graph[g] = each;
    if (room >= 12) l.graph[0]++;
    l.lanes = room;
    for (int g = 0; g < TIMELINE_GRAPHS; g++) l.lanes -= l.graph[g];
    if (l.lanes < 0) l.lanes = 0;
    return l;
}

/* 5, 10, 20, 50, 100: the least that holds it; beyond, the value itself. */
static double scale_of(double most)
{
    static const double tops[] = {1, 2, 5, 10, 20, 50, 100};
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++)
        if (most <= tops[i]) return tops[i];
    return most;
}

/* The name, what it is at the cursor, and the value that the graph's height stands for. */
static void draw_label(struct app *a, const char *name, double here, double top, int y, int h,
                       const struct layout *l)
{
    struct canvas *c = &a->canvas;
    struct value v = isnan(here) ? value_missing(VALUE_UNAVAILABLE, NULL) : value_ok(here, NULL);
    char text[32];

    value_format(&v, 5, 1, 1, text, sizeof text);
    if (l->label < 20) {
        canvas_text(c, 0, y, l->label, ROLE_HEAD | STYLE_BOLD, name);
        if (h > 1)
            canvas_text(c, 0, y + 1, l->label - 1, ROLE_TEXT, text);
        else if (text_columns(name) + text_columns(text) < l->label - 1)
            canvas_right(c, 0, y, l->label - 1, ROLE_TEXT, text);
        return;
    }
    int n = canvas_text(c, 1, y, l->label - 12, ROLE_HEAD | STYLE_BOLD, name);
    canvas_text(c, n + 2, y, l->label - n - 7, ROLE_TEXT, text);
    snprintf(text, sizeof text, "%g", top);
    canvas_right(c, l->label - 5, y, 4, ROLE_DIM, text);
}

static void draw_graph(struct app *a, const struct stretch *x, int m, int cursor, int y, int h,
                       const struct layout *l)
{
    const struct session *s = app_session(a);
    double mean[COLUMNS_MAX], most = 0;

    for (int i = 0; i < x->columns; i++) {
        mean[i] = timeline_mean(x->w, m, edge(x, i), edge(x, i + 1));
        if (mean[i] > most) most = mean[i];
    }
    double top = scale_of(most);
    draw_label(a, s->metrics[x->w->metric[m]].label, mean[cursor], top, y, h, l);
    for (int i = 0; i < x->columns; i++)
        if (!isnan(mean[i]))
            canvas_column(&a->canvas, l->label + i, y + h - 1, h, mean[i] / top, ROLE_BAR);
}

static int draw_graphs(struct app *a, const struct stretch *x, int cursor, int y,
                       const struct layout *l)
{
    static const char *const names[TIMELINE_GRAPHS] = {"SM%", "tensor%", "DRAM%"};
    int at[TIMELINE_GRAPHS], top = y;

    timeline_graphs(app_session(a), x->w, at);
    for (int g = 0; g < TIMELINE_GRAPHS; y += l->graph[g++]) {
        if (at[g] >= 0) {
            draw_graph(a, x, at[g], cursor, y, l->graph[g], l);
            continue;
        }
        canvas_text(&a->canvas, 1, y, l->label - 2, ROLE_DIM, names[g]);
        canvas_text(&a->canvas, l->label, y, x->columns, ROLE_DIM,
                    "not among the metrics that this chip samples in one pass");
    }
    for (int i = top; i < y; i++)
        canvas_restyle(&a->canvas, l->label + cursor, i, 1, -1, STYLE_REVERSE);
    return y;
}

static void ms_text(const struct stretch *x, uint64_t t, char *text, size_t size)
{
    snprintf(text, size, "+%.*f ms", x->column < 10000 ? 4 : 2, (double)(t - x->start) / 1e6);
}

static void draw_axis(struct app *a, const struct stretch *x, int cursor, int y,
                      const struct layout *l)
{
    struct canvas *c = &a->canvas;
    char left[32], right[32];

    ms_text(x, x->from, left, sizeof left);
    ms_text(x, x->to, right, sizeof right);
    canvas_fill(c, (struct area){l->label, y, x->columns, 1}, 0x2500, ROLE_DIM);
    /* The mark of the cursor wants its place to itself: a label that it would stand in is left out.
     */
    int m = text_columns(left), n = text_columns(right);
    if (cursor >= m) canvas_text(c, l->label, y, m, ROLE_DIM, left);
    if (n + m + 2 < x->columns && cursor < x->columns - n)
        canvas_text(c, l->label + x->columns - n, y, n, ROLE_DIM, right);
    canvas_fill(c, (struct area){l->label + cursor, y, 1, 1}, 0x25b2, ROLE_ACCENT | STYLE_BOLD);
}

/* "nb_kd8 ffn_up": a row in a few columns. */
static void row_name(const struct session *s, uint32_t row, bool shape, char *text, size_t size)
{
    if (!row || row > s->nrows) {
        snprintf(text, size, "unknown kernel");
        return;
    }
    const struct msg_row_def *d = &s->rows[row - 1].def;
    const char *name = s->kernels[d->kernel].def.name;
    if (!shape)
        snprintf(text, size, "%s %s", name, d->role);
    else if (d->k)
        snprintf(text, size, "%s %ux%ux%u %s", name, d->m, d->n, d->k, d->role);
    else
        snprintf(text, size, "%s %ux%u %s", name, d->m, d->n, d->role);
}

static void draw_lane(struct app *a, const struct stretch *x, uint32_t row, int y,
                      const struct layout *l)
{
    static const uint32_t shades[] = {0x2591, 0x2592, 0x2593, 0x2588},
                          plain[] = {'.', '-', '=', '#'};
    const struct session *s = app_session(a);
    float busy[COLUMNS_MAX];
    char name[160];
    bool selected = a->row != TABLE_NONE && row == a->row + 1;

    row_name(s, row, false, name, sizeof name);
    canvas_text(&a->canvas, 1, y, l->label - 2, selected ? ROLE_ACCENT | STYLE_BOLD : ROLE_TEXT,
                name);
    timeline_busy(x->w, row, x->from, x->to, busy, (uint32_t)x->columns);
    for (int i = 0; i < x->columns; i++) {
        if (!(busy[i] > 0)) continue;
        int level = busy[i] >= 0.9f ? 3 : busy[i] >= 0.5f ? 2 : busy[i] >= 0.15f ? 1 : 0;
        canvas_fill(&a->canvas, (struct area){l->label + i, y, 1, 1},
                    a->canvas.ascii ? plain[level] : shades[level],
                    selected ? ROLE_ACCENT : ROLE_GOOD);
    }
}

static void draw_lanes(struct app *a, const struct stretch *x, int y, const struct layout *l)
{
    struct timeline_lane lanes[LANES_MAX];
    uint32_t n = timeline_lanes(x->w, x->from, x->to, lanes, LANES_MAX);
    int shown = l->lanes < LANES_MAX ? l->lanes : LANES_MAX;

    if (!n) {
        canvas_text(&a->canvas, l->label, y, x->columns, ROLE_DIM, "no kernel ran here");
        return;
    }
    bool more = n > (uint32_t)shown;
    if (more && shown > 1) shown--; /* for what doesn't fit */
    for (int i = 0; i < shown && (uint32_t)i < n; i++) draw_lane(a, x, lanes[i].row, y + i, l);
    if (more && l->lanes == 1)
        canvas_printf(&a->canvas, l->label - 5, y, 5, ROLE_WARN, "+%u", n - 1);
    else if (more)
        canvas_printf(&a->canvas, 1, y + shown, a->canvas.w - 2, ROLE_DIM,
                      "and %u more rows: they need a taller terminal or a shorter stretch",
                      n - (uint32_t)shown);
}

static void draw_header(struct app *a, const struct stretch *x, int y, int w)
{
    const struct session *s = app_session(a);
    uint32_t at = (uint32_t)(x->w - s->trace) + 1;
    struct canvas *c = &a->canvas;

    int n =
        1 + canvas_printf(c, 1, y, w - 2, ROLE_HEAD | STYLE_BOLD, "window %u/%u", at, s->ntrace);
    n += canvas_printf(c, n, y, w - n - 1, ROLE_HEAD, " g%u round %u", x->w->generation,
                       x->w->round);
    if (!x->w->used)
        canvas_text(c, n, y, w - n - 1, ROLE_WARN, ": NOT USED, no clock offset or an overflow");
    else if (n + 20 < w)
        canvas_printf(c, n, y, w - n - 1, ROLE_DIM,
                      ": %.2f ms, %u samples of %u us, %.*f us/column",
                      (double)(x->end - x->start) / 1e6, x->w->nsamples,
                      (x->w->period_ns + 500) / 1000, x->column < 100000 ? 1 : 0, x->column / 1e3);
}

/* Every metric of the window at the cursor; a figure stays beside its name. */
static void read_values(struct app *a, const struct stretch *x, int cursor, struct area area)
{
    const struct session *s = app_session(a);
    struct canvas *c = &a->canvas;
    char text[80], number[24];
    int at = area.x, y = area.y;

    ms_text(x, edge(x, cursor), text, sizeof text);
    at += canvas_text(c, at, y, area.w, ROLE_DIM, text) + 1;
    for (unsigned m = 0; m < x->w->nmetrics; m++) {
        if (x->w->metric[m] >= s->nmetrics) continue;
        double mean = timeline_mean(x->w, (int)m, edge(x, cursor), edge(x, cursor + 1));
        struct value v =
            isnan(mean) ? value_missing(VALUE_UNAVAILABLE, NULL) : value_ok(mean, NULL);
        snprintf(text, sizeof text, " %s %s", s->metrics[x->w->metric[m]].label,
                 value_format(&v, 6, 1, 1, number, sizeof number));
        if (at + text_columns(text) > area.x + area.w) {
            if (++y >= area.y + area.h) break;
            at = area.x - 1;
        }
        at += canvas_text(c, at, y, area.x + area.w - at, ROLE_TEXT, text) + 1;
    }
}

/* What n and Enter are about. */
static void read_kernel(struct app *a, const struct stretch *x, const struct timeline *v,
                        int cursor, int y, int w)
{
    struct timeline_named here;
    char text[400] = "no kernel runs at the cursor", name[200], at[32];
    bool runs = under_cursor(v, x, &here);
    if (runs) row_name(app_session(a), here.row, true, name, sizeof name);
    if (runs && here.launches > 1) {
        snprintf(text, sizeof text, "%s: %.0f%% of the column (%u launches, %u rows)", name,
                 100.0 * (double)here.ns / (double)(edge(x, cursor + 1) - edge(x, cursor)),
                 here.launches, here.rows);
    } else if (runs) {
        ms_text(x, here.span->t_ns, at, sizeof at);
        snprintf(text, sizeof text, "%s: %.2f us from %s", name, here.span->dur_ns / 1e3, at);
    }
    canvas_text(&a->canvas, 1, y, w - 2, runs ? ROLE_ACCENT : ROLE_DIM, text);
}

static void draw_nothing(struct app *a, struct area area)
{
    const struct session *s = app_session(a);
    const struct msg_source *pm = session_source(s, "pm");
    char text[400];

    if (pm && strcmp(pm->state, "ok") != 0)
        snprintf(text, sizeof text, "No window to show: PM sampling is %s here: %s", pm->state,
                 pm->why);
    else
        snprintf(text, sizeof text,
                 "No window has been sampled yet. Windows come in counted rounds, "
                 "a few seconds apart.");
    canvas_wrap(&a->canvas, (struct area){1, area.y, area.w - 2, area.h}, ROLE_DIM, text);
}

static void timeline_draw(struct app *a, void *data, struct area area)
{
    struct timeline *v = data;
    struct layout l = layout_of(area);
    struct stretch x;

    v->columns = area.w - l.label - 1 < COLUMNS_MAX ? area.w - l.label - 1 : COLUMNS_MAX;
    if (v->columns < 8 || !settle(app_session(a), v, &x)) {
        draw_nothing(a, area);
        return;
    }
    int y = area.y, cursor = cursor_column(v, &x);
    draw_header(a, &x, y++, area.w);
    y = draw_graphs(a, &x, cursor, y, &l);
    if (l.axis) draw_axis(a, &x, cursor, y++, &l);
    if (l.lanes) draw_lanes(a, &x, y, &l);
    y += l.lanes;
    int values = l.readout > 2 ? 2 : 1;
    read_values(a, &x, cursor, (struct area){1, y, area.w - 2, values});
    y += values;
    read_kernel(a, &x, v, cursor, y++, area.w);
    if (l.readout > 2)
        canvas_text(&a->canvas, 1, y, area.w - 2, ROLE_DIM,
                    "arrows: cursor, zoom  PgUp PgDn: pan  n N: next launch  Enter: its figures");
}

const struct view_ops timeline_ops = {
    .name = "timeline",
    .title = "sampled windows over time, with the kernels that ran",
    .size = sizeof(struct timeline),
    .draw = timeline_draw,
    .request = timeline_request,
};
