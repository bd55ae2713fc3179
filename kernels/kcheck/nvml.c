/* See nvml.h. The library stays open until the process ends, which is soon. Reasons that only say
 * that the GPU is idle, or that someone set its clocks, are not throttling. */
#include "kernels/kcheck/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { NVML_CLOCK_SM = 1 };

static const struct {
    unsigned long long bit;
    const char *name;
} reasons[] = {
    {0x4, "power cap"},         {0x8, "hardware slowdown"}, {0x20, "software thermal"},
    {0x40, "hardware thermal"}, {0x80, "power brake"},
};

void nvml_open(struct nvml *n, const struct driver *d, int dev)
{
    int (*init)(void), (*handle)(const char *bus_id, void **out);
    char bus[32] = "";
    *n = (struct nvml){.lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!n->lib) return;
    *(void **)&init = dlsym(n->lib, "nvmlInit_v2");
    *(void **)&handle = dlsym(n->lib, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&n->clock = dlsym(n->lib, "nvmlDeviceGetClockInfo");
    *(void **)&n->power = dlsym(n->lib, "nvmlDeviceGetPowerUsage");
    *(void **)&n->throttle = dlsym(n->lib, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (!init || !handle || d->DeviceGetPCIBusId(bus, (int)sizeof bus - 1, dev) != DRV_SUCCESS ||
        init() != 0 || handle(bus, &n->dev) != 0)
        n->dev = NULL;
}

void nvml_read(const struct nvml *n, struct nvml_reading *out)
{
    unsigned long long bits = 0;
    size_t at = 0;
    *out = (struct nvml_reading){0};
    if (!n->dev) return;
    if (n->clock && n->clock(n->dev, NVML_CLOCK_SM, &out->mhz) != 0) out->mhz = 0;
    if (n->power && n->power(n->dev, &out->mw) != 0) out->mw = 0;
    if (!n->throttle || n->throttle(n->dev, &bits) != 0) return;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons && at < sizeof out->throttle; i++)
        if (bits & reasons[i].bit)
            at += (size_t)snprintf(out->throttle + at, sizeof out->throttle - at, "%s%s",
                                   at ? ", " : "", reasons[i].name);
}
