/* Timing one variant on one shape with CUDA events; child process only. */
#ifndef KERNELS_KCHECK_BENCH_H
#define KERNELS_KCHECK_BENCH_H

#include "kernels/kcheck/gpu.h"

/* Median and interquartile range of the time of one launch in microseconds, over *n batches.
 * Weights are rotated over several times the L2, so that none is found there. */
enum status bench_shape(struct gpu *g, const struct variant *v, const struct shape *s, double *us,
                        double *iqr, uint32_t *n);

#endif
