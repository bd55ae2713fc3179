/*
 * The bench of kcheck; see bench.h. A batch is one CUDA graph of launches, so that the launch cost
 * of the host does not enter; a batch lasts about BATCH_US, the first ones are warm-up. Nothing is
 * counted while timing.
 */
#include "kernels/kcheck/bench.h"

#include <stdlib.h>

enum {
    BATCHES = 21,
    WARM = 3,
    BATCH_US = 20000,
    LAUNCHES_MAX = 512,
    COPIES_MAX = 256,
    L2_TIMES = 4,
};

struct bench {
    struct gpu_case c;
    drv_ptr weights; /* `copies` times b_bytes */
    int copies, launches;
    struct drv_graph *graph;
    struct drv_graph_exec *exec;
    struct drv_event *start, *end;
};

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static enum status copy_weights(struct gpu *g, struct bench *b)
{
    const struct driver *d = g->drv;
    size_t l2 = (size_t)driver_attribute(d, g->dev, DRV_DEV_L2_BYTES, 64 << 20);
    size_t copies = L2_TIMES * l2 / b->c.b_bytes + 1;
    b->copies = copies > COPIES_MAX ? COPIES_MAX : (int)copies;
    enum status st = driver_check(d, d->MemAlloc(&b->weights, (size_t)b->copies * b->c.b_bytes),
                                  "copies of the weights");
    for (int i = 0; st == OK && i < b->copies; i++)
        st = driver_check(
            d, d->MemcpyDtoD(b->weights + (size_t)i * b->c.b_bytes, b->c.b, b->c.b_bytes), "copy");
    if (st == OK) st = driver_check(d, d->CtxSynchronize(), "copy");
    return st;
}

static enum status launches(struct gpu *g, struct bench *b, int n)
{
    enum status st = OK;
    for (int i = 0; st == OK && i < n; i++)
        st = gpu_case_launch(g, &b->c, b->weights + (size_t)(i % b->copies) * b->c.b_bytes);
    return st;
}

static enum status time_us(struct gpu *g, struct bench *b, float *us)
{
    const struct driver *d = g->drv;
    enum status st = driver_check(d, d->EventRecord(b->start, g->stream), "event");
    if (st == OK && b->exec) st = driver_check(d, d->GraphLaunch(b->exec, g->stream), "graph");
    if (st == OK && !b->exec) st = launches(g, b, 1);
    if (st == OK) st = driver_check(d, d->EventRecord(b->end, g->stream), "event");
    if (st == OK) st = driver_check(d, d->EventSynchronize(b->end), "event");
    if (st == OK) st = driver_check(d, d->EventElapsedTime(us, b->start, b->end), "event");
    *us *= 1000;
    return st;
}

static enum status make_graph(struct gpu *g, struct bench *b)
{
    const struct driver *d = g->drv;
    float once = 0;
    enum status st = time_us(g, b, &once);
    if (st == OK) st = time_us(g, b, &once);
    if (st != OK) return st;
    double n = BATCH_US / (once > 1 ? once : 1);
    b->launches = n < 2 ? 2 : n > LAUNCHES_MAX ? LAUNCHES_MAX : (int)n;
    st = driver_check(d, d->StreamBeginCapture(g->stream, DRV_CAPTURE_THREAD_LOCAL), "capture");
    if (st != OK) return st;
    enum status in = launches(g, b, b->launches);
    st = driver_check(d, d->StreamEndCapture(g->stream, &b->graph), "capture");
    if (in != OK) return in;
    if (st == OK) st = driver_check(d, d->GraphInstantiate(&b->exec, b->graph, 0), "graph");
    return st;
}

static void bench_close(struct gpu *g, struct bench *b)
{
    const struct driver *d = g->drv;
    if (b->exec) d->GraphExecDestroy(b->exec);
    if (b->graph) d->GraphDestroy(b->graph);
    if (b->start) d->EventDestroy(b->start);
    if (b->end) d->EventDestroy(b->end);
    if (b->weights) d->MemFree(b->weights);
    gpu_case_close(g, &b->c);
}

static enum status setup(struct gpu *g, struct bench *b, const struct variant *v,
                         const struct shape *s)
{
    const struct driver *d = g->drv;
    struct family_inputs in = {0};
    enum status st = gpu_case_open(g, &b->c, v, s);
    if (st == OK) st = b->c.fam->make_inputs(s, INPUT_RANDOM, 1, &in);
    if (st == OK) st = gpu_case_upload(g, &b->c, &in);
    family_inputs_free(&in);
    if (st == OK) st = copy_weights(g, b);
    if (st == OK) st = driver_check(d, d->EventCreate(&b->start, DRV_EVENT_DEFAULT), "event");
    if (st == OK) st = driver_check(d, d->EventCreate(&b->end, DRV_EVENT_DEFAULT), "event");
    if (st == OK) st = make_graph(g, b);
    return st;
}

enum status bench_shape(struct gpu *g, const struct variant *v, const struct shape *s, double *us,
                        double *iqr, uint32_t *n)
{
    struct bench b = {0};
    float t[BATCHES];
    int got = 0;
    enum status st = setup(g, &b, v, s);
    for (int i = -WARM; st == OK && i < BATCHES; i++) {
        float batch = 0;
        st = time_us(g, &b, &batch);
        if (st == OK && i >= 0) t[got++] = batch / (float)b.launches;
    }
    bench_close(g, &b);
    if (st != OK) return st;
    qsort(t, (size_t)got, sizeof *t, by_value);
    *us = t[got / 2];
    *iqr = t[got * 3 / 4] - t[got / 4];
    *n = (uint32_t)got;
    return OK;
}
