/*
 * The stand-in kernels of tests/gpu/schedule.cu, loaded and launched through the driver API; for
 * tests on a GPU. The struct lives until the process ends: nothing is given back.
 */
#ifndef TESTS_STAND_IN_H
#define TESTS_STAND_IN_H

#include "base/driver.h"

enum { STAND_IN_BUSY, STAND_IN_COPY, STAND_IN_TINY, STAND_IN_KERNELS };
#define STAND_IN_BYTES (256ull << 20) /* read and written by the copy kernel */

extern const char *const stand_in_names[STAND_IN_KERNELS];

struct stand_in {
    struct driver *d;
    int dev;
    struct drv_ctx *ctx;
    struct drv_stream *stream;
    struct drv_module *mod;
    struct drv_func *f[STAND_IN_KERNELS];
    drv_ptr seed, out, from, to, count;
    int sms, iters;
    char cubin[512];
};

/* Opens device 0, loads the cubin, fills memory. ERR_UNAVAILABLE without a driver or GPU. */
enum status stand_in_open(struct stand_in *w, const char *cubin);

/* Unloads the cubin and loads it again. */
enum status stand_in_reload(struct stand_in *w);

/* Launches kernel k on w->stream; ends the process with a message when the driver refuses. */
void stand_in_launch(struct stand_in *w, int k);

#endif
