/*
 * "executed" and "executed_classes" of the row in the query, by opcode and by class, the static
 * count beside the executed one; "surplus" and "surplus_opcodes" of the row in the query against
 * the row in `other`, by default the one that did the same work before.
 *
 * Indexes are those of session/executed.h. To add a figure: a getter here, a row in both column
 * lists that share it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/executed.h"
#include "session/table_priv.h"

/* ---- executed ---- */

static const struct executed *focus(const struct table_ctx *x)
{
    return session_executed_like(x->session, x->row);
}

static uint32_t count_opcodes(const struct table_ctx *x)
{
    const struct executed *e = focus(x);
    return e ? e->nkeys : 0;
}

static uint32_t count_classes(const struct table_ctx *x)
{
    const struct executed *e = focus(x);
    return e ? e->nclasses : 0;
}

static void get_opcode(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", focus(x)->keys[i].opcode);
}

static void get_class(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", focus(x)->keys[i].cls);
}

static void get_class_name(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    cell_text(c, "%s", focus(x)->classes[i]);
}

static void put_static(const struct session *s, const struct executed *e,
                       const struct exec_sum *sum, struct cell *c)
{
    (void)s, (void)e;
    cell_count(c, sum->count);
}

static void put_launch(const struct session *s, const struct executed *e,
                       const struct exec_sum *sum, struct cell *c)
{
    (void)s;
    cell_value(c, exec_launch(e, sum));
    if (c->value.state == VALUE_OK && c->value.v == 0) c->mark = MARK_DIM;
}

static void put_share(const struct session *s, const struct executed *e, const struct exec_sum *sum,
                      struct cell *c)
{
    (void)s;
    cell_value(c, exec_share(e, sum));
}

static void put_scaled(struct cell *c, struct value v, double by)
{
    if (v.state == VALUE_OK) v.v *= by;
    cell_value(c, v);
}

static void put_gmac(const struct session *s, const struct executed *e, const struct exec_sum *sum,
                     struct cell *c)
{
    put_scaled(c, exec_per_mac(s, e, sum), 1e9);
}

static void put_mac(const struct session *s, const struct executed *e, const struct exec_sum *sum,
                    struct cell *c)
{
    put_scaled(c, exec_per_mac(s, e, sum), 1);
}

static void put_runs(const struct session *s, const struct executed *e, const struct exec_sum *sum,
                     struct cell *c)
{
    cell_value(c, exec_runs(s, e, sum));
}

static void put_loop(const struct session *s, const struct executed *e, const struct exec_sum *sum,
                     struct cell *c)
{
    (void)s, (void)e;
    cell_value(c, exec_in_loop(sum));
}

static void put_threads(const struct session *s, const struct executed *e,
                        const struct exec_sum *sum, struct cell *c)
{
    (void)s;
    cell_value(c, exec_threads(e, sum));
}

static void put_pred(const struct session *s, const struct executed *e, const struct exec_sum *sum,
                     struct cell *c)
{
    (void)s;
    cell_value(c, exec_pred(e, sum));
}

static void put_never(const struct session *s, const struct executed *e, const struct exec_sum *sum,
                      struct cell *c)
{
    (void)s, (void)e;
    cell_count(c, sum->never);
    if (!sum->never) c->mark = MARK_DIM;
}

static void put_gap(const struct session *s, const struct executed *e, const struct exec_sum *sum,
                    struct cell *c)
{
    char text[200];
    exec_gap(s, e, sum, text, sizeof text);
    cell_text(c, "%s", text);
    c->mark = MARK_DIM;
}

/* Each figure as a getter of both tables. */
#define BOTH(what)                                                                                 \
    static void op_##what(const struct table_ctx *x, uint32_t i, struct cell *c)                   \
    {                                                                                              \
        const struct executed *e = focus(x);                                                       \
        put_##what(x->session, e, &e->of_key[i], c);                                               \
    }                                                                                              \
    static void cls_##what(const struct table_ctx *x, uint32_t i, struct cell *c)                  \
    {                                                                                              \
        const struct executed *e = focus(x);                                                       \
        put_##what(x->session, e, &e->of_class[i], c);                                             \
    }
BOTH(static)
BOTH(launch)
BOTH(share)
BOTH(gmac)
BOTH(mac)
BOTH(runs)
BOTH(loop)
BOTH(threads)
BOTH(pred)
BOTH(never)
BOTH(gap)
#undef BOTH

