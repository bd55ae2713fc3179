/*
 * The fold: one handler a frame type, found in a table. See model.h.
 *
 * Invariants: no I/O and no clock; every array has a limit in model.h and what passes it is
 * counted; frames of unknown type or garbled content change nothing but the counts. To fold a new
 * frame: a handler in the file where its kind lives, a row in `handlers`.
 */
#include "session/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/model_priv.h"

typedef enum status handler_fn(struct session *s, const struct frame *f, const union msg_any *m);

static handler_fn *const handlers[FRAME_TYPE_END] = {
#define FRAME(UP, low, num, ver, cls, doc) [num] = fold_##low,
#include "session/proto.def"
};

enum status session_init(struct session *s)
{
    memset(s, 0, sizeof *s);
    s->events = calloc(MAX_EVENTS, sizeof *s->events);
    s->text = calloc(1, MAX_TEXT + 1);
    if (s->events && s->text) return OK;
    session_free(s);
    return err_set(ERR_NOMEM, "out of memory for a session");
}

void session_free(struct session *s)
{
    for (uint32_t i = 0; i < s->nkernels; i++) free(s->kernels[i].items);
    for (uint32_t i = 0; i < s->nrows; i++) free(s->rows[i].metrics);
    for (uint32_t i = 0; i < s->nmodules; i++) buf_free(&s->modules[i].bytes);
    free(s->kernels);
    free(s->rows);
    free(s->stalls);
    heat_free(s);
    executed_free(s);
    free(s->generations);
    free(s->parities);
    free(s->modules);
    trace_free(s);
    estimate_free(s);
    free(s->events);
    free(s->text);
    window_free(s->window);
    lab_free(s);
    memset(s, 0, sizeof *s);
}

enum status session_apply(struct session *s, const struct frame *f)
{
    union msg_any msg;

    s->frames++;
    s->bytes += FRAME_HEAD + (uint64_t)f->len + FRAME_TAIL;
    if (f->t_ns > s->t_ns) s->t_ns = f->t_ns;
    if (f->type >= FRAME_TYPE_END || !handlers[f->type]) {
        s->unknown_frames++;
        return OK;
    }
    if (proto_decode(f, &msg, sizeof msg) != OK) return fold_garbled(s);
    return handlers[f->type](s, f, &msg);
}

enum status fold_garbled(struct session *s)
{
    s->garbled_frames++;
    return OK;
}

enum status fold_grow(void *array, uint32_t n, size_t size)
{
    void *p;

    if (n != 0 && (n < 8 || (n & (n - 1)) != 0)) return OK;
    memcpy(&p, array, sizeof p); /* any object pointer has this shape here */
    p = realloc(p, (n ? 2 * (size_t)n : 8) * size);
    if (!p) return err_set(ERR_NOMEM, "out of memory for the session's model");
    memcpy(array, &p, sizeof p);
    return OK;
}

struct kernel *fold_kernel(struct session *s, uint32_t number)
{
    uint32_t at = number < MAX_KERNELS ? s->kernel_map[number] : 0;
    return at ? &s->kernels[at - 1] : NULL;
}

struct row *fold_row(struct session *s, uint32_t number)
{
    uint32_t at = number < MAX_ROWS ? s->row_map[number] : 0;
    return at ? &s->rows[at - 1] : NULL;
}

struct generation *fold_find_generation(struct session *s, uint32_t generation)
{
    return (struct generation *)session_generation(s, generation);
}

int fold_find_metric(const struct session *s, uint16_t number)
{
    for (uint32_t i = 0; i < s->nmetrics; i++)
        if (s->metrics[i].metric == number) return (int)i;
    return -1;
}

enum status fold_row_metric(struct session *s, struct row *r, uint16_t metric,
                            struct row_metric **out)
{
    *out = NULL;
    for (uint32_t i = 0; i < r->nmetrics; i++)
        if (r->metrics[i].metric == metric) {
            *out = &r->metrics[i];
            return OK;
        }
    if (s->row_metrics_total >= MAX_ROW_METRICS) {
        s->overflowed++;
        return OK;
    }
    enum status st = fold_grow(&r->metrics, r->nmetrics, sizeof *r->metrics);
    if (st != OK) return st;
    s->row_metrics_total++;
    *out = &r->metrics[r->nmetrics++];
    memset(*out, 0, sizeof **out);
    (*out)->metric = metric;
    return OK;
}

void fold_event(struct session *s, uint64_t t_ns, const char *kind, uint8_t level, const char *fmt,
                ...)
{
    va_list ap;
    uint32_t at = (s->first_event + s->nevents) % MAX_EVENTS;

    if (s->nevents == MAX_EVENTS) {
        s->first_event = (s->first_event + 1) % MAX_EVENTS;
        s->lost_events++;
    } else {
        s->nevents++;
    }
    struct event *e = &s->events[at];
    e->t_ns = t_ns;
    e->level = level > 2 ? 2 : level;
    snprintf(e->kind, sizeof e->kind, "%s", kind);
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
}
