/*
 * Power, SM clock and throttle reasons of device 0, by NVML (libnvidia-ml.so.1 by dlopen). Where it
 * is missing every figure is 0, which means unknown. Child process only; one thread.
 */
#ifndef KERNELS_KCHECK_NVML_H
#define KERNELS_KCHECK_NVML_H

#include "base/driver.h"

struct nvml {
    void *lib, *dev;
    int (*clock)(void *dev, int type, unsigned *mhz);
    int (*power)(void *dev, unsigned *mw);
    int (*throttle)(void *dev, unsigned long long *reasons);
};

struct nvml_reading {
    unsigned mhz, mw;
    char throttle[64]; /* "" = none, or not known */
};

void nvml_open(struct nvml *n, const struct driver *d, int dev);
void nvml_read(const struct nvml *n, struct nvml_reading *out);

#endif
