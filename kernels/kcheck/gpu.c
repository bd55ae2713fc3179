/* Buffers and launches of kcheck's child; see gpu.h. */
#include "kernels/kcheck/gpu.h"

#include "kernels/kcheck/kcheck.h"

#include <stdlib.h>

enum { UPLOAD_PAD = 64 };

enum status gpu_open(struct gpu *g)
{
    *g = (struct gpu){0};
    enum status st = driver_open(&g->drv);
    if (st != OK) return st;
    const struct driver *d = g->drv;
    st = driver_check(d, d->DeviceGet(&g->dev, 0), "device 0");
    if (st == OK) st = driver_check(d, d->DeviceGetName(g->name, sizeof g->name, g->dev), "device");
    if (st == OK) st = driver_check(d, d->DevicePrimaryCtxRetain(&g->ctx, g->dev), "context");
    if (st == OK) st = driver_check(d, d->CtxSetCurrent(g->ctx), "context");
    if (st == OK)
        st = driver_check(d, d->StreamCreate(&g->stream, DRV_STREAM_NON_BLOCKING), "stream");
    g->sm = 10 * driver_attribute(d, g->dev, DRV_DEV_CC_MAJOR, 0) +
            driver_attribute(d, g->dev, DRV_DEV_CC_MINOR, 0);
    return st;
}

void gpu_close(struct gpu *g)
{
    launcher_close(g->launcher);
    if (g->stream) g->drv->StreamDestroy(g->stream);
    if (g->ctx) g->drv->DevicePrimaryCtxRelease(g->dev);
    driver_close(g->drv);
    *g = (struct gpu){0};
}

static enum status alloc(struct gpu *g, drv_ptr *p, size_t bytes, const char *what)
{
    return driver_check(g->drv, g->drv->MemAlloc(p, bytes), what);
}

enum status gpu_case_open(struct gpu *g, struct gpu_case *c, const struct variant *v,
                          const struct shape *s)
{
    *c = (struct gpu_case){.fam = family_find(v->family), .variant = v, .shape = *s};
    if (!c->fam) return err_set(ERR_USAGE, "family %s has no contract to check", v->family);
    struct launch_options strict = {.strict = true};
    enum status st = launch_plan_make(NULL, launcher_limits(g->launcher), v, s, &strict, &c->plan);
    if (st != OK) return st;
    c->y_bytes = check_buffer_bytes(c->fam, s);
    c->host = malloc(c->y_bytes);
    if (!c->host) return err_set(ERR_NOMEM, "no memory for the outputs");
    return alloc(g, &c->y, c->y_bytes, "outputs");
}

void gpu_case_close(struct gpu *g, struct gpu_case *c)
{
    if (c->a) g->drv->MemFree(c->a);
    if (c->b) g->drv->MemFree(c->b);
    if (c->y) g->drv->MemFree(c->y);
    free(c->host);
    *c = (struct gpu_case){0};
}

/* `prepared` or, where that is NULL, the canonical bytes; the buffer is made on first use. */
static enum status upload(struct gpu *g, drv_ptr *p, size_t *have, const uint8_t *prepared,
                          size_t prepared_bytes, const uint8_t *canonical, size_t bytes,
                          const char *what)
{
    enum status st = OK;
    *have = prepared ? prepared_bytes : bytes;
    /* Some kernels read weights by whole words: a little past the end must be readable. */
    if (!*p) st = alloc(g, p, *have + UPLOAD_PAD, what);
    if (st != OK) return st;
    return driver_check(g->drv, g->drv->MemcpyHtoD(*p, prepared ? prepared : canonical, *have),
                        what);
}

enum status gpu_case_upload(struct gpu *g, struct gpu_case *c, const struct family_inputs *in)
{
    const struct variant_desc *d = &c->variant->desc;
    uint8_t *a = NULL, *b = NULL;
    size_t a_bytes = 0, b_bytes = 0;
    enum status st = c->fam->prepare(d, &c->shape, in->b, &b, &b_bytes);
    if (st == OK) st = c->fam->prepare_a(d, &c->shape, in->a, &a, &a_bytes);
    if (st == OK) st = upload(g, &c->b, &c->b_bytes, b, b_bytes, in->b, in->b_bytes, "weights");
    if (st == OK) st = upload(g, &c->a, &c->a_bytes, a, a_bytes, in->a, in->a_bytes, "activations");
    free(a);
    free(b);
    return st;
}

enum status gpu_case_launch(struct gpu *g, struct gpu_case *c, drv_ptr b)
{
    drv_ptr y = c->y + CHECK_GUARD_BYTES;
    void *args[] = {&b, &c->a, &y, &c->shape.m, &c->shape.n, &c->shape.k};
    struct launch_options strict = {.strict = true};
    return launcher_run(g->launcher, c->variant, &c->shape, &strict, args, g->stream, &c->plan);
}

enum status gpu_case_run(struct gpu *g, struct gpu_case *c)
{
    const struct driver *d = g->drv;
    check_buffer_fill(c->fam, &c->shape, c->host);
    enum status st = driver_check(d, d->MemcpyHtoD(c->y, c->host, c->y_bytes), "output fill");
    /* The copies above run in the default stream, which a non-blocking stream does not wait for. */
    if (st == OK) st = driver_check(d, d->CtxSynchronize(), "upload");
    if (st == OK) st = gpu_case_launch(g, c, c->b);
    if (st == OK) st = driver_check(d, d->StreamSynchronize(g->stream), c->variant->kernel);
    if (st == OK) st = driver_check(d, d->MemcpyDtoH(c->host, c->y, c->y_bytes), "output");
    return st;
}
