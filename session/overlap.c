/* Which kernels ran during a sample; see overlap.h. */
#include "session/overlap.h"

int overlap_compare_spans(const void *a, const void *b)
{
    const struct window_span *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Sums the active spans' overlap with [a, b) by row. */
static int by_row(const struct overlap_walk *w, uint64_t a, uint64_t b, struct overlap *out)
{
    int rows = 0;

    for (unsigned i = 0; i < w->n; i++) {
        const struct window_span *sp = w->active[i];
        uint64_t from = sp->start > a ? sp->start : a, to = sp->end < b ? sp->end : b;
        int k = 0;
        if (from >= to) continue;
        while (k < rows && out[k].row != sp->row) k++;
        if (k == rows) out[rows++] = (struct overlap){.row = sp->row};
        if (from < out[k].last_end) from = out[k].last_end;
        if (from < to) {
            out[k].ns += to - from;
            out[k].last_end = to;
        }
    }
    return rows;
}

int overlap_next(struct overlap_walk *w, const struct window_span *spans, uint32_t nspans,
                 uint64_t a, uint64_t b, struct overlap *out)
{
    unsigned kept = 0;

    for (unsigned k = 0; k < w->n; k++)
        if (w->active[k]->end > a) w->active[kept++] = w->active[k];
    w->n = kept;
    for (; w->next < nspans && spans[w->next].start < b; w->next++) {
        const struct window_span *sp = &spans[w->next];
        if (sp->end <= a) continue;
        if (w->n < OVERLAP_MAX)
            w->active[w->n++] = sp;
        else if (sp->end > w->crowded_until)
            w->crowded_until = sp->end;
    }
    return a < w->crowded_until ? -1 : by_row(w, a, b, out);
}
