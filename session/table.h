/*
 * Tables: what screens draw and reports print, from one definition.
 *
 * A table_def is const and static: columns with a getter and a comparison. table_build() makes the
 * order of rows for a query; cells are asked for one at a time. To add a table: one row in
 * tables.c's list. To add a column: one row in its array.
 */
#ifndef SESSION_TABLE_H
#define SESSION_TABLE_H

#include "session/model.h"

enum { CELL_TEXT_MAX = 416 }; /* holds an event's whole text */

struct cell {
    bool is_text;
    char text[CELL_TEXT_MAX]; /* when is_text */
    struct value value;       /* otherwise */
    bool whole;               /* a count: no digits after the point, whatever the column's */
    enum { MARK_NONE, MARK_GOOD, MARK_WARN, MARK_BAD, MARK_DIM } mark;
};

/* What a getter sees: the session, and the row or kernel that a focused table is about. */
struct table_ctx {
    const struct session *session;
    uint32_t kernel, row; /* index; TABLE_NONE = none */
    uint32_t other;       /* kernel or row to compare with; TABLE_NONE = none */
};

#define TABLE_NONE UINT32_MAX

struct column {
    const char *id;    /* "us_per_gmac": also the JSON and CSV name */
    const char *title; /* "us/GMAC" */
    const char *unit;  /* "us", "%", "" */
    const char *help;  /* one sentence */
    uint8_t width;     /* columns on a screen */
    uint8_t priority;  /* 1 = always shown; higher ones leave first when the screen is narrow */
    uint8_t precision; /* digits after the point */
    bool numeric;      /* right-aligned, sorted by value, largest first */
    bool si;           /* large numbers with k M G */
    bool flex;         /* takes the width that is left */
    void (*get)(const struct table_ctx *x, uint32_t index, struct cell *c);
};

struct table_def {
    const char *id; /* "kernels" */
    const char *title;
    const char *empty; /* what to say when there is no row */
    const struct column *columns;
    uint32_t ncolumns;
    const char *sort; /* column sorted by at first; NULL = natural order */
    /* How many indexes there are, and whether an index belongs in the table now (NULL: all do). */
    uint32_t (*count)(const struct table_ctx *x);
    bool (*keep)(const struct table_ctx *x, uint32_t index);
    /* (optional) Where rows are figures: the row's name, and one sentence of what it is ("" =
     * none). */
    const char *(*row_name)(const struct table_ctx *x, uint32_t index);
    const char *(*row_help)(const struct table_ctx *x, uint32_t index);
};

/* "kernels" (rows of the current generation), "rows" (all generations), "generations", "flips"
 * (what each generation did to its costliest kernel), "best" (the variant of each family that
 * won), "census" (of the kernel in the query),
 * "stalls" (of the kernel in the query), "sources", "events", "variants", "metrics", "detail"
 * (every figure of the row in the query), "drops", "regime" (what sets the time of
 * each row of the newest generation), "ceilings", "costs" (what each counter source
 * found, lost and cost), "parity", "experiments", "executed" and
 * "executed_classes" (counts of the row in the query), "surplus" and "surplus_opcodes" (of the row
 * in the query against the row `other`, or the one before it), and of the experiment whose index is
 * the query's row (none: the newest) "gates", "pairs", "mechanism". */
extern const struct table_def *const tables[];
extern const uint32_t ntables;
const struct table_def *table_find(const char *id);

struct table_query {
    uint32_t kernel, row, other; /* focus of "census", "stalls", "detail"; TABLE_NONE = none */
    const char *sort;            /* column id; NULL = the definition's */
    bool ascending;              /* flips the column's own direction */
    const char *filter; /* case-insensitive text that a row must hold in a text cell; NULL = all */
};

struct table {
    const struct table_def *def;
    struct table_ctx ctx;
    uint32_t *index; /* owned */
    uint32_t nrows, cap;
};

/* Fills `t` (zero-initialised or built before; memory is reused). */
enum status table_build(struct table *t, const struct session *s, const struct table_def *def,
                        const struct table_query *q);
void table_free(struct table *t);
void table_cell(const struct table *t, uint32_t row, uint32_t column, struct cell *c);

/* The cell's text in at most `width` columns, as screens show it. */
void cell_format(const struct column *col, const struct cell *c, int width, char *buf, size_t size);

#endif
