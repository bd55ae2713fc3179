/*
 * Tables of kernels on shapes: "kernels" (rows of the current generation), "rows" (of all) and
 * "detail" (every figure of one row). To add a column: a getter and a row in `columns`.
 */
#include <string.h>

#include "session/table_priv.h"

static const struct row *row_at(const struct table_ctx *x, uint32_t i)
{
    return &x->session->rows[i];
}

static const struct kernel *kernel_at(const struct table_ctx *x, uint32_t i)
{
    return &x->session->kernels[row_at(x, i)->def.kernel];
}

static uint32_t count_rows(const struct table_ctx *x)
{
    return x->session->nrows;
}

static bool in_current(const struct table_ctx *x, uint32_t i)
{
    const struct generation *g = session_current(x->session);
    return g && row_at(x, i)->def.generation == g->def.generation;
}

static void get_generation(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, row_at(x, i)->def.generation);
}

/* A row that runs something else than what was asked for says so. */
static void get_name(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    const struct row *r = row_at(x, i);
    const struct kernel *k = kernel_at(x, i);

    if (r->def.asked[0]) {
        cell_text(c, "%s (asked %s)", k->def.name, r->def.asked);
        c->mark = MARK_WARN;
    } else {
        cell_text(c, "%s", k->def.name);
    }
    if (k->faulted) c->mark = MARK_BAD;
}

static void get_shape(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_shape(c, &row_at(x, i)->def);
}

static void get_role(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", row_at(x, i)->def.role);
}

static void get_variant(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", kernel_at(x, i)->def.variant);
}

static void get_family(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", kernel_at(x, i)->def.family);
}

static void get_kd(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    uint32_t kd = kernel_at(x, i)->def.kd;
    if (kd)
        cell_count(c, kd);
    else
        cell_value(c, value_missing(VALUE_UNAVAILABLE, "this kernel has no K-tile depth"));
}

static void get_phase(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", row_at(x, i)->def.phase);
}

static void get_calls(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_count(c, row_at(x, i)->calls);
}

static void get_share(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_time_share(x->session, row_at(x, i)));
}

static void get_us(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_us(x->session, row_at(x, i)));
}

static void get_us_per_gmac(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_us_per_gmac(x->session, row_at(x, i)));
}

static void get_sm(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_metric_best(x->session, row_at(x, i), "sm_pct"));
}

static void get_ipc(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_ipc(x->session, row_at(x, i)));
}

static void get_tensor(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_metric_best(x->session, row_at(x, i), "tensor_pct"));
}

static void get_dram(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_metric_best(x->session, row_at(x, i), "dram_pct"));
}

static void get_inst(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_metric_best(x->session, row_at(x, i), "inst"));
}

static void get_stall(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_top_stall(c, x->session, row_at(x, i));
}

/* "kernels" leaves the first out: it shows one generation. */
static const struct column columns[] = {
    {"generation", "gen", "", "generation that the row belongs to", 4, 1, 0, 1, 0, 0,
     get_generation},
    {"kernel", "kernel", "", "the kernel's symbol, or the operator on a CPU", 16, 1, 0, 0, 0, 1,
     get_name},
    {"shape", "m x n x k", "", "output rows x tokens x inner length", 15, 2, 0, 0, 0, 0, get_shape},
    {"role", "role", "", "what the layer uses it for", 10, 3, 0, 0, 0, 0, get_role},
    {"variant", "variant", "", "the variant that runs", 8, 7, 0, 0, 0, 0, get_variant},
    {"kd", "KD", "", "K-tile depth in 32-value chunks", 2, 7, 0, 1, 0, 0, get_kd},
    {"family", "family", "", "kernels of one family do the same work", 10, 8, 0, 0, 0, 0,
     get_family},
    {"phase", "phase", "", "prefill or decode", 7, 6, 0, 0, 0, 0, get_phase},
    {"calls", "calls", "", "launches so far", 6, 6, 0, 1, 1, 0, get_calls},
    {"share", "time%", "%", "part of the generation's launch time", 5, 1, 1, 1, 0, 0, get_share},
    {"us", "us", "us", "a call's time: median over rounds of the mean", 8, 1, 2, 1, 0, 0, get_us},
    {"us_per_gmac", "us/GMAC", "us", "a call's time by its multiply-adds", 7, 4, 2, 1, 0, 0,
     get_us_per_gmac},
    {"sm_pct", "SM%", "%", "throughput of the SM inside the kernel, of its peak", 5, 1, 1, 1, 0, 0,
     get_sm},
    {"ipc", "IPC", "",
     "warp instructions an SM cycle: of active cycles when counted exactly, else "
     "of elapsed ones inside the kernel",
     4, 3, 2, 1, 0, 0, get_ipc},
    {"tensor_pct", "tensor%", "%", "time in which the tensor pipe is busy", 7, 2, 1, 1, 0, 0,
     get_tensor},
    {"dram_pct", "DRAM%", "%", "DRAM traffic of its peak", 5, 2, 1, 1, 0, 0, get_dram},
    {"inst", "inst", "", "executed warp instructions a launch, exact", 7, 5, 0, 1, 1, 0, get_inst},
    {"top_stall", "top stall", "", "most frequent stall reason of the kernel and its share", 24, 4,
     0, 0, 0, 0, get_stall},
};

const struct table_def table_kernels = {
    .id = "kernels",
    .title = "kernels",
    .empty = "no kernel of this generation has run yet",
    .columns = columns + 1,
    .ncolumns = NCOLUMNS(columns) - 1,
    .sort = "share",
    .count = count_rows,
    .keep = in_current,
};

const struct table_def table_rows = {
    .id = "rows",
    .title = "kernels of all generations",
    .empty = "no kernel has run yet",
    .columns = columns,
    .ncolumns = NCOLUMNS(columns),
    .count = count_rows,
};
