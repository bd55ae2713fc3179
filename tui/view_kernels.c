/* Kernels: the whole table, one row a kernel and shape of the current generation, or of all. */
#include "tui/view.h"

struct kernels_view {
    struct pane now, all;
    bool every;
};

static struct pane *kernels_pane(void *data)
{
    struct kernels_view *v = data;
    return v->every ? &v->all : &v->now;
}

static void kernels_init(void *data)
{
    struct kernels_view *v = data;
    pane_init(&v->now, "kernels");
    pane_init(&v->all, "rows");
    pane_column(&v->now, "sm_pct");
    pane_column(&v->all, "sm_pct");
}

static void kernels_done(void *data)
{
    struct kernels_view *v = data;
    pane_free(&v->now);
    pane_free(&v->all);
}

static void kernels_update(struct app *a, void *data)
{
    struct pane *p = kernels_pane(data);
    pane_update(p, app_session(a));
    view_follow_row(a, p);
}

static void kernels_draw(struct app *a, void *data, struct area area)
{
    pane_draw(kernels_pane(data), &a->canvas, area, true);
}

static bool kernels_request(struct app *a, void *data, enum request r)
{
    struct kernels_view *v = data;

    if (r == REQ_MODE) {
        v->every = !v->every;
        app_say(a, ROLE_TEXT,
                v->every ? "kernels of all generations; m: of this one only"
                         : "kernels of this generation; m: of all");
        return true;
    }
    if (!pane_request(kernels_pane(v), r)) return false;
    view_take_row(a, kernels_pane(v));
    return true;
}

const struct view_ops kernels_ops = {
    .name = "kernels",
    .title = "one row a kernel and shape",
    .size = sizeof(struct kernels_view),
    .init = kernels_init,
    .done = kernels_done,
    .update = kernels_update,
    .draw = kernels_draw,
    .request = kernels_request,
    .pane = kernels_pane,
};
