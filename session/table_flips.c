/*
 * "flips": each generation's costliest kernel of the family that it flips, on the shape that takes
 * most of its time: what the counters and the machine code say beside the wall clock.
 *
 * Invariant: `x` compares a row with the same work (role and shape) of the generation before, never
 * with other work. To add a column: a getter and a row in `columns`.
 */
#include <string.h>

#include "session/table_priv.h"

static const struct kernel *kernel_of(const struct session *s, const struct row *r)
{
    return r->def.kernel < s->nkernels ? &s->kernels[r->def.kernel] : NULL;
}

static bool same_work(const struct row *a, const struct row *b)
{
    return a->def.m == b->def.m && a->def.n == b->def.n && a->def.k == b->def.k &&
           !strcmp(a->def.role, b->def.role) && !strcmp(a->def.phase, b->def.phase);
}

/* NULL when no kernel of the family ran in it. */
static const struct row *at(const struct table_ctx *x, uint32_t i)
{
    uint32_t row = session_costliest(x->session, &x->session->generations[i]);
    return row < x->session->nrows ? &x->session->rows[row] : NULL;
}

/* The same work in the generation before. */
static const struct row *before(const struct table_ctx *x, uint32_t i, const struct row *r)
{
    const struct session *s = x->session;
    if (i == 0) return NULL;
    for (uint32_t k = 0; k < s->nrows; k++)
        if (s->rows[k].def.generation == s->generations[i - 1].def.generation &&
            same_work(&s->rows[k], r))
            return &s->rows[k];
    return NULL;
}

static uint32_t count(const struct table_ctx *x)
{
    return x->session->ngenerations;
}

static bool keep(const struct table_ctx *x, uint32_t i)
{
    return at(x, i) != NULL;
}

static void get_generation(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, x->session->generations[i].def.generation);
}

static void get_kernel(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", kernel_of(x->session, at(x, i))->def.name);
}

static void get_shape(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_shape(c, &at(x, i)->def);
}

static void get_role(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", at(x, i)->def.role);
}

static void get_us(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_us(x->session, at(x, i)));
}

static void get_ratio(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct row *r = at(x, i), *b = before(x, i, r);
    if (!b) {
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "the same work did not run before it"));
        return;
    }
    struct value now = row_us(x->session, r), then = row_us(x->session, b);
    if (now.state != VALUE_OK || then.state != VALUE_OK || !(now.v > 0))
        cell_value(c, now.state != VALUE_OK ? now : then);
    else
        cell_value(c, value_ok(then.v / now.v, now.source));
}

static void get_ipc(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_ipc(x->session, at(x, i)));
}

static void metric(const struct table_ctx *x, uint32_t i, const char *key, struct cell *c)
{
    cell_value(c, row_metric_best(x->session, at(x, i), key));
}

static void get_sm(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    metric(x, i, "sm_pct", c);
}

static void get_tensor(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    metric(x, i, "tensor_pct", c);
}

static void get_inst(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    metric(x, i, "inst", c);
}

/* Instructions inside loops, by the census. */
static void get_loop(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct kernel *k = kernel_of(x->session, at(x, i));
    uint64_t n = 0;

    if (!k->has_census) {
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "no census of this kernel"));
        return;
    }
    for (uint32_t j = 0; j < k->nitems; j++) n += k->items[j].in_loop;
    cell_count(c, n);
}

static void get_regs(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct kernel *k = kernel_of(x->session, at(x, i));
    if (k->def.regs)
        cell_count(c, k->def.regs);
    else
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "no machine code of this kernel"));
}

static void get_stall(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_top_stall(c, x->session, at(x, i));
}

static const struct column columns[] = {
    {"generation", "gen", "", "generation, as above", 3, 1, 0, 1, 0, 0, get_generation},
    {"kernel", "kernel", "", "the flipped family's kernel on its costliest work", 14, 1, 0, 0, 0, 1,
     get_kernel},
    {"shape", "m x n x k", "", "output rows x tokens x inner length", 15, 3, 0, 0, 0, 0, get_shape},
    {"role", "role", "", "what the layer uses it for", 10, 5, 0, 0, 0, 0, get_role},
    {"us", "us", "us", "a call's time: median over rounds of the mean", 8, 1, 2, 1, 0, 0, get_us},
    {"ratio", "x", "", "speed of this work by the generation before: instrumented times", 5, 1, 3,
     1, 0, 0, get_ratio},
    {"inst", "inst", "", "executed warp instructions a launch, exact", 7, 1, 0, 1, 1, 0, get_inst},
    {"ipc", "IPC", "", "warp instructions an SM cycle", 4, 1, 2, 1, 0, 0, get_ipc},
    {"sm_pct", "SM%", "%", "throughput of the SM inside the kernel, of its peak", 5, 2, 1, 1, 0, 0,
     get_sm},
    {"tensor_pct", "tensor%", "%", "time in which the tensor pipe is busy", 7, 2, 1, 1, 0, 0,
     get_tensor},
    {"regs", "regs", "", "registers a thread", 4, 2, 0, 1, 0, 0, get_regs},
    {"in_loop", "loop", "", "instructions inside loops, counted in the machine code", 5, 2, 0, 1, 0,
     0, get_loop},
    {"top_stall", "top stall", "", "most frequent stall reason of the kernel and its share", 24, 4,
     0, 0, 0, 0, get_stall},
};

const struct table_def table_flips = {
    .id = "flips",
    .title = "costliest flipped kernel of each generation",
    .empty = "no kernel of a flipped family has run yet",
    .columns = columns,
    .ncolumns = NCOLUMNS(columns),
    .count = count,
    .keep = keep,
};
