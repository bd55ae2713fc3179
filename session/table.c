/*
 * Building and formatting of tables; see table.h.
 *
 * Invariants: the order depends on the session and the query alone (ties keep their natural order);
 * figures that are missing stand last in either direction.
 */
#include "session/table.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/table_priv.h"

const struct table_def *const tables[] = {
    &table_kernels,
    &table_rows,
    &table_generations,
    &table_detail,
    &table_census,
    &table_stalls,
    &table_sources,
    &table_variants,
    &table_parity,
    &table_events,
    &table_drops,
    &table_metrics,
    &table_experiments,
    &table_gates,
    &table_pairs,
    &table_mechanism,
    &table_flips,
    &table_best,
    &table_executed,
    &table_executed_classes,
    &table_surplus,
    &table_surplus_opcodes,
    &table_costs,
    &table_regime,
    &table_ceilings,
};
const uint32_t ntables = NCOLUMNS(tables);

const struct table_def *table_find(const char *id)
{
    for (uint32_t i = 0; i < ntables; i++)
        if (strcmp(tables[i]->id, id) == 0) return tables[i];
    return NULL;
}

void cell_text(struct cell *c, const char *fmt, ...)
{
    va_list ap;
    c->is_text = true;
    va_start(ap, fmt);
    vsnprintf(c->text, sizeof c->text, fmt, ap);
    va_end(ap);
}

void cell_value(struct cell *c, struct value v)
{
    c->is_text = false;
    c->value = v;
    if (v.state == VALUE_FAULT || v.state == VALUE_OVERFLOW)
        c->mark = MARK_BAD;
    else if (v.state == VALUE_STALE || v.state == VALUE_ESTIMATE)
        c->mark = MARK_WARN;
    else if (v.state != VALUE_OK)
        c->mark = MARK_DIM;
}

void cell_count(struct cell *c, uint64_t n)
{
    c->is_text = false;
    c->value = value_ok((double)n, NULL);
}

void cell_spread(struct cell *c, struct value v, struct value none)
{
    if (v.state != VALUE_OK)
        cell_value(c, v);
    else
        cell_value(c, v.spread >= 0 ? value_ok(v.spread, v.source) : none);
}

void cell_top_stall(struct cell *c, const struct session *s, const struct row *r)
{
    char name[40];
    struct value v = row_top_stall(s, r, name, sizeof name);
    if (name[0])
        cell_text(c, "%s %.0f%%", name, v.v);
    else
        cell_value(c, v);
}

void cell_shape(struct cell *c, const struct msg_row_def *r)
{
    if (r->k)
        cell_text(c, "%ux%ux%u", r->m, r->n, r->k);
    else
        cell_text(c, "%ux%u", r->m, r->n);
}

/* ---- building ---- */

struct sort_key {
    uint32_t index;
    bool missing;
    double v;
    char text[CELL_TEXT_MAX];
};

static bool holds(const char *text, const char *part)
{
    size_t n = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && text[i] &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == n) return true;
    }
    return n == 0;
}

static bool passes(const struct table *t, uint32_t index, const char *filter)
{
    if (!filter || !filter[0]) return true;
    for (uint32_t i = 0; i < t->def->ncolumns; i++) {
        struct cell c = {0};
        t->def->columns[i].get(&t->ctx, index, &c);
        if (c.is_text && holds(c.text, filter)) return true;
    }
    return false;
}

static int compare_up(const struct sort_key *a, const struct sort_key *b)
{
    if (a->text[0] || b->text[0]) return strcmp(a->text, b->text);
    return (a->v > b->v) - (a->v < b->v);
}

static int by_index(const struct sort_key *a, const struct sort_key *b)
{
    return (a->index > b->index) - (a->index < b->index);
}

static int order_up(const void *pa, const void *pb)
{
    const struct sort_key *a = pa, *b = pb;
    if (a->missing != b->missing) return a->missing ? 1 : -1;
    int c = a->missing ? 0 : compare_up(a, b);
    return c ? c : by_index(a, b);
}

