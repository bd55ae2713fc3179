/*
 * Job: count a kernel's instructions by key and class.
 *
 * Invariants: each instruction that is neither padding nor a dummy is counted once in `rows` and
 * once in `classes`, in the same scopes, so both add up to `sum`. Keys are gathered in a hash table
 * of open addressing that is then sorted. To add a figure: a field in census.h, its line in
 * copy_figures().
 */
#include "sass_view/census.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows by the key's address: names are kept for the life of the program, so that most instructions
 * are counted without looking at text. Rows of equal text are merged at the end. */
struct table {
    struct census_row *rows;
    const char **keys; /* of each row */
    size_t nrows, cap;
    uint32_t *slots; /* 1 + row; power-of-two size */
    size_t nslots;
};

static size_t slot_of(const struct table *t, const char *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32) & (t->nslots - 1);
}

static bool table_grow(struct table *t)
{
    size_t cap = t->cap ? t->cap * 2 : 64, nslots = cap * 4;
    struct census_row *rows = realloc(t->rows, cap * sizeof *rows);
    if (rows) t->rows = rows;
    const char **keys = realloc(t->keys, cap * sizeof *keys);
    if (keys) t->keys = keys;
    uint32_t *slots = calloc(nslots, sizeof *slots);
    if (!rows || !keys || !slots) {
        free(slots);
        return false;
    }
    free(t->slots);
    t->slots = slots;
    t->nslots = nslots;
    t->cap = cap;
    for (size_t i = 0; i < t->nrows; i++) {
        size_t s = slot_of(t, keys[i]);
        while (slots[s]) s = (s + 1) & (nslots - 1);
        slots[s] = (uint32_t)i + 1;
    }
    return true;
}

/* The row of `in`'s key, made when it's new; NULL when memory ran out. */
static struct census_row *table_row(struct table *t, const struct insn *in)
{
    size_t s = 0;
    if (t->nslots) {
        for (s = slot_of(t, in->key); t->slots[s]; s = (s + 1) & (t->nslots - 1))
            if (t->keys[t->slots[s] - 1] == in->key) return &t->rows[t->slots[s] - 1];
    }
    if (t->nrows == t->cap) {
        if (!table_grow(t)) return NULL;
        for (s = slot_of(t, in->key); t->slots[s];) s = (s + 1) & (t->nslots - 1);
    }
    struct census_row *r = &t->rows[t->nrows];
    *r = (struct census_row){.cls = in->cls};
    memcpy(r->key, in->key, strlen(in->key) + 1);
    t->keys[t->nrows++] = in->key;
    t->slots[s] = (uint32_t)t->nrows;
    return r;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct census_row *)a)->key, ((const struct census_row *)b)->key);
}

/* Different rows of the opcode table, and archs, may give one name. */
static size_t merge_rows(struct census_row *rows, size_t n)
{
    size_t out = 0;
    if (n) qsort(rows, n, sizeof *rows, by_key);
    for (size_t i = 0; i < n; i++) {
        if (!out || strcmp(rows[out - 1].key, rows[i].key)) {
            rows[out++] = rows[i];
            continue;
        }
        for (int c = 0; c < CENSUS_SCOPES; c++) rows[out - 1].n[c] += rows[i].n[c];
    }
    return out;
}

static int by_count(const void *a, const void *b)
{
    const struct census_row *x = a, *y = b;
    if (x->n[CENSUS_ALL] != y->n[CENSUS_ALL]) return x->n[CENSUS_ALL] < y->n[CENSUS_ALL] ? 1 : -1;
    return strcmp(x->key, y->key);
}

static enum status count_all(struct census *s, const struct flow *f, struct table *t)
{
    int32_t last = -1;
    bool hot = false; /* whether loop `last` lies in the hot one */
    for (uint32_t i = 0; i < f->ninsns; i++) {
        const struct insn *in = &f->insns[i];
        if (f->padding[i]) {
            s->padding++;
            continue;
        }
        if (in->flags & INSN_DUMMY) {
            s->dummies++;
            continue;
        }
        struct census_row *r = table_row(t, in);
        if (!r) return err_set(ERR_NOMEM, "%s: out of memory for the census", s->kernel);
        int32_t loop = f->insn_loop[i];
        if (loop != last) {
            last = loop;
            hot = f->hot >= 0 && flow_in_loop(f, loop, f->hot);
        }
        /* Scopes lie in each other: hot inside loop inside all. */
        int scopes = loop < 0 ? CENSUS_LOOP : hot ? CENSUS_SCOPES : CENSUS_HOT;
        for (int c = 0; c < scopes; c++) {
            r->n[c]++;
            s->classes[in->cls][c]++;
        }
        if (in->flags & INSN_UNKNOWN) s->unknown++;
    }
    for (int k = 0; k < INSN_CLASSES; k++)
        for (int c = 0; c < CENSUS_SCOPES; c++) s->sum[c] += s->classes[k][c];
    s->total = s->sum[CENSUS_ALL];
    return OK;
}

