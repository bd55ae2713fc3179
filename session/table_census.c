/*
 * "census" and "stalls" of the kernel in the query, beside those of another one when given.
 *
 * In "census" the focus and `other` are kernels. In "stalls" they are kernels too, unless a row is
 * in focus: then both are rows, and the stalls are those of their generations.
 * Indexes beyond the first list are what only the other one has.
 */
#include <stdio.h>
#include <string.h>

#include "session/table_priv.h"

/* ---- census ---- */

static const struct kernel *census_of(const struct table_ctx *x, uint32_t kernel)
{
    if (kernel >= x->session->nkernels || !x->session->kernels[kernel].has_census) return NULL;
    return &x->session->kernels[kernel];
}

static const struct kernel *census(const struct table_ctx *x)
{
    uint32_t kernel = x->kernel;
    if (kernel == TABLE_NONE && x->row < x->session->nrows)
        kernel = x->session->rows[x->row].def.kernel;
    return census_of(x, kernel);
}

static uint32_t nitems(const struct kernel *k)
{
    return k ? k->nitems : 0;
}

static uint32_t count_census(const struct table_ctx *x)
{
    return nitems(census(x)) + nitems(census_of(x, x->other));
}

static const struct census_item *find_item(const struct kernel *k, const char *opcode)
{
    for (uint32_t i = 0; i < nitems(k); i++)
        if (strcmp(k->items[i].opcode, opcode) == 0) return &k->items[i];
    return NULL;
}

/* The opcode's own entry and the other kernel's; either may be NULL. */
static void item_pair(const struct table_ctx *x, uint32_t i, const struct census_item **own,
                      const struct census_item **other)
{
    const struct kernel *k = census(x), *o = census_of(x, x->other);
    if (i < nitems(k)) {
        *own = &k->items[i];
        *other = find_item(o, (*own)->opcode);
    } else {
        *other = &o->items[i - nitems(k)];
        *own = find_item(k, (*other)->opcode);
    }
}

static bool keep_census(const struct table_ctx *x, uint32_t i)
{
    const struct census_item *own, *other;
    item_pair(x, i, &own, &other);
    return i < nitems(census(x)) || !own;
}

static void get_opcode(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct census_item *own, *other;
    item_pair(x, i, &own, &other);
    cell_text(c, "%s", (own ? own : other)->opcode);
}

static void get_class(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct census_item *own, *other;
    item_pair(x, i, &own, &other);
    cell_text(c, "%s", (own ? own : other)->cls);
}

/* Without a census nothing is known; with one, an opcode that is not listed occurs 0 times. */
static void count_cell(struct cell *c, const struct kernel *k, const struct census_item *it,
                       bool in_loop)
{
    if (!k)
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "no other kernel to compare with"));
    else
        cell_count(c, !it ? 0 : in_loop ? it->in_loop : it->count);
}

static void get_count(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct census_item *own, *other;
    item_pair(x, i, &own, &other);
    count_cell(c, census(x), own, false);
}

static void get_in_loop(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct census_item *own, *other;
    item_pair(x, i, &own, &other);
    count_cell(c, census(x), own, true);
}

static void get_part(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct kernel *k = census(x);
    const struct census_item *own, *other;
    item_pair(x, i, &own, &other);
    if (!k || !k->census.total)
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "no census of this kernel"));
    else
        cell_value(c, value_ok(own ? 100.0 * own->count / k->census.total : 0, NULL));
}

static void get_other(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct census_item *own, *other;
    item_pair(x, i, &own, &other);
    count_cell(c, census_of(x, x->other), other, false);
}

static void get_other_loop(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct census_item *own, *other;
    item_pair(x, i, &own, &other);
    count_cell(c, census_of(x, x->other), other, true);
}