static int order_down(const void *pa, const void *pb)
{
    const struct sort_key *a = pa, *b = pb;
    if (a->missing != b->missing) return a->missing ? 1 : -1;
    int c = a->missing ? 0 : compare_up(b, a);
    return c ? c : by_index(a, b);
}

static const struct column *find_column(const struct table_def *def, const char *id)
{
    for (uint32_t i = 0; id && i < def->ncolumns; i++)
        if (strcmp(def->columns[i].id, id) == 0) return &def->columns[i];
    return NULL;
}

static enum status sort_rows(struct table *t, const struct column *col, bool flip)
{
    struct sort_key *keys = malloc((t->nrows ? t->nrows : 1) * sizeof *keys);

    if (!keys) return err_set(ERR_NOMEM, "out of memory for sorting a table");
    for (uint32_t i = 0; i < t->nrows; i++) {
        struct cell c = {0};
        struct sort_key *k = &keys[i];
        col->get(&t->ctx, t->index[i], &c);
        k->index = t->index[i];
        k->text[0] = '\0';
        k->v = 0;
        if (c.is_text) {
            snprintf(k->text, sizeof k->text, "%s", c.text);
            k->missing = c.text[0] == '\0';
        } else {
            k->missing = !value_known(&c.value) || isnan(c.value.v);
            k->v = c.value.v;
        }
    }
    /* Numbers start with the largest, texts from A; the query's `ascending` turns that round. */
    bool down = col->numeric != flip;
    qsort(keys, t->nrows, sizeof *keys, down ? order_down : order_up);
    for (uint32_t i = 0; i < t->nrows; i++) t->index[i] = keys[i].index;
    free(keys);
    return OK;
}

static enum status reserve_rows(struct table *t, uint32_t n)
{
    if (n <= t->cap) return OK;
    uint32_t *p = realloc(t->index, n * sizeof *p);
    if (!p) return err_set(ERR_NOMEM, "out of memory for a table");
    t->index = p;
    t->cap = n;
    return OK;
}

enum status table_build(struct table *t, const struct session *s, const struct table_def *def,
                        const struct table_query *q)
{
    static const struct table_query plain = {
        .kernel = TABLE_NONE, .row = TABLE_NONE, .other = TABLE_NONE};

    if (!q) q = &plain;
    t->def = def;
    t->ctx = (struct table_ctx){s, q->kernel, q->row, q->other};
    t->nrows = 0;
    uint32_t n = def->count(&t->ctx);
    enum status st = reserve_rows(t, n);
    if (st != OK) return st;
    for (uint32_t i = 0; i < n; i++)
        if ((!def->keep || def->keep(&t->ctx, i)) && passes(t, i, q->filter))
            t->index[t->nrows++] = i;
    const struct column *col = find_column(def, q->sort ? q->sort : def->sort);
    return col ? sort_rows(t, col, q->ascending) : OK;
}

void table_free(struct table *t)
{
    free(t->index);
    *t = (struct table){0};
}

void table_cell(const struct table *t, uint32_t row, uint32_t column, struct cell *c)
{
    *c = (struct cell){0};
    if (row >= t->nrows || column >= t->def->ncolumns) {
        cell_text(c, "%s", "");
        return;
    }
    t->def->columns[column].get(&t->ctx, t->index[row], c);
}

/* At most `width` characters of UTF-8; control bytes become spaces so that a cell is one line. */
static void fit_text(const char *text, int width, char *buf, size_t size)
{
    size_t n = 0;
    int columns = 0;

    for (; *text && n + 1 < size; text++) {
        bool starts = ((unsigned char)*text & 0xc0) != 0x80;
        if (starts && columns++ == width) break;
        buf[n++] = (unsigned char)*text < 32 ? ' ' : *text;
    }
    if (size) buf[n] = '\0';
}

void cell_format(const struct column *col, const struct cell *c, int width, char *buf, size_t size)
{
    if (c->is_text)
        fit_text(c->text, width, buf, size);
    else
        value_format(&c->value, width, c->whole ? 0 : col->precision, col->si, buf, size);
}
