/*
 * Device memory of the CUDA backend: buffers, scratch, the KV cache.
 * Invariant: buffers are followed by OPS_PAD readable bytes, as kernels read blocks by whole words.
 */
#include "engine/cuda/cuda.h"
#include "engine/cuda/cuda_priv.h"

#include <stdlib.h>

enum status cuda_alloc_bytes(struct backend *b, size_t bytes, const char *what, drv_ptr *out)
{
    size_t free_bytes = 0, total = 0;
    drv_result r = b->drv->MemAlloc(out, bytes + OPS_PAD);
    if (r == DRV_SUCCESS) return OK;
    *out = 0;
    b->drv->MemGetInfo(&free_bytes, &total);
    return err_set(r == 2 ? ERR_NOMEM : ERR_FAILED,
                   "%s: %s for %zu MiB, the GPU has %zu of %zu MiB free; a smaller model, "
                   "--context or --backend cpu needs less",
                   what, driver_error_name(b->drv, r), bytes >> 20, free_bytes >> 20, total >> 20);
}

enum status cuda_grow(struct backend *b, struct cuda_scratch *s, size_t bytes, const char *what)
{
    if (bytes <= s->bytes) return OK;
    enum status st = cuda_wait(b);
    if (st != OK) return st;
    if (s->p) b->drv->MemFree(s->p);
    *s = (struct cuda_scratch){0};
    st = cuda_alloc_bytes(b, bytes, what, &s->p);
    if (st == OK) s->bytes = bytes;
    cuda_graph_drop(b); /* it holds the old address */
    b->q8_of = 0;
    return st;
}

enum status cuda_alloc(struct backend *b, size_t bytes, struct buffer *out)
{
    drv_ptr p;
    *out = (struct buffer){0};
    enum status st = cuda_alloc_bytes(b, bytes, "a buffer", &p);
    if (st != OK) return st;
    st = driver_check(b->drv, b->drv->MemsetD8Async(p, 0, bytes + OPS_PAD, b->stream),
                      "clearing a buffer");
    if (st != OK) {
        b->drv->MemFree(p);
        return st;
    }
    *out = (struct buffer){p, bytes};
    return OK;
}

void cuda_release(struct backend *b, struct buffer *buf)
{
    if (buf->addr) {
        b->drv->StreamSynchronize(b->stream);
        b->drv->MemFree(buf->addr);
        cuda_graph_drop(b);
    }
    *buf = (struct buffer){0};
}

static enum status inside(const struct buffer *buf, size_t offset, size_t bytes)
{
    if (offset <= buf->bytes && bytes <= buf->bytes - offset) return OK;
    return err_set(ERR_LIMIT, "%zu bytes at %zu are outside a buffer of %zu", bytes, offset,
                   buf->bytes);
}

enum status cuda_download(struct backend *b, const struct buffer *from, size_t offset, void *to,
                          size_t bytes)
{
    enum status st = inside(from, offset, bytes);
    if (st == OK) st = cuda_wait(b);
    if (st != OK) return st;
    return driver_check(b->drv, b->drv->MemcpyDtoH(to, from->addr + offset, bytes),
                        "reading a buffer");
}

enum status cuda_upload(struct backend *b, const struct buffer *to, size_t offset, const void *from,
                        size_t bytes)
{
    enum status st = inside(to, offset, bytes);
    if (st == OK) st = cuda_wait(b);
    if (st != OK) return st;
    /* Through the stream: a plain copy of few bytes may return before they have arrived. */
    st = driver_check(b->drv, b->drv->MemcpyHtoDAsync(to->addr + offset, from, bytes, b->stream),
                      "writing a buffer");
    return st == OK ? cuda_wait(b) : st;
}

static enum status kv_layer(struct backend *b, struct cuda_kv *kv)
{
    size_t bytes = (size_t)b->o.context * kv->dim * sizeof(float);
    enum status st = cuda_alloc_bytes(b, bytes, "the KV cache", &kv->k);
    if (st == OK) st = cuda_alloc_bytes(b, bytes, "the KV cache", &kv->v);
    if (st != OK) return st;
    drv_result r = b->drv->MemsetD8Async(kv->k, 0, bytes, b->stream);
    if (r == DRV_SUCCESS) r = b->drv->MemsetD8Async(kv->v, 0, bytes, b->stream);
    return driver_check(b->drv, r, "clearing the KV cache");
}

enum status cuda_kv_init(struct backend *b, uint32_t layers, const uint32_t *kv_dim)
{
    b->kv = calloc(layers ? layers : 1, sizeof *b->kv);
    if (!b->kv) return err_set(ERR_NOMEM, "out of memory for the KV cache");
    b->layers = layers; /* close() frees what was allocated */
    for (uint32_t i = 0; i < layers; i++) {
        b->kv[i].dim = kv_dim[i];
        enum status st = kv_layer(b, &b->kv[i]);
        if (st != OK) return st;
    }
    return OK;
}
