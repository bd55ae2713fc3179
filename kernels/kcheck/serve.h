/*
 * kcheck as a stop-watch: `kcheck --serve --variant NAME_kdN --shapes M,N,K` loads one kernel,
 * says so in one line of JSON, and then times it once for every line that comes in on stdin, one
 * line of JSON each, until stdin ends. Who asks decides on the order, so several such processes can
 * take turns on one GPU. This process never opens CUPTI.
 *
 *   {"ready":true,"kernel":"nb_kd8","device":"...","sm":90,"sms":132,"clock_mhz":1980,
 *    "l2_bytes":62914560,"driver":"580.159.04","code_hash":"...","regs":123,
 *    "smem":73728,"pad":0,"blocks_per_sm":2,"launches":40}
 *   {"cold_us":410.1,"us":401.2,"cycles":721000,"mhz":1797,"nvml_mhz":1800,"mw":412000,
 *    "throttle":""}
 *   {"error":"..."}         and the process ends with its exit status
 *
 * cold_us: one launch of the first batch, right after the others ran. us: the median of the batches
 * after one more that warms up. mhz: the SM clock during those by the SMs' own counters; cycles =
 * us * mhz; both null where they could not be read.
 */
#ifndef KERNELS_KCHECK_SERVE_H
#define KERNELS_KCHECK_SERVE_H

#include "kernels/family.h"

struct serve_options {
    const char *kernel, *cubins; /* cubins: folder, NULL = the usual one */
    struct shape shape;
    int blocks; /* a SM, by padding shared memory; 0 = as it is */
};

/* Returns the exit status. */
int serve_run(const struct serve_options *o);

#endif
