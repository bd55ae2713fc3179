/*
 * Reports: one walk over the model, several writers. To add a format: one file with a report_ops,
 * one row in report.c's list. Output depends on the session alone (no clock, no locale), so the
 * report of a live session equals that of its recording, byte for byte.
 */
#ifndef SESSION_REPORT_H
#define SESSION_REPORT_H

#include "session/table.h"

struct report_ops {
    const char *ext; /* "md", "json" */
    const char *title;
    /* Appends the whole report to `out`. */
    enum status (*write)(const struct session *s, struct buf *out);
};

extern const struct report_ops *const reports[];
extern const unsigned nreports;
const struct report_ops *report_find(const char *ext); /* NULL when unknown */

/* Writes to a file that must not exist yet. */
enum status report_save(const struct session *s, const char *ext, const char *path);

/* The short text summary that is printed when there is no terminal. */
enum status report_summary(const struct session *s, struct buf *out);

#endif
