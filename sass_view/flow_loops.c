/*
 * Job: dominators and natural loops of a flow graph.
 *
 * Node 0 is a root above every entry, node b + 1 is block b. Dominators by iterating over the
 * reverse postorder; a loop's body by flooding backwards from its branches. Loops with different
 * headers are nested or apart, and an outer header comes first in the order, so filling in that
 * order leaves each block with its innermost loop. All recursion is on explicit stacks; all work is
 * charged to a budget.
 */
#include "sass_view/flow_priv.h"
#include <stdlib.h>
#include <string.h>

struct search {
    struct flow *f;
    const struct flow_graph *g;
    uint32_t nodes;
    uint32_t *order;   /* nodes in reverse postorder */
    uint32_t *rank;    /* place of a node in the order */
    int32_t *idom;     /* immediate dominator, -1: not yet known */
    uint32_t *pred_at; /* predecessors of node n: preds[pred_at[n] .. pred_at[n+1]) */
    uint32_t *preds;
    uint32_t *stack;
    uint8_t *state;
    int64_t budget;
};

static bool charge(struct search *s, int64_t n)
{
    s->budget -= n;
    if (s->budget < 0) s->f->loops_known = false;
    return s->f->loops_known;
}

static bool alloc_search(struct search *s)
{
    size_t n = s->nodes;
    s->order = calloc(n, sizeof *s->order);
    s->rank = calloc(n, sizeof *s->rank);
    s->idom = malloc(n * sizeof *s->idom);
    s->pred_at = calloc(n + 2, sizeof *s->pred_at);
    s->preds = calloc(3 * n, sizeof *s->preds);
    s->stack = calloc(3 * n, sizeof *s->stack);
    s->state = calloc(n, 1);
    return s->order && s->rank && s->idom && s->pred_at && s->preds && s->stack && s->state;
}

static void free_search(struct search *s)
{
    free(s->order);
    free(s->rank);
    free(s->idom);
    free(s->pred_at);
    free(s->preds);
    free(s->stack);
    free(s->state);
}

/* Depth-first from block b; finished nodes go to the order from its end. state: 0 new, 1 + edge
 * tried.
 */
static void visit(struct search *s, uint32_t b, uint32_t *left)
{
    uint32_t top = 0;
    s->stack[top++] = b;
    s->state[b + 1] = 1;
    while (top) {
        uint32_t at = s->stack[top - 1];
        uint8_t edge = s->state[at + 1]++;
        if (edge > 2) {
            s->order[--*left] = at + 1;
            top--;
            continue;
        }
        int32_t to = s->g->succ[at][edge - 1];
        if (to < 0 || s->state[to + 1]) continue;
        s->state[to + 1] = 1;
        s->stack[top++] = (uint32_t)to;
    }
}

/* Entries are visited first and marked in `root`; then, by address, whatever is still unseen. */
static void make_order(struct search *s, uint8_t *root)
{
    uint32_t left = s->nodes;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t b = 0; b < s->f->nblocks; b++) {
            bool entry = s->g->lead[s->f->blocks[b].first] & FLOW_ENTRY;
            if (!pass && entry) root[b] = 1;
            if (s->state[b + 1] || (!pass && !entry)) continue;
            root[b] = 1;
            visit(s, b, &left);
        }
    }
    s->order[0] = 0; /* the root, above all */
    for (uint32_t i = 0; i < s->nodes; i++) s->rank[s->order[i]] = i;
}

static void make_preds(struct search *s, const uint8_t *root)
{
    uint32_t n = s->f->nblocks;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t b = 0; b < n; b++) {
            for (int e = 0; e < 3; e++) {
                int32_t to = e == 2 ? (root[b] ? (int32_t)b : -1) : s->g->succ[b][e];
                uint32_t from = e == 2 ? 0 : b + 1;
                if (to < 0) continue;
                if (!pass)
                    s->pred_at[to + 2]++;
                else
                    s->preds[s->pred_at[to + 1]++] = from;
            }
        }
        if (!pass)
            for (uint32_t i = 1; i < n + 2; i++) s->pred_at[i] += s->pred_at[i - 1];
    }
    /* The second pass moved each start to the next node's: shift back. */
    memmove(s->pred_at + 1, s->pred_at, (n + 1) * sizeof *s->pred_at);
    s->pred_at[0] = 0;
}

static int32_t intersect(struct search *s, int32_t a, int32_t b)
{
    while (a != b && charge(s, 1)) {
        if (s->rank[a] > s->rank[b])
            a = s->idom[a];
        else
            b = s->idom[b];
    }
    return a;
}

