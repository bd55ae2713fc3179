/*
 * Reading a kept window (struct trace_window) as a timeline: values and kernels of any stretch of
 * it. Times are the session's, ns. Pure functions; nothing is owned.
 */
#ifndef SESSION_TIMELINE_H
#define SESSION_TIMELINE_H

#include "session/model.h"

/* From the first thing in the window to the end of its last; equal when it is empty. */
void timeline_bounds(const struct trace_window *w, uint64_t *from, uint64_t *to);

/* Mean over [from, to) of the metric w->metric[m], by time; NAN where nothing was sampled. */
double timeline_mean(const struct trace_window *w, int m, uint64_t from, uint64_t to);

/* Index of the kept window that t lies in or after; the first when t is before all. 0 when there
 * is none at all. */
uint32_t timeline_window(const struct session *s, uint64_t t);

/* A row and the time that it ran in a stretch. */
struct timeline_lane {
    uint32_t row; /* index + 1; 0 = kernels that nobody knows */
    uint64_t ns;
    uint32_t launches;
};

/* The rows that ran in [from, to), most time first; returns how many there are, of which the first
 * `max` are in lanes[]. */
uint32_t timeline_lanes(const struct trace_window *w, uint64_t from, uint64_t to,
                        struct timeline_lane *lanes, uint32_t max);

/* busy[i] = part (0..1) of the i-th of n equal pieces of [from, to) in which the row ran. */
void timeline_busy(const struct trace_window *w, uint32_t row, uint64_t from, uint64_t to,
                   float *busy, uint32_t n);

/* The first launch of `row` that starts after t (dir > 0), or the last that starts before it. */
const struct trace_span *timeline_next(const struct trace_window *w, uint32_t row, uint64_t t,
                                       int dir);

/* What a stretch [from, to) is named after: its one launch; where several run, the row `prefer`
 * when it is among them, else the row that ran most. False: nothing ran. */
struct timeline_named {
    uint32_t row;                  /* index + 1; 0 = a kernel that nobody knows */
    const struct trace_span *span; /* of several: the row's first in the stretch */
    uint32_t launches, rows;       /* in the stretch, of all */
    uint64_t ns;                   /* of the row */
};
bool timeline_name(const struct trace_window *w, uint64_t from, uint64_t to, uint32_t prefer,
                   struct timeline_named *out);

/* The metrics that are drawn, of a window's: SM% (or the nearest that the chip gives), tensor%,
 * DRAM%; index into w->metric[], -1 = it has none of the kind. */
enum { TIMELINE_GRAPHS = 3 };
void timeline_graphs(const struct session *s, const struct trace_window *w,
                     int at[TIMELINE_GRAPHS]);

/* The newest kept launch of row `index` that was sampled from end to end and holds at least `least`
 * whole samples; false: none. */
struct timeline_launch {
    const struct trace_window *window;
    const struct trace_span *span;
    uint32_t first, n; /* its samples in window->samples[] */
};
bool timeline_newest(const struct session *s, uint32_t index, uint32_t least,
                     struct timeline_launch *out);

#endif
