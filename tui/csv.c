/* See csv.h. The text is cut in place: a cell is a piece of it. */
#include "tui/csv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the cell at *p, unquotes it, and steps over its comma; false at the end of the line. */
static bool take_cell(char **p, const char **cell)
{
    char *from = *p, *to = *p;
    bool quoted = *from == '"';
    *cell = to;
    if (quoted) from++;
    for (; *from; from++) {
        if (quoted && *from == '"') {
            if (from[1] != '"') {
                quoted = false;
                continue;
            }
            from++;
        } else if (!quoted && *from == ',') {
            break;
        }
        /* What steers a terminal is no text. */
        if ((unsigned char)*from >= ' ' && *from != 0x7f) *to++ = *from;
    }
    bool more = *from == ',';
    *p = more ? from + 1 : from;
    *to = '\0';
    return more;
}

static enum status take_lines(struct csv *c, const char *path)
{
    size_t lines = 0;
    for (const char *s = c->text; *s; s++) lines += *s == '\n' || *s == '\r';
    char *save = NULL;
    for (char *l = strtok_r(c->text, "\r\n", &save); l; l = strtok_r(NULL, "\r\n", &save)) {
        const char *row[CSV_COLUMNS];
        size_t n = 0;
        bool more = true;
        while (more && n < CSV_COLUMNS) more = take_cell(&l, &row[n++]);
        if (more) return err_set(ERR_FORMAT, "%s: more than %d columns", path, CSV_COLUMNS);
        if (c->rows == CSV_ROWS)
            return err_set(ERR_FORMAT, "%s: more than %d lines", path, CSV_ROWS);
        if (!c->cells) {
            c->columns = n;
            c->cells = calloc((lines + 1) * n, sizeof *c->cells);
            if (!c->cells) return err_set(ERR_NOMEM, "no memory for %s", path);
        }
        for (size_t i = 0; i < c->columns; i++)
            c->cells[c->rows * c->columns + i] = i < n ? row[i] : "";
        c->rows++;
    }
    return OK;
}

enum status csv_open(struct csv *c, const char *path)
{
    *c = (struct csv){0};
    FILE *f = fopen(path, "rb");
    if (!f) return err_set(ERR_IO, "%s can't be opened: %s", path, strerror(errno));
    c->text = malloc(CSV_BYTES + 1);
    size_t n = c->text ? fread(c->text, 1, CSV_BYTES + 1, f) : 0;
    enum status st = !c->text        ? err_set(ERR_NOMEM, "no memory for %s", path)
                     : ferror(f)     ? err_set(ERR_IO, "%s can't be read", path)
                     : n > CSV_BYTES ? err_set(ERR_FORMAT, "%s is too large", path)
                                     : OK;
    fclose(f);
    if (st == OK) {
        c->text[n] = '\0';
        st = take_lines(c, path);
    }
    if (st != OK) csv_close(c);
    return st;
}

void csv_close(struct csv *c)
{
    free(c->text);
    free(c->cells);
    *c = (struct csv){0};
}

int csv_column(const struct csv *c, const char *name)
{
    for (size_t i = 0; c->rows && i < c->columns; i++)
        if (!strcmp(c->cells[i], name)) return (int)i;
    return -1;
}

const char *csv_text(const struct csv *c, size_t row, const char *name)
{
    int column = csv_column(c, name);
    if (column < 0 || row == 0 || row >= c->rows) return "";
    return c->cells[row * c->columns + (size_t)column];
}

double csv_number(const struct csv *c, size_t row, const char *name)
{
    const char *s = csv_text(c, row, name);
    char *end;
    double v = strtod(s, &end);
    return end == s || *end ? (double)NAN : v;
}

size_t csv_find(const struct csv *c, size_t after, const char *name, const char *value)
{
    int column = csv_column(c, name);
    for (size_t i = after + 1; column >= 0 && i < c->rows; i++)
        if (!strcmp(c->cells[i * c->columns + (size_t)column], value)) return i;
    return 0;
}
