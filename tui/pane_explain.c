/* The cell under a pane's cursor in words; see pane.h. Where a table's rows are figures, what the
 * row's means comes before what the column's does. */
#include "tui/pane.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void figure_text(const struct value *v, bool spread, bool ascii, char *text, size_t size)
{
    char number[32], wide[32];
    double a = fabs(v->v);
    int prec = a < 10 ? 3 : a < 100 ? 2 : a < 10000 ? 1 : 0;

    value_format(v, 12, prec, a >= 1e7, number, sizeof number);
    snprintf(text, size, "%s", number);
    bool shown = value_known(v);
    if (!spread || !shown || !(v->spread >= 0)) return;
    struct value s = value_ok(v->spread, NULL);
    value_format(&s, 10, prec, 0, wide, sizeof wide);
    snprintf(text, size, "%s %s%s", number, ascii ? "+-" : "±", wide);
}

/* The figure of a cell with its column's digits, and its spread. */
static void column_figure(const struct column *col, const struct value *v, bool whole, char *text,
                          size_t size)
{
    char number[32], wide[32];
    struct value s = value_ok(v->spread, NULL);

    int precision = whole ? 0 : col->precision;
    value_format(v, 14, precision, col->si, number, sizeof number);
    value_format(&s, 12, precision, col->si, wide, sizeof wide);
    snprintf(text, size, v->spread >= 0 ? "%s ± %s" : "%s", number, wide);
}

static void explain_value(const struct column *col, const struct cell *cell, char *text,
                          size_t size)
{
    const struct value *v = &cell->value;
    const char *unit = col->unit ? col->unit : "";
    char number[80], from[120] = "";
    column_figure(col, v, cell->whole, number, sizeof number);
    if (!value_known(v)) {
        snprintf(text, size, "%s%s%s", value_state_name(v->state), v->why ? ": " : "",
                 v->why ? v->why : "");
        return;
    }
    bool plain = v->source && (!strcmp(v->source, "clock") || !strcmp(v->source, "events"));
    if (v->source)
        snprintf(from, sizeof from, " by %s%s", v->source, plain ? "" : ", instrumented");
    size_t used = (size_t)snprintf(text, size, "%s %s%s", number, unit, from);
    if (v->n && used < size) used += (size_t)snprintf(text + used, size - used, ", n %u", v->n);
    if (v->state == VALUE_ESTIMATE && used < size)
        snprintf(text + used, size - used, ", estimate: %s", v->why ? v->why : "not measured");
}

/* Where rows are figures: what the row's is comes before what the column's is. */
static void explain_row(const struct pane *p, const char *what, const char *help, char *text,
                        size_t size)
{
    uint32_t index = p->table.index[p->position];
    const char *name = p->def->row_name(&p->table.ctx, index);
    const char *meaning = p->def->row_help(&p->table.ctx, index);
    const struct column *col = &p->def->columns[p->column];
    if (!strcmp(what, name))
        snprintf(text, size, "%s: %s", name, *meaning ? meaning : help);
    else
        snprintf(text, size, "%s: %s%s%s: %s (%s)", name, meaning, *meaning ? "; " : "", col->title,
                 what, help);
}

void pane_explain(const struct pane *p, char *text, size_t size)
{
    char what[400];
    struct cell cell = {.is_text = false};

    text[0] = 0;
    if (!p->def || !p->table.nrows || p->column >= p->def->ncolumns) return;
    const struct column *col = &p->def->columns[p->column];
    table_cell(&p->table, p->position, p->column, &cell);
    if (cell.is_text)
        snprintf(what, sizeof what, "%.*s", (int)sizeof what - 1, cell.text);
    else
        explain_value(col, &cell, what, sizeof what);
    const char *help = col->help ? col->help : "";
    if (p->def->row_help) {
        explain_row(p, what, help, text, size);
        return;
    }
    snprintf(text, size, "%s: %s%s%s%s", col->title, what, *help ? " (" : "", help,
             *help ? ")" : "");
}
