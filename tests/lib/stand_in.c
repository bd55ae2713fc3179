/* Stand-in kernels: see stand_in.h. */
#include "tests/lib/stand_in.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const stand_in_names[STAND_IN_KERNELS] = {"sched_busy", "sched_copy", "sched_tiny"};

static enum status read_file(const char *path, void **bytes)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) size = ftell(f);
    *bytes = size > 0 ? malloc((size_t)size) : NULL;
    bool ok =
        *bytes && fseek(f, 0, SEEK_SET) == 0 && fread(*bytes, 1, (size_t)size, f) == (size_t)size;
    if (f) fclose(f);
    if (ok) return OK;
    free(*bytes);
    *bytes = NULL;
    return err_set(ERR_IO, "%s: can't be read (%s)", path, strerror(errno));
}

static enum status load(struct stand_in *w, const char *cubin)
{
    void *bytes;
    enum status st = read_file(cubin, &bytes);
    if (st != OK) return st;
    st = driver_check(w->d, w->d->ModuleLoadData(&w->mod, bytes), cubin);
    free(bytes);
    for (int i = 0; i < STAND_IN_KERNELS && st == OK; i++)
        st = driver_check(w->d, w->d->ModuleGetFunction(&w->f[i], w->mod, stand_in_names[i]),
                          stand_in_names[i]);
    return st;
}

enum status stand_in_open(struct stand_in *w, const char *cubin)
{
    *w = (struct stand_in){.iters = 1500};
    snprintf(w->cubin, sizeof w->cubin, "%s", cubin);
    enum status st = driver_open(&w->d);
    if (st != OK) return st;
    struct driver *d = w->d;
    st = driver_check(d, d->DeviceGet(&w->dev, 0), "device 0");
    if (st == OK) st = driver_check(d, d->DevicePrimaryCtxRetain(&w->ctx, w->dev), "context");
    if (st == OK) st = driver_check(d, d->CtxSetCurrent(w->ctx), "context");
    if (st == OK)
        st = driver_check(d, d->StreamCreate(&w->stream, DRV_STREAM_NON_BLOCKING), "stream");
    if (st == OK) st = load(w, cubin);
    if (st != OK) return st;
    w->sms = driver_attribute(d, w->dev, DRV_DEV_SM_COUNT, 1);
    size_t out = (size_t)w->sms * 8 * 256 * sizeof(int);
    if (d->MemAlloc(&w->seed, 8192) || d->MemAlloc(&w->out, out) || d->MemAlloc(&w->count, 4096) ||
        d->MemAlloc(&w->from, STAND_IN_BYTES) || d->MemAlloc(&w->to, STAND_IN_BYTES))
        return err_set(ERR_FAILED, "no GPU memory for the stand-in kernels");
    d->MemsetD32(w->seed, 0x1234567, 2048);
    d->MemsetD8(w->from, 0x5a, STAND_IN_BYTES);
    d->MemsetD8(w->count, 0, 4096);
    return driver_check(d, d->CtxSynchronize(), "filling memory");
}

enum status stand_in_reload(struct stand_in *w)
{
    enum status st = driver_check(w->d, w->d->ModuleUnload(w->mod), "unloading");
    return st == OK ? load(w, w->cubin) : st;
}

void stand_in_launch(struct stand_in *w, int k)
{
    int64_t n = (int64_t)(STAND_IN_BYTES / 16);
    void *busy[] = {&w->seed, &w->out, &w->iters}, *copy[] = {&w->from, &w->to, &n};
    void *tiny[] = {&w->count}, **args[STAND_IN_KERNELS] = {busy, copy, tiny};
    unsigned grid[STAND_IN_KERNELS] = {(unsigned)w->sms * 8, (unsigned)w->sms * 16, 1};
    unsigned block[STAND_IN_KERNELS] = {256, 256, 32};
    drv_result r =
        w->d->LaunchKernel(w->f[k], grid[k], 1, 1, block[k], 1, 1, 0, w->stream, args[k], NULL);
    if (r != DRV_SUCCESS) {
        fprintf(stderr, "launch of %s: %s\n", stand_in_names[k], driver_error_name(w->d, r));
        exit(EXIT_FAILED);
    }
}
