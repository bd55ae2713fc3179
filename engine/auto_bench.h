/*
 * Measuring for `auto`: which kernel of a family is the fastest sound one on each shape.
 *
 * kcheck checks and times each candidate in a child (kcheck_child.h), alone on the device. All
 * candidates are tried on the shape with the most work; those slower there than AUTO_WORTH times
 * the best are not tried on the others. What the file (auto_file.h) has already isn't measured
 * again. Launching thread.
 */
#ifndef ENGINE_AUTO_BENCH_H
#define ENGINE_AUTO_BENCH_H

#include "engine/auto_file.h"

enum {
    AUTO_SHAPES = 32,
    AUTO_CHILD_S = 180, /* of one kernel on all shapes; then it is passed over */
};
#define AUTO_WORTH 1.5

struct auto_candidate {
    char kernel[40], variant[40];
    uint32_t kd;
    uint64_t code_hash;
};

struct auto_plan {
    const char *family;
    const struct auto_candidate *of;
    uint32_t n;
    uint32_t shapes[AUTO_SHAPES][3]; /* m, n, k; most work first */
    uint32_t n_shapes;
};

/* Adds a shape in its place; one that is there already, or one too many, is left out. */
void auto_plan_shape(struct auto_plan *p, uint32_t m, uint32_t n, uint32_t k);

/* Measures what is missing and saves after each kernel. `go_on` is told how many kernels of how
 * many are done, several times a second; false ends it with ERR_AGAIN. ERR_UNAVAILABLE: no kcheck.
 * A file that can't be written is no failure: f->note says so. */
enum status auto_measure(struct auto_file *f, const struct auto_plan *p,
                         bool (*go_on)(void *ctx, uint32_t done, uint32_t total), void *ctx);

/* The fastest candidate on shape `s`, and its row; NULL when none was sound. */
const struct auto_candidate *auto_best(const struct auto_file *f, const struct auto_plan *p,
                                       uint32_t s, const struct auto_row **row);

#endif
