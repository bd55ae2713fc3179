/* What the files that work on an open PM window share: model_window.c, model_trace.c,
 * model_estimate.c. Spans are sorted and in the samples' clock once the window has ended. */
#ifndef SESSION_WINDOW_PRIV_H
#define SESSION_WINDOW_PRIV_H

#include "session/model_priv.h"
#include "session/overlap.h"

enum { WIRE_METRICS_MAX = 64 }; /* more than any window has */

#define METRIC_UNKNOWN UINT16_MAX

struct window_fold {
    struct msg_window_begin def;
    uint16_t metric[WIRE_METRICS_MAX]; /* index into metrics[] */
    unsigned nmetrics;
    struct pm_item *samples;
    struct window_span *spans;
    uint32_t nsamples, nspans;
    uint64_t cutoff; /* after this time spans are missing: the limit was met */
};

/* model_trace.c: keeps the window for timelines and traces; the oldest leave. `end_t_ns`: time of
 * its last frame. */
enum status trace_keep(struct session *s, const struct window_fold *w, uint64_t end_t_ns);

/* model_estimate.c: adds the window to the system of its generation and solves it anew. */
enum status estimate_window(struct session *s, const struct window_fold *w);

#endif
