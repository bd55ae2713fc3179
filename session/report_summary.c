/*
 * The summary that is printed when there is no terminal: wall clock, the kernels that take most of
 * the time, the counter sources. At most 80 columns a line.
 */
#include <stdio.h>
#include <string.h>

#include "session/report_fmt.h"
#include "session/report_priv.h"

enum { LINE = 80, TOP_KERNELS = 10 };

static void put_rate(struct buf *out, const char *name, struct value v)
{
    char text[40];

    value_format(&v, 10, 1, 1, text, sizeof text);
    buf_printf(out, "  %-8s %10s tok/s", name, text);
    if (v.state == VALUE_OK && v.spread >= 0)
        buf_printf(out, "  (interquartile range %.6g, %u rounds)", v.spread, v.n);
    else if (v.state != VALUE_OK && v.why)
        buf_printf(out, "  (%.48s)", v.why);
    buf_u8(out, '\n');
}

static void put_ratio(struct buf *out, const struct session *s, const struct generation *g)
{
    const struct generation *before = session_previous(s);
    if (!before) return;
    struct value p = generation_prefill_ratio(s, g, before);
    struct value d = generation_decode_ratio(g, before);
    if (p.state != VALUE_OK || d.state != VALUE_OK) return;
    buf_printf(out, "  against generation %u: prefill x %.3f, decode x %.3f\n",
               before->def.generation, p.v, d.v);
}

static void put_wall_clock(const struct session *s, struct buf *out)
{
    const struct generation *g = session_current(s);

    if (!g) {
        buf_printf(out, "no generation has begun: nothing was measured\n");
        return;
    }
    buf_printf(out, "generation %u: %s %s", g->def.generation, g->def.family,
               g->def.variant[0] ? g->def.variant : "-");
    if (g->def.kd) buf_printf(out, " KD %u", g->def.kd);
    buf_printf(out, " (%s), %u timed and %u counted rounds\n", g->def.reason, g->timed_rounds,
               g->counted_rounds);
    put_rate(out, "prefill", generation_prefill(s, g));
    put_rate(out, "decode", generation_decode(s, g));
    put_ratio(out, s, g);
    if (g->timed_rounds && generation_timed_in_words(g)[0])
        buf_printf(out, "  timed %s\n", generation_timed_in_words(g));
}

/* Of `bytes` of UTF-8: those that continue a character take no column. */
static int columns_of(const char *text, size_t bytes)
{
    int n = 0;
    for (size_t i = 0; i < bytes; i++) n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* Of a text column's cells that are printed. */
static int longest(const struct table *t, uint32_t column)
{
    struct cell cell;
    int most = 0;
    for (uint32_t i = 0; i < t->nrows && i < TOP_KERNELS; i++) {
        table_cell(t, i, column, &cell);
        int n = columns_of(cell.text, strlen(cell.text));
        if (n > most) most = n;
    }
    return most;
}

/* Columns in the order of the table while they fit: the low priorities first get their place. What
 * is left goes to texts that would be cut. A column that isn't printed has no width. */
static void choose_columns(const struct table *t, const struct table_def *def, int *widths)
{
    int left = LINE;

    memset(widths, 0, def->ncolumns * sizeof *widths);
    for (unsigned p = 1; p < 10; p++)
        for (uint32_t c = 0; c < def->ncolumns; c++) {
            if (def->columns[c].priority != p || def->columns[c].width + 1 > left) continue;
            widths[c] = def->columns[c].width;
            left -= widths[c] + 1;
        }
    for (uint32_t c = 0; c < def->ncolumns; c++) {
        int most = widths[c] && !def->columns[c].numeric ? longest(t, c) : 0;
        int more = most > widths[c] + left ? left : most > widths[c] ? most - widths[c] : 0;
        widths[c] += more;
        left -= more;
    }
}

/* Text of one cell in exactly `width` columns. */
static void put_padded(struct buf *out, const char *text, int width, bool right)
{
    size_t bytes = strlen(text);
    int n = columns_of(text, bytes);
    if (right)
        for (int i = n; i < width; i++) buf_u8(out, ' ');
    buf_put(out, text, bytes);
    if (!right)
        for (int i = n; i < width; i++) buf_u8(out, ' ');
}

static void end_line(struct buf *out)
{
    while (out->len && out->data[out->len - 1] == ' ') out->len--;
    buf_u8(out, '\n');
}

static enum status put_kernels(const struct session *s, struct buf *out)
{
    const struct table_def *def = table_find("kernels");
    struct table t = {0};
    int widths[32];
    char text[CELL_TEXT_MAX];
    struct cell cell;
    enum status st = table_build(&t, s, def, NULL);

    if (st != OK || t.nrows == 0) goto out;
    choose_columns(&t, def, widths);
    buf_u8(out, '\n');
    for (uint32_t c = 0; c < def->ncolumns; c++) {
        const struct column *col = &def->columns[c];
        if (!widths[c]) continue;
        snprintf(text, sizeof text, "%.*s", widths[c], col->title);
        put_padded(out, text, widths[c], col->numeric);
        buf_u8(out, ' ');
    }
    end_line(out);
    for (uint32_t i = 0; i < t.nrows && i < TOP_KERNELS; i++) {
        for (uint32_t c = 0; c < def->ncolumns; c++) {
            const struct column *col = &def->columns[c];
            if (!widths[c]) continue;
            table_cell(&t, i, c, &cell);
            cell_format(col, &cell, widths[c], text, sizeof text);
            put_padded(out, text, widths[c], col->numeric);
            buf_u8(out, ' ');
        }
        end_line(out);
    }
    if (t.nrows > TOP_KERNELS) buf_printf(out, "and %u more\n", t.nrows - TOP_KERNELS);
out:
    table_free(&t);
    return st;
}

/* Text after a head that ends at column `at`, broken at blanks so that no line is longer than
 * LINE; a word that fits nowhere stands alone. */
static void put_wrapped(struct buf *out, const char *text, int at)
{
    for (int column = at; *text;) {
        size_t n = strcspn(text, " ");
        int width = columns_of(text, n);
        if (column > at && column + 1 + width > LINE) {
            buf_printf(out, "\n%*s", at, "");
            column = at;
        } else if (column > at) {
            buf_u8(out, ' ');
            column++;
        }
        buf_put(out, text, n);
        column += width;
        text += n + (text[n] == ' ');
    }
}

static void put_sources(const struct session *s, struct buf *out)
{
    if (s->nsources) buf_printf(out, "\ncounter sources\n");
    for (uint32_t i = 0; i < s->nsources; i++) {
        const struct msg_source *src = &s->sources[i];
        buf_printf(out, "  %-9s %-11s ", src->name, src->state);
        put_wrapped(out, src->why, 24);
        end_line(out);
    }
}

enum status report_summary(const struct session *s, struct buf *out)
{
    buf_printf(out, "%.44s%s%.30s\n", s->hello.device, s->model.name[0] ? ", " : "", s->model.name);
    put_wall_clock(s, out);
    enum status st = put_kernels(s, out);
    if (st != OK) return st;
    put_sources(s, out);
    if (s->ended && s->end_text[0]) buf_printf(out, "\n%.79s\n", s->end_text);
    return out->failed ? err_set(ERR_NOMEM, "out of memory for the summary") : OK;
}