/* clang-format off */
#define FIGURES(p) \
    {"static", "static", "", "instructions in the code, padding left out", 6, 1, 0, 1, 0, 0, p##_static}, \
    {"executed", "executed", "", "by warps, in one launch", 8, 1, 0, 1, 1, 0, p##_launch}, \
    {"share", "%", "%", "of all that the kernel executed", 5, 1, 1, 1, 0, 0, p##_share}, \
    {"per_gmac", "/GMAC", "", "executed by warps for 1e9 multiply-adds", 7, 1, 0, 1, 1, 0, p##_gmac}, \
    {"per_mac", "/MAC", "", "executed by warps for one multiply-add", 9, 6, 7, 1, 0, 0, p##_mac}, \
    {"runs", "runs", "", "how often a warp runs one of them, over those that ran", 6, 2, 1, 1, 0, 0, p##_runs}, \
    {"in_loop", "loop%", "%", "executed inside a loop", 5, 4, 0, 1, 0, 0, p##_loop}, \
    {"threads", "thr", "", "active threads of 32", 4, 4, 1, 1, 0, 0, p##_threads}, \
    {"pred", "on%", "%", "active threads whose guard held", 5, 3, 1, 1, 0, 0, p##_pred}, \
    {"never", "never", "", "of them that never ran", 5, 3, 0, 1, 0, 0, p##_never}, \
    {"gap", "why they differ", "", "why executed and static counts do: loops, guards, threads, parts that never ran", 24, 2, 0, 0, 0, 1, p##_gap}
/* clang-format on */

static const struct column opcode_columns[] = {
    {"opcode", "opcode", "", "with the modifiers that tell it apart", 16, 1, 0, 0, 0, 0,
     get_opcode},
    {"class", "class", "", "", 9, 4, 0, 0, 0, 0, get_class},
    FIGURES(op),
};

static const struct column class_columns[] = {
    {"class", "class", "", "of opcodes", 11, 1, 0, 0, 0, 0, get_class_name},
    FIGURES(cls),
};
#undef FIGURES

const struct table_def table_executed = {
    .id = "executed",
    .title = "executed instructions by opcode",
    .empty = "no executed counts of this kernel; in a live session E counts them",
    .columns = opcode_columns,
    .ncolumns = NCOLUMNS(opcode_columns),
    .sort = "executed",
    .count = count_opcodes,
};

const struct table_def table_executed_classes = {
    .id = "executed_classes",
    .title = "executed instructions by class",
    .empty = "no executed counts of this kernel; in a live session E counts them",
    .columns = class_columns,
    .ncolumns = NCOLUMNS(class_columns),
    .sort = "executed",
    .count = count_classes,
};

/* ---- surplus ---- */

static void open_surplus(const struct table_ctx *x, bool by_class, struct surplus *out)
{
    const struct session *s = x->session;
    uint32_t other = x->other;
    if (other == TABLE_NONE && x->row < s->nrows)
        other = session_counterpart(s, &s->rows[x->row], s->rows[x->row].def.generation);
    surplus_open(s, x->row, other, by_class, out);
}

static uint32_t count_surplus(const struct table_ctx *x, bool by_class)
{
    struct surplus p;
    open_surplus(x, by_class, &p);
    return surplus_count(&p);
}

/* False when the index is no row; keep() has sorted those out. */
static bool at(const struct table_ctx *x, uint32_t i, bool by_class, struct surplus *p,
               struct surplus_row *r)
{
    open_surplus(x, by_class, p);
    return surplus_at(p, i, r);
}

static const char *source_of(const struct surplus *p)
{
    return p->basis == SURPLUS_EXECUTED ? p->a.e->def.source : "census";
}

static void put_delta(struct cell *c, const struct surplus *p, double v)
{
    cell_value(c, value_ok(v, source_of(p)));
    if (v == 0) c->mark = MARK_DIM;
}

enum part { PART_NAME, PART_CLASS, PART_A, PART_B, PART_DELTA, PART_MAC, PART_PCT };

static void part(const struct table_ctx *x, uint32_t i, struct cell *c, bool by_class,
                 enum part what)
{
    struct surplus p;
    struct surplus_row r;
    if (!at(x, i, by_class, &p, &r)) return;
    switch (what) {
    case PART_NAME:
        cell_text(c, "%s", r.name);
        break;
    case PART_CLASS:
        cell_text(c, "%s", r.cls);
        break;
    case PART_A:
        cell_value(c, value_ok(r.a * 1e9, source_of(&p)));
        break;
    case PART_B:
        cell_value(c, value_ok(r.b * 1e9, source_of(&p)));
        break;
    case PART_DELTA:
        put_delta(c, &p, r.delta * 1e9);
        break;
    case PART_MAC:
        put_delta(c, &p, r.delta);
        break;
    case PART_PCT:
        if (isnan(r.pct))
            cell_value(c, value_missing(VALUE_UNAVAILABLE, "both execute as many a multiply-add"));
        else
            put_delta(c, &p, r.pct);
        break;
    }
}

/* Each part as a getter of both tables. */
#define BOTH(name, what)                                                                           \
    static void op_##name(const struct table_ctx *x, uint32_t i, struct cell *c)                   \
    {                                                                                              \
        part(x, i, c, false, what);                                                                \
    }                                                                                              \
    static void cls_##name(const struct table_ctx *x, uint32_t i, struct cell *c)                  \
    {                                                                                              \
        part(x, i, c, true, what);                                                                 \
    }
BOTH(name, PART_NAME)
BOTH(a, PART_A)
BOTH(b, PART_B)
BOTH(delta, PART_DELTA)
BOTH(delta_mac, PART_MAC)
BOTH(pct, PART_PCT)
#undef BOTH

static void op_class(const struct table_ctx *x, uint32_t i, struct cell *c)
{
    part(x, i, c, false, PART_CLASS);
}

static uint32_t count_surplus_classes(const struct table_ctx *x)
{
    return count_surplus(x, true);
}

static uint32_t count_surplus_opcodes(const struct table_ctx *x)
{
    return count_surplus(x, false);
}

static bool keep_class(const struct table_ctx *x, uint32_t i)
{
    struct surplus p;
    struct surplus_row r;
    return at(x, i, true, &p, &r) && (r.a > 0 || r.b > 0);
}

static bool keep_opcode(const struct table_ctx *x, uint32_t i)
{
    struct surplus p;
    struct surplus_row r;
    return at(x, i, false, &p, &r) && (r.a > 0 || r.b > 0);
}

/* clang-format off */
#define FIGURES(p) \
    {"own", "own/GMAC", "", "instructions for 1e9 multiply-adds", 9, 1, 0, 1, 1, 0, p##_a}, \
    {"reference", "ref/GMAC", "", "the same of the reference", 9, 1, 0, 1, 1, 0, p##_b}, \
    {"surplus", "surplus", "", "own minus the reference's, for 1e9 multiply-adds", 9, 1, 0, 1, 1, 0, p##_delta}, \
    {"surplus_mac", "inst/MAC", "", "own minus the reference's, for one multiply-add", 10, 3, 7, 1, 0, 0, p##_delta_mac}, \
    {"part", "% of it", "%", "of the whole surplus, or saving; the parts sum to 100", 8, 1, 1, 1, 0, 0, p##_pct}
/* clang-format on */

static const struct column surplus_columns[] = {
    {"class", "class", "", "of opcodes", 12, 1, 0, 0, 0, 1, cls_name},
    FIGURES(cls),
};

static const struct column surplus_opcode_columns[] = {
    {"opcode", "opcode", "", "with the modifiers that tell it apart", 18, 1, 0, 0, 0, 1, op_name},
    {"class", "class", "", "", 10, 2, 0, 0, 0, 0, op_class},
    FIGURES(op),
};
#undef FIGURES

const struct table_def table_surplus = {
    .id = "surplus",
    .title = "surplus against the reference, by class",
    .empty = "no two kernels to compare: see the line above",
    .columns = surplus_columns,
    .ncolumns = NCOLUMNS(surplus_columns),
    .sort = "part",
    .count = count_surplus_classes,
    .keep = keep_class,
};

const struct table_def table_surplus_opcodes = {
    .id = "surplus_opcodes",
    .title = "surplus against the reference, by opcode",
    .empty = "no two kernels to compare: see the line above",
    .columns = surplus_opcode_columns,
    .ncolumns = NCOLUMNS(surplus_opcode_columns),
    .sort = "part",
    .count = count_surplus_opcodes,
    .keep = keep_opcode,
};
