/*
 * Diff: the machine code of the selected kernel (B) beside that of the kernel that did the same
 * work before the last flip (A): verdict, resources, and the listings aligned by structure or the
 * opcodes whose counts differ.
 */
#include "sass_view/diff.h"
#include "tui/code.h"
#include "tui/listing.h"
#include "tui/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct diff_view {
    struct code a, b;
    struct diff diff;
    struct diff_row *rows; /* of opcodes, most changed first */
    size_t nrows;
    uint64_t made_a, made_b; /* code hashes that the diff is of */
    bool made, by_opcode;
    uint32_t at, top;
    int page;
};

static void diff_drop(struct diff_view *v)
{
    diff_free(&v->diff);
    free(v->rows);
    v->rows = NULL;
    v->nrows = 0;
    v->made = false;
}

static void diff_done(void *data)
{
    struct diff_view *v = data;
    diff_drop(v);
    code_free(&v->a);
    code_free(&v->b);
}

static void diff_update(struct app *app, void *data)
{
    struct diff_view *v = data;
    const struct kernel *b = app_kernel(app), *a = app_kernel_before(app);
    if (!a || !b) return;
    code_load(&v->a, app_session(app), a);
    code_load(&v->b, app_session(app), b);
    if (v->made_a == v->a.code_hash && v->made_b == v->b.code_hash) return;
    diff_drop(v);
    v->made_a = v->a.code_hash;
    v->made_b = v->b.code_hash;
    v->at = v->top = 0;
    if (!v->a.ok || !v->b.ok) return;
    v->made = diff_make(&v->diff, &v->a.flow, &v->b.flow, &v->a.census, &v->b.census) == OK &&
              diff_census(&v->a.census, &v->b.census, &v->rows, &v->nrows) == OK;
}

static void draw_words(struct app *app, const struct diff_view *v, struct area area)
{
    const struct kernel *k = app_kernel(app);
    const char *text =
        !k ? "no kernel has run yet"
        : !app_kernel_before(app)
            ? "nothing to compare with yet: a flip (v, k) puts the kernel before beside it"
        : !v->b.ok ? v->b.why
        : !v->a.ok ? v->a.why
                   : "out of memory for the diff";
    canvas_wrap(&app->canvas, (struct area){1, area.y, area.w - 2, area.h}, ROLE_DIM, text);
}

enum { LEGEND_FROM_H = 14 }; /* rows from which the marks are explained */

static int draw_head(struct app *app, const struct diff_view *v, struct area area)
{
    static const enum role roles[] = {ROLE_WARN, ROLE_GOOD, ROLE_TEXT, ROLE_ACCENT};
    struct canvas *c = &app->canvas;
    const struct diff *d = &v->diff;
    const struct census *a = &v->a.census, *b = &v->b.census;
    bool other_arch = strcmp(a->arch, b->arch) != 0;
    int y = area.y;
    int x = 1 + canvas_printf(c, 1, y, area.w - 2, ROLE_ACCENT | STYLE_BOLD, "%s%s%s -> %s%s%s",
                              a->kernel, other_arch ? " " : "", other_arch ? a->arch : "",
                              b->kernel, other_arch ? " " : "", other_arch ? b->arch : "");
    canvas_printf(c, x + 2, y, area.w - x - 3, roles[d->verdict] | STYLE_BOLD, "%s%s",
                  diff_verdict_name(d->verdict),
                  d->verdict == DIFF_IDENTICAL ? ": a timing between them is noise" : "");
    y++;
    char counts[240];
    snprintf(counts, sizeof counts,
             "%u -> %u instructions, %d -> %d regs; aligned: %u equal, %u scheduling, %u operands; "
             "-%u +%u",
             a->total, b->total, a->regs, b->regs, d->n[DIFF_SAME], d->n[DIFF_CONTROL],
             d->n[DIFF_OPERANDS], d->n[DIFF_ONLY_A], d->n[DIFF_ONLY_B]);
    int rows = area.h >= LEGEND_FROM_H ? 2 : 1;
    y += canvas_wrap(c, (struct area){1, y, area.w - 2, rows}, ROLE_TEXT, counts);
    if (!v->by_opcode && area.h >= LEGEND_FROM_H)
        canvas_text(
            c, 1, y++, area.w - 2, ROLE_DIM,
            "~ other scheduling  . other operands  < on the left only  > on the right only");
    return y - area.y;
}

/* ---- opcodes ---- */

static uint32_t changed(const struct diff_view *v)
{
    uint32_t n = 0;
    while (n < v->nrows && memcmp(v->rows[n].a, v->rows[n].b, sizeof v->rows[n].a)) n++;
    return n;
}

static void draw_opcodes(struct app *app, struct diff_view *v, struct area area)
{
    static const char *const scopes[] = {"total", "in loop", "hot loop"};
    struct canvas *c = &app->canvas;
    uint32_t n = changed(v);
    int scopes_shown = area.w >= 100 ? 3 : area.w >= 76 ? 2 : 1;
    canvas_text(c, 2, area.y, 24, ROLE_HEAD, "opcode");
    for (int s = 0; s < scopes_shown; s++)
        canvas_printf(c, 27 + 25 * s, area.y, 24, ROLE_HEAD, "%8s A %6s %6s", scopes[s], "B",
                      "delta");
    v->page = area.h - 1;
    for (int r = 0; r + 1 < area.h && v->top + (uint32_t)r < n; r++) {
        const struct diff_row *d = &v->rows[v->top + (uint32_t)r];
        canvas_text(c, 2, area.y + 1 + r, 24, ROLE_TEXT, d->key);
        for (int s = 0; s < scopes_shown; s++) {
            long delta = (long)d->b[s] - (long)d->a[s];
            int x = 27 + 25 * s;
            canvas_printf(c, x, area.y + 1 + r, 17, ROLE_TEXT, "%10u %6u", d->a[s], d->b[s]);
            canvas_printf(c, x + 17, area.y + 1 + r, 8, delta ? ROLE_ACCENT : ROLE_DIM, " %+6ld",
                          delta);
        }
    }
    if (!n) canvas_text(c, 2, area.y + 1, area.w - 3, ROLE_DIM, "no count differs");
}

