/*
 * Small CSV tables with a heading: cells are text, found by row and by the heading's words. A table
 * owns its text; one thread. Quoted cells may hold commas and doubled quotes, not line ends;
 * control characters are left out.
 */
#ifndef TUI_CSV_H
#define TUI_CSV_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { CSV_BYTES = 4 << 20, CSV_COLUMNS = 128, CSV_ROWS = 2048 };

struct csv {
    char *text;
    const char **cells; /* rows x columns, the heading is row 0; "" where a row is short */
    size_t rows, columns;
};

/* ERR_IO: no such file (errno ENOENT kept), unreadable; ERR_FORMAT: too large, too many columns or
 * lines. */
enum status csv_open(struct csv *c, const char *path);
void csv_close(struct csv *c);

/* The column of a heading, or -1. */
int csv_column(const struct csv *c, const char *name);
/* The cell below a heading; "" when there is none. Row 1 is the first below it. */
const char *csv_text(const struct csv *c, size_t row, const char *name);
/* The same as a number; NAN when it is none. */
double csv_number(const struct csv *c, size_t row, const char *name);
/* The next row after `after` whose cell below `name` is `value`; 0 when there is none. */
size_t csv_find(const struct csv *c, size_t after, const char *name, const char *value);

#endif