static void delta_cell(const struct table_ctx *x, uint32_t i, struct cell *c, bool in_loop)
{
    struct cell a = {0}, b = {0};
    (in_loop ? get_in_loop : get_count)(x, i, &a);
    (in_loop ? get_other_loop : get_other)(x, i, &b);
    if (a.value.state != VALUE_OK || b.value.state != VALUE_OK) {
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "no other kernel to compare with"));
        return;
    }
    double d = a.value.v - b.value.v;
    cell_value(c, value_ok(d, NULL));
    if (d == 0) c->mark = MARK_DIM;
}

static void get_delta(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    delta_cell(x, i, c, false);
}

static void get_delta_loop(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    delta_cell(x, i, c, true);
}

static const struct column census_columns[] = {
    {"opcode", "opcode", "", "with the modifiers that tell it apart", 20, 1, 0, 0, 0, 1,
     get_opcode},
    {"class", "class", "", "", 10, 2, 0, 0, 0, 0, get_class},
    {"count", "count", "", "instructions in the code", 6, 1, 0, 1, 0, 0, get_count},
    {"pct", "%", "%", "of the kernel's instructions without padding", 5, 2, 1, 1, 0, 0, get_part},
    {"in_loop", "loop", "", "of them inside a loop", 6, 1, 0, 1, 0, 0, get_in_loop},
    {"other", "other", "", "count in the other kernel", 6, 3, 0, 1, 0, 0, get_other},
    {"delta", "delta", "", "count minus the other's", 6, 3, 0, 1, 0, 0, get_delta},
    {"other_loop", "o.loop", "", "in loops of the other kernel", 6, 4, 0, 1, 0, 0, get_other_loop},
    {"delta_loop", "d.loop", "", "in loops minus the other's", 6, 3, 0, 1, 0, 0, get_delta_loop},
};

const struct table_def table_census = {
    .id = "census",
    .title = "SASS opcode census",
    .empty = "no census of this kernel: it has no GPU code, or its cubin has not come yet",
    .columns = census_columns,
    .ncolumns = NCOLUMNS(census_columns),
    .sort = "count",
    .count = count_census,
    .keep = keep_census,
};

/* ---- stalls ---- */

static const struct kernel_stalls *stalls_of_row(const struct session *s, uint32_t row)
{
    if (row >= s->nrows) return NULL;
    return session_stalls(s, s->rows[row].def.kernel, s->rows[row].def.generation);
}

/* The newest sums of a kernel, whatever its generation. */
static const struct kernel_stalls *stalls_of_kernel(const struct session *s, uint32_t kernel)
{
    const struct kernel_stalls *best = NULL;
    for (uint32_t i = 0; i < s->nstalls; i++)
        if (s->stalls[i].kernel == kernel && (!best || s->stalls[i].generation > best->generation))
            best = &s->stalls[i];
    return best;
}

static const struct kernel_stalls *own_stalls(const struct table_ctx *x)
{
    return x->row != TABLE_NONE ? stalls_of_row(x->session, x->row)
                                : stalls_of_kernel(x->session, x->kernel);
}

static const struct kernel_stalls *other_stalls(const struct table_ctx *x)
{
    return x->row != TABLE_NONE ? stalls_of_row(x->session, x->other)
                                : stalls_of_kernel(x->session, x->other);
}

static uint32_t nreasons(const struct kernel_stalls *k)
{
    return k ? k->nreasons : 0;
}

static uint32_t count_stalls(const struct table_ctx *x)
{
    return nreasons(own_stalls(x)) + nreasons(other_stalls(x));
}

static const struct stall_sum *find_reason(const struct kernel_stalls *k, const char *reason)
{
    for (uint32_t i = 0; i < nreasons(k); i++)
        if (strcmp(k->reasons[i].reason, reason) == 0) return &k->reasons[i];
    return NULL;
}

static void reason_pair(const struct table_ctx *x, uint32_t i, const struct stall_sum **own,
                        const struct stall_sum **other)
{
    const struct kernel_stalls *k = own_stalls(x), *o = other_stalls(x);
    if (i < nreasons(k)) {
        *own = &k->reasons[i];
        *other = find_reason(o, (*own)->reason);
    } else {
        *other = &o->reasons[i - nreasons(k)];
        *own = find_reason(k, (*other)->reason);
    }
}