/* ---- the listings ---- */

static void draw_side(struct canvas *c, int x, int y, int w, const struct flow *f, int32_t i,
                      unsigned role)
{
    char text[200];
    if (i < 0) return;
    const struct insn *in = &f->insns[i];
    int depth = f->insn_loop[i] < 0 ? 0 : f->loops[f->insn_loop[i]].depth;
    canvas_printf(c, x, y, w, ROLE_DIM, "%5x %c", in->offset,
                  depth ? (char)('0' + depth % 10) : ' ');
    canvas_text(c, x + 8, y, w - 8, role == ROLES ? insn_role(in, false) : role,
                insn_text(in, text, sizeof text));
}

static void draw_lines(struct app *app, struct diff_view *v, struct area area)
{
    static const char marks[DIFF_KINDS] = {' ', '~', '.', '<', '>'};
    static const enum role roles[DIFF_KINDS] = {ROLES, ROLES, ROLES, ROLE_BAD, ROLE_GOOD};
    struct canvas *c = &app->canvas;
    int half = (area.w - 4) / 2;
    v->page = area.h;
    for (int r = 0; r < area.h && v->top + (uint32_t)r < v->diff.nlines; r++) {
        const struct diff_line *l = &v->diff.lines[v->top + (uint32_t)r];
        int y = area.y + r;
        draw_side(c, 1, y, half, &v->a.flow, l->a, roles[l->kind]);
        canvas_printf(c, half + 2, y, 1, l->kind == DIFF_SAME ? ROLE_DIM : ROLE_WARN, "%c",
                      marks[l->kind]);
        draw_side(c, half + 4, y, half, &v->b.flow, l->b, roles[l->kind]);
    }
}

static uint32_t count(const struct diff_view *v)
{
    return v->by_opcode ? changed(v) : v->diff.nlines;
}

static void diff_draw(struct app *app, void *data, struct area area)
{
    struct diff_view *v = data;
    if (!app_kernel(app) || !app_kernel_before(app) || !v->made) {
        draw_words(app, v, area);
        return;
    }
    int used = draw_head(app, v, area);
    area.y += used;
    area.h -= used;
    if (area.h < 2) return;
    int page = v->by_opcode ? area.h - 1 : area.h;
    if (v->at >= count(v)) v->at = count(v) ? count(v) - 1 : 0;
    if (v->at < v->top) v->top = v->at;
    if (v->at >= v->top + (uint32_t)page) v->top = v->at - (uint32_t)page + 1;
    if (v->by_opcode)
        draw_opcodes(app, v, area);
    else
        draw_lines(app, v, area);
    int y = area.y + (int)(v->at - v->top) + v->by_opcode;
    if (!count(v)) return;
    canvas_text(&app->canvas, 0, y, 1, ROLE_ACCENT, app->canvas.ascii ? ">" : "▸");
    canvas_restyle(&app->canvas, 0, y, area.w, -1, STYLE_REVERSE);
}

/* ---- requests ---- */

/* To the next line where the code differs beyond registers and control fields; wraps. */
static void next_change(struct app *app, struct diff_view *v, int step)
{
    uint32_t n = v->diff.nlines;
    for (uint32_t k = 1; k <= n; k++) {
        uint32_t i = (v->at + (step > 0 ? k : n - k)) % n;
        uint32_t before = (i + n - 1) % n;
        bool starts = v->diff.lines[i].kind >= DIFF_ONLY_A &&
                      (i == 0 || v->diff.lines[before].kind < DIFF_ONLY_A);
        if (!starts) continue;
        v->at = i;
        return;
    }
    app_say(app, ROLE_DIM, "no instruction stands on one side only");
}

static bool diff_request(struct app *app, void *data, enum request r)
{
    struct diff_view *v = data;
    uint32_t n = v->made ? count(v) : 0, page = v->page > 0 ? (uint32_t)v->page : 1;
    switch (r) {
    case REQ_DIFF:
        app_show_view(app, app->back);
        return true;
    case REQ_UP:
        v->at -= v->at > 0;
        return true;
    case REQ_DOWN:
        v->at += v->at + 1 < n;
        return true;
    case REQ_PAGE_UP:
        v->at = v->at > page ? v->at - page : 0;
        return true;
    case REQ_PAGE_DOWN:
        v->at = v->at + page < n ? v->at + page : n ? n - 1 : 0;
        return true;
    case REQ_HOME:
        v->at = 0;
        return true;
    case REQ_END:
        v->at = n ? n - 1 : 0;
        return true;
    case REQ_MODE:
        v->by_opcode = !v->by_opcode;
        v->at = v->top = 0;
        return true;
    case REQ_FIND_NEXT:
    case REQ_FIND_PREV:
        if (n && !v->by_opcode) next_change(app, v, r == REQ_FIND_NEXT ? 1 : -1);
        return true;
    default:
        return false;
    }
}

const struct view_ops diff_ops = {
    .name = "diff",
    .title = "machine code before and after the last flip",
    .size = sizeof(struct diff_view),
    .done = diff_done,
    .update = diff_update,
    .draw = diff_draw,
    .request = diff_request,
};
