/*
 * Executed counts: which launches are counted for a request, what came of them, and the EXECUTED
 * frames, in which each offset is told with its opcode.
 *
 * Invariants: of a row the first launch of the round that is asked for is counted, no other;
 * exec_insns is the sum of all caps and never passes COLLECT_EXEC_INSNS. An instruction of the code
 * that CUPTI gave no count for is told as uncounted, never as 0; padding that never ran is left
 * out.
 */
#include "engine/collect_priv.h"

#include "engine/describe_cubin.h"
#include "sass_view/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SASS_BYTES = 16, KEYS_MAX = 1024 };

/* ---- what is asked for ---- */

static bool known_kernel(const struct collect *c, const char *name)
{
    for (uint32_t i = 0; i < c->nkernels; i++)
        if (!strcmp(c->kernels[i].name, name)) return true;
    return false;
}

enum status exec_ask(struct collect *c, const char *arg)
{
    struct exec_want w = {.kernel = ""};
    char rest;
    int n = sscanf(arg, "%63s %31s %7s %u %u %u %c", w.kernel, w.role, w.phase, &w.m, &w.n, &w.k,
                   &rest);
    if (n > 6 || n == 4 || n == 5)
        return err_set(ERR_USAGE,
                       "sassexec takes all, or a kernel, then its role, its phase, its M N K; not "
                       "\"%.100s\"",
                       arg);
    if (n < 1 || !strcmp(w.kernel, "all")) w.kernel[0] = '\0';
    if (w.kernel[0] && !known_kernel(c, w.kernel))
        return err_set(ERR_UNAVAILABLE, "this engine has no kernel called %s", w.kernel);
    c->exec_want = w;
    return OK;
}

static bool wanted(const struct exec_want *w, const char *kernel, const char *phase,
                   const struct launch_info *i)
{
    if (w->kernel[0] && strcmp(w->kernel, kernel)) return false;
    if (w->role[0] && strcmp(w->role, i->role)) return false;
    if (w->phase[0] && strcmp(w->phase, phase)) return false;
    return !(w->m || w->n || w->k) || (w->m == i->m && w->n == i->n && w->k == i->k);
}

bool exec_choose(struct collect *c, const struct launch_info *info, uint32_t row)
{
    if (!row || !wanted(&c->exec_want, c->kernels[info->kernel].name, c->phase, info)) return false;
    for (uint32_t i = 0; i < c->nexec; i++)
        if (c->exec[i].row == row) return false;
    if (c->nexec == COLLECT_EXEC_ROWS) {
        c->exec_left++;
        return false;
    }
    c->exec[c->nexec++] = (struct exec_row){.row = row, .kernel = info->kernel, .launches = 1};
    return true;
}

/* ---- what came ---- */

static struct exec_count *room(struct collect *c, struct exec_row *r, uint64_t index)
{
    uint32_t n = r->n ? r->n : 256;
    if (index >= EXEC_INSNS_MAX) return NULL;
    while (n <= index) n *= 2;
    if (n == r->n) return &r->at[index];
    if (n - r->n > COLLECT_EXEC_INSNS - c->exec_insns) return NULL;
    struct exec_count *p = realloc(r->at, n * sizeof *p);
    if (!p) return NULL;
    memset(p + r->n, 0, (n - r->n) * sizeof *p);
    c->exec_insns += n - r->n;
    r->at = p;
    r->n = n;
    return &p[index];
}

void exec_found(struct collect *c, const struct counter_executed *x)
{
    if (x->tag == 0 || x->tag > c->nlaunches) {
        c->tagless++;
        return;
    }
    const struct launch_note *l = &c->launches[x->tag - 1];
    struct exec_row *r = NULL;
    for (uint32_t i = 0; i < c->nexec && !r; i++)
        if (c->exec[i].row == l->row) r = &c->exec[i];
    if (!r || strcmp(c->kernels[r->kernel].name, x->function)) {
        c->mismatched++;
        return;
    }
    struct exec_count *at = room(c, r, x->pc / SASS_BYTES);
    if (!at) {
        r->lost++;
        return;
    }
    at->there = true;
    at->inst += x->inst;
    if (x->threads != COUNTER_UNKNOWN) at->threads += x->threads, r->has |= EXEC_HAS_THREADS;
    if (x->pred_on != COUNTER_UNKNOWN) at->pred_on += x->pred_on, r->has |= EXEC_HAS_PRED;
}

void exec_drop(struct collect *c)
{
    for (uint32_t i = 0; i < c->nexec; i++) free(c->exec[i].at);
    c->nexec = c->exec_insns = c->exec_left = 0;
}

/* ---- frames ---- */

/* The opcodes of one frame, in the order in which they first occur. */
struct keys {
    const char *key[KEYS_MAX];
    uint32_t n;
    struct buf packed;
};

