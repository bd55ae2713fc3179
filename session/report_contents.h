/* The table of contents of a Markdown report. Pure; one thread. */
#ifndef SESSION_REPORT_CONTENTS_H
#define SESSION_REPORT_CONTENTS_H

#include "base/buf.h"
#include "base/status.h"

/* Appends to `out`, which holds the text before, links to the headings of `details`, which is to
 * follow: a list item for each of the second level, those of the third in one line below it, by
 * what stands before their colon. Anchors are those that GitHub makes of headings: lower case,
 * blanks as
 * '-', other marks left out, "-1" after what was there before. ERR_NOMEM. */
enum status report_contents(struct buf *out, const struct buf *details);

#endif
