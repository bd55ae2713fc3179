/* Census: the opcodes of the selected kernel beside those of the kernel that did the same work
 * before the last flip; by opcode, and by class as bars. Where executed counts are there they come
 * first, beside the static ones, by opcode and by class, with why the two differ. */
#include "session/executed.h"
#include "tui/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 32, CLASSES_W = 46, BOTH_FROM_H = 30 };

/* Executed ones only where there are counts. STATIC_CLASSES: narrow screens, bars instead of the
 * table. */
enum census_mode { EXECUTED_OPCODES, EXECUTED_CLASSES, STATIC_OPCODES, STATIC_CLASSES, MODES };

struct census_view {
    struct pane opcodes, executed, classes;
    enum census_mode mode;
    bool counts; /* the row has executed counts */
};

struct class_sum {
    const char *name;
    uint32_t count, in_loop, other;
};

static void census_init(void *data)
{
    struct census_view *v = data;
    pane_init(&v->opcodes, "census");
    pane_init(&v->executed, "executed");
    pane_init(&v->classes, "executed_classes");
}

static void census_done(void *data)
{
    struct census_view *v = data;
    pane_free(&v->opcodes);
    pane_free(&v->executed);
    pane_free(&v->classes);
}

static enum census_mode mode_of(const struct census_view *v)
{
    return v->counts || v->mode >= STATIC_OPCODES ? v->mode : STATIC_OPCODES;
}

static struct pane *census_pane(void *data)
{
    struct census_view *v = data;
    enum census_mode m = mode_of(v);
    return m == EXECUTED_OPCODES ? &v->executed : m == EXECUTED_CLASSES ? &v->classes : &v->opcodes;
}

static void census_update(struct app *a, void *data)
{
    struct census_view *v = data;
    struct pane *p = &v->opcodes;
    const struct session *s = app_session(a);
    const struct row *r = app_row(a);
    const struct kernel *other = app_kernel_before(a);

    p->query.kernel = r ? r->def.kernel : TABLE_NONE;
    p->query.other = other && other->has_census ? (uint32_t)(other - s->kernels) : TABLE_NONE;
    pane_update(p, s);
    v->counts = r && session_executed_like(s, a->row);
    v->executed.query.row = v->classes.query.row = v->counts ? a->row : TABLE_NONE;
    pane_update(&v->executed, s);
    pane_update(&v->classes, s);
}

static void add_class(struct class_sum *sums, int *n, const struct census_item *it, bool other)
{
    int i = 0;
    while (i < *n && strcmp(sums[i].name, it->cls)) i++;
    if (i == *n) {
        if (*n == CLASSES_MAX) return;
        sums[(*n)++] = (struct class_sum){.name = it->cls};
    }
    if (other) {
        sums[i].other += it->count;
    } else {
        sums[i].count += it->count;
        sums[i].in_loop += it->in_loop;
    }
}

static int by_count(const void *x, const void *y)
{
    const struct class_sum *a = x, *b = y;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    return strcmp(a->name, b->name);
}

static int sum_classes(const struct kernel *k, const struct kernel *other, struct class_sum *sums)
{
    int n = 0;
    for (uint32_t i = 0; i < k->nitems; i++) add_class(sums, &n, &k->items[i], false);
    for (uint32_t i = 0; other && i < other->nitems; i++)
        add_class(sums, &n, &other->items[i], true);
    qsort(sums, (size_t)n, sizeof *sums, by_count);
    return n;
}

static void draw_classes(struct app *a, struct area area, const struct kernel *k,
                         const struct kernel *other)
{
    struct class_sum sums[CLASSES_MAX];
    struct canvas *c = &a->canvas;
    int n = sum_classes(k, other, sums), bar = area.w - 36;

    canvas_rule(c, area.x, area.y, area.w, "by class");
    canvas_text(c, area.x + 1, area.y + 1, 12, ROLE_HEAD, "class");
    canvas_right(c, area.x + 12, area.y + 1, 6, ROLE_HEAD, "count");
    canvas_right(c, area.x + 19, area.y + 1, 6, ROLE_HEAD, "loop");
    if (other) canvas_right(c, area.x + 26, area.y + 1, 6, ROLE_HEAD, "delta");
    for (int i = 0; i < n && i + 2 < area.h; i++) {
        int y = area.y + 2 + i;
        char text[24];
        long delta = (long)sums[i].count - (long)sums[i].other;
        canvas_text(c, area.x + 1, y, 11, ROLE_TEXT, sums[i].name);
        snprintf(text, sizeof text, "%u", sums[i].count);
        canvas_right(c, area.x + 12, y, 6, ROLE_TEXT, text);
        snprintf(text, sizeof text, "%u", sums[i].in_loop);
        canvas_right(c, area.x + 19, y, 6, ROLE_TEXT, text);
        snprintf(text, sizeof text, "%+ld", delta);
        if (other) canvas_right(c, area.x + 26, y, 6, delta ? ROLE_ACCENT : ROLE_DIM, text);
        if (bar > 2 && sums[0].count)
            canvas_bar(c, area.x + 34, y, bar, (double)sums[i].count / sums[0].count, ROLE_BAR);
    }
}

