/*
 * The fold's part for PC samples by instruction.
 *
 * Invariants: heat_insns is the sum of all `cap` and never passes MAX_HEAT_INSNS; sums stop at
 * their type's end; the oldest generations' samples make room for newer ones, and what finds none
 * even so is counted in `overflowed`. The first whole items of a garbled blob count.
 */
#include <stdlib.h>
#include <string.h>

#include "session/model_priv.h"

const struct kernel_heat *session_heat(const struct session *s, uint32_t kernel,
                                       uint32_t generation)
{
    for (uint32_t i = s->nheats; i > 0; i--)
        if (s->heats[i - 1].kernel == kernel && s->heats[i - 1].generation == generation)
            return &s->heats[i - 1];
    return NULL;
}

const char *heat_top(const struct kernel_heat *h, uint32_t insn, uint64_t *samples)
{
    uint32_t best = 0;
    *samples = 0;
    if (insn >= h->ninsns || !h->insns[insn].nreasons) return "";
    const struct heat_insn *in = &h->insns[insn];
    for (uint32_t i = 1; i < in->nreasons; i++)
        if (in->by[i] > in->by[best]) best = i;
    *samples = in->by[best];
    return h->reasons[in->reason[best]];
}

void heat_free(struct session *s)
{
    for (uint32_t i = 0; i < s->nheats; i++) free(s->heats[i].insns);
    free(s->heats);
}

/* Lets the oldest generation's samples go, if it is older than `than`. Heats move in memory. */
static bool forget_oldest(struct session *s, uint32_t than)
{
    uint32_t oldest = than, kept = 0;
    for (uint32_t i = 0; i < s->nheats; i++)
        if (s->heats[i].generation < oldest) oldest = s->heats[i].generation;
    if (oldest == than) return false;
    for (uint32_t i = 0; i < s->nheats; i++) {
        if (s->heats[i].generation == oldest) {
            s->heat_insns -= s->heats[i].cap;
            free(s->heats[i].insns);
        } else {
            s->heats[kept++] = s->heats[i];
        }
    }
    s->nheats = kept;
    if (oldest > s->heats_gone) s->heats_gone = oldest;
    return true;
}

static enum status find_heat(struct session *s, uint32_t kernel, uint32_t generation,
                             struct kernel_heat **out)
{
    *out = (struct kernel_heat *)session_heat(s, kernel, generation);
    if (*out) return OK;
    if (s->nheats == MAX_HEATS && !forget_oldest(s, generation)) {
        s->overflowed++;
        return OK;
    }
    enum status st = fold_grow(&s->heats, s->nheats, sizeof *s->heats);
    if (st != OK) return st;
    *out = &s->heats[s->nheats++];
    memset(*out, 0, sizeof **out);
    (*out)->kernel = kernel;
    (*out)->generation = generation;
    return OK;
}

/* Room up to instruction `index` of *heat, which may move; *ok false when there is none. */
static enum status reach(struct session *s, struct kernel_heat **heat, uint32_t index, bool *ok)
{
    struct kernel_heat *h = *heat;
    uint32_t cap = h->cap ? h->cap : 64, kernel = h->kernel, generation = h->generation;
    *ok = true;
    while (cap <= index) cap *= 2;
    if (cap > h->cap) {
        while ((*ok = cap - h->cap <= MAX_HEAT_INSNS - s->heat_insns) == false &&
               forget_oldest(s, generation))
            *heat = h = (struct kernel_heat *)session_heat(s, kernel, generation);
        if (!*ok) return OK;
        void *p = realloc(h->insns, cap * sizeof *h->insns);
        if (!p) return err_set(ERR_NOMEM, "out of memory for samples by instruction");
        h->insns = p;
        s->heat_insns += cap - h->cap;
        h->cap = cap;
    }
    while (h->ninsns <= index) memset(&h->insns[h->ninsns++], 0, sizeof *h->insns);
    return OK;
}

/* The kernel's number of a reason, or MAX_REASONS when there is no room. */
static uint32_t reason_of(struct kernel_heat *h, const char *reason)
{
    uint32_t i = 0;
    while (i < h->nreasons && strcmp(h->reasons[i], reason) != 0) i++;
    if (i == h->nreasons && i < MAX_REASONS)
        memcpy(h->reasons[h->nreasons++], reason, strlen(reason) + 1);
    return i;
}

static void add_top(struct session *s, struct kernel_heat *h, struct heat_insn *in,
                    const struct heat_item *it)
{
    uint32_t i = 0, reason = it->reason[0] ? reason_of(h, it->reason) : MAX_REASONS;
    if (!it->reason[0]) return;
    while (i < in->nreasons && in->reason[i] != reason) i++;
    if (i == HEAT_REASONS || reason == MAX_REASONS) {
        s->overflowed++;
        return;
    }
    if (i == in->nreasons) in->reason[in->nreasons++] = (uint8_t)reason;
    in->by[i] = fold_add(in->by[i], it->top);
}

enum status fold_pc_heat(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_pc_heat *d = &m->pc_heat;
    struct kernel *k = fold_kernel(s, d->kernel);
    struct rd rd = rd_make(d->items.data, d->items.len);
    struct kernel_heat *h;
    struct heat_item it;
    bool ok;

    (void)f;
    if (!k) return fold_garbled(s);
    enum status st = find_heat(s, (uint32_t)(k - s->kernels), d->generation, &h);
    if (st != OK || !h) return st;
    memcpy(h->source, d->source, sizeof h->source);
    h->samples = fold_add(h->samples, d->samples);
    while (unpack_heat(&rd, &it)) {
        st = reach(s, &h, it.index, &ok);
        if (st != OK) return st;
        if (!ok) {
            s->overflowed++;
            continue;
        }
        struct heat_insn *in = &h->insns[it.index];
        in->samples = fold_add(in->samples, it.samples);
        in->not_issued = fold_add(in->not_issued, it.not_issued);
        add_top(s, h, in, &it);
    }
    return rd.bad ? fold_garbled(s) : OK;
}
