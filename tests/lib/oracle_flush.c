/* The oracle's flush of the L2; see oracle_flush.h.
 *
 * A read and no memset: lines that were written would have to go back to memory while the measured
 * kernel runs, and would be counted as its bytes. Four times the L2, since its two halves may each
 * keep a copy of a line and its replacement need not be by age. */
#include "tests/lib/oracle_flush.h"

#include "base/driver.h"
#include "engine/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 4, BLOCKS_PER_SM = 8, THREADS = 256 };

const char oracle_flush_name[] = "oracle_flush";

static struct {
    const struct driver *d;
    struct drv_stream *stream;
    struct drv_func *f;
    drv_ptr from, never;
    int64_t n;
    unsigned blocks;
} flush;

static enum status read_cubin(const char *self, char **bytes)
{
    char path[512];
    const char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*soracle.sm_90a.cubin", slash ? (int)(slash - self + 1) : 0,
             self);
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
    return err_set(ERR_IO, "%s can't be read; make gpu-tests builds it", path);
}

enum status oracle_flush_open(struct backend *gpu, const char *self)
{
    const struct driver *d = cuda_backend.driver(gpu);
    struct drv_module *mod;
    char *bytes;
    enum status st = read_cubin(self, &bytes);
    if (st != OK) return st;
    size_t size = TIMES * (size_t)driver_attribute(d, 0, DRV_DEV_L2_BYTES, 64 << 20);
    st = driver_check(d, d->ModuleLoadData(&mod, bytes), "the flush kernel");
    free(bytes);
    if (st == OK)
        st = driver_check(d, d->ModuleGetFunction(&flush.f, mod, oracle_flush_name), "its name");
    if (st == OK) st = driver_check(d, d->MemAlloc(&flush.from, size), "memory to flush with");
    if (st == OK) st = driver_check(d, d->MemAlloc(&flush.never, 256), "memory to flush with");
    if (st == OK) st = driver_check(d, d->MemsetD8(flush.from, 0, size), "zeroes to flush with");
    if (st == OK) st = driver_check(d, d->CtxSynchronize(), "zeroes to flush with");
    flush.d = d;
    flush.stream = cuda_backend.stream(gpu);
    flush.n = (int64_t)(size / 16);
    flush.blocks = (unsigned)driver_attribute(d, 0, DRV_DEV_SM_COUNT, 1) * BLOCKS_PER_SM;
    return st;
}

enum status oracle_flush_launch(void)
{
    void *args[] = {&flush.from, &flush.never, &flush.n};
    return driver_check(flush.d,
                        flush.d->LaunchKernel(flush.f, flush.blocks, 1, 1, THREADS, 1, 1, 0,
                                              flush.stream, args, NULL),
                        "the flush kernel");
}
