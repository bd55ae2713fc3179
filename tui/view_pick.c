/* Open: recordings in this folder, then those that come with the program. */
#include "tui/view.h"

#include "tui/files.h"

#include <stdio.h>
#include <string.h>

struct pick_view {
    struct found_file files[FILES_MAX];
    int n, at, top;
};

static void pick_update(struct app *a, void *data)
{
    struct pick_view *v = data;
    (void)a;

    v->n = files_list(".", ".sasstop", v->files, FILES_MAX);
    v->n += files_bundled(v->files + v->n, FILES_MAX - v->n);
    if (v->at >= v->n) v->at = v->n ? v->n - 1 : 0;
}

static void pick_draw(struct app *a, void *data, struct area area)
{
    struct pick_view *v = data;
    struct canvas *c = &a->canvas;
    int page = area.h - 2;

    canvas_rule(c, area.x, area.y, area.w, "open a recording");
    if (!v->n)
        canvas_wrap(c, (struct area){2, area.y + 1, area.w - 3, area.h - 1}, ROLE_DIM,
                    "no *.sasstop file in this folder, and none came with the program; r in a "
                    "live session makes one");
    if (v->at < v->top) v->top = v->at;
    if (page > 0 && v->at >= v->top + page) v->top = v->at - page + 1;
    for (int i = 0; i < page && v->top + i < v->n; i++) {
        const struct found_file *f = &v->files[v->top + i];
        const char *slash = strrchr(f->path, '/');
        int y = area.y + 1 + i;
        canvas_printf(c, area.x, y, area.w - 14, ROLE_TEXT, "%s %s%s",
                      v->top + i == v->at ? "▸" : " ", slash ? slash + 1 : f->path,
                      f->bundled ? "  (comes with the program)" : "");
        char size[32];
        snprintf(size, sizeof size, "%.2f MB", (double)f->bytes / 1e6);
        canvas_right(c, area.x + area.w - 13, y, 12, ROLE_DIM, size);
        if (v->top + i == v->at) canvas_restyle(c, area.x, y, area.w, -1, STYLE_REVERSE);
    }
    canvas_text(c, 2, area.y + area.h - 1, area.w - 3, ROLE_DIM, "Enter opens, Esc goes back");
}

static void pick_open(struct app *a, const struct pick_view *v)
{
    if (v->at >= v->n) return;
    if (app_open_recording(a, v->files[v->at].path) != OK) {
        app_say(a, ROLE_BAD, "%s", err_msg());
        return;
    }
    if (a->view == VIEW_PICK) app_show_view(a, VIEW_OVERVIEW);
    replay_play(a->recorded.src, true);
    app_say(a, ROLE_GOOD, "a recording: Space pauses, [ ] seek, { } go to flips%s",
            a->live.src ? ", Esc goes back to the live session" : "");
}

static bool pick_request(struct app *a, void *data, enum request r)
{
    struct pick_view *v = data;

    switch (r) {
    case REQ_UP:
        v->at -= v->at > 0;
        return true;
    case REQ_DOWN:
        v->at += v->at + 1 < v->n;
        return true;
    case REQ_HOME:
        v->at = 0;
        return true;
    case REQ_END:
        v->at = v->n ? v->n - 1 : 0;
        return true;
    case REQ_ENTER:
        pick_open(a, v);
        return true;
    default:
        return false;
    }
}

const struct view_ops pick_ops = {
    .name = "open",
    .title = "open a recording",
    .size = sizeof(struct pick_view),
    .update = pick_update,
    .draw = pick_draw,
    .request = pick_request,
};
