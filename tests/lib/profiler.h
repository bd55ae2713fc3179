/* The driver's cuProfilerStart and cuProfilerStop, between which a profiler looks (ncu
 * --profile-from-start off); for tests. Any thread with a context. */
#ifndef TESTS_PROFILER_H
#define TESTS_PROFILER_H

#include "base/status.h"

/* Finds both; ERR_UNAVAILABLE when the driver lacks one. Until then start and stop do nothing. */
enum status profiler_open(void);
void profiler_start(void);
void profiler_stop(void);

#endif
