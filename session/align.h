/*
 * The offset between the clock of PM samples and the clock of kernel spans, by edges: the offset at
 * which levels by kernel (levels.h) explain the samples best. Every start and end of a kernel is an
 * edge that moves the residual, so a window of some hundred launches fixes it to a part of a
 * sample.
 *
 * Searched within two sampling periods either way. Each metric gives an answer of its own; the one
 * whose residual rises most steeply away from it is taken, and the bound is what the others that
 * are at least a third as steep differ from it, but never under a sixteenth of a period. A kernel
 * that takes time to fill or to leave the chip moves the answers of the SM's metrics apart from
 * those of the memory's: the bound holds that.
 *
 * Pure; allocates and frees its own room.
 */
#ifndef SESSION_ALIGN_H
#define SESSION_ALIGN_H

#include <stdbool.h>

#include "base/status.h"
#include "session/overlap.h"
#include "session/pack.h"

enum { ALIGN_STEP_NS = 250, ALIGN_MIN_SAMPLES = 100 };

struct align {
    bool ok;
    int64_t offset_ns; /* add to span times to get sample times */
    uint32_t bound_ns;
    unsigned metric; /* the one that was taken */
    double steep;    /* residual a period away over the least one */
    const char *why; /* static; when not ok */
};

/* spans[] sorted by overlap_compare_spans, samples[] by start, in clocks at most two periods apart.
 * ERR_NOMEM only. */
enum status align_clocks(const struct window_span *spans, uint32_t nspans,
                         const struct pm_item *samples, uint32_t nsamples, unsigned metrics,
                         uint32_t period_ns, struct align *out);

#endif
