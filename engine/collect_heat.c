/*
 * PC samples by instruction: kept for one window, then told as PC_HEAT frames.
 *
 * Invariants: heat_insns is the sum of all npcs and never passes COLLECT_HEAT_INSNS; an instruction
 * without room costs its own figures alone, its samples still count for the kernel.
 */
#include "engine/collect_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SASS_BYTES = 16 }; /* of an instruction, sm_70 and later */

struct heat_pc *heat_at(struct collect *c, struct stall_kernel *k, uint64_t pc)
{
    uint64_t index = pc / SASS_BYTES;
    if (index >= HEAT_INSNS_MAX) return NULL;
    if (index >= k->npcs) {
        uint32_t n = k->npcs ? k->npcs : 64;
        while (n <= index) n *= 2;
        if (n - k->npcs > COLLECT_HEAT_INSNS - c->heat_insns) return NULL;
        struct heat_pc *p = realloc(k->pcs, n * sizeof *p);
        if (!p) return NULL;
        memset(p + k->npcs, 0, (n - k->npcs) * sizeof *p);
        c->heat_insns += n - k->npcs;
        k->pcs = p;
        k->npcs = n;
    }
    return &k->pcs[index];
}

static void pack_insn(struct buf *b, const struct stall_kernel *k, uint32_t index)
{
    const struct heat_pc *p = &k->pcs[index];
    struct heat_item it = {.index = index, .samples = p->samples, .not_issued = p->not_issued};
    for (uint32_t r = 0; r < k->nreasons; r++) {
        if (p->by[r] <= it.top || !strcmp(k->reasons[r].reason, "selected")) continue;
        it.top = p->by[r];
        memcpy(it.reason, k->reasons[r].reason, sizeof it.reason);
    }
    pack_heat(b, &it);
}

void collect_send_heat(struct collect *c, const struct stall_kernel *k)
{
    struct buf b = {0};
    struct msg_pc_heat m = {.kernel = k->kernel,
                            .generation = c->e->generation,
                            .round = c->round,
                            .samples = k->samples};
    snprintf(m.source, sizeof m.source, "%s", collect_label(c, COUNTER_PC));
    for (uint32_t i = 0; i < k->npcs; i++)
        if (k->pcs[i].samples || k->pcs[i].not_issued) pack_insn(&b, k, i);
    m.items = (struct blob){b.data, (uint32_t)b.len};
    if (b.len && !b.failed) emit_send(c->e->emit, FRAME_PC_HEAT, &m);
    buf_free(&b);
}

void heat_drop(struct collect *c)
{
    for (uint32_t i = 0; i < c->nstalls; i++) {
        free(c->stalls[i].pcs);
        c->stalls[i].pcs = NULL;
        c->stalls[i].npcs = 0;
    }
    c->heat_insns = 0;
}
