/* Overview: the wall clock on top, new generation beside the old one; then the costliest kernels,
 * the counter sources in one line and the end of the generated text. Counted rounds never enter
 * the figures on top. */
#include "tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct overview {
    struct pane kernels;
};

/* x and width of the three columns of the wall clock. */
struct clock_layout {
    int name_w, first, second, w;
};

static void overview_init(void *data)
{
    struct overview *v = data;
    pane_init(&v->kernels, "kernels");
    pane_column(&v->kernels, "sm_pct");
}

static void overview_done(void *data)
{
    pane_free(&((struct overview *)data)->kernels);
}

static struct pane *overview_pane(void *data)
{
    return &((struct overview *)data)->kernels;
}

static void overview_update(struct app *a, void *data)
{
    pane_update(overview_pane(data), app_session(a));
    view_follow_row(a, overview_pane(data));
}

/* What the newest generation stands beside: the one before it, or, when that one left no figure
 * (it faulted), the last that did. */
static const struct generation *beside(const struct session *s)
{
    for (uint32_t i = s->ngenerations > 1 ? s->ngenerations - 1 : 0; i-- > 0;)
        if (s->generations[i].prefill.n) return &s->generations[i];
    return session_previous(s);
}

/* "g3 nb KD8". Short of room the variant's name is cut, never the depth. */
static void draw_name(struct app *a, const char *label, const struct generation *g, int y, int w)
{
    char kd[24] = "", name[128];
    if (g->def.kd) snprintf(kd, sizeof kd, " KD%u", g->def.kd);
    unsigned style = g->faulted ? ROLE_BAD : ROLE_TEXT;
    int x = 8;
    if (w < 18)
        x = 1; /* no room for the label: the order says it */
    else
        canvas_text(&a->canvas, 1, y, 7, ROLE_DIM, label);
    snprintf(name, sizeof name, "g%u %s", g->def.generation, g->def.variant);
    int room = w - x - text_columns(kd);
    x += canvas_text(&a->canvas, x, y, room > 6 ? room : w - x, style, name);
    canvas_text(&a->canvas, x, y, w - x, style, kd);
}

static void draw_rate(struct app *a, int x, int y, int w, struct value v, bool bold)
{
    char text[96], full[140];
    figure_text(&v, true, a->canvas.ascii, text, sizeof text);
    if (text_columns(text) > w) figure_text(&v, false, a->canvas.ascii, text, sizeof text);
    unsigned style = v.state == VALUE_OK ? bold ? ROLE_TEXT | STYLE_BOLD : ROLE_TEXT : ROLE_DIM;
    if (v.state == VALUE_OK && v.n && w >= text_columns(text) + 8)
        snprintf(full, sizeof full, "%s  n %u", text, v.n);
    else if (v.state != VALUE_OK && v.why && text_columns(v.why) + text_columns(text) < w)
        snprintf(full, sizeof full, "%s %s", text, v.why);
    else if (v.state != VALUE_OK && w >= 16)
        snprintf(full, sizeof full, "%s %s", text,
                 v.state == VALUE_FAULT ? "" : value_state_name(v.state));
    else
        snprintf(full, sizeof full, "%s", text);
    canvas_text(&a->canvas, x, y, w, style, full);
}

/* The ratio, its noise band, and a word only when the difference passes the band. */
static void draw_ratio(struct app *a, int x, int y, int w, struct value r, bool control)
{
    char text[120];

    if (r.state != VALUE_OK) {
        canvas_text(&a->canvas, x, y, w, ROLE_DIM, value_state_name(r.state));
        return;
    }
    enum stat_says says = stat_ratio_says(&r, control);
    const char *word = stat_says_words(says);
    unsigned style = says == STAT_FASTER   ? ROLE_GOOD | STYLE_BOLD
                     : says == STAT_SLOWER ? ROLE_BAD | STYLE_BOLD
                     : says == STAT_MOVED  ? ROLE_WARN | STYLE_BOLD
                                           : ROLE_DIM;
    bool known = r.spread >= 0;
    if (known)
        snprintf(text, sizeof text, w < 13 ? "x%.3f %s%.1f%%" : "x%.3f %s%.3f", r.v,
                 a->canvas.ascii ? "+-" : "±", w < 13 ? 100 * r.spread / r.v : r.spread);
    else
        snprintf(text, sizeof text, "x%.3f", r.v);
    int n = canvas_text(&a->canvas, x, y, w, style, text);
    if (n + 1 + text_columns(word) <= w)
        canvas_text(&a->canvas, x + n + 1, y, w - n - 1, style, word);
}

static void draw_sparks(struct app *a, const struct clock_layout *l, int y)
{
    const struct session *s = app_session(a);
    unsigned n = s->nspark < MAX_SPARK ? s->nspark : MAX_SPARK;
    int w = l->w - 3;

    if (n < 2) return;
    canvas_text(&a->canvas, 1, y, l->name_w, ROLE_DIM, "rounds");
    canvas_spark(&a->canvas, l->first, y, w, s->spark_prefill, n, ROLE_BAR);
    canvas_spark(&a->canvas, l->second, y, w, s->spark_decode, n, ROLE_BAR);
}

