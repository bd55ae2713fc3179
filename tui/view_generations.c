/* Generations: the ledger of flips. Each flip and each restart starts one; their wall clocks stand
 * in one column, so that a variant's runs can be compared over the session. */
#include "tui/view.h"

#include <stdio.h>

static void generations_init(void *data)
{
    pane_init(data, "generations");
    pane_column(data, "prefill_ratio");
    ((struct pane *)data)->follow = true;
}

static void generations_done(void *data)
{
    pane_free(data);
}

static struct pane *generations_pane(void *data)
{
    return data;
}

static void generations_update(struct app *a, void *data)
{
    pane_update(data, app_session(a));
}

static void generations_draw(struct app *a, void *data, struct area area)
{
    const struct pane *p = data;
    const struct session *s = app_session(a);
    int below = area.h >= 10 ? 2 : 0;

    pane_draw(data, &a->canvas, (struct area){area.x, area.y, area.w, area.h - below}, true);
    if (!below || p->selected >= s->ngenerations) return;
    const struct generation *g = &s->generations[p->selected];
    canvas_printf(&a->canvas, 1, area.y + area.h - 1, area.w - 2, ROLE_DIM,
                  "%u timed and %u counted rounds. Parity %s%s%s", g->timed_rounds,
                  g->counted_rounds, g->def.parity, g->def.parity_text[0] ? ": " : "",
                  g->def.parity_text);
}

const struct view_ops generations_ops = {
    .name = "flips",
    .title = "the ledger of flips",
    .size = sizeof(struct pane),
    .init = generations_init,
    .done = generations_done,
    .update = generations_update,
    .draw = generations_draw,
    .pane = generations_pane,
};
