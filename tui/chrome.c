/* What stands around every view: title, tabs, banner, status line, footer. Everything is made of
 * the session and the key table. */
#include "tui/app.h"
#include "tui/view.h"

#include <stdio.h>
#include <string.h>

void clock_text(uint64_t ns, char *text, size_t size)
{
    uint64_t s = ns / 1000000000u;
    snprintf(text, size, "%llu:%02u", (unsigned long long)(s / 60), (unsigned)(s % 60));
}

static void bytes_text(uint64_t n, char *text, size_t size)
{
    if (n < 10000)
        snprintf(text, size, "%llu B", (unsigned long long)n);
    else if (n < 10000000)
        snprintf(text, size, "%llu kB", (unsigned long long)(n / 1000));
    else
        snprintf(text, size, "%llu MB", (unsigned long long)(n / 1000000));
}

/* Where it stands, on the right of the title. */
static void place_text(const struct app *a, char *text, size_t size)
{
    const struct session *s = app_session(a);
    char at[24], all[24], rec[40] = "", bytes[24];

    if (a->feed->replay) {
        const struct frame_source *src = a->feed->src;
        bool end = replay_position(src) >= replay_duration(src);
        clock_text(replay_position(src), at, sizeof at);
        clock_text(replay_duration(src), all, sizeof all);
        if (replay_speed(src) != 1) snprintf(rec, sizeof rec, " %gx", replay_speed(src));
        snprintf(text, size, "%s / %s%s %s", at, all, rec,
                 end                   ? replay_damage(src) ? "damaged here" : "end"
                 : replay_playing(src) ? "playing"
                                       : "paused");
        return;
    }
    clock_text(s->t_ns, at, sizeof at);
    if (a->recorder) {
        bytes_text(recorder_bytes(a->recorder), bytes, sizeof bytes);
        snprintf(rec, sizeof rec, "● REC %s  ", bytes);
    }
    const struct msg_progress *p = &s->progress;
    if (s->ended || a->feed->ended)
        snprintf(text, size, "%sENDED  %s", rec, at);
    else if (s->paused)
        snprintf(text, size, "%sPAUSED  %s", rec, at);
    else if (p->total && p->total < 1000000)
        snprintf(text, size, "%s%s %u/%u  %s", rec, p->phase, p->done, p->total, at);
    else
        snprintf(text, size, "%s%s  %s", rec, p->phase[0] ? p->phase : "starting", at);
}

static void draw_title(struct app *a)
{
    const struct session *s = app_session(a);
    struct canvas *c = &a->canvas;
    bool replay = a->feed->replay;
    unsigned style = (replay ? ROLE_WARN : ROLE_ACCENT) | STYLE_REVERSE;
    char place[120], what[600];

    place_text(a, place, sizeof place);
    int right = text_columns(place) + 2;
    canvas_fill(c, (struct area){0, 0, c->w, 1}, ' ', style);
    int x = 1 + canvas_text(c, 1, 0, c->w - 1, style | STYLE_BOLD, replay ? "REPLAY " : "sasstop ");
    const char *model = s->model.name;
    const char *slash = strrchr(model, '/');
    if (slash) model = slash + 1;
    snprintf(what, sizeof what, "%s%s%s%s%s%s%s", replay ? a->feed->label : "", replay ? " · " : "",
             s->started ? s->hello.device : "starting the engine", model[0] ? " · " : "", model,
             s->model.workload[0] ? " " : "", s->model.workload);
    canvas_text(c, x, 0, c->w - x - right - 1, style, what);
    canvas_text(c, c->w - right + 1, 0, right, style | STYLE_BOLD, place);
}

static void draw_tabs(struct app *a, int y)
{
    struct canvas *c = &a->canvas;
    int all = 0, x = 1;

    for (int v = 0; v < VIEWS_NUMBERED; v++) all += text_columns(views[v]->name) + 4;
    if (a->view >= VIEWS_NUMBERED) all += text_columns(views[a->view]->name) + 3;
    for (int v = 0; v < VIEWS_NUMBERED; v++) {
        bool here = a->view == (enum view_id)v;
        bool named = all <= c->w || here;
        char tab[40];
        snprintf(tab, sizeof tab, " %d%s%s ", v + 1, named ? " " : "", named ? views[v]->name : "");
        x += canvas_text(c, x, y, c->w - x,
                         here ? ROLE_ACCENT | STYLE_REVERSE | STYLE_BOLD : ROLE_DIM, tab);
    }
    if (a->view >= VIEWS_NUMBERED)
        canvas_printf(c, x, y, c->w - x, ROLE_ACCENT | STYLE_REVERSE | STYLE_BOLD, " %s ",
                      views[a->view]->name);
}

