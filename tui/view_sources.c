/* Sources: which counter sources work here, why others don't and what to try; what counting found,
 * lost and cost; variants, drops, the last window. What `sasstop doctor` prints, as the engine saw
 * it. */
#include "tui/view.h"

#include <stdio.h>

enum { SOURCES, COSTS, VARIANTS, TABLES };

struct sources_view {
    struct pane pane[TABLES];
    int at;     /* the one with the cursor */
    bool costs; /* shown at the last draw */
};

static void sources_init(void *data)
{
    struct sources_view *v = data;
    pane_init(&v->pane[SOURCES], "sources");
    pane_init(&v->pane[COSTS], "costs");
    pane_init(&v->pane[VARIANTS], "variants");
}

static void sources_done(void *data)
{
    struct sources_view *v = data;
    for (int i = 0; i < TABLES; i++) pane_free(&v->pane[i]);
}

static struct pane *sources_pane(void *data)
{
    struct sources_view *v = data;
    return &v->pane[v->at];
}

static void sources_update(struct app *a, void *data)
{
    struct sources_view *v = data;
    for (int i = 0; i < TABLES; i++) pane_update(&v->pane[i], app_session(a));
}

static int draw_reason(struct app *a, const struct sources_view *v, struct area area)
{
    const struct session *s = app_session(a);
    char text[700];

    if (v->pane[SOURCES].selected >= s->nsources) return 0;
    const struct msg_source *src = &s->sources[v->pane[SOURCES].selected];
    if (!src->why[0] && !src->remedy[0]) return 0;
    snprintf(text, sizeof text, "%s: %s%s%s", src->name, src->why, src->remedy[0] ? "\ntry: " : "",
             src->remedy);
    return canvas_wrap(&a->canvas, area, ROLE_WARN, text);
}

/* What is between the clocks of its samples and its spans, and how that is known. */
static void offset_text(const struct window_summary *w, char *text, size_t size)
{
    double us = (double)w->offset_ns / 1e3;

    if (!w->offset_ok)
        snprintf(text, size, "its clock offset is not known, so it is not used%s%s",
                 w->offset_why[0] ? ": " : "", w->offset_why);
    else if (!w->offset_how[0])
        snprintf(text, size, "its clock offset: %.2f us, assumed, not measured", us);
    else if (!w->offset_bound_ns)
        snprintf(text, size, "its clock offset: %.2f us (%s)", us, w->offset_how);
    else
        snprintf(text, size, "its clock offset: %.2f us, within %.2f us (%s%s%s)", us,
                 w->offset_bound_ns / 1e3, w->offset_how, w->offset_why[0] ? ": " : "",
                 w->offset_why);
}

/* How often PM windows come, as set and as it came out. */
static void draw_duty(struct app *a, int y)
{
    const struct session *s = app_session(a);
    char set[120] = "how often was not recorded", open[80] = "";

    if (s->has_duty)
        snprintf(set, sizeof set, "turns of %u windows of %.3g ms, then %.3g s of rest%s",
                 s->duty.windows, (double)s->duty.window_ns / 1e6, (double)s->duty.rest_ns / 1e9,
                 a->feed->replay ? "" : " (w sets it)");
    if (s->t_ns)
        snprintf(open, sizeof open, "; open %.2f%% of the time",
                 100.0 * (double)s->open_ns / (double)s->t_ns);
    canvas_printf(&a->canvas, 1, y, a->canvas.w - 2, ROLE_DIM, "PM: %s%s", set, open);
}

static void draw_window(struct app *a, struct area area)
{
    const struct session *s = app_session(a);
    const struct window_summary *w = &s->last_window;
    uint64_t drops = 0;

    for (int i = 0; i < FRAME_TYPE_END; i++) drops += s->drops[i];
    if (w->window) {
        char lost[40] = "", offset[320];
        if (w->dropped) snprintf(lost, sizeof lost, ", %u lost", w->dropped);
        canvas_printf(
            &a->canvas, 1, area.y, area.w - 2, ROLE_DIM,
            "window %u (%s, %.3g us): %u samples, %u in one launch, %u shared, %u idle%s%s",
            w->window, w->source, w->period_ns / 1e3, w->samples, w->whole, w->shared, w->idle,
            lost, w->overflow ? ", overflow: not used" : "");
        offset_text(w, offset, sizeof offset);
        canvas_printf(&a->canvas, 1, area.y + 1, area.w - 2, w->offset_ok ? ROLE_DIM : ROLE_WARN,
                      "%s. Frames lost: %llu", offset, (unsigned long long)drops);
        draw_duty(a, area.y + 2);
    } else {
        canvas_printf(&a->canvas, 1, area.y, area.w - 2, ROLE_DIM,
                      "no sampling window yet. Frames lost: %llu", (unsigned long long)drops);
    }
}

static void draw_table(struct app *a, struct sources_view *v, int table, struct area area)
{
    pane_draw(&v->pane[table], &a->canvas, area, v->at == table);
}

static void sources_draw(struct app *a, void *data, struct area area)
{
    struct sources_view *v = data;
    const struct session *s = app_session(a);
    int list = (int)s->nsources + 2, y = area.y;

    if (list > area.h / 2) list = area.h / 2;
    draw_table(a, v, SOURCES, (struct area){area.x, y, area.w, list});
    y += list;
    if (area.h >= 14) {
        y += draw_reason(a, v, (struct area){2, y, area.w - 3, 4});
        draw_window(a, (struct area){area.x, y, area.w, 3});
        y += app_session(a)->last_window.window ? 3 : 1;
    }
    v->costs = s->ntallies && area.y + area.h - y >= (int)s->ntallies + 6;
    if (!v->costs && v->at == COSTS) v->at = VARIANTS;
    if (v->costs) {
        int costs = (int)s->ntallies + 2;
        draw_table(a, v, COSTS, (struct area){area.x, y, area.w, costs});
        y += costs;
    }
    draw_table(a, v, VARIANTS, (struct area){area.x, y, area.w, area.y + area.h - y});
}

/* The next table that holds a row and is shown; `from` when there is none. */
static int next_table(const struct sources_view *v, int from, int step)
{
    for (int i = from + step; i >= 0 && i < TABLES; i += step)
        if (v->pane[i].table.nrows && (i != COSTS || v->costs)) return i;
    return from;
}

static bool sources_request(struct app *a, void *data, enum request r)
{
    struct sources_view *v = data;
    (void)a;
    if (pane_leaves(&v->pane[v->at], r)) {
        int next = next_table(v, v->at, r == REQ_DOWN || r == REQ_PAGE_DOWN ? 1 : -1);
        if (next == v->at) return false;
        pane_enter(&v->pane[next], r);
        v->at = next;
        return true;
    }
    if (r != REQ_MODE && r != REQ_ENTER) return false;
    int next = next_table(v, v->at, 1);
    v->at = next == v->at ? SOURCES : next;
    return true;
}

const struct view_ops sources_ops = {
    .name = "sources",
    .title = "counter sources and variants of this machine",
    .size = sizeof(struct sources_view),
    .init = sources_init,
    .done = sources_done,
    .update = sources_update,
    .draw = sources_draw,
    .request = sources_request,
    .pane = sources_pane,
};
