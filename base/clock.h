/* The two clocks used here, in nanoseconds. Nothing in session/ may call these. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_mono_ns(void); /* CLOCK_MONOTONIC: intervals */
uint64_t clock_wall_ns(void); /* CLOCK_REALTIME: what CUPTI's activity and PM times are in */

#endif
