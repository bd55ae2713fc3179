/* What the files of tables share. A getter fills one cell; cells come in cleared. */
#ifndef SESSION_TABLE_PRIV_H
#define SESSION_TABLE_PRIV_H

#include "session/table.h"

#define NCOLUMNS(a) (sizeof(a) / sizeof *(a))

void cell_text(struct cell *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cell_value(struct cell *c, struct value v); /* dims what is not there, marks faults */
void cell_count(struct cell *c, uint64_t n);     /* an exact number, always there */

/* The spread of a figure as a cell of its own; missing as the figure is, or `none`, when it has no
 * spread. */
void cell_spread(struct cell *c, struct value v, struct value none);
/* "reason 34%" of the row's samples, or why there are none. */
void cell_top_stall(struct cell *c, const struct session *s, const struct row *r);
void cell_shape(struct cell *c, const struct msg_row_def *r); /* "m x n x k", or "m x n" */

extern const struct table_def table_kernels, table_rows, table_detail;
extern const struct table_def table_generations, table_variants, table_parity, table_flips;
extern const struct table_def table_census, table_stalls;
extern const struct table_def table_executed, table_executed_classes;
extern const struct table_def table_surplus, table_surplus_opcodes;
extern const struct table_def table_best;
extern const struct table_def table_sources, table_events, table_metrics, table_drops;
extern const struct table_def table_costs;
extern const struct table_def table_regime, table_ceilings;
extern const struct table_def table_experiments, table_gates, table_pairs, table_mechanism;

#endif
