/*
 * What a sample overlaps: kernel spans in order of start are walked along with samples in order of
 * time, so that a whole window takes linear work. Pure; the caller owns everything.
 */
#ifndef SESSION_OVERLAP_H
#define SESSION_OVERLAP_H

#include <stdint.h>

enum { OVERLAP_MAX = 64 }; /* spans looked at for one sample: more are no attribution */

struct window_span {
    uint64_t start, end;
    uint32_t row; /* index + 1; 0 = a kernel nobody knows */
};

/* What one sample overlaps, row by row. */
struct overlap {
    uint32_t row;
    uint64_t ns, last_end;
};

/* Zero-initialised = at the start of spans[]. */
struct overlap_walk {
    const struct window_span *active[OVERLAP_MAX]; /* spans that may still matter */
    unsigned n;
    uint32_t next;
    uint64_t crowded_until;
};

/* The rows that overlap [a, b), in out[OVERLAP_MAX]; a must not fall from call to call. Launches of
 * a row that overlap each other count once. -1: too many launches to tell. */
int overlap_next(struct overlap_walk *w, const struct window_span *spans, uint32_t nspans,
                 uint64_t a, uint64_t b, struct overlap *out);

/* For qsort: by start, then end, then row. */
int overlap_compare_spans(const void *a, const void *b);

#endif
