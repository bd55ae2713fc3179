/*
 * Weights to the device: one block for all tensors, filled through a ring of pinned buffers, so
 * that the copy out of the mapping and the copy over the bus overlap.
 *
 * Invariants: a tensor starts at a multiple of ALIGN and OPS_PAD readable bytes follow it; matrices
 * keep the file's bytes, vectors are widened to f32 (as on the CPU).
 */
#include "engine/cuda/cuda_priv.h"
#include "engine/model.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256, RING = 4, RING_BYTES = 8 << 20 };

struct upload {
    struct backend *b;
    struct {
        void *host;
        struct drv_event *done;
        bool busy;
    } slot[RING];
    unsigned next;
    uint64_t done, total;
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

static bool is_vector(const struct gguf_tensor *t)
{
    return t->n_dims <= 1;
}

static size_t device_bytes(const struct gguf_tensor *t)
{
    return is_vector(t) ? (size_t)t->ne[0] * sizeof(float) : t->bytes;
}

static size_t place_bytes(const struct gguf_tensor *t)
{
    return (device_bytes(t) + OPS_PAD + ALIGN - 1) / ALIGN * ALIGN;
}

static enum status upload_open(struct upload *u)
{
    const struct driver *d = u->b->drv;
    for (int i = 0; i < RING; i++) {
        drv_result r = d->MemAllocHost(&u->slot[i].host, RING_BYTES);
        if (r == DRV_SUCCESS) r = d->EventCreate(&u->slot[i].done, DRV_EVENT_DISABLE_TIMING);
        if (r != DRV_SUCCESS) return driver_check(d, r, "pinned memory for the weights");
    }
    return OK;
}

static void upload_close(struct upload *u)
{
    const struct driver *d = u->b->drv;
    d->StreamSynchronize(u->b->stream);
    for (int i = 0; i < RING; i++) {
        if (u->slot[i].done) d->EventDestroy(u->slot[i].done);
        if (u->slot[i].host) d->MemFreeHost(u->slot[i].host);
    }
}

static enum status upload_piece(struct upload *u, drv_ptr to, const uint8_t *from, size_t bytes)
{
    const struct driver *d = u->b->drv;
    unsigned i = u->next++ % RING;
    drv_result r = DRV_SUCCESS;
    if (u->slot[i].busy) r = d->EventSynchronize(u->slot[i].done);
    if (r != DRV_SUCCESS) return driver_check(d, r, "uploading weights");
    memcpy(u->slot[i].host, from, bytes);
    r = d->MemcpyHtoDAsync(to, u->slot[i].host, bytes, u->b->stream);
    if (r == DRV_SUCCESS) r = d->EventRecord(u->slot[i].done, u->b->stream);
    u->slot[i].busy = true;
    return driver_check(d, r, "uploading weights");
}

static enum status upload_bytes(struct upload *u, drv_ptr to, const uint8_t *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += RING_BYTES) {
        size_t n = bytes - at < RING_BYTES ? bytes - at : RING_BYTES;
        enum status st = upload_piece(u, to + at, from + at, n);
        if (st != OK) return st;
        u->done += n;
        if (u->progress) u->progress(u->ctx, u->done, u->total);
    }
    return OK;
}

static enum status upload_tensor(struct upload *u, const struct gguf_tensor *t, drv_ptr to,
                                 struct weight *w)
{
    *w = (struct weight){.src = t, .m = 1, .k = (uint32_t)t->ne[0], .type = (int)t->type};
    w->data = (struct buffer){to, device_bytes(t)};
    if (!is_vector(t)) {
        w->m = (uint32_t)t->ne[1];
        return upload_bytes(u, to, t->data, t->bytes);
    }
    float *v = malloc(w->k * sizeof *v + 1);
    if (!v) return err_set(ERR_NOMEM, "out of memory for tensor %s", t->name);
    quant_dequant_row(t->type, t->data, v, w->k);
    w->type = QUANT_F32;
    enum status st = upload_bytes(u, to, (const uint8_t *)v, w->k * sizeof *v);
    free(v);
    return st;
}

static enum status upload_all(struct upload *u, const struct gguf *g)
{
    struct backend *b = u->b;
    size_t n = gguf_tensor_count(g), at = 0;
    for (size_t i = 0; i < n; i++) u->total += device_bytes(gguf_tensor_at(g, i));
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        enum status st = upload_tensor(u, t, b->weight_block + at, &b->weights[i]);
        if (st != OK) return st;
        b->n_weights = (uint32_t)i + 1;
        at += place_bytes(t);
    }
    return cuda_wait(b);
}

enum status cuda_load(struct backend *b, const struct model *m,
                      void (*progress)(void *ctx, uint64_t done, uint64_t total), void *ctx)
{
    const struct gguf *g = model_gguf(m);
    size_t n = gguf_tensor_count(g), bytes = 0;
    struct upload u = {.b = b, .progress = progress, .ctx = ctx};
    if (b->weights) return err_set(ERR_USAGE, "this backend has loaded a model already");
    for (size_t i = 0; i < n; i++) bytes += place_bytes(gguf_tensor_at(g, i));
    b->weights = calloc(n ? n : 1, sizeof *b->weights);
    if (!b->weights) return err_set(ERR_NOMEM, "out of memory for %zu tensors", n);
    enum status st = cuda_alloc_bytes(b, bytes, "the weights", &b->weight_block);
    if (st == OK) st = upload_open(&u);
    if (st == OK) st = upload_all(&u, g);
    upload_close(&u);
    return st;
}

const struct weight *cuda_get_weight(struct backend *b, const struct gguf_tensor *t)
{
    for (uint32_t i = 0; t && i < b->n_weights; i++)
        if (b->weights[i].src == t) return &b->weights[i];
    return NULL;
}
