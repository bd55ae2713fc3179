/*
 * Small sessions for tests of the fold: each call encodes one frame, decodes it as from the wire
 * and folds it. Failures end the test. One thread.
 */
#ifndef TESTS_SESSION_LAB_H
#define TESTS_SESSION_LAB_H

#include "session/model.h"

void lab_apply(struct session *s, enum frame_type type, const void *msg);

/* HELLO, GENERATION 1 and one kernel with KERNEL_DEF number 1. */
void lab_start(struct session *s);
void lab_generation(struct session *s, uint32_t generation, const char *variant, uint32_t kd);
void lab_kernel(struct session *s, uint32_t number, const char *name);
void lab_row(struct session *s, uint32_t number, uint32_t kernel, uint32_t generation);
void lab_metric(struct session *s, uint16_t number, const char *key, const char *source);
void lab_source(struct session *s, const char *name, const char *state, const char *why);
void lab_span_agg(struct session *s, uint32_t row, const char *source, uint32_t calls, uint64_t us);
void lab_round(struct session *s, uint32_t generation, uint8_t counted, double tok_s);

/* An allocated session after lab_start(); the second has kernel 2, rows 1 and 2 on the two kernels,
 * and a metric that a live "pm" samples. lab_end() frees any allocated session. */
struct session *lab_new(void);
struct session *lab_new_sampled(uint16_t metric);
void lab_end(struct session *s);

/* Records the frames, cuts [from_ns, to_ns] out, folds the cut into an allocated session. */
struct lab_frame {
    enum frame_type type;
    uint64_t t_ns;
    const void *msg;
};
struct session *lab_after_cut(const struct lab_frame *frames, unsigned n, uint64_t from_ns,
                              uint64_t to_ns);

/* A window of one metric, in ns; begin, any number of the two, end. */
void lab_window_begin(struct session *s, uint32_t window, uint16_t metric, uint32_t period_ns);
void lab_spans(struct session *s, uint32_t window, const struct span_item *spans, unsigned n);
void lab_samples(struct session *s, uint32_t window, const struct pm_item *samples, unsigned n);
void lab_window_end(struct session *s, uint32_t window, bool overflow, bool offset_ok,
                    int64_t offset_ns);

#endif
