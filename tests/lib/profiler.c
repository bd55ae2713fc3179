/* The driver's marks for profilers; see profiler.h. */
#include "tests/lib/profiler.h"

#include <dlfcn.h>
#include <stddef.h>

static int (*start)(void), (*stop)(void);

enum status profiler_open(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (lib) {
        *(void **)&start = dlsym(lib, "cuProfilerStart");
        *(void **)&stop = dlsym(lib, "cuProfilerStop");
    }
    return start && stop ? OK : err_set(ERR_UNAVAILABLE, "the driver has no cuProfilerStart");
}

void profiler_start(void)
{
    if (start) start();
}

void profiler_stop(void)
{
    if (stop) stop();
}
