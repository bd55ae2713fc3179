/*
 * The fold's part for executed counts.
 *
 * Invariants: one entry a row, the newest; exec_insns is the sum of all ninsns and never passes
 * MAX_EXEC_INSNS; of_key, of_class and all are sums over insns, so they can't disagree with them. A
 * frame that is garbled, or that finds no room, leaves what was there.
 */
#include <stdlib.h>
#include <string.h>

#include "session/model_priv.h"

const struct executed *session_executed(const struct session *s, uint32_t row)
{
    for (uint32_t i = 0; i < s->nexecuted; i++)
        if (s->executed[i].row == row) return &s->executed[i];
    return NULL;
}

/* 2: the same code on the same work, 1: the same code, 0: something else. */
static int alike(const struct session *s, const struct executed *e, const struct row *r)
{
    const struct kernel *k = &s->kernels[r->def.kernel];
    bool same =
        e->kernel == r->def.kernel || (k->def.code_hash && k->def.code_hash == e->def.code_hash &&
                                       strcmp(k->def.name, s->kernels[e->kernel].def.name) == 0);
    return !same ? 0 : session_same_work(s, &s->rows[e->row], r) ? 2 : 1;
}

const struct executed *session_executed_like(const struct session *s, uint32_t row)
{
    const struct executed *best = session_executed(s, row);
    int rank = 0;
    if (best || row >= s->nrows || s->rows[row].def.kernel >= s->nkernels) return best;
    for (uint32_t i = 0; i < s->nexecuted; i++) {
        int n = alike(s, &s->executed[i], &s->rows[row]);
        if (n < rank || n == 0 || (n == rank && best && s->executed[i].t_ns < best->t_ns)) continue;
        best = &s->executed[i];
        rank = n;
    }
    return best;
}

struct value executed_check(const struct session *s, const struct executed *e)
{
    if (e->def.lost)
        return value_missing(VALUE_OVERFLOW, "some instructions were left out, past a limit");
    struct value v = row_metric_exact(s, &s->rows[e->row], "inst");
    if (v.state != VALUE_OK)
        return value_missing(VALUE_UNAVAILABLE, "no range pass has counted it");
    if (!(v.v > 0)) return value_missing(VALUE_UNAVAILABLE, "the range pass counted none");
    double mean = (double)e->all.inst / (e->def.launches ? e->def.launches : 1);
    return value_ok(100 * (mean / v.v - 1), v.source);
}

static void empty(struct executed *e)
{
    free(e->keys);
    free(e->of_key);
    free(e->insns);
}

void executed_free(struct session *s)
{
    for (uint32_t i = 0; i < s->nexecuted; i++) empty(&s->executed[i]);
    free(s->executed);
}

static void add(struct exec_sum *to, const struct exec_item *x)
{
    to->count++;
    if (x->flags & EXEC_UNCOUNTED) return;
    to->counted++;
    to->never += x->inst == 0;
    to->guarded += (x->flags & EXEC_GUARDED) != 0;
    to->inst = fold_add(to->inst, x->inst);
    to->threads = fold_add(to->threads, x->threads);
    to->pred_on = fold_add(to->pred_on, x->pred_on);
    if (x->flags & EXEC_IN_LOOP) to->in_loop = fold_add(to->in_loop, x->inst);
    if (x->flags & EXEC_IN_HOT) to->in_hot = fold_add(to->in_hot, x->inst);
}

static void add_class(struct session *s, struct executed *e, const struct exec_item *x)
{
    const char *cls = e->keys[x->key].cls;
    uint32_t i = 0;
    while (i < e->nclasses && strcmp(e->classes[i], cls) != 0) i++;
    if (i == MAX_EXEC_CLASSES) {
        s->overflowed++;
        return;
    }
    if (i == e->nclasses) memcpy(e->classes[e->nclasses++], cls, sizeof e->classes[0]);
    add(&e->of_class[i], x);
}

