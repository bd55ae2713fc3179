/*
 * Charts of the HTML report: inline SVG with classes instead of colours (the page's style decides,
 * light or dark), no script. Each appends one <svg> or nothing when there is nothing to draw.
 */
#ifndef SESSION_REPORT_SVG_H
#define SESSION_REPORT_SVG_H

#include "session/model.h"

/* Text with what HTML would take for its own escaped; bytes that are no UTF-8 become '?'. */
void html_text(struct buf *out, const char *text);

void svg_pairs(struct buf *out, const struct lab_experiment *x);        /* gain, pair by pair */
void svg_distribution(struct buf *out, const struct lab_experiment *x); /* A/B over A/A */
void svg_mechanism(struct buf *out, const struct lab_experiment *x);    /* change of each figure */
void svg_rates(struct buf *out, const struct session *s);  /* tokens/s, round by round */
void svg_stalls(struct buf *out, const struct session *s); /* of the newest generation's kernels */
void svg_sm(struct buf *out, const struct session *s);     /* SM% inside its longest kernels */

#endif
