/*
 * CLOCKS frames: clocks, power, temperature and throttle reasons of the GPU, once a second, by
 * NVML (libnvidia-ml.so.1 by dlopen, prototypes below; no header of NVIDIA's is needed).
 *
 * A thread of its own: it never touches the launching thread, the context or CUPTI. Where NVML or
 * one of its calls is missing there are no frames, which readers show as unknown. The device is
 * found by its PCI bus id, since NVML's order need not be CUDA's.
 */
#include "engine/collect_priv.h"

#include "base/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_SENSOR_GPU = 0 };

struct clocks {
    struct emit *emit;
    void *lib, *dev;
    int (*init)(void);
    int (*shutdown)(void);
    int (*handle)(const char *bus_id, void **dev);
    int (*clock)(void *dev, int type, unsigned *mhz);
    int (*power)(void *dev, unsigned *mw);
    int (*temperature)(void *dev, int sensor, unsigned *celsius);
    int (*throttle)(void *dev, unsigned long long *reasons);
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool ending, running;
};

static const struct {
    unsigned long long bit;
    const char *name;
} reasons[] = {
    {0x2, "application clocks"}, {0x4, "power cap"},         {0x8, "hardware slowdown"},
    {0x10, "sync boost"},        {0x20, "software thermal"}, {0x40, "hardware thermal"},
    {0x80, "power brake"},       {0x100, "display clocks"},
};

static void name_reasons(unsigned long long bits, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0] && at < size; i++)
        if (bits & reasons[i].bit)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", reasons[i].name);
}

static void tell(struct clocks *k)
{
    struct msg_clocks m = {0};
    unsigned long long bits = 0;
    if (k->clock(k->dev, NVML_CLOCK_SM, &m.sm_mhz) != 0) return;
    if (k->clock(k->dev, NVML_CLOCK_MEM, &m.mem_mhz) != 0) m.mem_mhz = 0;
    if (k->power(k->dev, &m.power_mw) != 0) m.power_mw = 0;
    if (k->temperature(k->dev, NVML_SENSOR_GPU, &m.temp_c) != 0) m.temp_c = 0;
    if (k->throttle(k->dev, &bits) == 0) name_reasons(bits, m.throttle, sizeof m.throttle);
    emit_send(k->emit, FRAME_CLOCKS, &m);
}

static void *run(void *arg)
{
    struct clocks *k = arg;
    pthread_setname_np(pthread_self(), "clocks");
    pthread_mutex_lock(&k->lock);
    while (!k->ending) {
        struct timespec ts;
        pthread_mutex_unlock(&k->lock);
        tell(k);
        pthread_mutex_lock(&k->lock);
        clock_gettime(CLOCK_MONOTONIC, &ts);
        ts.tv_sec++;
        while (!k->ending && pthread_cond_timedwait(&k->wake, &k->lock, &ts) == 0) continue;
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

static bool bind(struct clocks *k)
{
    const struct {
        void **to;
        const char *symbol;
    } calls[] = {
        {(void **)&k->init, "nvmlInit_v2"},
        {(void **)&k->shutdown, "nvmlShutdown"},
        {(void **)&k->handle, "nvmlDeviceGetHandleByPciBusId_v2"},
        {(void **)&k->clock, "nvmlDeviceGetClockInfo"},
        {(void **)&k->power, "nvmlDeviceGetPowerUsage"},
        {(void **)&k->temperature, "nvmlDeviceGetTemperature"},
        {(void **)&k->throttle, "nvmlDeviceGetCurrentClocksThrottleReasons"},
    };
    k->lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; k->lib && i < sizeof calls / sizeof calls[0]; i++)
        if (!(*calls[i].to = dlsym(k->lib, calls[i].symbol))) return false;
    return k->lib != NULL;
}

/* The engine works on CUDA's device 0. */
static bool find_device(struct clocks *k, const struct driver *d)
{
    char bus[32] = "";
    int dev;
    if (d->DeviceGet(&dev, 0) != DRV_SUCCESS) return false;
    if (d->DeviceGetPCIBusId(bus, (int)sizeof bus - 1, dev) != DRV_SUCCESS) return false;
    return k->init() == 0 && k->handle(bus, &k->dev) == 0;
}

void collect_clocks_start(struct collect *c)
{
    const struct engine *e = c->e;
    const struct driver *d = e->bo->driver ? e->bo->driver(e->b) : NULL;
    if (!d) return;
    struct clocks *k = calloc(1, sizeof *k);
    if (!k) return;
    pthread_condattr_t attr;
    k->emit = e->emit;
    pthread_mutex_init(&k->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&k->wake, &attr);
    pthread_condattr_destroy(&attr);
    c->clocks = k;
    if (bind(k) && find_device(k, d)) k->running = pthread_create(&k->thread, NULL, run, k) == 0;
}

void collect_clocks_stop(struct collect *c)
{
    struct clocks *k = c->clocks;
    if (!k) return;
    pthread_mutex_lock(&k->lock);
    k->ending = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    if (k->running) pthread_join(k->thread, NULL);
    if (k->dev) k->shutdown();
    if (k->lib) dlclose(k->lib);
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
    free(k);
    c->clocks = NULL;
}
