/*
 * The fold's part for frames that define things: engine, model, metrics, kernels, rows, cubins.
 *
 * Invariant: numbers of kernels and rows belong to one engine instance; a HELLO of a later instance
 * forgets the maps, and a kernel of the same name, code and architecture keeps its place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/model_priv.h"

enum status fold_hello(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_hello *h = &m->hello;

    if (s->started && h->instance <= s->hello.instance) return OK; /* said again */
    s->ended = false;
    s->paused = false;
    if (!s->started) {
        s->hello = *h;
        s->started = true;
        fold_event(s, f->t_ns, "start", 0, "%s on %s", h->backend, h->device);
        return OK;
    }
    s->hello.instance = h->instance;
    memset(s->kernel_map, 0, sizeof s->kernel_map);
    memset(s->row_map, 0, sizeof s->row_map);
    memcpy(s->drops_before, s->drops, sizeof s->drops);
    window_free(s->window);
    s->window = NULL;
    s->ntallies = 0; /* the new engine counts anew */
    fold_event(s, f->t_ns, "start", 1, "the engine was restarted (instance %llu)",
               (unsigned long long)h->instance);
    return OK;
}

enum status fold_model(struct session *s, const struct frame *f, const union msg_any *m)
{
    (void)f;
    s->model = m->model;
    return OK;
}

/* A metric is known by key and source; its number may change with the engine instance. */
enum status fold_metric_def(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_metric_def *d = &m->metric_def;
    uint32_t at = 0;

    (void)f;
    if (d->metric == UINT16_MAX) return fold_garbled(s);
    while (at < s->nmetrics && (strcmp(s->metrics[at].key, d->key) != 0 ||
                                strcmp(s->metrics[at].source, d->source) != 0))
        at++;
    if (at == MAX_METRICS) {
        s->overflowed++;
        return OK;
    }
    for (uint32_t i = 0; i < s->nmetrics; i++)
        if (s->metrics[i].metric == d->metric) s->metrics[i].metric = UINT16_MAX;
    s->metrics[at] = *d;
    if (at == s->nmetrics) s->nmetrics++;
    return OK;
}

static bool same_kernel(const struct msg_kernel_def *a, const struct msg_kernel_def *b)
{
    return a->code_hash == b->code_hash && a->arch == b->arch && a->kd == b->kd &&
           strcmp(a->name, b->name) == 0 && strcmp(a->family, b->family) == 0;
}

enum status fold_kernel_def(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_kernel_def *d = &m->kernel_def;
    uint32_t at = 0;

    (void)f;
    while (at < s->nkernels && !same_kernel(&s->kernels[at].def, d)) at++;
    if (d->kernel >= MAX_KERNELS || at == MAX_KERNELS) {
        s->overflowed++;
        return OK;
    }
    if (at == s->nkernels) {
        enum status st = fold_grow(&s->kernels, s->nkernels, sizeof *s->kernels);
        if (st != OK) return st;
        memset(&s->kernels[s->nkernels++], 0, sizeof *s->kernels);
    }
    s->kernels[at].def = *d;
    s->kernels[at].def.kernel = at;
    s->kernel_map[d->kernel] = at + 1;
    return OK;
}

enum status fold_row_def(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_row_def *d = &m->row_def;
    const struct kernel *k = fold_kernel(s, d->kernel);

    (void)f;
    if (!k || d->row == 0) return fold_garbled(s);
    if (d->row >= MAX_ROWS || s->nrows == MAX_ROWS) {
        s->overflowed++;
        return OK;
    }
    if (s->row_map[d->row]) return OK; /* said again: the first definition holds */
    enum status st = fold_grow(&s->rows, s->nrows, sizeof *s->rows);
    if (st != OK) return st;
    struct row *r = &s->rows[s->nrows++];
    memset(r, 0, sizeof *r);
    r->def = *d;
    r->def.kernel = (uint32_t)(k - s->kernels);
    s->row_map[d->row] = s->nrows;
    return OK;
}

static enum status new_module(struct session *s, const struct msg_module *d, struct module **out)
{
    *out = NULL;
    if (s->nmodules == MAX_MODULES || d->total == 0 || d->total > MAX_MODULE_BYTES ||
        s->module_total + d->total > MAX_MODULE_BYTES) {
        s->overflowed++;
        return OK;
    }
    enum status st = fold_grow(&s->modules, s->nmodules, sizeof *s->modules);
    if (st != OK) return st;
    *out = &s->modules[s->nmodules++];
    **out = (struct module){.hash = d->cubin_hash, .total = d->total};
    s->module_total += d->total; /* as announced: the pieces can't pass it */
    return OK;
}

/* Pieces come in order; one that doesn't fit starts nothing and is counted. */
enum status fold_module(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_module *d = &m->module;
    struct module *mod = NULL;
    enum status st;

    (void)f;
    for (uint32_t i = 0; i < s->nmodules && !mod; i++)
        if (s->modules[i].hash == d->cubin_hash) mod = &s->modules[i];
    if (mod && mod->whole) return OK;
    if (!mod) {
        st = new_module(s, d, &mod);
        if (st != OK || !mod) return st;
    }
    if (d->offset == 0) buf_reset(&mod->bytes); /* an engine that died half way starts again */
    if (d->total != mod->total || d->offset != mod->bytes.len ||
        d->bytes.len > mod->total - mod->bytes.len)
        return fold_garbled(s);
    buf_put(&mod->bytes, d->bytes.data, d->bytes.len);
    if (mod->bytes.failed) return err_set(ERR_NOMEM, "out of memory for a cubin of the session");
    mod->whole = mod->bytes.len == mod->total;
    return OK;
}

/* How many of each item lie in the hot loop; false when the census doesn't say, as older ones. */
static bool take_hot(struct kernel *k, const struct msg_census *d)
{
    struct rd r = rd_make(d->hot.data, d->hot.len);
    if (k->nitems == 0 || d->hot.len != k->nitems * sizeof(uint32_t)) return false;
    for (uint32_t i = 0; i < k->nitems; i++) k->items[i].hot = rd_u32(&r);
    return true;
}

enum status fold_census(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_census *d = &m->census;
    struct kernel *k = fold_kernel(s, d->kernel);
    struct rd r = rd_make(d->items.data, d->items.len);
    struct census_item it, *items = NULL;
    uint32_t n = 0;

    (void)f;
    if (!k) return fold_garbled(s);
    while (unpack_census_item(&r, &it)) {
        if (n == MAX_CENSUS_ITEMS) {
            s->overflowed++;
            break;
        }
        if (fold_grow(&items, n, sizeof *items) != OK) {
            free(items);
            return ERR_NOMEM;
        }
        items[n++] = it;
    }
    if (r.bad) {
        free(items);
        return fold_garbled(s);
    }
    free(k->items);
    k->items = items;
    k->nitems = n;
    k->census = *d;
    k->has_hot = take_hot(k, d);
    k->census.items = k->census.hot = (struct blob){0};
    k->has_census = true;
    return OK;
}

enum status fold_variant_def(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_variant_def *d = &m->variant_def;
    uint32_t at = 0;

    (void)f;
    while (at < s->nvariants &&
           (s->variants[at].kd != d->kd || strcmp(s->variants[at].family, d->family) != 0 ||
            strcmp(s->variants[at].variant, d->variant) != 0))
        at++;
    if (at == MAX_VARIANTS) {
        s->overflowed++;
        return OK;
    }
    s->variants[at] = *d;
    if (at == s->nvariants) s->nvariants++;
    return OK;
}
