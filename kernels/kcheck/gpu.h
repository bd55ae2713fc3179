/*
 * One variant's buffers and launches on device 0, for checking and benching. Child process only;
 * single-threaded. gpu_close() also after a failed gpu_open().
 */
#ifndef KERNELS_KCHECK_GPU_H
#define KERNELS_KCHECK_GPU_H

#include "base/driver.h"
#include "kernels/launch.h"

struct gpu {
    struct driver *drv;
    struct drv_ctx *ctx;
    struct launcher *launcher;
    struct drv_stream *stream;
    int dev, sm;
    char name[128];
};

enum status gpu_open(struct gpu *g); /* driver, device 0, context, stream */
void gpu_close(struct gpu *g);

/* Device buffers of one shape. */
struct gpu_case {
    const struct kernel_family *fam;
    const struct variant *variant;
    struct shape shape;
    drv_ptr a, b, y; /* y: with guards on both sides */
    size_t a_bytes, b_bytes, y_bytes;
    uint8_t *host; /* y's host copy, guards included */
    struct launch_plan plan;
};

/* ERR_LIMIT: refused by the launcher, the reason in err_msg(). */
enum status gpu_case_open(struct gpu *g, struct gpu_case *c, const struct variant *v,
                          const struct shape *s);
void gpu_case_close(struct gpu *g, struct gpu_case *c);

/* Prepares and uploads inputs. */
enum status gpu_case_upload(struct gpu *g, struct gpu_case *c, const struct family_inputs *in);

/* Fills guards and outputs, launches, waits, brings the output back to c->host. */
enum status gpu_case_run(struct gpu *g, struct gpu_case *c);

/* Launch only; `b` is the weights to use. */
enum status gpu_case_launch(struct gpu *g, struct gpu_case *c, drv_ptr b);

#endif
