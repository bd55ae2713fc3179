/*
 * What the files of the fold share. A handler gets a decoded message and changes the session; it
 * counts what it can't use in `garbled_frames` or `overflowed` and fails for want of memory only.
 */
#ifndef SESSION_MODEL_PRIV_H
#define SESSION_MODEL_PRIV_H

#include "session/model.h"

enum status fold_hello(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_model(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_metric_def(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_kernel_def(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_row_def(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_module(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_census(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_variant_def(struct session *s, const struct frame *f, const union msg_any *m);

enum status fold_generation(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_round(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_span_agg(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_counter(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_stalls(struct session *s, const struct frame *f, const union msg_any *m);
/* model_heat.c */
enum status fold_pc_heat(struct session *s, const struct frame *f, const union msg_any *m);
void heat_free(struct session *s);
/* model_exec.c */
enum status fold_executed(struct session *s, const struct frame *f, const union msg_any *m);
void executed_free(struct session *s);

enum status fold_text(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_progress(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_clocks(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_duty(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_ceiling(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_drops(struct session *s, const struct frame *f, const union msg_any *m);

enum status fold_log(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_tally(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_source(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_fault(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_command(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_reply(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_parity(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_mark(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_bye(struct session *s, const struct frame *f, const union msg_any *m);

enum status fold_window_begin(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_spans(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_pm_samples(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_window_end(struct session *s, const struct frame *f, const union msg_any *m);
void window_free(struct window_fold *w);
void trace_free(struct session *s);    /* model_trace.c */
void estimate_free(struct session *s); /* model_estimate.c */

enum status fold_experiment(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_gate(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_pair(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_mechanism(struct session *s, const struct frame *f, const union msg_any *m);
enum status fold_verdict(struct session *s, const struct frame *f, const union msg_any *m);
void lab_free(struct session *s);

/* Counts a frame that made no sense; OK, since a stream is read to its end. */
enum status fold_garbled(struct session *s);

/* Room for one more in an array of `n` that only ever grows through here (capacity is implied by
 * n: 8, then powers of two). ERR_NOMEM leaves it as it was. */
enum status fold_grow(void *array, uint32_t n, size_t size);

/* A sum of counts that a stream may make as large as it likes: stays at the largest number. */
static inline uint64_t fold_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct kernel *fold_kernel(struct session *s, uint32_t number); /* by this instance's number */
struct row *fold_row(struct session *s, uint32_t number);
struct generation *fold_find_generation(struct session *s, uint32_t generation);
int fold_find_metric(const struct session *s, uint16_t number); /* index, -1 = not defined */

/* The row's entry of a metric, made when missing. *out is NULL when the limit is met (counted). */
enum status fold_row_metric(struct session *s, struct row *r, uint16_t metric,
                            struct row_metric **out);

void fold_event(struct session *s, uint64_t t_ns, const char *kind, uint8_t level, const char *fmt,
                ...) __attribute__((format(printf, 5, 6)));

#endif