static void find_dominators(struct search *s)
{
    memset(s->idom, -1, s->nodes * sizeof *s->idom);
    s->idom[0] = 0;
    for (bool changed = true; changed && s->f->loops_known;) {
        changed = false;
        for (uint32_t i = 1; i < s->nodes; i++) {
            uint32_t n = s->order[i];
            int32_t best = -1;
            for (uint32_t p = s->pred_at[n]; p < s->pred_at[n + 1] && charge(s, 1); p++) {
                int32_t from = (int32_t)s->preds[p];
                if (s->idom[from] < 0) continue;
                best = best < 0 ? from : intersect(s, best, from);
            }
            if (best != s->idom[n]) {
                s->idom[n] = best;
                changed = true;
            }
        }
    }
}

static bool dominates(struct search *s, uint32_t over, uint32_t node)
{
    while (s->rank[node] > s->rank[over] && charge(s, 1)) node = (uint32_t)s->idom[node];
    return node == over;
}

/* Puts the sources of branches back to node `head` on the stack; their number. */
static uint32_t back_edges(struct search *s, uint32_t head)
{
    uint32_t n = 0;
    for (uint32_t p = s->pred_at[head]; p < s->pred_at[head + 1]; p++) {
        uint32_t from = s->preds[p];
        if (s->rank[from] >= s->rank[head] && dominates(s, head, from)) s->stack[n++] = from;
    }
    return n;
}

static void add_block(struct search *s, struct flow_loop *l, uint32_t node, int32_t id)
{
    struct flow_block *b = &s->f->blocks[node - 1];
    uint32_t last = (b->first + b->count - 1) * INSN_BYTES;
    b->loop = id;
    l->insns += b->count;
    if (last > l->last) l->last = last;
    s->state[node] = 1;
}

/* The body of the loop at `head`, whose branches are on the stack. */
static void fill_loop(struct search *s, uint32_t head, uint32_t top)
{
    int32_t id = (int32_t)s->f->nloops, parent = s->f->blocks[head - 1].loop;
    struct flow_loop *l = &s->f->loops[s->f->nloops++];
    uint8_t depth = parent < 0 ? 0 : s->f->loops[parent].depth;
    *l = (struct flow_loop){.head = s->f->blocks[head - 1].first * INSN_BYTES,
                            .parent = parent,
                            .depth = (uint8_t)(depth < FLOW_DEPTH_MAX ? depth + 1 : depth),
                            .innermost = true};
    if (parent >= 0) s->f->loops[parent].innermost = false;
    memset(s->state, 0, s->nodes);
    charge(s, s->nodes / 16);
    add_block(s, l, head, id);
    while (top && charge(s, 1)) {
        uint32_t n = s->stack[--top];
        if (s->state[n]) continue;
        add_block(s, l, n, id);
        for (uint32_t p = s->pred_at[n]; p < s->pred_at[n + 1]; p++)
            if (!s->state[s->preds[p]] && s->preds[p]) s->stack[top++] = s->preds[p];
    }
}

static void collect_loops(struct search *s)
{
    for (uint32_t i = 1; i < s->nodes && s->f->loops_known; i++) {
        uint32_t top = back_edges(s, s->order[i]);
        if (top) fill_loop(s, s->order[i], top);
    }
}

static void mark_insns(struct flow *f)
{
    for (uint32_t b = 0; b < f->nblocks; b++)
        for (uint32_t i = 0; i < f->blocks[b].count; i++)
            f->insn_loop[f->blocks[b].first + i] = f->blocks[b].loop;
}

/* Rule in census.h. */
static void choose_hot(struct flow *f, uint8_t *has_tensor)
{
    bool any = false;
    for (uint32_t i = 0; i < f->ninsns; i++) {
        if (f->insn_loop[i] < 0 || f->insns[i].cls != INSN_CLASS_TENSOR) continue;
        has_tensor[f->insn_loop[i]] = 1;
        any = true;
    }
    for (uint32_t i = 0; i < f->nloops; i++) {
        const struct flow_loop *l = &f->loops[i], *h = f->hot < 0 ? NULL : &f->loops[f->hot];
        if (any ? !has_tensor[i] : !l->innermost) continue;
        if (!h || l->depth > h->depth || (l->depth == h->depth && l->insns > h->insns))
            f->hot = (int32_t)i;
    }
}

enum status flow_find_loops(struct flow *f, const struct flow_graph *g)
{
    struct search s = {.f = f, .g = g, .nodes = f->nblocks + 1, .budget = FLOW_WORK_MAX};
    uint8_t *flags = calloc(s.nodes, 1);
    f->loops = calloc(f->nblocks, sizeof *f->loops);
    enum status st = OK;
    if (!flags || !f->loops || !alloc_search(&s)) {
        st = err_set(ERR_NOMEM, "out of memory for the flow graph");
        goto out;
    }
    make_order(&s, flags);
    make_preds(&s, flags);
    find_dominators(&s);
    collect_loops(&s);
    if (f->loops_known) {
        mark_insns(f);
        memset(flags, 0, s.nodes);
        choose_hot(f, flags);
    } else {
        f->nloops = 0;
        for (uint32_t b = 0; b < f->nblocks; b++) f->blocks[b].loop = -1;
    }
out:
    free_search(&s);
    free(flags);
    return st;
}
