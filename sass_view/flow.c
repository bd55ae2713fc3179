/*
 * Job: the flow graph of one section: padding, blocks, edges. Loops are found in flow_loops.c.
 *
 * Invariants: every instruction is in exactly one block; blocks lie in order of address; an edge
 * leads to a block's first instruction. Targets outside the section or off the 16-byte grid are no
 * edges. A call goes on at the next instruction; its target is an entry. BSYNC goes on at the
 * target of the BSSY that set up its barrier.
 */
#include "sass_view/flow.h"
#include "sass_view/flow_priv.h"
#include <stdlib.h>
#include <string.h>

/* Index of the instruction at byte `target`, -1 when there's none. */
static int32_t insn_at(const struct flow *f, int64_t target)
{
    if (target < 0 || target % INSN_BYTES || target / INSN_BYTES >= f->ninsns) return -1;
    return (int32_t)(target / INSN_BYTES);
}

static bool guarded(const struct insn *in)
{
    return in->guard != INSN_PT || in->guard_not || in->flags & INSN_CONDITIONAL;
}

/* Control never goes on to the next instruction. */
static bool ends_flow(const struct insn *in)
{
    return in->flags & (INSN_BRANCH | INSN_EXIT | INSN_RETURN) && !guarded(in);
}

static bool is_self_branch(const struct insn *in)
{
    return in->flags & INSN_BRANCH && in->target == (int64_t)in->offset;
}

/* Marks the filler at the end of [first, end): NOPs, and before them a branch to itself that
 * nothing falls into. */
static void mark_padding(struct flow *f, uint32_t first, uint32_t end)
{
    uint32_t i = end;
    while (i > first && f->insns[i - 1].flags & INSN_NOP) f->padding[--i] = 1;
    if (i > first + 1 && is_self_branch(&f->insns[i - 1]) && ends_flow(&f->insns[i - 2]))
        f->padding[--i] = 1;
    if (i == first || ends_flow(&f->insns[i - 1])) return;
    /* The code before runs into these NOPs: they are instructions, not filler. */
    for (; i < end && f->insns[i].flags & INSN_NOP; i++) f->padding[i] = 0;
}

static void mark_all_padding(struct flow *f, const struct cubin_kernel *k)
{
    uint32_t start = 0;
    for (size_t i = 0; i <= k->nfuncs; i++) {
        uint32_t next = i < k->nfuncs ? k->funcs[i].offset / INSN_BYTES : f->ninsns;
        if (next <= start) continue;
        mark_padding(f, start, next);
        start = next;
    }
}

/* One flag an instruction: bit 0 starts a block, bit 1 is an entry. */
static void mark_leaders(const struct flow *f, const struct cubin_kernel *k, uint8_t *lead)
{
    lead[0] = FLOW_LEADER | FLOW_ENTRY;
    for (size_t i = 0; i < k->nfuncs; i++)
        if (k->funcs[i].offset / INSN_BYTES < f->ninsns)
            lead[k->funcs[i].offset / INSN_BYTES] |= FLOW_LEADER | FLOW_ENTRY;
    for (uint32_t i = 0; i < f->ninsns; i++) {
        const struct insn *in = &f->insns[i];
        int32_t t = insn_at(f, in->target);
        if (t >= 0) lead[t] |= in->flags & INSN_CALL ? FLOW_LEADER | FLOW_ENTRY : FLOW_LEADER;
        bool splits = in->flags & (INSN_BRANCH | INSN_EXIT | INSN_RETURN | INSN_RECONVERGE);
        if ((splits || (f->padding[i] != (i + 1 < f->ninsns && f->padding[i + 1]))) &&
            i + 1 < f->ninsns)
            lead[i + 1] |= FLOW_LEADER;
    }
}

static enum status make_blocks(struct flow *f, struct flow_graph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->ninsns; i++) n += g->lead[i] & FLOW_LEADER;
    f->blocks = calloc(n ? n : 1, sizeof *f->blocks);
    g->block_of = calloc(f->ninsns ? f->ninsns : 1, sizeof *g->block_of);
    if (!f->blocks || !g->block_of) return err_set(ERR_NOMEM, "out of memory for the flow graph");
    for (uint32_t i = 0; i < f->ninsns; i++) {
        if (g->lead[i] & FLOW_LEADER)
            f->blocks[f->nblocks++] = (struct flow_block){.first = i, .loop = -1};
        f->blocks[f->nblocks - 1].count++;
        g->block_of[i] = f->nblocks - 1;
    }
    return OK;
}