static int draw_head(struct app *a, struct area area, const struct kernel *k,
                     const struct kernel *other)
{
    struct canvas *c = &a->canvas;
    int y = area.y;

    canvas_printf(c, 1, y, area.w - 2, ROLE_ACCENT | STYLE_BOLD, "%s", k->def.name);
    int x = 3 + text_columns(k->def.name);
    if (k->has_census)
        canvas_printf(c, x, y, area.w - x - 1, ROLE_TEXT,
                      "%u instructions%s, SM %u.%u, %u regs, spills %u B", k->census.total,
                      k->census.unknown ? " (some unknown)" : "", k->census.arch / 10,
                      k->census.arch % 10, k->def.regs, k->def.spill);
    y++;
    if (other && other->has_census)
        canvas_printf(c, 1, y++, area.w - 2, ROLE_DIM, "beside %s: %u instructions (%+ld)%s",
                      other->def.name, other->census.total,
                      (long)k->census.total - (long)other->census.total,
                      k->def.code_hash == other->def.code_hash ? ", the same code" : "");
    else if (area.h >= 10 && k->has_census)
        canvas_text(c, 1, y++, area.w - 2, ROLE_DIM,
                    "nothing to compare with yet: a flip (v, k) puts the kernel before beside it");
    return y - area.y;
}

/* What was counted, then classes and opcodes: both where there is room. */
static void draw_executed(struct app *a, struct census_view *v, struct area area)
{
    const struct session *s = app_session(a);
    const struct executed *e = session_executed_like(s, a->row);
    char text[400];
    exec_words(s, e, e->row == a->row, text, sizeof text);
    int rows = text_columns(text) > area.w - 2 && area.h > 12 ? 2 : 1;
    canvas_wrap(&a->canvas, (struct area){1, area.y, area.w - 2, rows}, ROLE_TEXT, text);
    area.y += rows;
    area.h -= rows;
    if (area.h < BOTH_FROM_H) {
        pane_draw(census_pane(v), &a->canvas, area, true);
        return;
    }
    pane_draw_both(&v->classes, &v->executed, &a->canvas, area, mode_of(v) == EXECUTED_OPCODES);
}

static void census_draw(struct app *a, void *data, struct area area)
{
    struct census_view *v = data;
    const struct kernel *k = app_kernel(a), *other = app_kernel_before(a);

    if (!k) {
        canvas_text(&a->canvas, 1, area.y, area.w - 2, ROLE_DIM, "no kernel has run yet");
        return;
    }
    int used = draw_head(a, area, k, other);
    area.y += used;
    area.h -= used;
    if (mode_of(v) < STATIC_OPCODES) {
        draw_executed(a, v, area);
        return;
    }
    bool beside = area.w >= 70 + CLASSES_W && k->has_census;
    if (mode_of(v) == STATIC_CLASSES && !beside && k->has_census) {
        draw_classes(a, area, k, other);
        return;
    }
    struct area left = area;
    if (beside) left.w -= CLASSES_W + 1;
    pane_draw(&v->opcodes, &a->canvas, left, true);
    if (beside) draw_classes(a, (struct area){left.w + 1, area.y, CLASSES_W, area.h}, k, other);
}

static bool census_request(struct app *a, void *data, enum request r)
{
    struct census_view *v = data;
    if (r == REQ_SASS) {
        app_show_view(a, a->back);
        return true;
    }
    if (r != REQ_MODE) return false;
    v->mode = (enum census_mode)((mode_of(v) + 1) % MODES);
    if (!v->counts && v->mode < STATIC_OPCODES) v->mode = STATIC_OPCODES;
    return true;
}

const struct view_ops census_ops = {
    .name = "census",
    .title = "opcodes of the selected kernel",
    .size = sizeof(struct census_view),
    .init = census_init,
    .done = census_done,
    .update = census_update,
    .draw = census_draw,
    .request = census_request,
    .pane = census_pane,
};
