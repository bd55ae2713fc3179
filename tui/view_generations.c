/* Generations: the ledger of flips. Each flip and each restart starts one; their wall clocks stand
 * in one column, so that a variant's runs can be compared over the session. Where there is room,
 * below: what each did to the costliest kernel. */
#include "tui/view.h"

#include <stdio.h>

struct ledger {
    struct pane list, kernels;
};

static void generations_init(void *data)
{
    struct ledger *v = data;
    pane_init(&v->list, "generations");
    pane_column(&v->list, "prefill_ratio");
    v->list.follow = true;
    pane_init(&v->kernels, "flips");
    pane_column(&v->kernels, "ratio");
}

static void generations_done(void *data)
{
    struct ledger *v = data;
    pane_free(&v->list);
    pane_free(&v->kernels);
}

static struct pane *generations_pane(void *data)
{
    return &((struct ledger *)data)->list;
}

static void generations_update(struct app *a, void *data)
{
    struct ledger *v = data;
    pane_update(&v->list, app_session(a));
    pane_update(&v->kernels, app_session(a));
    pane_select(&v->kernels, v->list.selected);
}

/* Rows that the table of kernels takes of `h`: none when the ledger would lose its own. */
static int kernel_rows(const struct ledger *v, int h)
{
    int need = (int)v->list.table.nrows + 3;
    if (h < 16 || !v->kernels.table.nrows) return 0;
    return h - need > h / 2 ? h - need : h / 2;
}

static void generations_draw(struct app *a, void *data, struct area area)
{
    struct ledger *v = data;
    const struct session *s = app_session(a);
    int below = area.h >= 10 ? 2 : 0, h = area.h - below, kernels = kernel_rows(v, h);

    pane_draw(&v->list, &a->canvas, (struct area){area.x, area.y, area.w, h - kernels}, true);
    if (kernels)
        pane_draw(&v->kernels, &a->canvas,
                  (struct area){area.x, area.y + h - kernels, area.w, kernels}, false);
    if (!below || v->list.selected >= s->ngenerations) return;
    const struct generation *g = &s->generations[v->list.selected];
    canvas_printf(&a->canvas, 1, area.y + area.h - 1, area.w - 2, ROLE_DIM,
                  "%u timed and %u counted rounds. Parity %s%s%s", g->timed_rounds,
                  g->counted_rounds, g->def.parity, g->def.parity_text[0] ? ": " : "",
                  g->def.parity_text);
}

/* Enter opens what the flip was about, of a generation that has passed too. */
static bool generations_request(struct app *a, void *data, enum request r)
{
    const struct ledger *v = data;
    const struct session *s = app_session(a);
    if (r != REQ_ENTER) return false;
    if (v->list.selected >= s->ngenerations) return true;
    const struct generation *g = &s->generations[v->list.selected];
    uint32_t row = session_costliest(s, g);
    if (row >= s->nrows) {
        app_say(a, ROLE_TEXT, "no kernel of %s has run in generation %u", g->def.family,
                g->def.generation);
        return true;
    }
    app_pick_row(a, row);
    app_show_view(a, VIEW_DETAIL);
    app_say(a, ROLE_TEXT, "the costliest kernel of %s in generation %u%s", g->def.family,
            g->def.generation, a->pinned ? ", not the newest" : "");
    return true;
}

const struct view_ops generations_ops = {
    .name = "flips",
    .title = "the ledger of flips",
    .size = sizeof(struct ledger),
    .init = generations_init,
    .done = generations_done,
    .update = generations_update,
    .draw = generations_draw,
    .request = generations_request,
    .pane = generations_pane,
};