/* Where a BSYNC goes on: the target of the nearest BSSY before it on the same barrier register
 * (bits 16-19), or the next instruction when there's none. */
static int32_t bsync_target(const struct flow *f, const int32_t *last_push, uint32_t i)
{
    int32_t push = last_push[f->insns[i].dst & 15];
    int32_t t = push >= 0 ? insn_at(f, f->insns[push].target) : -1;
    if (t == (int32_t)i || t < 0) return i + 1 < f->ninsns ? (int32_t)i + 1 : -1;
    return t;
}

static void make_edges(const struct flow *f, struct flow_graph *g)
{
    int32_t last_push[16];
    memset(last_push, -1, sizeof last_push);
    for (uint32_t b = 0; b < f->nblocks; b++) {
        uint32_t first = f->blocks[b].first, last = first + f->blocks[b].count - 1;
        const struct insn *in = &f->insns[last];
        int32_t next = last + 1 < f->ninsns ? (int32_t)last + 1 : -1, jump = -1;
        for (uint32_t i = first; i <= last; i++)
            if (f->insns[i].flags & INSN_PUSH) last_push[f->insns[i].dst & 15] = (int32_t)i;
        if (in->flags & INSN_BRANCH) jump = insn_at(f, in->target);
        if (in->flags & INSN_RECONVERGE) {
            jump = bsync_target(f, last_push, last);
            if (!guarded(in)) next = -1;
        }
        if (ends_flow(in)) next = -1;
        if (f->padding[first]) jump = next = -1; /* the filler's branch to itself is no loop */
        g->succ[b][0] = jump < 0 ? -1 : (int32_t)g->block_of[jump];
        g->succ[b][1] = next < 0 ? -1 : (int32_t)g->block_of[next];
    }
}

static enum status decode_all(struct flow *f, const struct cubin *c, const struct cubin_kernel *k)
{
    const struct decoder *d = decoder_get(c->sm);
    if (c->sealed)
        return err_set(ERR_UNAVAILABLE,
                       "%s: NVIDIA's licence forbids disassembling its libraries: kernels and "
                       "resources (--list) are all that is shown",
                       k->name);
    f->ninsns = k->code_size / INSN_BYTES;
    if (f->ninsns > FLOW_INSNS_MAX)
        return err_set(ERR_LIMIT, "%s: %u instructions, the limit is %d", k->name, f->ninsns,
                       FLOW_INSNS_MAX);
    size_t n = f->ninsns ? f->ninsns : 1;
    f->insns = calloc(n, sizeof *f->insns);
    f->padding = calloc(n, 1);
    f->insn_loop = malloc(n * sizeof *f->insn_loop);
    if (!f->insns || !f->padding || !f->insn_loop)
        return err_set(ERR_NOMEM, "%s: out of memory for %u instructions", k->name, f->ninsns);
    memset(f->insn_loop, -1, n * sizeof *f->insn_loop);
    for (uint32_t i = 0; i < f->ninsns; i++)
        insn_decode(d, k->code + (size_t)i * INSN_BYTES, i * INSN_BYTES, &f->insns[i]);
    return OK;
}

static void graph_free(struct flow_graph *g)
{
    free(g->lead);
    free(g->block_of);
    free(g->succ);
}

enum status flow_make(struct flow *out, const struct cubin *c, const struct cubin_kernel *k)
{
    struct flow_graph g = {0};
    *out = (struct flow){.hot = -1, .loops_known = true};
    enum status st = decode_all(out, c, k);
    if (st || !out->ninsns) goto out;
    mark_all_padding(out, k);
    g.lead = calloc(out->ninsns, 1);
    if (!g.lead) {
        st = err_set(ERR_NOMEM, "%s: out of memory", k->name);
        goto out;
    }
    mark_leaders(out, k, g.lead);
    if ((st = make_blocks(out, &g))) goto out;
    g.succ = calloc(out->nblocks, sizeof *g.succ);
    if (!g.succ) {
        st = err_set(ERR_NOMEM, "%s: out of memory", k->name);
        goto out;
    }
    make_edges(out, &g);
    st = flow_find_loops(out, &g);
out:
    graph_free(&g);
    if (st) flow_free(out);
    return st;
}

void flow_free(struct flow *f)
{
    free(f->insns);
    free(f->padding);
    free(f->insn_loop);
    free(f->blocks);
    free(f->loops);
    *f = (struct flow){.hot = -1};
}

bool flow_in_loop(const struct flow *f, int32_t inner, int32_t outer)
{
    for (; inner >= 0; inner = f->loops[inner].parent)
        if (inner == outer) return true;
    return false;
}
