/*
 * "regime": what sets the time of each row of the newest generation, and its place under the
 * roofline (regime.h); "ceilings": what the machine was measured to do at most.
 */
#include <string.h>

#include "session/table_priv.h"

static const struct row *row_at(const struct table_ctx *x, uint32_t i)
{
    return &x->session->rows[i];
}

static struct regime regime_at(const struct table_ctx *x, uint32_t i)
{
    struct regime r;
    row_regime(x->session, row_at(x, i), &r);
    return r;
}

static uint32_t count(const struct table_ctx *x)
{
    return x->session->nrows;
}

static bool keep(const struct table_ctx *x, uint32_t i)
{
    const struct generation *g = session_current(x->session);
    return g && row_at(x, i)->def.generation == g->def.generation && row_at(x, i)->calls;
}

static void get_kernel(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", x->session->kernels[row_at(x, i)->def.kernel].def.name);
}

static void get_shape(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_shape(c, &row_at(x, i)->def);
}

static void get_role(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", row_at(x, i)->def.role);
}

static void get_share(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, row_time_share(x->session, row_at(x, i)));
}

static void get_intensity(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, regime_at(x, i).intensity);
}

static void scaled(struct cell *c, struct value v, double by)
{
    if (value_known(&v)) v.v *= by;
    cell_value(c, v);
}

static void get_rate(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    scaled(c, regime_at(x, i).rate, 1e-12);
}

static void get_roof(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    scaled(c, regime_at(x, i).roof, 1e-12);
}

static void get_roof_share(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, regime_at(x, i).roof_share);
}

static void get_regime(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct regime r = regime_at(x, i);
    cell_text(c, "%s", regime_name(r.kind));
    if (r.kind == REGIME_UNKNOWN) c->mark = MARK_DIM;
}

static void get_saving(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, regime_at(x, i).saving);
}

static void get_figures(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct regime r = regime_at(x, i);
    const char *colon = strstr(r.decided, ": ");
    cell_text(c, "%s", colon ? colon + 2 : r.decided);
    c->mark = MARK_DIM;
}

static const struct column columns[] = {
    {"kernel", "kernel", "", "symbol", 20, 1, 0, 0, 0, 0, get_kernel},
    {"shape", "m x n x k", "", "", 14, 2, 0, 0, 0, 0, get_shape},
    {"role", "role", "", "what it computes in the model", 12, 2, 0, 0, 0, 0, get_role},
    {"share", "time%", "%", "of its generation's kernel time", 5, 1, 1, 1, 0, 0, get_share},
    {"regime", "regime", "", "what sets its time: a part at 60 % of its peak or over, else latency",
     13, 1, 0, 0, 0, 0, get_regime},
    {"saving", "-10% inst", "%", "of its time that a tenth fewer instructions save at most", 9, 1,
     1, 1, 0, 0, get_saving},
    {"intensity", "op/B", "op/B", "operations a byte: counted DRAM bytes, else the least traffic",
     7, 2, 1, 1, 1, 0, get_intensity},
    {"rate", "Top/s", "Top/s", "operations a second: two a multiply-add", 7, 2, 1, 1, 0, 0,
     get_rate},
    {"roof", "roof", "Top/s", "at its intensity, by the ceilings measured here", 7, 3, 1, 1, 0, 0,
     get_roof},
    {"roof_share", "of roof", "%", "rate over roof", 7, 2, 1, 1, 0, 0, get_roof_share},
    {"figures", "figures", "", "what the regime was told from, per cent of each peak", 30, 4, 0, 0,
     0, 1, get_figures},
};

const struct table_def table_regime = {
    .id = "regime",
    .title = "what sets each kernel's time",
    .empty = "no kernel has been timed yet",
    .columns = columns,
    .ncolumns = NCOLUMNS(columns),
    .sort = "share",
    .count = count,
    .keep = keep,
};

/* ---- ceilings ---- */

static uint32_t count_ceilings(const struct table_ctx *x)
{
    return x->session->nceilings;
}

static const struct msg_ceiling *ceiling(const struct table_ctx *x, uint32_t i)
{
    return &x->session->ceilings[i];
}

static void get_key(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", ceiling(x, i)->key);
}

static void get_value(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_value(c, session_ceiling(x->session, ceiling(x, i)->key));
}

static void get_spread(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    struct value v = session_ceiling(x->session, ceiling(x, i)->key);
    cell_value(c, v.state == VALUE_OK && v.spread >= 0 ? value_ok(v.spread, v.source) : v);
}

static void get_unit(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", ceiling(x, i)->unit);
}

static void get_why(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", ceiling(x, i)->why);
    c->mark = MARK_DIM;
}

static const struct column ceiling_columns[] = {
    {"ceiling", "ceiling", "", "what was asked of the GPU alone", 12, 1, 0, 0, 0, 0, get_key},
    {"value", "measured", "", "median of the launches", 10, 1, 1, 1, 1, 0, get_value},
    {"spread", "IQR", "", "interquartile range", 9, 2, 1, 1, 1, 0, get_spread},
    {"unit", "unit", "", "", 7, 1, 0, 0, 0, 0, get_unit},
    {"why", "reason", "", "why it was not measured", 20, 2, 0, 0, 0, 1, get_why},
};

const struct table_def table_ceilings = {
    .id = "ceilings",
    .title = "ceilings measured on this machine",
    .empty = "none was measured in this session",
    .columns = ceiling_columns,
    .ncolumns = NCOLUMNS(ceiling_columns),
    .count = count_ceilings,
};