/* Its place; KEYS_MAX when there is no room. */
static uint32_t key_of(struct keys *k, const char *key, const char *cls)
{
    uint32_t i = 0;
    while (i < k->n && k->key[i] != key && strcmp(k->key[i], key)) i++;
    if (i == k->n && i < KEYS_MAX) {
        k->key[k->n++] = key;
        pack_exec_key(&k->packed, key, cls);
    }
    return i;
}

static struct exec_item item_of(const struct exec_row *r, uint32_t index)
{
    struct exec_item it = {.index = index};
    if (index < r->n && r->at[index].there) {
        it.inst = r->at[index].inst;
        it.threads = r->at[index].threads;
        it.pred_on = r->at[index].pred_on;
    } else {
        it.flags = EXEC_UNCOUNTED;
    }
    return it;
}

static void pack_code(struct msg_executed *m, struct keys *k, struct buf *items,
                      const struct exec_row *r, const struct flow *f)
{
    for (uint32_t i = 0; i < f->ninsns && i < EXEC_INSNS_MAX; i++) {
        const struct insn *in = &f->insns[i];
        struct exec_item it = item_of(r, i);
        if (f->padding[i] && !it.inst) continue;
        m->insns++;
        it.key = key_of(k, in->key, insn_class_name((enum insn_class)in->cls));
        if (f->insn_loop[i] >= 0) it.flags |= EXEC_IN_LOOP;
        if (f->hot >= 0 && flow_in_loop(f, f->insn_loop[i], f->hot)) it.flags |= EXEC_IN_HOT;
        if (in->guard != INSN_PT || in->guard_not) it.flags |= EXEC_GUARDED;
        if (it.key < KEYS_MAX)
            pack_exec(items, &it);
        else
            m->lost++;
    }
}

/* Counts of code that nobody has: the sums are good, the opcodes are not known. */
static void pack_bare(struct keys *k, struct buf *items, const struct exec_row *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct exec_item it = item_of(r, i);
        if (it.flags & EXEC_UNCOUNTED) continue;
        it.key = key_of(k, "(no code)", "other");
        pack_exec(items, &it);
    }
}

static enum status pack_row(struct collect *c, struct msg_executed *m, struct keys *k,
                            struct buf *items, const struct exec_row *r)
{
    const struct kernel_info *info = &c->kernels[r->kernel];
    struct cubin cubin;
    struct flow flow;
    uint8_t *bytes;
    size_t n;
    if (!info->cubin_path) {
        pack_bare(k, items, r);
        return OK;
    }
    enum status st = describe_open(info, &cubin, &bytes, &n);
    if (st != OK) return st;
    const struct cubin_kernel *ck = cubin_find_kernel(&cubin, info->name);
    st = ck ? flow_make(&flow, &cubin, ck) : err_set(ERR_FAILED, "its cubin has no such kernel");
    if (st == OK) {
        m->code_hash = ck->code_hash;
        pack_code(m, k, items, r, &flow);
        flow_free(&flow);
    }
    cubin_close(&cubin);
    free(bytes);
    return st;
}

static void send_row(struct collect *c, const struct exec_row *r)
{
    struct msg_executed m = {.row = r->row,
                             .kernel = r->kernel,
                             .generation = c->e->generation,
                             .round = c->round,
                             .launches = r->launches,
                             .lost = r->lost,
                             .has = r->has};
    struct buf items = {0};
    struct keys *k = calloc(1, sizeof *k);
    snprintf(m.source, sizeof m.source, "%s", collect_label(c, COUNTER_EXEC));
    enum status st = k ? pack_row(c, &m, k, &items, r) : err_set(ERR_NOMEM, "out of memory");
    if (st == OK && !items.failed && !k->packed.failed) {
        m.keys = (struct blob){k->packed.data, (uint32_t)k->packed.len};
        m.items = (struct blob){items.data, (uint32_t)items.len};
        emit_send(c->e->emit, FRAME_EXECUTED, &m);
    } else {
        emit_log(c->e->emit, 1, "executed counts of %s are lost: %s", c->kernels[r->kernel].name,
                 st == OK ? "out of memory" : err_msg());
    }
    if (k) buf_free(&k->packed);
    free(k);
    buf_free(&items);
}

void collect_send_executed(struct collect *c)
{
    uint32_t sent = 0;
    for (uint32_t i = 0; i < c->nexec; i++)
        if (c->exec[i].n) {
            send_row(c, &c->exec[i]);
            sent++;
        }
    if (!c->nexec)
        emit_log(c->e->emit, 1, "executed counts: no launch of %s%s%s in this generation's work",
                 *c->exec_want.kernel ? c->exec_want.kernel : "anything",
                 *c->exec_want.role ? " as " : "", c->exec_want.role);
    else if (sent < c->nexec || c->exec_left)
        emit_log(c->e->emit, 1, "executed counts: %u rows without any, %u past the limit",
                 c->nexec - sent, c->exec_left);
    exec_drop(c);
}
