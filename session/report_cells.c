/* Tables cell by cell, for the formats that hold every figure; see report_priv.h. */
#include "session/report_priv.h"

enum status report_cells(const struct session *s, const char *id, const struct table_query *q,
                         const char *focus, const struct cell_sink *to)
{
    struct table t = {0};
    enum status st = table_build(&t, s, table_find(id), q);
    for (uint32_t i = 0; st == OK && i < t.nrows; i++)
        for (uint32_t c = 0; c < t.def->ncolumns; c++) to->put(to->ctx, &t, focus, i, c);
    table_free(&t);
    return st;
}

/* Of each row that has executed counts. */
static enum status executed(const struct session *s, const struct cell_sink *to)
{
    static const char *const parts[] = {"executed_classes", "executed", "surplus",
                                        "surplus_opcodes"};
    enum status st = OK;
    for (uint32_t i = 0; st == OK && i < s->nexecuted; i++) {
        struct table_query q = {
            .kernel = TABLE_NONE, .row = s->executed[i].row, .other = TABLE_NONE};
        char focus[160];
        row_title(s, &s->rows[s->executed[i].row], focus, sizeof focus);
        for (unsigned k = 0; st == OK && k < sizeof parts / sizeof *parts; k++)
            st = report_cells(s, parts[k], &q, focus, to);
    }
    return st;
}

enum status report_kernel_cells(const struct session *s, const struct cell_sink *to)
{
    enum status st = OK;
    for (uint32_t i = 0; st == OK && i < s->nkernels; i++) {
        struct table_query q = {.kernel = i, .row = TABLE_NONE, .other = TABLE_NONE};
        const struct kernel *k = &s->kernels[i];
        if (report_shows_census(s, i)) st = report_cells(s, "census", &q, k->def.name, to);
        if (st == OK && s->nstalls) st = report_cells(s, "stalls", &q, k->def.name, to);
    }
    return st == OK ? executed(s, to) : st;
}
