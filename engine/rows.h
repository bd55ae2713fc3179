/*
 * Rows: a kernel on one shape, role and phase in one generation; their numbers, definitions and
 * times of the running round.
 *
 * rows_find() gives the number of a launch's row, sending its ROW_DEF at first sight. rows_add()
 * puts a launch's time into the round's sums, rows_flush() sends them as one SPAN_AGG a row.
 * Launching thread only. Numbers rise over the engine's life; a new generation forgets the old
 * rows.
 */
#ifndef ENGINE_ROWS_H
#define ENGINE_ROWS_H

#include "engine/backend.h"
#include "engine/emit.h"

enum { ROWS_MAX = 1024 }; /* of one generation; launches past it have row 0 */

struct rows;

enum status rows_open(struct emit *emit, struct rows **out);
void rows_close(struct rows *r); /* NULL is fine */
void rows_generation(struct rows *r, uint32_t generation);

/* `phase`: "prefill" or "decode". 0 when the table is full. */
uint32_t rows_find(struct rows *r, const struct launch_info *info, const char *phase);
void rows_add(struct rows *r, uint32_t row, uint64_t dur_ns);

/* Sends what was added since the last flush, or forgets it. */
void rows_flush(struct rows *r, uint32_t round, const char *source);
void rows_discard(struct rows *r);

#endif
