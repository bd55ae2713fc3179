/* Surplus: of what the selected kernel executes for a multiply-add beyond a reference kernel, which
 * classes and opcodes make up how many per cent. The reference is the kernel that did the same work
 * before the last flip, or any other that has figures. */
#include "session/executed.h"
#include "tui/view.h"

#include <stdio.h>
#include <string.h>

enum { REFERENCES_MAX = 64, BOTH_FROM_H = 26 };

struct surplus_view {
    struct pane classes, opcodes;
    bool by_opcode;
    char chosen[64]; /* the reference's kernel; "" = the one before the flip */
};

static void surplus_init(void *data)
{
    struct surplus_view *v = data;
    pane_init(&v->classes, "surplus");
    pane_init(&v->opcodes, "surplus_opcodes");
}

static void surplus_done(void *data)
{
    struct surplus_view *v = data;
    pane_free(&v->classes);
    pane_free(&v->opcodes);
}

static struct pane *surplus_pane(void *data)
{
    struct surplus_view *v = data;
    return v->by_opcode ? &v->opcodes : &v->classes;
}

/* ---- references ---- */

/* How well a row serves as reference: the same work before all, then executed counts; 0 = not. */
static int rank_of(const struct session *s, const struct row *own, uint32_t i)
{
    const struct row *r = &s->rows[i];
    const struct kernel *k = &s->kernels[r->def.kernel];
    struct surplus p;
    if (r->def.kernel == own->def.kernel || !(r->def.macs > 0)) return 0;
    surplus_open(s, (uint32_t)(own - s->rows), i, true, &p);
    if (p.basis == SURPLUS_NONE) return 0;
    bool family = !strcmp(k->def.family, s->kernels[own->def.kernel].def.family);
    return 1 + (p.basis == SURPLUS_EXECUTED) + 2 * family + 4 * session_same_work(s, own, r);
}

/* Rows to compare with, one a kernel, the best first. */
static uint32_t references(const struct session *s, const struct row *own, uint32_t *out)
{
    int rank[REFERENCES_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nrows; i++) {
        int own_rank = rank_of(s, own, i);
        uint32_t at = 0;
        if (!own_rank) continue;
        while (at < n && s->rows[out[at]].def.kernel != s->rows[i].def.kernel) at++;
        if (at == REFERENCES_MAX || (at < n && rank[at] > own_rank)) continue;
        if (at == n) n++;
        for (; at > 0 && rank[at - 1] < own_rank; at--) {
            rank[at] = rank[at - 1];
            out[at] = out[at - 1];
        }
        rank[at] = own_rank;
        out[at] = i;
    }
    return n;
}

/* The row of the chosen reference; TABLE_NONE when there is none at all. */
static uint32_t reference(const struct session *s, const struct surplus_view *v,
                          const struct row *own)
{
    uint32_t list[REFERENCES_MAX], n = references(s, own, list);
    uint32_t before = session_counterpart(s, own, own->def.generation);
    for (uint32_t i = 0; i < n && v->chosen[0]; i++)
        if (!strcmp(s->kernels[s->rows[list[i]].def.kernel].def.name, v->chosen)) return list[i];
    if (before != TABLE_NONE || !n) return before;
    return list[0];
}

static void next_reference(struct app *a, struct surplus_view *v, int step)
{
    const struct session *s = app_session(a);
    const struct row *own = app_row(a);
    uint32_t list[REFERENCES_MAX], n = own ? references(s, own, list) : 0, at = 0;
    uint32_t now = own ? reference(s, v, own) : TABLE_NONE;
    if (!n) {
        app_say(a, ROLE_DIM, "no other kernel has figures to compare with");
        return;
    }
    while (at < n && list[at] != now) at++;
    at = at == n ? 0 : (at + (step > 0 ? 1 : n - 1)) % n;
    const struct kernel *k = &s->kernels[s->rows[list[at]].def.kernel];
    snprintf(v->chosen, sizeof v->chosen, "%s", k->def.name);
    v->classes.selected = v->opcodes.selected = TABLE_NONE; /* items are other ones now */
    v->classes.position = v->opcodes.position = 0;
    app_say(a, ROLE_TEXT, "reference %u of %u: %s", at + 1, n, v->chosen);
}

/* ---- drawing ---- */

static void surplus_update(struct app *a, void *data)
{
    struct surplus_view *v = data;
    const struct session *s = app_session(a);
    const struct row *own = app_row(a);
    struct pane *panes[] = {&v->classes, &v->opcodes};
    for (int i = 0; i < 2; i++) {
        panes[i]->query.row = own ? a->row : TABLE_NONE;
        panes[i]->query.other = own ? reference(s, v, own) : TABLE_NONE;
        pane_update(panes[i], s);
    }
}

static int draw_head(struct app *a, const struct surplus_view *v, struct area area)
{
    const struct session *s = app_session(a);
    struct canvas *c = &a->canvas;
    struct surplus p;
    char text[400];
    int used = 0;
    uint32_t other = v->classes.query.other;
    row_title(s, &s->rows[a->row], text, sizeof text);
    canvas_text(c, 1, area.y + used++, area.w - 2, ROLE_ACCENT | STYLE_BOLD, text);
    if (other != TABLE_NONE) {
        row_title(s, &s->rows[other], text, sizeof text);
        bool room = text_columns(text) + 22 <= area.w;
        canvas_printf(c, 1, area.y + used++, area.w - 2, ROLE_TEXT, "against %s%s", text,
                      room ? " (n: another)" : "");
    }
    surplus_open(s, a->row, other, true, &p);
    surplus_words(&p, text, sizeof text);
    size_t n = strlen(text);
    if (p.basis != SURPLUS_EXECUTED && !a->feed->replay && strcmp(s->hello.backend, "cpu"))
        snprintf(text + n, sizeof text - n, ". E counts what it executes");
    struct area words = {1, area.y + used, area.w - 2, area.h > 12 ? 3 : 1};
    return used + canvas_wrap(c, words, p.basis == SURPLUS_EXECUTED ? ROLE_TEXT : ROLE_WARN, text);
}

static void surplus_draw(struct app *a, void *data, struct area area)
{
    struct surplus_view *v = data;
    if (!app_row(a)) {
        canvas_text(&a->canvas, 1, area.y, area.w - 2, ROLE_DIM, "no kernel has run yet");
        return;
    }
    int used = draw_head(a, v, area);
    area.y += used;
    area.h -= used;
    if (area.h < BOTH_FROM_H) {
        pane_draw(surplus_pane(v), &a->canvas, area, true);
        return;
    }
    pane_draw_both(&v->classes, &v->opcodes, &a->canvas, area, v->by_opcode);
}

static bool surplus_request(struct app *a, void *data, enum request r)
{
    struct surplus_view *v = data;
    switch (r) {
    case REQ_SURPLUS:
        app_show_view(a, a->back);
        return true;
    case REQ_MODE:
        v->by_opcode = !v->by_opcode;
        return true;
    case REQ_FIND_NEXT:
    case REQ_FIND_PREV:
        next_reference(a, v, r == REQ_FIND_NEXT ? 1 : -1);
        return true;
    default:
        return false;
    }
}

const struct view_ops surplus_ops = {
    .name = "surplus",
    .title = "what the selected kernel executes beyond a reference",
    .size = sizeof(struct surplus_view),
    .init = surplus_init,
    .done = surplus_done,
    .update = surplus_update,
    .draw = surplus_draw,
    .request = surplus_request,
    .pane = surplus_pane,
};
