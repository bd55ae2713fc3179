/*
 * The trace: JSON in Chrome's trace event format ("JSON object format"), which Perfetto and
 * chrome://tracing open. Launches inside the windows that are kept are complete events (ph X) on
 * one track a generation; PM samples are counters (ph C); generations, flips, faults and verdicts
 * are instants (ph i); times are us after the start.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/report_fmt.h"
#include "session/report_priv.h"
#include "session/timeline.h"

enum { PID = 1, TID_EVENTS = 1, TID_KERNELS = 100 };

static void put_string(struct buf *out, const char *text)
{
    char clean[512];
    snprintf(clean, sizeof clean, "%s", text);
    fmt_utf8(clean);
    buf_u8(out, '"');
    for (const char *p = clean; *p; p++) {
        if (*p == '"' || *p == '\\')
            buf_printf(out, "\\%c", *p);
        else if ((unsigned char)*p < ' ')
            buf_printf(out, "\\u%04x", (unsigned)*p);
        else
            buf_u8(out, (uint8_t)*p);
    }
    buf_u8(out, '"');
}

static void put_us(struct buf *out, const char *key, uint64_t ns)
{
    buf_printf(out, ",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / 1000),
               (unsigned long long)(ns % 1000));
}

static void put_name(struct buf *out, const char *what, unsigned tid, const char *name)
{
    buf_printf(out, "{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":", PID,
               tid, what);
    put_string(out, name);
    buf_printf(out, "}},\n");
}

static void put_names(const struct session *s, struct buf *out)
{
    char text[160];
    put_name(out, "process_name", 0, s->hello.device);
    put_name(out, "thread_name", TID_EVENTS, "events");
    for (uint32_t i = 0; i < s->ngenerations; i++) {
        const struct msg_generation *g = &s->generations[i].def;
        snprintf(text, sizeof text, "generation %u: %s %s KD %u", g->generation, g->family,
                 g->variant, g->kd);
        put_name(out, "thread_name", TID_KERNELS + g->generation, text);
    }
}

static void put_span(const struct session *s, struct buf *out, const struct trace_span *t)
{
    const struct row *r = t->row && t->row <= s->nrows ? &s->rows[t->row - 1] : NULL;
    const struct kernel *k = r ? &s->kernels[r->def.kernel] : NULL;
    buf_printf(out, "{\"ph\":\"X\",\"cat\":\"kernel\",\"pid\":%d,\"tid\":%u,\"name\":", PID,
               TID_KERNELS + (r ? r->def.generation : 0));
    put_string(out, k ? k->def.name : "unknown kernel");
    put_us(out, "ts", t->t_ns);
    put_us(out, "dur", t->dur_ns);
    if (r) {
        buf_printf(out, ",\"args\":{\"m\":%u,\"n\":%u,\"k\":%u,\"role\":", r->def.m, r->def.n,
                   r->def.k);
        put_string(out, r->def.role);
        buf_printf(out, ",\"phase\":");
        put_string(out, r->def.phase);
        buf_u8(out, '}');
    }
    buf_printf(out, "},\n");
}

/* Counters of the whole GPU: one track a metric. What is missing leaves its last value standing. */
static void put_sample(const struct session *s, struct buf *out, const struct trace_window *w,
                       const struct trace_sample *t)
{
    int at[TIMELINE_GRAPHS];
    timeline_graphs(s, w, at);
    for (int g = 0; g < TIMELINE_GRAPHS; g++) {
        int m = at[g];
        if (m < 0 || !isfinite(t->v[m])) continue;
        const char *label = s->metrics[w->metric[m]].label;
        buf_printf(out, "{\"ph\":\"C\",\"pid\":%d,\"cat\":\"pm\",\"name\":", PID);
        put_string(out, label);
        put_us(out, "ts", t->t_ns);
        buf_printf(out, ",\"args\":{");
        put_string(out, label);
        buf_printf(out, ":%.2f}},\n", (double)t->v[m]);
    }
}

static void put_window(const struct session *s, struct buf *out, const struct trace_window *w)
{
    for (uint32_t i = 0; i < w->nspans; i++) put_span(s, out, &w->spans[i]);
    for (uint32_t i = 0; w->used && i < w->nsamples; i++) put_sample(s, out, w, &w->samples[i]);
}

static void put_events(const struct session *s, struct buf *out)
{
    for (uint32_t i = 0; i < s->nevents; i++) {
        const struct event *e = &s->events[(s->first_event + i) % MAX_EVENTS];
        char text[480];
        snprintf(text, sizeof text, "%s: %s", e->kind, e->text);
        buf_printf(
            out, "{\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%d,\"cat\":\"event\",\"name\":", PID,
            TID_EVENTS);
        put_string(out, text);
        put_us(out, "ts", e->t_ns);
        buf_printf(out, "},\n");
    }
}

static enum status write_perfetto(const struct session *s, struct buf *out)
{
    buf_printf(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"session\":");
    put_string(out, s->hello.session);
    buf_printf(out, ",\"device\":");
    put_string(out, s->hello.device);
    buf_printf(out, ",\"driver\":");
    put_string(out, s->hello.driver);
    buf_printf(out, ",\"commit\":");
    put_string(out, s->hello.commit);
    buf_printf(out, ",\"command\":");
    put_string(out, s->hello.command);
    buf_printf(out, ",\"left_out\":%llu},\n\"traceEvents\":[\n",
               (unsigned long long)(s->trace_left_out + s->lost_events));
    put_names(s, out);
    for (uint32_t i = 0; i < s->ntrace; i++) put_window(s, out, &s->trace[i]);
    put_events(s, out);
    put_name(out, "process_labels", 0, s->model.name);
    if (out->len > 2 && !out->failed) out->len -= 2; /* the last comma */
    buf_printf(out, "\n]}\n");
    return out->failed ? err_set(ERR_NOMEM, "out of memory for the report") : OK;
}

const struct report_ops report_perfetto_ops = {
    .ext = "perfetto",
    .title = "Chrome trace of the launches inside windows, for ui.perfetto.dev",
    .write = write_perfetto,
};
