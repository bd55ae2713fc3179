/*
 * Private to cupti/: the ops of every source and what they share. The engine includes counter.h.
 */
#ifndef CUPTI_SOURCES_H
#define CUPTI_SOURCES_H

#include "cupti/counter.h"
#include "cupti/lib.h"

/* Defaults of struct counter_config, and bounds that keep a wish within memory and hardware. */
enum {
    PM_INTERVAL_NS = 20000,
    PM_INTERVAL_MIN_NS = 5000, /* 5 us overflowed a 64 MiB buffer on an H200 */
    PM_WINDOW_NS = 24000000,   /* 1,200 samples at 20 us: about 0.3 s of one core */
    PM_MAX_SAMPLES_LIMIT = 4096,
    COUNTER_BUFFER = 64 << 20,
    PC_PERIOD_LOG2 = 15,
    PC_MAX_PCS = 4096,
    PC_MAX_PCS_LIMIT = 1 << 17,
    RANGE_MAX = 256,
    RANGE_MAX_LIMIT = 2000,
    EXEC_INSNS = 1 << 16,
    EXEC_INSNS_LIMIT = 1 << 18,
    SPANS_MAX = 1 << 16,
    SPANS_MAX_LIMIT = 1 << 20,
};

extern const struct counter_source_ops counter_events_ops;
extern const struct counter_source_ops counter_activity_ops;
extern const struct counter_source_ops counter_pm_ops;
extern const struct counter_source_ops counter_pc_ops;
extern const struct counter_source_ops counter_range_ops;
extern const struct counter_source_ops counter_sassexec_ops;
extern const struct counter_source_ops counter_synth_ops[COUNTER_ROLES];

/* `wish`, or `dflt` when it is 0, held between lo and hi. */
uint64_t counter_pick(uint64_t wish, uint64_t dflt, uint64_t lo, uint64_t hi);

/* True when libcupti is there with the calls of `prefix`; else sets the source UNAVAILABLE. */
bool counter_has_lib(struct counter_source *src, const char *prefix);

/* Asks the driver whether profiling interface `api` (CUPTI_API_*) works on this device; sets the
 * source UNAVAILABLE and gives false if it surely doesn't. */
bool counter_supported(struct counter_source *src, int api);

/* Tags of launches in the order they were made, to be paired with spans or ranges that come in the
 * same order. Bounded: what does not fit is counted and stays untagged. */
struct counter_note {
    uint64_t tag;
    const char *kernel;
};
struct counter_notes {
    struct counter_note *v;
    size_t n, cap;
    uint64_t lost;
};
enum status counter_notes_init(struct counter_notes *n, size_t cap);
void counter_notes_free(struct counter_notes *n);
void counter_notes_put(struct counter_notes *n, const struct counter_launch *l);

#endif
