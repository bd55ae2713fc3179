/*
 * The gate of a flip; see parity.h. Shapes are those of the family's products in the prefill list.
 *
 * kcheck is run from the folder of this program as
 *   kcheck --variant NAME_kdN --shapes M,N,K;... --json
 * and only its JSON is believed: every outcome "ok". Figures that it lacks are sent as NaN.
 */
#include "engine/parity.h"

#include "engine/parity_child.h"

#include <stdio.h>
#include <string.h>

struct kept {
    char variant[48];
    uint32_t kd, mnk[3];
    struct msg_parity outcome;
};

static struct kept kept[PARITY_KEPT];
static unsigned nkept;

/* Different shapes of the family's products in a prefill step, at most PARITY_SHAPES. */
static unsigned shapes_in_use(const struct engine *e, const char *family,
                              uint32_t shapes[PARITY_SHAPES][3])
{
    int type = strcmp(family, "q6k_gemm") ? QUANT_Q4_K : QUANT_Q6_K;
    const struct forward *f = e->rest.ops ? &e->rest : &e->chunk;
    unsigned n = 0;
    for (uint32_t i = 0; i < f->nops; i++) {
        const struct op *op = &f->ops[i];
        if (op->kind != OP_MATMUL || op->w->type != type) continue;
        uint32_t s[3] = {op->w->m, op->n, op->w->k};
        unsigned j = 0;
        while (j < n && memcmp(shapes[j], s, sizeof s)) j++;
        if (j == n && n < PARITY_SHAPES) memcpy(shapes[n++], s, sizeof s);
    }
    return n;
}

static const struct msg_parity *find(const char *variant, uint32_t kd, const uint32_t mnk[3])
{
    for (unsigned i = 0; i < nkept; i++)
        if (!strcmp(kept[i].variant, variant) && kept[i].kd == kd &&
            !memcmp(kept[i].mnk, mnk, sizeof kept[i].mnk))
            return &kept[i].outcome;
    return NULL;
}

static void keep(const struct msg_parity *p)
{
    if (nkept == PARITY_KEPT) nkept = 0; /* start over: they are cheap to make again */
    struct kept *k = &kept[nkept++];
    memcpy(k->variant, p->variant, sizeof k->variant);
    k->kd = p->kd;
    k->mnk[0] = p->m;
    k->mnk[1] = p->n;
    k->mnk[2] = p->k;
    k->outcome = *p;
}

static void check_in_place(struct engine *e, struct msg_parity *p)
{
    const uint32_t mnk[3] = {p->m, p->n, p->k};
    struct parity_result r;
    enum status st = e->bo->check(e->b, p->family, p->variant, p->kd, mnk, &r);
    if (st != OK) {
        snprintf(p->state, sizeof p->state, "unavailable");
        snprintf(p->text, sizeof p->text, "%s", err_msg());
        return;
    }
    snprintf(p->state, sizeof p->state, "%s", r.passed ? "ok" : "failed");
    snprintf(p->text, sizeof p->text, "%s", r.text);
    p->nmse = r.nmse;
    p->worst = r.worst;
}

/* Fills in the outcomes of shapes that were never checked. */
static void check_all(struct engine *e, struct msg_parity *p, unsigned n)
{
    struct msg_parity todo[PARITY_SHAPES];
    unsigned at[PARITY_SHAPES], ntodo = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t mnk[3] = {p[i].m, p[i].n, p[i].k};
        const struct msg_parity *before = find(p[i].variant, p[i].kd, mnk);
        if (before) {
            p[i] = *before;
            continue;
        }
        at[ntodo] = i;
        todo[ntodo++] = p[i];
    }
    if (!e->bo->check && ntodo) parity_child(e, todo, ntodo);
    for (unsigned i = 0; i < ntodo; i++) {
        if (e->bo->check) {
            engine_progress(e, "parity", i, ntodo);
            check_in_place(e, &todo[i]);
        }
        p[at[i]] = todo[i];
        if (strcmp(todo[i].state, "unavailable")) keep(&todo[i]);
    }
}

bool parity_gate(struct engine *e, const char *family, const char *variant, uint32_t kd, char *why,
                 size_t size)
{
    struct msg_parity p[PARITY_SHAPES];
    uint32_t shapes[PARITY_SHAPES][3];
    unsigned n = shapes_in_use(e, family, shapes);
    const struct msg_parity *bad = NULL;
    memset(p, 0, sizeof p);
    for (unsigned i = 0; i < n; i++) {
        snprintf(p[i].family, sizeof p[i].family, "%s", family);
        snprintf(p[i].variant, sizeof p[i].variant, "%s", variant);
        p[i].kd = kd;
        p[i].m = shapes[i][0];
        p[i].n = shapes[i][1];
        p[i].k = shapes[i][2];
    }
    check_all(e, p, n);
    for (unsigned i = 0; i < n; i++) {
        emit_send(e->emit, FRAME_PARITY, &p[i]);
        if (!bad && strcmp(p[i].state, "ok")) bad = &p[i];
    }
    if (bad)
        snprintf(why, size, "parity %s at %ux%ux%u: %s", bad->state, bad->m, bad->n, bad->k,
                 bad->text);
    else if (n)
        snprintf(why, size, "%u shapes within limits", n);
    else
        snprintf(why, size, "no product of this family is in use: nothing to check");
    return !bad;
}
