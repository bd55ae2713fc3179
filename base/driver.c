/*
 * Driver API by dlopen; see driver.h. Every call is required: all of them exist in drivers from
 * CUDA 11.8 on, and one missing means a driver older than this program can use.
 * To add a call: one row in DRIVER_CALLS.
 */
#include "base/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITHOUT "the CPU engine, replay and reports still work"

/* ISO C has no cast from void * to a function pointer; POSIX has the copy. */
static bool load(void *lib, const char *symbol, void *field)
{
    void *p = dlsym(lib, symbol);
    memcpy(field, &p, sizeof p);
    return p != NULL;
}

static const char *find_calls(struct driver *d)
{
    const char *missing = NULL;
#define DRIVER_LOAD(field, symbol, args)                                                           \
    if (!load(d->lib, symbol, &d->field)) missing = symbol;
    DRIVER_CALLS(DRIVER_LOAD)
#undef DRIVER_LOAD
    return missing;
}

static enum status start(struct driver *d)
{
    int devices = 0;
    drv_result r = d->Init(0);
    if (r == DRV_SUCCESS) r = d->DeviceGetCount(&devices);
    if (r != DRV_SUCCESS)
        return err_set(ERR_UNAVAILABLE, "the NVIDIA driver does not start: %s; " WITHOUT,
                       driver_error_name(d, r));
    if (devices == 0) return err_set(ERR_UNAVAILABLE, "the NVIDIA driver sees no GPU; " WITHOUT);
    d->DriverGetVersion(&d->version);
    return OK;
}

enum status driver_open(struct driver **out)
{
    *out = NULL;
    struct driver *d = calloc(1, sizeof *d);
    if (!d) return err_set(ERR_NOMEM, "out of memory");
    const char *path = getenv("SASSTOP_LIBCUDA");
    if (!path || !*path) path = "libcuda.so.1";
    enum status st = OK;
    d->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!d->lib) {
        st = err_set(ERR_UNAVAILABLE, "no NVIDIA driver here (%s can't be opened); " WITHOUT, path);
        goto out;
    }
    const char *missing = find_calls(d);
    if (missing) {
        st = err_set(ERR_UNAVAILABLE,
                     "the NVIDIA driver is too old (no %s); update it to 470 "
                     "or newer; " WITHOUT,
                     missing);
        goto out;
    }
    st = start(d);
out:
    if (st != OK) {
        driver_close(d);
        return st;
    }
    *out = d;
    return OK;
}

void driver_close(struct driver *d)
{
    if (!d) return;
    if (d->lib) dlclose(d->lib);
    free(d);
}

const char *driver_error_name(const struct driver *d, drv_result r)
{
    static __thread char text[32];
    const char *name = NULL;
    if (d->GetErrorName && d->GetErrorName(r, &name) == DRV_SUCCESS && name) return name;
    snprintf(text, sizeof text, "CUDA error %d", r);
    return text;
}

enum status driver_check(const struct driver *d, drv_result r, const char *what)
{
    if (r == DRV_SUCCESS) return OK;
    const char *text = NULL;
    if (!d->GetErrorString || d->GetErrorString(r, &text) != DRV_SUCCESS || !text) text = "";
    return err_set(ERR_FAILED, "%s: %s (%s)", what, driver_error_name(d, r), text);
}

int driver_attribute(const struct driver *d, int dev, int attribute, int missing)
{
    int v = 0;
    return d->DeviceGetAttribute(&v, attribute, dev) == DRV_SUCCESS ? v : missing;
}

void driver_name(const struct driver *d, char *out, size_t size)
{
    FILE *f = fopen("/sys/module/nvidia/version", "r");
    snprintf(out, size, "CUDA %d.%d", d->version / 1000, d->version % 1000 / 10);
    if (!f) return;
    char line[32];
    if (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line) snprintf(out, size, "%s", line);
    }
    fclose(f);
}
