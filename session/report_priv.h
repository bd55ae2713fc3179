/* The report formats; each is defined last in its file. */
#ifndef SESSION_REPORT_PRIV_H
#define SESSION_REPORT_PRIV_H

#include "session/report.h"

extern const struct report_ops report_md_ops, report_json_ops, report_html_ops, report_csv_ops,
    report_perfetto_ops, report_sqlite_ops;

/* Is kernel i's census for people? Of a session whose kernels ran, of those that did; else of all. */
bool report_shows_census(const struct session *s, uint32_t i);

#endif
