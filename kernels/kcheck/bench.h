/* Timing one variant on one shape with CUDA events; child process only, one thread. */
#ifndef KERNELS_KCHECK_BENCH_H
#define KERNELS_KCHECK_BENCH_H

#include "kernels/kcheck/gpu.h"
#include "kernels/kcheck/kcheck.h"

/* Fills *out with the times of one launch of the job's variant, and its ratio to job->against
 * (NULL: none), both timed in turns, both with job->blocks. ERR_FAILED, ERR_LIMIT with the reason
 * when there is no time. */
enum status bench_shape(struct gpu *g, const struct check_job *job, const struct shape *s,
                        struct bench_figures *out);

/* Whether a series is long and even enough: at least MIN values, spread at most 1% of the median.
 */
bool bench_settled(const double *v, int n);

#endif
