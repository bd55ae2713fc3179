/* The selected row: one for all views, followed from generation to generation by what the kernel
 * does (family, role, phase and shape), since row numbers change with every flip. */
#include "tui/view.h"

#include <string.h>

static bool same_work(const struct session *s, const struct row *x, const struct row *y)
{
    return x->def.m == y->def.m && x->def.n == y->def.n && x->def.k == y->def.k &&
           !strcmp(x->def.role, y->def.role) && !strcmp(x->def.phase, y->def.phase) &&
           x->def.kernel < s->nkernels && y->def.kernel < s->nkernels &&
           !strcmp(s->kernels[x->def.kernel].def.family, s->kernels[y->def.kernel].def.family);
}

uint32_t app_counterpart(const struct session *s, const struct row *r, uint32_t than)
{
    uint32_t best = TABLE_NONE;
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *o = &s->rows[i];
        if (o->def.generation >= than || o->def.kernel == r->def.kernel || !same_work(s, r, o))
            continue;
        if (best == TABLE_NONE || o->def.generation > s->rows[best].def.generation) best = i;
    }
    return best;
}

static bool can_flip(const struct session *s, const struct row *r)
{
    const char *first = NULL;
    if (r->def.kernel >= s->nkernels) return false;
    for (uint32_t i = 0; i < s->nvariants; i++) {
        const struct msg_variant_def *v = &s->variants[i];
        if (strcmp(v->family, s->kernels[r->def.kernel].def.family)) continue;
        if (first && strcmp(first, v->variant)) return true;
        first = v->variant;
    }
    return false;
}

/* Follows the selected row into the newest generation; without one takes the costliest row of a
 * family that can be flipped, since that is what the keys below are about. */
void app_follow_row(struct app *a)
{
    const struct session *s = app_session(a);
    const struct generation *g = session_current(s);
    const struct row *r = app_row(a);
    uint32_t best = TABLE_NONE;

    if (!g || (r && r->def.generation == g->def.generation)) return;
    if (!r) a->row = TABLE_NONE;
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *o = &s->rows[i];
        if (o->def.generation != g->def.generation || !o->calls) continue;
        if (r && same_work(s, r, o)) {
            a->row = i;
            return;
        }
        bool better =
            best == TABLE_NONE || can_flip(s, o) > can_flip(s, &s->rows[best]) ||
            (can_flip(s, o) == can_flip(s, &s->rows[best]) && o->total_ns > s->rows[best].total_ns);
        if (better) best = i;
    }
    if (!r) a->row = best;
}

void view_follow_row(struct app *a, struct pane *p)
{
    if (a->row != TABLE_NONE) pane_select(p, a->row);
}

void view_take_row(struct app *a, const struct pane *p)
{
    if (p->selected != TABLE_NONE) a->row = p->selected;
}
