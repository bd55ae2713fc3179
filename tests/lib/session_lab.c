/* See session_lab.h. */
#include "session_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "session/record.h"

static void must(enum status st, const char *what)
{
    if (st == OK) return;
    fprintf(stderr, "session_lab: %s: %s\n", what, err_msg());
    abort();
}

void lab_apply(struct session *s, enum frame_type type, const void *msg)
{
    struct buf b = {0};
    struct frame f;
    size_t used;

    must(proto_encode(&b, type, s->t_ns + 1000, msg), "encode");
    must(proto_next(b.data, b.len, &f, &used), "next");
    must(session_apply(s, &f), "apply");
    buf_free(&b);
}

void lab_start(struct session *s)
{
    struct msg_hello h = {.instance = 1, .backend = "cuda", .device = "lab"};
    must(session_init(s), "init");
    lab_apply(s, FRAME_HELLO, &h);
    lab_generation(s, 1, "narrow", 4);
    lab_kernel(s, 1, "narrow_kd4");
}

void lab_generation(struct session *s, uint32_t generation, const char *variant, uint32_t kd)
{
    struct msg_generation m = {
        .generation = generation, .family = "q4k_gemm", .kd = kd, .reason = "flip", .parity = "ok"};
    snprintf(m.variant, sizeof m.variant, "%s", variant);
    lab_apply(s, FRAME_GENERATION, &m);
}

void lab_kernel(struct session *s, uint32_t number, const char *name)
{
    struct msg_kernel_def m = {.kernel = number, .family = "q4k_gemm", .arch = 90};
    snprintf(m.name, sizeof m.name, "%s", name);
    lab_apply(s, FRAME_KERNEL_DEF, &m);
}

void lab_row(struct session *s, uint32_t number, uint32_t kernel, uint32_t generation)
{
    struct msg_row_def m = {.row = number,
                            .kernel = kernel,
                            .generation = generation,
                            .m = 64,
                            .n = 32,
                            .k = 256,
                            .role = "attn_q",
                            .phase = "prefill",
                            .macs = 64.0 * 32 * 256};
    lab_apply(s, FRAME_ROW_DEF, &m);
}

void lab_metric(struct session *s, uint16_t number, const char *key, const char *source)
{
    struct msg_metric_def m = {.metric = number};
    snprintf(m.key, sizeof m.key, "%s", key);
    snprintf(m.label, sizeof m.label, "%s", key);
    snprintf(m.source, sizeof m.source, "%s", source);
    lab_apply(s, FRAME_METRIC_DEF, &m);
}

void lab_source(struct session *s, const char *name, const char *state, const char *why)
{
    struct msg_source m = {0};
    snprintf(m.name, sizeof m.name, "%s", name);
    snprintf(m.state, sizeof m.state, "%s", state);
    snprintf(m.why, sizeof m.why, "%s", why);
    lab_apply(s, FRAME_SOURCE, &m);
}

void lab_span_agg(struct session *s, uint32_t row, const char *source, uint32_t calls, uint64_t us)
{
    uint32_t hist[256] = {0};
    struct buf b = {0};
    struct msg_span_agg m = {.row = row,
                             .calls = calls,
                             .sum_ns = us * 1000 * calls,
                             .min_ns = us * 1000,
                             .max_ns = us * 1000};
    hist[hist_bin(us * 1000)] = calls;
    pack_hist(&b, hist);
    m.hist = (struct blob){b.data, (uint32_t)b.len};
    snprintf(m.source, sizeof m.source, "%s", source);
    lab_apply(s, FRAME_SPAN_AGG, &m);
    buf_free(&b);
}

void lab_round(struct session *s, uint32_t generation, uint8_t counted, double tok_s)
{
    struct msg_round m = {.generation = generation,
                          .counted = counted,
                          .prefill_tokens = 1000,
                          .prefill_ns = (uint64_t)(1000 / tok_s * 1e9),
                          .decode_tokens = 1000,
                          .decode_ns = (uint64_t)(1000 / tok_s * 1e9)};
    lab_apply(s, FRAME_ROUND, &m);
}