/* The block on top; returns its rows. */
static int draw_wall_clock(struct app *a, struct area area)
{
    const struct session *s = app_session(a);
    const struct generation *now = session_current(s), *before = beside(s);
    struct canvas *c = &a->canvas;
    struct clock_layout l = {.name_w = area.w >= 76 ? 26 : area.w >= 50 ? 21 : 14};
    int y = area.y;

    l.w = (area.w - l.name_w) / 2;
    if (l.w > 44) l.w = 44;
    l.first = l.name_w;
    l.second = l.name_w + l.w;
    if (!now) {
        canvas_text(c, 1, y, area.w - 2, ROLE_DIM,
                    s->started ? "the model is being loaded"
                               : "waiting for the engine's first frame");
        return 1;
    }
    /* Where each launch costs more than it would, the figures below carry that. */
    bool slowed = !strcmp(now->timed_in, "here") && l.name_w >= 21;
    canvas_text(c, 1, y, l.name_w - 2, ROLE_HEAD | STYLE_BOLD,
                slowed ? "wall clock (CUPTI)" : "wall clock");
    bool control = generation_controls(s, now) && l.w >= 24, units = l.w >= 15;
    canvas_text(c, l.first, y, l.w - 1, ROLE_HEAD | STYLE_BOLD,
                units ? "prefill tok/s" : "prefill/s");
    canvas_text(c, l.second, y++, l.w - 1, ROLE_HEAD | STYLE_BOLD,
                control ? "decode tok/s (control)"
                : units ? "decode tok/s"
                        : "decode/s");
    draw_name(a, "now", now, y, l.name_w - 1);
    draw_rate(a, l.first, y, l.w - 1, generation_prefill(s, now), true);
    draw_rate(a, l.second, y++, l.w - 1, generation_decode(s, now), true);
    if (before) {
        draw_name(a, "before", before, y, l.name_w - 1);
        draw_rate(a, l.first, y, l.w - 1, generation_prefill(s, before), false);
        draw_rate(a, l.second, y++, l.w - 1, generation_decode(s, before), false);
        canvas_text(c, 1, y, l.name_w - 2, ROLE_DIM, "ratio");
        draw_ratio(a, l.first, y, l.w - 1, generation_prefill_ratio(s, now, before), false);
        draw_ratio(a, l.second, y++, l.w - 1, generation_decode_ratio(now, before), control);
    }
    if (area.h >= 14) draw_sparks(a, &l, y++);
    return y - area.y;
}

/* Names of the sources that work (or don't), in one dim or bright run. */
static int draw_source_names(struct app *a, int x, int y, int end, bool working)
{
    const struct session *s = app_session(a);
    for (uint32_t i = 0; i < s->nsources; i++) {
        const struct msg_source *src = &s->sources[i];
        bool ok = !strcmp(src->state, "ok"), failed = !strcmp(src->state, "failed");
        if (ok != working || x + text_columns(src->name) >= end) continue;
        x += canvas_text(&a->canvas, x, y, end - x,
                         ok       ? ROLE_GOOD
                         : failed ? ROLE_BAD
                                  : ROLE_DIM,
                         src->name) +
             1;
    }
    return x;
}

static void draw_sources(struct app *a, int y)
{
    const struct session *s = app_session(a);
    struct canvas *c = &a->canvas;
    int end = c->w - (s->has_clocks ? 24 : 1), all = 0, working = 0;
    int x = 1 + canvas_text(c, 1, y, 9, ROLE_DIM, "sources ");

    for (uint32_t i = 0; i < s->nsources; i++, all++) working += !strcmp(s->sources[i].state, "ok");
    x = draw_source_names(a, x, y, end, true);
    if (working < all && x + 8 < end) {
        x += canvas_text(c, x, y, end - x, ROLE_DIM, working ? " not: " : "none of: ");
        x = draw_source_names(a, x, y, end, false);
    }
    if (!s->has_clocks) return;
    char clocks[80];
    snprintf(clocks, sizeof clocks, "%u MHz %u W %u C%s", s->clocks.sm_mhz,
             s->clocks.power_mw / 1000, s->clocks.temp_c, s->clocks.throttle[0] ? " !" : "");
    canvas_right(c, c->w - 23, y, 22, s->clocks.throttle[0] ? ROLE_WARN : ROLE_DIM, clocks);
}

static void draw_tail(struct app *a, struct area area)
{
    const struct session *s = app_session(a);
    if (!s->text_len) {
        canvas_text(&a->canvas, 1, area.y, area.w - 2, ROLE_DIM, "no text has been generated yet");
        return;
    }
    /* Line ends would leave the few rows half empty. */
    char flat[1024];
    size_t n = s->text_len < sizeof flat ? s->text_len : sizeof flat - 1;
    memcpy(flat, s->text + s->text_len - n, n);
    flat[n] = 0;
    for (size_t i = 0; i < n; i++)
        if (flat[i] == '\n') flat[i] = ' ';
    int x = 1;
    if (session_random_weights(s))
        x += 1 + canvas_text(&a->canvas, 1, area.y, area.w - 2, ROLE_HEAD, "text (random weights)");
    canvas_tail(&a->canvas, (struct area){x, area.y, area.w - x - 1, area.h}, ROLE_DIM, flat);
}

static void overview_draw(struct app *a, void *data, struct area area)
{
    struct overview *v = data;
    int top = area.y + draw_wall_clock(a, area), bottom = area.y + area.h;
    int text = area.h >= 30 ? 3 : area.h >= 16 ? 1 : 0;

    if (text) {
        bottom -= text;
        draw_tail(a, (struct area){area.x, bottom, area.w, text});
    }
    if (area.h >= 11) draw_sources(a, --bottom);
    v->kernels.untitled = area.h < 11;
    pane_draw(&v->kernels, &a->canvas, (struct area){area.x, top, area.w, bottom - top}, true);
}

static bool overview_request(struct app *a, void *data, enum request r)
{
    if (!pane_request(overview_pane(data), r)) return false;
    view_take_row(a, overview_pane(data));
    return true;
}

const struct view_ops overview_ops = {
    .name = "overview",
    .title = "wall clock, costliest kernels, sources, text",
    .size = sizeof(struct overview),
    .init = overview_init,
    .done = overview_done,
    .update = overview_update,
    .draw = overview_draw,
    .request = overview_request,
    .pane = overview_pane,
};
