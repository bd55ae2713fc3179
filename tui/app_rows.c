/* The selected row: one for all views, followed from generation to generation by what the kernel
 * does (family, role, phase and shape), since row numbers change with every flip. */
#include "tui/view.h"

#include <string.h>

/* How well a row fits the keys that flip: 2 = the family that the generation selects, 1 = another
 * family with several variants, 0 = nothing to flip. */
static int flip_rank(const struct session *s, const struct generation *g, const struct row *r)
{
    const char *first = NULL;
    if (r->def.kernel >= s->nkernels) return 0;
    const char *family = s->kernels[r->def.kernel].def.family;
    if (!strcmp(family, g->def.family)) return 2;
    for (uint32_t i = 0; i < s->nvariants; i++) {
        const struct msg_variant_def *v = &s->variants[i];
        if (strcmp(v->family, family)) continue;
        if (first && strcmp(first, v->variant)) return 1;
        first = v->variant;
    }
    return 0;
}

/* Follows the selected row into the newest generation; without one takes the costliest row of the
 * family that is flipped, since that is what the keys below are about. */
void app_follow_row(struct app *a)
{
    const struct session *s = app_session(a);
    const struct generation *g = session_current(s);
    const struct row *r = app_row(a);
    uint32_t best = TABLE_NONE;
    int rank = -1;

    if (!g || (r && r->def.generation == g->def.generation)) return;
    if (r && a->pinned == g->def.generation) return;
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *o = &s->rows[i];
        /* Rows that never ran are all there is when a session was made of files. */
        if (o->def.generation != g->def.generation || (!o->calls && !s->ended)) continue;
        if (r && session_same_work(s, r, o)) {
            a->row = i;
            return;
        }
        int own = flip_rank(s, g, o);
        if (own < rank || (own == rank && o->total_ns <= s->rows[best].total_ns)) continue;
        best = i;
        rank = own;
    }
    if (!r) a->row = best;
}

void app_pick_row(struct app *a, uint32_t row)
{
    const struct generation *g = session_current(app_session(a));
    const struct row *r;
    a->row = row;
    r = app_row(a);
    a->pinned = g && r && r->def.generation != g->def.generation ? g->def.generation : 0;
}

void view_follow_row(struct app *a, struct pane *p)
{
    if (a->row != TABLE_NONE) pane_select(p, a->row);
}

void view_take_row(struct app *a, const struct pane *p)
{
    if (p->selected != TABLE_NONE) app_pick_row(a, p->selected);
}
