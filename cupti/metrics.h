/*
 * The metric table: one row a metric in metrics.def, looked up by id or key.
 *
 * Host only: no CUDA, no CUPTI, no memory, no state; any thread. Ids are stored in session files: a
 * number is never given to another metric. To add a metric: one row in metrics.def.
 */
#ifndef CUPTI_METRICS_H
#define CUPTI_METRICS_H

#include <stddef.h>
#include <stdint.h>

/* Sets that a metric belongs to. */
enum {
    METRIC_SET_PM = 1 << 0,     /* sampled live inside running kernels */
    METRIC_SET_LIVE = 1 << 1,   /* exact, together in one pass */
    METRIC_SET_SOL = 1 << 2,    /* exact throughputs, several passes */
    METRIC_SET_PIPES = 1 << 3,  /* exact pipe use */
    METRIC_SET_MEMORY = 1 << 4, /* exact memory traffic */
    METRIC_SET_STALLS = 1 << 5, /* exact stall ratios */
    /* Every exact set: one group of all of them. */
    METRIC_SET_ALL =
        METRIC_SET_LIVE | METRIC_SET_SOL | METRIC_SET_PIPES | METRIC_SET_MEMORY | METRIC_SET_STALLS,
};

enum { METRIC_SETS = 6, METRIC_SETS_TEXT = 48 }; /* names of exact sets, "all" among them */

enum metric_id {
    METRIC_NONE = 0,
#define METRIC(num, ID, key, label, unit, sets, range, pm, meaning) METRIC_##ID = num,
#include "cupti/metrics.def"
#undef METRIC
};

struct metric {
    uint16_t id;
    const char *key;     /* "sm_pct": reports, options */
    const char *label;   /* "SM%": column heads */
    const char *unit;    /* "%", "ns", "B", "B/s", "/cycle", "cycles", "" */
    unsigned sets;       /* METRIC_SET_* */
    const char *range;   /* exact: names for the range profiler (ncu's too) to try in order, '|'
                            between, "" = none */
    const char *pm;      /* live: names to try in order, '|' between, "" = none */
    const char *meaning; /* one sentence */
};

size_t metric_count(void);
const struct metric *metric_at(size_t i);          /* table order; NULL past the end */
const struct metric *metric_by_id(unsigned id);    /* NULL when unknown */
const struct metric *metric_by_key(const char *k); /* NULL when unknown */

/* The exact sets in a comma list of live, sol, stalls, pipes, memory, all; 0 when a word of it is
 * none of them, or the list is empty. */
unsigned metric_sets_parse(const char *list);

/* The reverse: "all", or a comma list. `out` has METRIC_SETS_TEXT bytes. */
void metric_sets_text(unsigned sets, char *out);

/* Name of set i, 0 to METRIC_SETS - 1: "live" first, "all" last; NULL past the end. */
const char *metric_set_name(unsigned i);

/* Copies candidate number i (from 0) of a '|' list; 0 when there is none or it does not fit. */
size_t metric_candidate(const char *list, unsigned i, char *out, size_t size);

#endif