static enum status take_keys(struct session *s, struct executed *e, const struct blob *b)
{
    struct rd r = rd_make(b->data, b->len);
    struct exec_key k;
    while (unpack_exec_key(&r, &k)) {
        if (e->nkeys == MAX_CENSUS_ITEMS) {
            s->overflowed++;
            break;
        }
        enum status st = fold_grow(&e->keys, e->nkeys, sizeof *e->keys);
        if (st != OK) return st;
        e->keys[e->nkeys++] = k;
    }
    e->of_key = calloc(e->nkeys ? e->nkeys : 1, sizeof *e->of_key);
    if (!e->of_key) return err_set(ERR_NOMEM, "out of memory for executed counts");
    return r.bad ? ERR_FORMAT : OK;
}

/* One past the last instruction told; ERR_FORMAT when the blob is garbled. */
static enum status extent(const struct executed *e, const struct blob *b, uint32_t *n)
{
    struct rd r = rd_make(b->data, b->len);
    struct exec_item x;
    *n = 0;
    while (unpack_exec(&r, &x)) {
        if (x.key >= e->nkeys) return ERR_FORMAT;
        if (x.index >= *n) *n = x.index + 1;
    }
    return r.bad ? ERR_FORMAT : OK;
}

static enum status take_items(struct session *s, struct executed *e, const struct blob *b)
{
    struct rd r = rd_make(b->data, b->len);
    struct exec_item x;
    uint32_t n;
    enum status st = extent(e, b, &n);
    if (st != OK) return st;
    e->insns = calloc(n ? n : 1, sizeof *e->insns);
    if (!e->insns) return err_set(ERR_NOMEM, "out of memory for executed counts");
    e->ninsns = n;
    while (unpack_exec(&r, &x)) {
        struct exec_insn *in = &e->insns[x.index];
        if (in->there) return ERR_FORMAT; /* told twice */
        *in = (struct exec_insn){x.inst,          x.threads,        x.pred_on,
                                 (uint16_t)x.key, (uint8_t)x.flags, true};
        add(&e->of_key[x.key], &x);
        add(&e->all, &x);
        add_class(s, e, &x);
    }
    return OK;
}

/* The row's entry, made when missing; NULL when `ninsns` more find no room. */
static enum status entry(struct session *s, uint32_t row, uint32_t ninsns, struct executed **out)
{
    struct executed *e = (struct executed *)session_executed(s, row);
    uint32_t others = s->exec_insns - (e ? e->ninsns : 0);
    *out = NULL;
    if (ninsns > MAX_EXEC_INSNS - others || (!e && s->nexecuted == MAX_EXECUTED)) {
        s->overflowed++;
        return OK;
    }
    if (!e) {
        enum status st = fold_grow(&s->executed, s->nexecuted, sizeof *s->executed);
        if (st != OK) return st;
        e = &s->executed[s->nexecuted++];
        memset(e, 0, sizeof *e);
        e->row = row;
    }
    *out = e;
    return OK;
}

enum status fold_executed(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_executed *d = &m->executed;
    const struct kernel *k = fold_kernel(s, d->kernel);
    const struct row *r = fold_row(s, d->row);
    struct executed e = {.def = *d, .t_ns = f->t_ns}, *to = NULL;
    if (!k || !r || &s->kernels[r->def.kernel] != k) return fold_garbled(s);
    e.row = (uint32_t)(r - s->rows);
    e.kernel = (uint32_t)(k - s->kernels);
    enum status st = take_keys(s, &e, &d->keys);
    if (st == OK) st = take_items(s, &e, &d->items);
    if (st == OK) st = entry(s, e.row, e.ninsns, &to);
    if (st != OK || !to) {
        empty(&e);
        return st == ERR_FORMAT ? fold_garbled(s) : st;
    }
    e.def.keys = e.def.items = (struct blob){0};
    s->exec_insns += e.ninsns - to->ninsns;
    empty(to);
    *to = e;
    return OK;
}
