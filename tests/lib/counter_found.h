/*
 * A sink that keeps what counter sources find and joins samples to spans by time alone; for tests.
 *
 * Launches go round over `kernels` names in order and their tags count from 1, so that a tag tells
 * which kernel it must be. Bounded: what does not fit is not kept. Sink functions may run on
 * several threads.
 */
#ifndef TESTS_COUNTER_FOUND_H
#define TESTS_COUNTER_FOUND_H

#include <pthread.h>

#include "cupti/counter.h"

enum { FOUND_KERNELS = 8, FOUND_REASONS = 64, FOUND_IDS = 256 };
enum { FOUND_SM, FOUND_ACTIVE, FOUND_IPC, FOUND_TENSOR, FOUND_DRAM, FOUND_VALUES };

struct found_sample {
    uint64_t start, end;
    double v[FOUND_VALUES];
};

struct found_span {
    uint64_t start, end, tag;
    int kernel;
};

struct found {
    pthread_mutex_t lock;
    const char *const *names;
    int kernels;
    struct found_span *spans;
    struct found_sample *samples;
    size_t n_spans, n_samples, cap_spans, cap_samples;
    size_t bad_tags;                        /* spans with no tag, or that of another kernel */
    size_t foreign;                         /* spans of kernels that are not in names */
    double exact[FOUND_KERNELS][FOUND_IDS]; /* last value by metric id */
    double inst_min[FOUND_KERNELS], inst_max[FOUND_KERNELS];
    unsigned inst_n[FOUND_KERNELS];
    uint64_t pc[FOUND_KERNELS][FOUND_REASONS], pc_not[FOUND_KERNELS][FOUND_REASONS];
    uint64_t pc_records[FOUND_KERNELS], pc_foreign;
    char reasons[FOUND_REASONS][40];
    size_t n_reasons;
    struct counter_window sum[COUNTER_ROLES]; /* start_ns, end_ns: sums in microseconds */
    unsigned windows[COUNTER_ROLES], overflows[COUNTER_ROLES];
    unsigned failures; /* state changes to FAILED or UNAVAILABLE */
    char last_why[256];
};

/* Of one kernel, from found_join(); free(sm). whole: SM% over whole launches, samples that lie in
 * several split by overlap. */
struct found_joined {
    size_t n;
    double whole;
    double sum[FOUND_VALUES];
    double *sm;
};

bool found_init(struct found *f, const char *const *names, int kernels, size_t spans,
                size_t samples);
void found_free(struct found *f);
struct counter_sink found_sink(struct found *f);

/* Joins samples to spans by time alone; returns how many lie wholly inside one span.
 * out[f->kernels]. */
size_t found_join(struct found *f, struct found_joined *out);

/* q-quantile of v (sorted in place); NaN when n is 0. */
double found_quantile(double *v, size_t n, double q);

#endif
