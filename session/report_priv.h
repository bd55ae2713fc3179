/* The report formats; each is defined last in its file. */
#ifndef SESSION_REPORT_PRIV_H
#define SESSION_REPORT_PRIV_H

#include "session/report.h"
#include "session/table.h"

/* Takes a table's cells one by one; `focus` = what the table is of ("" = the session). */
struct cell_sink {
    void (*put)(void *ctx, const struct table *t, const char *focus, uint32_t row, uint32_t col);
    void *ctx;
};

/* Every cell of the table with that id; q as in table_build(). */
enum status report_cells(const struct session *s, const char *id, const struct table_query *q,
                         const char *focus, const struct cell_sink *to);
/* Census and stalls of each kernel, then what each row with executed counts executed. */
enum status report_kernel_cells(const struct session *s, const struct cell_sink *to);

extern const struct report_ops report_md_ops, report_json_ops, report_html_ops, report_csv_ops,
    report_perfetto_ops, report_sqlite_ops;

/* Was kernel i launched in this session? */
bool report_launched(const struct session *s, uint32_t i);
/* Does kernel i's census belong into a report? Of a session whose kernels ran, of those that did;
 * else of all, each marked as never launched. */
bool report_shows_census(const struct session *s, uint32_t i);

#endif
