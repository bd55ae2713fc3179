/*
 * The CSV report: every cell of every table, one a line (RFC 4180), so that one file holds tables
 * of different shapes and any program can filter it: table,focus,row,column,value,unit,state,
 * source,spread,n,why. `focus` is the kernel or experiment that a table is about. A figure that is
 * not known has an empty value and its state.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "session/executed.h"
#include "session/report_fmt.h"
#include "session/report_priv.h"

static void field(struct buf *out, const char *text, char after)
{
    char clean[512];
    snprintf(clean, sizeof clean, "%s", text);
    fmt_utf8(clean);
    if (strpbrk(clean, ",\"\r\n"))
        quote_csv(out, clean);
    else
        buf_put(out, clean, strlen(clean));
    if (after == '\n') buf_u8(out, '\r');
    buf_u8(out, (uint8_t)after);
}

static void number(struct buf *out, bool known, double v, char after)
{
    char text[40] = "";
    if (known && isfinite(v)) fmt_number(v, true, text, sizeof text);
    field(out, text, after);
}

static void put_cell(void *ctx, const struct table *t, const char *focus, uint32_t row,
                     uint32_t col)
{
    struct buf *out = ctx;
    const struct column *k = &t->def->columns[col];
    char text[40];
    struct cell c;
    table_cell(t, row, col, &c);
    field(out, t->def->id, ',');
    field(out, focus, ',');
    snprintf(text, sizeof text, "%u", row + 1);
    field(out, text, ',');
    field(out, k->id, ',');
    if (c.is_text) {
        field(out, c.text, ',');
        buf_printf(out, "%s,ok,,,,\r\n", k->unit);
        return;
    }
    const struct value *v = &c.value;
    number(out, value_known(v), v->v, ',');
    field(out, k->unit, ',');
    field(out, value_state_name(v->state), ',');
    field(out, v->source ? v->source : "", ',');
    number(out, v->spread > 0, v->spread, ',');
    number(out, v->n > 0, v->n, ',');
    field(out, v->why ? v->why : "", '\n');
}

static enum status put_experiments(const struct session *s, const struct cell_sink *to)
{
    static const char *const parts[] = {"gates", "mechanism", "pairs"};
    enum status st = OK;
    for (uint32_t i = 0; st == OK && i < s->nexperiments; i++)
        for (unsigned k = 0; st == OK && k < sizeof parts / sizeof *parts; k++) {
            struct table_query q = {.kernel = TABLE_NONE, .row = i, .other = TABLE_NONE};
            char focus[32];
            snprintf(focus, sizeof focus, "experiment %u", s->experiments[i].def.experiment);
            st = report_cells(s, parts[k], &q, focus, to);
        }
    return st;
}

static enum status write_csv(const struct session *s, struct buf *out)
{
    static const char *const plain[] = {"experiments", "generations", "rows",    "sources",
                                        "variants",    "parity",      "events",  "drops",
                                        "costs",       "regime",      "ceilings"};
    const char *const about[][2] = {{"session", s->hello.session}, {"device", s->hello.device},
                                    {"driver", s->hello.driver},   {"toolkit", s->hello.toolkit},
                                    {"commit", s->hello.commit},   {"command", s->hello.command},
                                    {"model", s->model.name},      {"workload", s->model.workload}};
    const struct cell_sink to = {put_cell, out};
    enum status st = OK;
    buf_printf(out, "table,focus,row,column,value,unit,state,source,spread,n,why\r\n");
    for (unsigned i = 0; i < sizeof about / sizeof *about; i++) {
        buf_printf(out, "about,,1,%s,", about[i][0]);
        field(out, about[i][1], ',');
        buf_printf(out, ",ok,,,,\r\n");
    }
    for (unsigned i = 0; st == OK && i < sizeof plain / sizeof *plain; i++)
        st = report_cells(s, plain[i], NULL, "", &to);
    if (st == OK) st = put_experiments(s, &to);
    if (st == OK) st = report_kernel_cells(s, &to);
    if (st == OK && out->failed) st = err_set(ERR_NOMEM, "out of memory for the report");
    return st;
}

const struct report_ops report_csv_ops = {
    .ext = "csv",
    .title = "CSV, one cell a line, for other programs",
    .write = write_csv,
};