static void copy_figures(struct census *s, const struct cubin *c, const struct cubin_kernel *k)
{
    memcpy(s->arch, c->arch, sizeof s->arch);
    s->sm = c->sm;
    s->file_hash = c->file_hash;
    s->code_hash = k->code_hash;
    s->regs = k->regs;
    s->smem = k->smem;
    s->stack = k->stack;
    s->barriers = k->barriers;
    s->max_threads = k->max_threads;
    s->param_bytes = k->param_bytes;
    s->spill_bytes =
        k->spill_store < 0 || k->spill_load < 0 ? CUBIN_UNKNOWN : k->spill_store + k->spill_load;
}

enum status census_make(struct census *out, const struct cubin *c, const struct cubin_kernel *k)
{
    struct flow f;
    struct table t = {0};
    *out = (struct census){0};
    enum status st = flow_make(&f, c, k);
    if (st) return st;
    copy_figures(out, c, k);
    out->kernel = strdup(k->name);
    if (!out->kernel) {
        st = err_set(ERR_NOMEM, "%s: out of memory", k->name);
        goto out;
    }
    out->loops_known = f.loops_known;
    out->nloops = f.nloops;
    if (f.hot >= 0) out->hot = f.loops[f.hot];
    st = count_all(out, &f, &t);
    out->rows = t.rows;
    out->nrows = merge_rows(t.rows, t.nrows);
    if (out->nrows) qsort(t.rows, out->nrows, sizeof *t.rows, by_count);
out:
    free(t.slots);
    free(t.keys);
    flow_free(&f);
    if (st) census_free(out);
    return st;
}

void census_free(struct census *s)
{
    free(s->kernel);
    free(s->rows);
    *s = (struct census){0};
}

uint32_t census_count(const struct census *s, const char *name, enum census_scope scope)
{
    size_t n = strlen(name);
    uint32_t sum = 0;
    if ((unsigned)scope >= CENSUS_SCOPES) return 0;
    for (size_t i = 0; i < s->nrows; i++) {
        const char *key = s->rows[i].key;
        if (!strncmp(key, name, n) && (key[n] == 0 || key[n] == '.')) sum += s->rows[i].n[scope];
    }
    return sum;
}

/* m x n x k of one instruction, 0 when the key says none that is known. Shapes are written without
 * separators (16832 = 16 x 8 x 32), or 64x128x16 by warpgroup instructions. */
static uint64_t macs_of(const char *key)
{
    static const struct {
        const char *shape;
        uint32_t macs;
    } shapes[] = {
        {"884", 8 * 8 * 4},       {"1684", 16 * 8 * 4},     {"1688", 16 * 8 * 8},
        {"16816", 16 * 8 * 16},   {"16832", 16 * 8 * 32},   {"16864", 16 * 8 * 64},
        {"8816", 8 * 8 * 16},     {"8832", 8 * 8 * 32},     {"88128", 8 * 8 * 128},
        {"168128", 16 * 8 * 128}, {"168256", 16 * 8 * 256},
    };
    unsigned m, n, k;
    for (const char *p = strchr(key, '.'); p; p = strchr(p + 1, '.')) {
        size_t len = strcspn(p + 1, ".");
        if (sscanf(p + 1, "%4ux%4ux%4u", &m, &n, &k) == 3) return (uint64_t)m * n * k / 4;
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            if (strlen(shapes[i].shape) == len && !strncmp(shapes[i].shape, p + 1, len))
                return shapes[i].macs;
    }
    return 0;
}

uint64_t census_macs(const struct census *s, enum census_scope scope)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->nrows; i++) {
        if (s->rows[i].cls != INSN_CLASS_TENSOR || !s->rows[i].n[scope]) continue;
        uint64_t macs = macs_of(s->rows[i].key);
        if (!macs) return 0;
        sum += macs * s->rows[i].n[scope];
    }
    return sum;
}