void lab_window_begin(struct session *s, uint32_t window, uint16_t metric, uint32_t period_ns)
{
    struct buf b = {0};
    struct msg_window_begin m = {.window = window, .source = "pm", .period_ns = period_ns};
    pack_metric(&b, metric);
    m.metrics = (struct blob){b.data, (uint32_t)b.len};
    lab_apply(s, FRAME_WINDOW_BEGIN, &m);
    buf_free(&b);
}

void lab_spans(struct session *s, uint32_t window, const struct span_item *spans, unsigned n)
{
    struct buf b = {0};
    uint64_t prev = 0;
    struct msg_spans m = {.window = window, .count = n};
    for (unsigned i = 0; i < n; i++) pack_span(&b, &prev, &spans[i]);
    m.spans = (struct blob){b.data, (uint32_t)b.len};
    lab_apply(s, FRAME_SPANS, &m);
    buf_free(&b);
}

void lab_samples(struct session *s, uint32_t window, const struct pm_item *samples, unsigned n)
{
    struct buf b = {0};
    uint64_t prev = 0;
    struct msg_pm_samples m = {.window = window, .count = n};
    for (unsigned i = 0; i < n; i++) pack_pm(&b, &prev, &samples[i], 1);
    m.samples = (struct blob){b.data, (uint32_t)b.len};
    lab_apply(s, FRAME_PM_SAMPLES, &m);
    buf_free(&b);
}

void lab_window_end(struct session *s, uint32_t window, bool overflow, bool offset_ok,
                    int64_t offset_ns)
{
    struct msg_window_end m = {
        .window = window, .overflow = overflow, .offset_ok = offset_ok, .offset_ns = offset_ns};
    lab_apply(s, FRAME_WINDOW_END, &m);
}

struct session *lab_new(void)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s) abort();
    lab_start(s);
    return s;
}

struct session *lab_new_sampled(uint16_t metric)
{
    struct session *s = lab_new();
    lab_kernel(s, 2, "gemv");
    lab_row(s, 1, 1, 1);
    lab_row(s, 2, 2, 1);
    lab_metric(s, metric, "sm_pct", "pm");
    lab_source(s, "pm", "ok", "");
    return s;
}

void lab_end(struct session *s)
{
    session_free(s);
    free(s);
}

static void record(const char *path, const struct lab_frame *frames, unsigned n)
{
    struct recorder *rec;
    must(recorder_open(path, &rec), "record");
    for (unsigned i = 0; i < n; i++) {
        struct buf b = {0};
        must(proto_encode(&b, frames[i].type, frames[i].t_ns, frames[i].msg), "encode");
        must(recorder_add(rec, b.data, b.len, frames[i].t_ns), "add");
        buf_free(&b);
    }
    must(recorder_close(rec), "close");
}

struct session *lab_after_cut(const struct lab_frame *frames, unsigned n, uint64_t from_ns,
                              uint64_t to_ns)
{
    char dir[] = "/tmp/lab_XXXXXX", whole[64], cut[64];
    struct session *s = calloc(1, sizeof *s);
    struct reader *r;
    struct frame f;
    if (!s || !mkdtemp(dir)) abort();
    snprintf(whole, sizeof whole, "%s/whole.sasstop", dir);
    snprintf(cut, sizeof cut, "%s/cut.sasstop", dir);
    record(whole, frames, n);
    must(record_cut(whole, cut, from_ns, to_ns), "cut");
    must(session_init(s), "init");
    must(reader_open(cut, &r), "open");
    while (reader_next(r, &f) == OK) must(session_apply(s, &f), "apply");
    reader_close(r);
    unlink(whole);
    unlink(cut);
    rmdir(dir);
    return s;
}