static bool keep_stalls(const struct table_ctx *x, uint32_t i)
{
    const struct stall_sum *own, *other;
    reason_pair(x, i, &own, &other);
    return i < nreasons(own_stalls(x)) || !own;
}

static double all_samples(const struct kernel_stalls *k)
{
    double sum = 0;
    for (uint32_t i = 0; i < nreasons(k); i++) sum += (double)k->reasons[i].samples;
    return sum;
}

static struct value stall_share(const struct kernel_stalls *k, const struct stall_sum *r,
                                bool not_issued)
{
    double all = all_samples(k);
    if (!(all > 0))
        return value_missing(VALUE_UNAVAILABLE, "no PC-sampling window saw this kernel");
    double part = !r ? 0 : (double)(not_issued ? r->not_issued : r->samples);
    return value_spread(100 * part / all, -1, all > UINT32_MAX ? UINT32_MAX : (uint32_t)all,
                        k->source);
}

static void get_reason(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct stall_sum *own, *other;
    reason_pair(x, i, &own, &other);
    cell_text(c, "%s", (own ? own : other)->reason);
    if (strcmp(c->text, "selected") == 0) c->mark = MARK_GOOD; /* issuing: no stall */
}

static void get_stall_share(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct stall_sum *own, *other;
    reason_pair(x, i, &own, &other);
    cell_value(c, stall_share(own_stalls(x), own, false));
}

static void get_not_issued(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct stall_sum *own, *other;
    reason_pair(x, i, &own, &other);
    cell_value(c, stall_share(own_stalls(x), own, true));
}

static void get_samples(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct stall_sum *own, *other;
    reason_pair(x, i, &own, &other);
    if (own_stalls(x))
        cell_count(c, own ? own->samples : 0);
    else
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "no PC-sampling window saw this kernel"));
}

static void get_other_share(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct stall_sum *own, *other;
    reason_pair(x, i, &own, &other);
    cell_value(c, stall_share(other_stalls(x), other, false));
}

static void get_share_delta(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct cell a = {0}, b = {0};
    get_stall_share(x, i, &a);
    get_other_share(x, i, &b);
    if (a.value.state != VALUE_OK)
        cell_value(c, a.value);
    else if (b.value.state != VALUE_OK)
        cell_value(c, b.value);
    else
        cell_value(c, value_ok(a.value.v - b.value.v, a.value.source));
}

static void get_stall_age(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct kernel_stalls *ks = own_stalls(x);
    (void)i;
    if (ks && ks->t_ns)
        cell_value(c, value_ok((double)(x->session->t_ns - ks->t_ns) / 1e9, ks->source));
    else
        cell_text(c, "%s", "");
}

static const struct column stall_columns[] = {
    {"reason", "stall reason", "", "why a warp did not issue; selected = it did", 22, 1, 0, 0, 0, 1,
     get_reason},
    {"share", "share", "%", "of all samples of the kernel", 6, 1, 1, 1, 0, 0, get_stall_share},
    {"not_issued", "not iss.", "%", "of all samples, where the scheduler issued nothing at all", 8,
     2, 1, 1, 0, 0, get_not_issued},
    {"samples", "samples", "", "", 9, 3, 0, 1, 1, 0, get_samples},
    {"other", "other", "%", "share in the other one", 6, 3, 1, 1, 0, 0, get_other_share},
    {"delta", "delta", "%", "share minus the other's", 6, 3, 1, 1, 0, 0, get_share_delta},
    {"age", "age", "s", "seconds since the last window that saw it", 5, 3, 1, 1, 0, 0,
     get_stall_age},
};

const struct table_def table_stalls = {
    .id = "stalls",
    .title = "stall reasons",
    .empty = "no PC-sampling window has seen this kernel",
    .columns = stall_columns,
    .ncolumns = NCOLUMNS(stall_columns),
    .sort = "share",
    .count = count_stalls,
    .keep = keep_stalls,
};
