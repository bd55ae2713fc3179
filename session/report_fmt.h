/* Number and text helpers of the report writers: independent of the locale. */
#ifndef SESSION_REPORT_FMT_H
#define SESSION_REPORT_FMT_H

#include "base/buf.h"
#include "session/table.h"

/* "%.6g" with a point whatever the locale; whole numbers up to 2^53 in full when `whole`. */
void fmt_number(double v, bool whole, char *buf, size_t size);

/* "2026-11-29T21:00:00Z" of a wall clock in ns. */
void fmt_time(uint64_t wall_ns, char *buf, size_t size);

/* Replaces bytes that are no UTF-8 by '?', in place. */
void fmt_utf8(char *text);

/* Size of a table's column `c` over all its rows, at least the title's and at most `max`. */
int fmt_width(const struct table *t, uint32_t c, int max);

/* The cell as reports print it: unlimited width, the state's word when it has no value. */
void fmt_cell(const struct table *t, uint32_t row, uint32_t column, char *buf, size_t size);

/* Whether any row of the column has something in it. */
bool fmt_column_used(const struct table *t, uint32_t column);

#endif