/* Of the first half minute: after that its row belongs to the view. */
static bool draw_banner(struct app *a, int y)
{
    static const uint64_t SHOWN_NS = 30000000000ull;
    const struct session *s = app_session(a);
    if (a->feed->replay || !s->started || strcmp(s->hello.backend, "cpu") || s->t_ns > SHOWN_NS)
        return false;
    canvas_text(&a->canvas, 0, y, a->canvas.w, ROLE_WARN,
                a->canvas.w < 110
                    ? " CPU engine: no GPU counters. R opens recorded H200 sessions."
                    : " CPU engine: the rows are CPU operators and there are no GPU counters. "
                      "R opens recorded H200 sessions.");
    return true;
}

/* Rows of the line above the footer: two where there is room, always, so that nothing jumps. */
static int status_rows(const struct app *a)
{
    return a->canvas.h >= 20 ? 2 : 1;
}

static void draw_status_text(struct app *a, int y, unsigned style, const char *text)
{
    canvas_wrap(&a->canvas, (struct area){1, y, a->canvas.w - 2, status_rows(a)}, style, text);
}

static void draw_status(struct app *a, int y)
{
    const struct view_ops *v = views[a->view];
    struct pane *p = v->pane ? v->pane(a->view_data[a->view]) : NULL;
    char text[1024];

    if (a->typing && p) {
        canvas_printf(&a->canvas, 1, y, a->canvas.w - 2, ROLE_ACCENT,
                      "filter: %s_  (Enter keeps it, Esc clears it)", p->filter);
    } else if (a->message[0]) {
        draw_status_text(a, y, a->message_role, a->message);
    } else if (p) {
        pane_explain(p, text, sizeof text);
        draw_status_text(a, y, ROLE_DIM, text);
    }
}

static bool in_footer(const struct app *a, const struct key_row *k)
{
    if (!k->label[0]) return false;
    if (k->group == KEYS_REPLAY) return a->feed->replay;
    return !(a->feed->replay && (k->group == KEYS_FLIP || k->request == REQ_RECORD));
}

static int footer_item(const struct key_row *k, char *text, size_t size)
{
    char key[40];
    snprintf(key, sizeof key, "%s", k->keys);
    char *blank = strchr(key, ' ');
    if (blank) *blank = 0;
    snprintf(text, size, "%s %s", key, k->label);
    return (int)strlen(key);
}

enum { FOOTER_MAX = 128 };

/* Takes into the footer what fits of the rows that `code` asks for; returns the width in use. */
static int fill_footer(const struct app *a, bool code, bool *taken, int used)
{
    char text[64];
    for (unsigned i = 0; i < nkey_rows && i < FOOTER_MAX; i++) {
        const struct key_row *k = &key_rows[i];
        if (!in_footer(a, k) || taken[i] || (k->group == KEYS_CODE) != code) continue;
        footer_item(k, text, sizeof text);
        int n = text_columns(text) + 2;
        if (used + n > a->canvas.w) continue;
        taken[i] = true;
        used += n;
    }
    return used;
}

/* Help and quit always have their place; the others as far as there is room, the ways into machine
 * code last. */
static void draw_footer(struct app *a, int y)
{
    struct canvas *c = &a->canvas;
    bool taken[FOOTER_MAX] = {false};
    char text[64];
    int x = 1, used = 1;

    for (unsigned i = 0; i < nkey_rows && i < FOOTER_MAX; i++)
        if (key_rows[i].group == KEYS_SCREEN && in_footer(a, &key_rows[i])) {
            footer_item(&key_rows[i], text, sizeof text);
            used += text_columns(text) + 2;
            taken[i] = true;
        }
    used = fill_footer(a, false, taken, used);
    fill_footer(a, true, taken, used);
    for (unsigned i = 0; i < nkey_rows && i < FOOTER_MAX; i++) {
        if (!taken[i]) continue;
        int key = footer_item(&key_rows[i], text, sizeof text);
        canvas_text(c, x, y, c->w - x, ROLE_DIM, text);
        canvas_restyle(c, x, y, key, ROLE_ACCENT, STYLE_BOLD);
        x += text_columns(text) + 2;
    }
}

void chrome_draw(struct app *a, struct area *body)
{
    int w = a->canvas.w, h = a->canvas.h, top = 1;

    draw_title(a);
    if (h >= 12) draw_tabs(a, top++);
    if (h >= 16 && draw_banner(a, top)) top++;
    draw_status(a, h - 1 - status_rows(a));
    draw_footer(a, h - 1);
    *body = (struct area){0, top, w, h - 1 - status_rows(a) - top};
}
