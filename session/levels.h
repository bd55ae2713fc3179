/*
 * Levels: one level a kernel row, by least squares from samples that several rows share. A sample's
 * value is the sum over its rows of (part of the sample that the row ran) x (the row's level); the
 * chip's idle part adds nothing. Launches of a row are taken to be alike, and level from their
 * start to their end; where that is not so the residual says it.
 *
 * Bounds: 0 <= level <= `most` of the metric (bounded least squares by coordinate descent on the
 * normal equations). A level is refused, with the reason, when too few samples saw the row, when
 * its samples can't tell it from other rows (variance inflation factor: Marquardt 1970), or when
 * the samples around it stray too far from the model. The standard error is that of least squares
 * with the residual's variance taken where the row ran: sqrt(inv(A'A)_jj * sum(a_j^2 e^2) /
 * sum(a_j^2)).
 *
 * levels_new() gives what levels_free() takes. Pure otherwise; one thread.
 */
#ifndef SESSION_LEVELS_H
#define SESSION_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "session/overlap.h"

enum {
    LEVELS_ROWS_MAX = 128,
    LEVELS_METRICS_MAX = 16,
    LEVELS_MIN_SAMPLES = 30, /* that a row took part in */
    LEVELS_MAX_INFLATION = 20,
};

struct levels;

/* `most[i]`: the metric's upper bound, INFINITY for none. NULL: no memory, or too many metrics. */
struct levels *levels_new(unsigned metrics, const double *most);
void levels_free(struct levels *l); /* NULL is fine */

/* The place of a row, made when missing; -1 when LEVELS_ROWS_MAX others have one. */
int levels_row(struct levels *l, uint32_t row);
unsigned levels_rows(const struct levels *l);
uint64_t levels_samples(const struct levels *l); /* that were added */
uint32_t levels_row_at(const struct levels *l, unsigned place);

/* What overlaps a sample of dur ns, as levels_add() and levels_check() want it: place[], part[] of
 * OVERLAP_MAX. Returns n; -1 when n is, or when a row has no place or is a kernel nobody knows. */
int levels_parts(struct levels *l, const struct overlap *rows, int n, uint64_t dur, int *place,
                 double *part);

/* One sample: `part[i]` of it (0..1) was of the row at place[i]. A sample with a value missing is
 * left out, unless the metric never had one. */
void levels_add(struct levels *l, const int *place, const double *part, unsigned n,
                const double *value);

/* Solves for all that was added. Then each sample of the newest window once more through
 * levels_check(), which is where the errors come from. */
void levels_solve(struct levels *l);
void levels_check(struct levels *l, const int *place, const double *part, unsigned n,
                  const double *value);

enum level_state {
    LEVEL_OK,
    LEVEL_FEW,   /* fewer than LEVELS_MIN_SAMPLES samples saw it */
    LEVEL_TIED,  /* can't be told from other rows */
    LEVEL_LOOSE, /* the samples don't follow the model */
};

struct level {
    enum level_state state;
    double v, error;  /* standard error */
    double inflation; /* of the variance by the other rows; 1 = none, INFINITY = tied */
    uint32_t samples; /* that the row took part in */
};

/* LOOSE when the error passes `loose` and a tenth of the level. */
void levels_get(const struct levels *l, unsigned metric, unsigned place, double loose,
                struct level *out);

/* Sum of squared residuals of a metric without bounds, of all that was added, and the same of a
 * model that knows the mean alone. NAN for a metric with values missing. Needs no solve. */
double levels_residual(struct levels *l, unsigned metric);
double levels_variance(const struct levels *l, unsigned metric);

#endif
