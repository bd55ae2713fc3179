/* Help: the key table, written out, in as many columns as fit. */
#include "tui/view.h"

#include <stdio.h>

enum { COLUMN_W = 62, LINES_MAX = 128 };

struct help_view {
    int top;
};

struct help_line {
    const struct key_row *key; /* NULL: a group's title, or blank */
    const char *title;
};

static int lines(const struct app *a, struct help_line *l)
{
    int n = 0;
    (void)a;
    for (int g = 0; g < KEY_GROUPS; g++) {
        if (g) l[n++] = (struct help_line){NULL, NULL};
        l[n++] = (struct help_line){NULL, key_group_title((enum key_group)g)};
        for (unsigned i = 0; i < nkey_rows && n < LINES_MAX - 3; i++)
            if ((int)key_rows[i].group == g) l[n++] = (struct help_line){&key_rows[i], NULL};
    }
    return n;
}

static void help_draw(struct app *a, void *data, struct area area)
{
    struct help_view *v = data;
    struct help_line l[LINES_MAX];
    int n = lines(a, l), columns = area.w / COLUMN_W, w;

    if (columns < 1) columns = 1;
    w = area.w / columns;
    int shown = area.h * columns, last = n > shown ? n - shown : 0;
    if (v->top > last) v->top = last;
    for (int i = 0; i < shown && v->top + i < n; i++) {
        const struct help_line *h = &l[v->top + i];
        int x = area.x + 1 + i / area.h * w, y = area.y + i % area.h;
        if (h->title) canvas_text(&a->canvas, x, y, w - 2, ROLE_HEAD | STYLE_BOLD, h->title);
        if (!h->key) continue;
        canvas_text(&a->canvas, x + 1, y, 8, ROLE_ACCENT | STYLE_BOLD, h->key->keys);
        canvas_text(&a->canvas, x + 10, y, w - 12, ROLE_TEXT, h->key->help);
    }
    if (v->top < last)
        canvas_right(&a->canvas, area.x, area.y + area.h - 1, area.w - 1, ROLE_DIM, "more ↓");
}

static bool help_request(struct app *a, void *data, enum request r)
{
    struct help_view *v = data;
    int page = a->canvas.h > 8 ? a->canvas.h - 6 : 1, step = 0;

    switch (r) {
    case REQ_UP:
        step = -1;
        break;
    case REQ_DOWN:
        step = 1;
        break;
    case REQ_PAGE_UP:
        step = -page;
        break;
    case REQ_PAGE_DOWN:
        step = page;
        break;
    case REQ_HOME:
        step = -LINES_MAX;
        break;
    case REQ_END:
        step = LINES_MAX;
        break;
    default:
        return false;
    }
    v->top += step;
    if (v->top < 0) v->top = 0;
    return true;
}

const struct view_ops help_ops = {
    .name = "help",
    .title = "keys",
    .size = sizeof(struct help_view),
    .draw = help_draw,
    .request = help_request,
};
