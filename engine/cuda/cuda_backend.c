/*
 * The CUDA backend: opening, limits, closing, and the table of its functions. The driver is found
 * by dlopen (base/driver.h), kernels are cubins loaded as files, so that what runs is what is
 * shown. The primary context is used, as counter sources expect.
 */
#include "engine/cuda/cuda_priv.h"

#include "sass_view/cubin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status open_context(struct backend *b)
{
    enum status st = driver_open(&b->drv);
    if (st != OK) return st;
    st = driver_check(b->drv, b->drv->DeviceGet(&b->dev, 0), "the first GPU");
    if (st == OK) {
        st = driver_check(b->drv, b->drv->DevicePrimaryCtxRetain(&b->ctx, b->dev),
                          "a context on the GPU");
        b->retained = st == OK;
    }
    if (st == OK) st = driver_check(b->drv, b->drv->CtxSetCurrent(b->ctx), "a context on the GPU");
    if (st == OK)
        st = driver_check(b->drv, b->drv->StreamCreate(&b->stream, DRV_STREAM_NON_BLOCKING),
                          "a stream");
    return st == OK ? OK : ERR_UNAVAILABLE;
}

static enum status open_step(struct backend *b)
{
    size_t state = OPS_STATE_TOKENS + b->o.max_tokens * sizeof(uint32_t);
    void *host_state = NULL, *host_best = NULL;
    enum status st = cuda_alloc_bytes(b, state, "a step's state", &b->state);
    if (st == OK)
        st = cuda_alloc_bytes(b, OPS_ARGMAX_PARTS * OPS_ARGMAX_PART_BYTES, "argmax", &b->parts);
    if (st == OK) st = cuda_alloc_bytes(b, sizeof *b->host_best, "argmax", &b->best);
    if (st != OK) return st;
    drv_result r = b->drv->MemAllocHost(&host_state, state);
    b->host_state = r == DRV_SUCCESS ? host_state : NULL;
    if (r == DRV_SUCCESS) r = b->drv->MemAllocHost(&host_best, sizeof *b->host_best);
    if (r == DRV_SUCCESS) b->host_best = host_best;
    return driver_check(b->drv, r, "pinned memory");
}

static enum status cuda_open(const struct backend_options *o, struct backend **out)
{
    *out = NULL;
    if (o->max_tokens == 0 || o->max_tokens > CUDA_MAX_TOKENS)
        return err_set(ERR_LIMIT, "steps of 1 to %d tokens are possible, not %u", CUDA_MAX_TOKENS,
                       o->max_tokens);
    if (o->context > INT32_MAX / 2)
        return err_set(ERR_LIMIT, "a context of %u positions is too long", o->context);
    struct backend *b = calloc(1, sizeof *b);
    if (!b) return err_set(ERR_NOMEM, "out of memory for the CUDA backend");
    const char *fuse = getenv("SASSTOP_FUSE");
    b->o = *o;
    b->fuse = !fuse || strcmp(fuse, "0");
    enum status st = open_context(b);
    if (st == OK) st = cuda_kernels_open(b);
    if (st == OK) st = open_step(b);
    if (st != OK) {
        cuda_backend.close(b);
        return st;
    }
    *out = b;
    return OK;
}

/* The toolkit that built the kernels, by their own word. */
static void toolkit_text(const struct backend *b, char *out, size_t size)
{
    const struct variant *v = registry_get(b->reg, 0);
    struct cubin c;
    out[0] = '\0';
    if (!v || cubin_open_memory(&c, v->bytes, v->n_bytes, v->path) != OK) return;
    snprintf(out, size, "%s", c.toolkit);
    cubin_close(&c);
}

static enum status cuda_limits(struct backend *b, struct backend_limits *out)
{
    const struct device_limits *lim = launcher_limits(b->launcher);
    size_t memory = 0;
    *out = (struct backend_limits){.sm = (uint32_t)lim->sm,
                                   .sms = (uint32_t)lim->sms,
                                   .smem_optin = (uint32_t)lim->smem_optin};
    enum status st =
        driver_check(b->drv, b->drv->DeviceGetName(out->device, (int)sizeof out->device, b->dev),
                     "the GPU's name");
    if (st != OK) return st;
    out->device[sizeof out->device - 1] = '\0';
    out->clock_mhz = (uint32_t)driver_attribute(b->drv, b->dev, DRV_DEV_CLOCK_KHZ, 0) / 1000;
    out->l2_bytes = (uint64_t)driver_attribute(b->drv, b->dev, DRV_DEV_L2_BYTES, 0);
    if (b->drv->DeviceTotalMem(&memory, b->dev) == DRV_SUCCESS) out->memory = memory;
    driver_name(b->drv, out->driver, sizeof out->driver);
    toolkit_text(b, out->toolkit, sizeof out->toolkit);
    return OK;
}

static void *cuda_context(struct backend *b)
{
    return b->ctx;
}

static void *cuda_stream(struct backend *b)
{
    return b->stream;
}

static const struct driver *cuda_driver(struct backend *b)
{
    return b->drv;
}

static void free_device(struct backend *b)
{
    struct driver *d = b->drv;
    drv_ptr all[] = {b->weight_block, b->state,     b->parts, b->best,
                     b->q8.p,         b->q8_next.p, b->attn.p};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]) d->MemFree(all[i]);
    for (uint32_t i = 0; i < b->layers; i++) {
        if (b->kv[i].k) d->MemFree(b->kv[i].k);
        if (b->kv[i].v) d->MemFree(b->kv[i].v);
    }
    for (uint32_t i = 0; i < b->n_rope; i++) d->MemFree(b->rope[i].freq);
    cuda_expanded_free(b);
    if (b->host_state) d->MemFreeHost(b->host_state);
    if (b->host_best) d->MemFreeHost(b->host_best);
}

static void cuda_close(struct backend *b)
{
    if (!b) return;
    if (b->ctx) {
        if (b->stream) b->drv->StreamSynchronize(b->stream);
        cuda_graph_drop(b);
        cuda_timing_free(b);
        free_device(b);
        cuda_kernels_close(b);
        if (b->stream) b->drv->StreamDestroy(b->stream);
    }
    if (b->retained) b->drv->DevicePrimaryCtxRelease(b->dev);
    driver_close(b->drv);
    free(b->weights);
    free(b->kv);
    free(b);
}

const struct backend_ops cuda_backend = {
    .name = "cuda",
    .open = cuda_open,
    .limits = cuda_limits,
    .load = cuda_load,
    .get_weight = cuda_get_weight,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .download = cuda_download,
    .kv_init = cuda_kv_init,
    .run = cuda_run,
    .sync = cuda_wait,
    .kernels = cuda_kernel_list,
    .select = cuda_select,
    .selected = cuda_selected,
    .choose = cuda_choose,
    .force_blocks = cuda_force_blocks,
    .context = cuda_context,
    .stream = cuda_stream,
    .driver = cuda_driver,
    .close = cuda_close,
};
