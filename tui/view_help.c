/* Help: the key table, written out, in as many columns as fit. */
#include "tui/view.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN_W = 62, LINES_MAX = 640, KEYS_W = 10 };

struct help_view {
    int top;
};

struct help_line {
    const struct key_row *key; /* NULL: a group's title, a further line, or blank */
    const char *title, *text;
    int len; /* of text */
};

/* What a key does, on as many lines as it takes: broken at blanks, within words that are too long.
 */
static int key_lines(const struct key_row *key, int w, struct help_line *l, int room)
{
    const char *at = key->help;
    int n = 0, left = (int)strlen(at);
    do {
        int len = left < w ? left : w;
        if (len < left)
            while (len > 1 && at[len] != ' ') len--;
        if (len < left && len == 1) len = w;
        l[n] = (struct help_line){n ? NULL : key, NULL, at, len};
        n++;
        at += len;
        left -= len;
        for (; left && *at == ' '; left--) at++;
    } while (left && n < room);
    return n;
}

static int lines(int w, struct help_line *l)
{
    int n = 0;
    for (int g = 0; g < KEY_GROUPS; g++) {
        if (g) l[n++] = (struct help_line){0};
        l[n++] = (struct help_line){.title = key_group_title((enum key_group)g)};
        for (unsigned i = 0; i < nkey_rows && n < LINES_MAX - 2 * KEY_GROUPS; i++)
            if ((int)key_rows[i].group == g)
                n += key_lines(&key_rows[i], w, &l[n], LINES_MAX - 2 * KEY_GROUPS - n);
    }
    return n;
}

static void draw_line(struct app *a, const struct help_line *h, int x, int y, int w)
{
    char text[256];
    if (h->title) canvas_text(&a->canvas, x, y, w - 2, ROLE_HEAD | STYLE_BOLD, h->title);
    if (h->key)
        canvas_text(&a->canvas, x + 1, y, KEYS_W - 2, ROLE_ACCENT | STYLE_BOLD, h->key->keys);
    if (!h->text) return;
    snprintf(text, sizeof text, "%.*s", h->len, h->text);
    canvas_text(&a->canvas, x + KEYS_W, y, w - KEYS_W - 2, ROLE_TEXT, text);
}

static void help_draw(struct app *a, void *data, struct area area)
{
    struct help_view *v = data;
    struct help_line l[LINES_MAX];
    int columns = area.w / COLUMN_W;

    if (columns < 1) columns = 1;
    int w = area.w / columns, text_w = w > KEYS_W + 12 ? w - KEYS_W - 2 : 10;
    int n = lines(text_w, l);
    int rows = n > area.h * columns && area.h > 1 ? area.h - 1 : area.h; /* "more" has its own */
    int shown = rows * columns, last = n > shown ? n - shown : 0;
    if (v->top > last) v->top = last;
    for (int i = 0; i < shown && v->top + i < n; i++)
        draw_line(a, &l[v->top + i], area.x + 1 + i / rows * w, area.y + i % rows, w);
    if (v->top < last && rows < area.h)
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
