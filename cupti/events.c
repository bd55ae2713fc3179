/*
 * events: CUDA-event times around each launch. Needs the driver only: no CUPTI, no privilege, and
 * it is what remains when every other source is refused.
 *
 * Invariant: event pair i brackets note i. stop() runs with the stream drained, so every event has
 * happened. Two events around a kernel measure a little more than the kernel (about 1-2 us of
 * launch).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/driver.h"
#include "cupti/sources.h"

enum { PAIRS = 4096 };

struct events {
    struct counter_source src;
    struct counter_notes notes;
    struct drv_event *ev[PAIRS][2];
    uint64_t host_ns[PAIRS];
    size_t made; /* pairs created so far */
    uint64_t opened_ns;
};

static void probe(struct counter_source *src)
{
    snprintf(src->state.detail, sizeof src->state.detail, "CUDA-event times around each launch");
    if (src->env.driver)
        counter_set_state(src, COUNTER_READY, NULL, NULL);
    else
        counter_set_state(src, COUNTER_UNAVAILABLE, "no NVIDIA driver on this machine", "");
}

static enum status configure(struct counter_source *src, const struct counter_config *cfg)
{
    struct events *e = (struct events *)src;
    (void)cfg;
    return e->notes.v ? OK : counter_notes_init(&e->notes, PAIRS);
}

static enum status arm(struct counter_source *src)
{
    (void)src;
    return OK;
}

static enum status start(struct counter_source *src)
{
    struct events *e = (struct events *)src;
    e->notes.n = 0;
    e->notes.lost = 0;
    e->opened_ns = clock_wall_ns();
    return OK;
}

static bool make_pair(struct events *e, size_t i)
{
    const struct driver *d = e->src.env.driver;
    for (; e->made <= i; e->made++) {
        if (d->EventCreate(&e->ev[e->made][0], DRV_EVENT_DEFAULT) != DRV_SUCCESS) return false;
        if (d->EventCreate(&e->ev[e->made][1], DRV_EVENT_DEFAULT) != DRV_SUCCESS) {
            d->EventDestroy(e->ev[e->made][0]);
            return false;
        }
    }
    return true;
}

static void launch_begin(struct counter_source *src, const struct counter_launch *l)
{
    struct events *e = (struct events *)src;
    size_t i = e->notes.n;
    if (i == PAIRS || !make_pair(e, i)) {
        e->notes.lost++;
        return;
    }
    counter_notes_put(&e->notes, l);
    e->host_ns[i] = clock_wall_ns();
    src->env.driver->EventRecord(e->ev[i][0], src->env.stream);
}

static void launch_end(struct counter_source *src, const struct counter_launch *l)
{
    struct events *e = (struct events *)src;
    size_t i = e->notes.n;
    if (i == 0 || e->notes.v[i - 1].tag != l->tag) return; /* its begin was lost */
    src->env.driver->EventRecord(e->ev[i - 1][1], src->env.stream);
}

static enum status stop(struct counter_source *src)
{
    struct events *e = (struct events *)src;
    const struct driver *d = src->env.driver;
    struct counter_window w = {.role = COUNTER_EVENTS,
                               .window = src->windows,
                               .start_ns = e->opened_ns,
                               .end_ns = clock_wall_ns(),
                               .dropped = e->notes.lost};
    for (size_t i = 0; i < e->notes.n; i++) {
        float ms;
        if (d->EventElapsedTime(&ms, e->ev[i][0], e->ev[i][1]) != DRV_SUCCESS || !(ms >= 0)) {
            w.invalid++;
            continue;
        }
        struct counter_span s = {.tag = e->notes.v[i].tag,
                                 .kernel = e->notes.v[i].kernel,
                                 .start_ns = e->host_ns[i],
                                 .end_ns = e->host_ns[i] + (uint64_t)((double)ms * 1e6)};
        w.items++;
        if (src->env.sink.span) src->env.sink.span(src->env.sink.user, &s);
    }
    w.decode_ns = clock_wall_ns() - w.end_ns;
    if (src->env.sink.window) src->env.sink.window(src->env.sink.user, &w);
    return OK;
}

static enum status disarm(struct counter_source *src)
{
    (void)src;
    return OK;
}

static void close_(struct counter_source *src)
{
    struct events *e = (struct events *)src;
    for (size_t i = 0; i < e->made; i++)
        for (int k = 0; k < 2; k++) src->env.driver->EventDestroy(e->ev[i][k]);
    counter_notes_free(&e->notes);
}

const struct counter_source_ops counter_events_ops = {
    .name = "events",
    .role = COUNTER_EVENTS,
    .size = sizeof(struct events),
    .probe = probe,
    .configure = configure,
    .arm = arm,
    .start = start,
    .launch_begin = launch_begin,
    .launch_end = launch_end,
    .stop = stop,
    .disarm = disarm,
    .close = close_,
};
