/*
 * Loading libcupti and translating its results.
 *
 * Invariant: cupti_open() calls nothing in the library but cuptiGetVersion, which answers without a
 * driver. cuptiDeviceGetChipName crashes without one: it is called only from cupti_attach().
 * To bind another call: one row in calls.def. To explain another result: one row in words[].
 */
#include "cupti/lib.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SONAME "libcupti.so.13"

static const struct {
    cupti_result r;
    struct cupti_words w;
} words[] = {
    {CUPTI_R_INVALID_PARAMETER,
     {"INVALID_PARAMETER", "a parameter or metric name was refused", "", false}},
    {CUPTI_R_INVALID_DEVICE, {"INVALID_DEVICE", "this device was refused", "", true}},
    {CUPTI_R_INVALID_OPERATION,
     {"INVALID_OPERATION", "out of order, or a session of this kind is open already",
      "try again after the next turn; if it stays, restart the engine", false}},
    {CUPTI_R_OUT_OF_MEMORY,
     {"OUT_OF_MEMORY", "the hardware buffer ran over: samples were lost",
      "use a longer sampling interval or shorter windows", false}},
    {CUPTI_R_MAX_LIMIT_REACHED, {"MAX_LIMIT_REACHED", "a limit of CUPTI was met", "", false}},
    {CUPTI_R_NOT_COMPATIBLE,
     {"NOT_COMPATIBLE", "the driver is older than this CUPTI", "update the NVIDIA driver", true}},
    {CUPTI_R_NOT_INITIALIZED,
     {"NOT_INITIALIZED", "CUPTI could not start: no driver, or one older than this CUPTI",
      "update the NVIDIA driver", true}},
    {CUPTI_R_HARDWARE_BUSY,
     {"HARDWARE_BUSY",
      "another tool holds the GPU's counters (DCGM, ncu, nsys or another collector)",
      "pause it: `dcgmi profile --pause`, or end the other profiler", false}},
    {CUPTI_R_NOT_SUPPORTED,
     {"NOT_SUPPORTED", "this GPU or this set of metrics is not supported", "", true}},
    {CUPTI_R_VIRTUALIZED,
     {"VIRTUALIZED_DEVICE_NOT_SUPPORTED", "a virtual GPU gives no counters here",
      "the hypervisor must enable profiling for this vGPU", true}},
    {CUPTI_R_INSUFFICIENT_PRIVILEGES,
     {"INSUFFICIENT_PRIVILEGES", "GPU counters are restricted to administrators",
      "run as root, or grant CAP_PERFMON or CAP_SYS_ADMIN (container: --cap-add SYS_ADMIN), or "
      "load the "
      "driver with NVreg_RestrictProfilingToAdminUsers=0",
      true}},
    {CUPTI_R_LEGACY_PROFILER,
     {"LEGACY_PROFILER_NOT_SUPPORTED", "an old profiling interface is in use in this process", "",
      true}},
    {CUPTI_R_MULTIPLE_SUBSCRIBERS,
     {"MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "another profiler is attached to this process",
      "start without nsys, ncu, cuda-gdb or compute-sanitizer", true}},
    {CUPTI_R_VGPU_PRIVILEGES,
     {"VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES", "this virtual GPU may not be profiled",
      "the hypervisor must enable profiling for this vGPU", true}},
    {CUPTI_R_CONFIDENTIAL,
     {"CONFIDENTIAL_COMPUTING_NOT_SUPPORTED", "no counters in confidential computing mode",
      "use a GPU outside that mode, or its devtools mode for kernel times", true}},
    {CUPTI_R_CMP, {"CMP_DEVICE_NOT_SUPPORTED", "this mining GPU gives no counters", "", true}},
    {CUPTI_R_MIG,
     {"MIG_DEVICE_NOT_SUPPORTED", "this MIG slice gives no counters",
      "use a compute instance of its own, or the whole GPU", true}},
    {CUPTI_R_SLI, {"SLI_DEVICE_NOT_SUPPORTED", "no counters with SLI", "switch SLI off", true}},
    {CUPTI_R_WSL,
     {"WSL_DEVICE_NOT_SUPPORTED", "no counters under WSL with this driver",
      "use a newer Windows driver, or Linux", true}},
    {CUPTI_R_INVALID_CHIP,
     {"INVALID_CHIP_NAME", "this GPU is newer than this CUPTI", "install a newer CUDA toolkit",
      true}},
    {CUPTI_R_UNKNOWN,
     {"UNKNOWN", "CUPTI gave no reason (no driver, or its buffers ran over)", "", false}},
};

struct cupti_words cupti_explain(cupti_result r)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].r == r) return words[i].w;
    return (struct cupti_words){"", "an error without words here", "", false};
}

enum status cupti_check(const struct cupti_lib *lib, cupti_result r, const char *what)
{
    if (r == CUPTI_R_SUCCESS) return OK;
    struct cupti_words w = cupti_explain(r);
    const char *name = w.name;
    if (!name[0] && lib->result_string) lib->result_string(r, &name);
    if (r == CUPTI_R_MULTIPLE_SUBSCRIBERS && lib->other[0])
        return err_set(ERR_UNAVAILABLE, "%s: %s (%d): %s (%s)", what, name, r, w.why, lib->other);
    return err_set(w.lasting ? ERR_UNAVAILABLE : ERR_FAILED, "%s: %s (%d): %s%s%s", what,
                   name && name[0] ? name : "error", r, w.why, w.remedy[0] ? "; " : "", w.remedy);
}

/* Binds every symbol; gives the first one of level 0 that is missing, or NULL. */
static const char *bind(struct cupti_lib *lib)
{
    const char *missing = NULL;
#define CALL(field, symbol, args, level)                                                           \
    *(void **)&lib->field = dlsym(lib->handle, symbol);                                            \
    if (!lib->field && level == 0 && !missing) missing = symbol;
#include "cupti/calls.def"
#undef CALL
    return missing;
}

bool cupti_has(const struct cupti_lib *lib, const char *prefix)
{
    size_t n = strlen(prefix);
#define CALL(field, symbol, args, level)                                                           \
    if (strncmp(#field, prefix, n) == 0 && !lib->field) return false;
#include "cupti/calls.def"
#undef CALL
    return true;
}

static bool try_file(struct cupti_lib *lib, const char *path)
{
    lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib->handle) return false;
    snprintf(lib->path, sizeof lib->path, "%s", path);
    void *f = dlsym(lib->handle, "cuptiGetVersion");
    Dl_info info;
    if (f && dladdr(f, &info) && info.dli_fname)
        snprintf(lib->path, sizeof lib->path, "%s", info.dli_fname);
    return true;
}

static bool try_roots(struct cupti_lib *lib)
{
    const char *home = getenv("CUDA_HOME");
    const char *roots[] = {home && home[0] ? home : "/usr/local/cuda", "/usr/local/cuda",
                           "/usr/local/cuda-13", "/usr/local/cuda-13.0"};
    static const char *const dirs[] = {"lib64", "extras/CUPTI/lib64", "lib",
                                       "targets/x86_64-linux/lib"};
    for (size_t r = 0; r < sizeof roots / sizeof roots[0]; r++)
        for (size_t d = 0; d < sizeof dirs / sizeof dirs[0]; d++) {
            char path[512];
            snprintf(path, sizeof path, "%s/%s/" SONAME, roots[r], dirs[d]);
            if (try_file(lib, path)) return true;
        }
    return false;
}

static enum status load(struct cupti_lib *lib)
{
    const char *own = getenv("SASSTOP_CUPTI");
    if (own && own[0]) {
        if (try_file(lib, own)) return OK;
        return err_set(ERR_UNAVAILABLE, "no CUPTI: $SASSTOP_CUPTI can't be loaded: %s", dlerror());
    }
    if (try_file(lib, SONAME) || try_roots(lib)) return OK;
    return err_set(ERR_UNAVAILABLE,
                   "no CUPTI: " SONAME " was found neither by the loader nor under $CUDA_HOME or "
                   "/usr/local/cuda; timing works without it; install the CUDA 13 toolkit, or set "
                   "SASSTOP_CUPTI to the file");
}

static enum status check_version(struct cupti_lib *lib)
{
    const char *missing = bind(lib);
    if (lib->get_version) lib->get_version(&lib->version);
    if (lib->version < CUPTI_MIN_VERSION)
        return err_set(
            ERR_UNAVAILABLE,
            "CUPTI too old: %s is version %u, %d or later is needed; timing works without "
            "it; install the CUDA 13 toolkit, or set SASSTOP_CUPTI",
            lib->path, lib->version, CUPTI_MIN_VERSION);
    if (missing)
        return err_set(ERR_UNAVAILABLE, "CUPTI of no use: %s (version %u) has no %s", lib->path,
                       lib->version, missing);
    return OK;
}

enum status cupti_open(struct cupti_lib **out)
{
    *out = NULL;
    struct cupti_lib *lib = calloc(1, sizeof *lib);
    if (!lib) return err_set(ERR_NOMEM, "out of memory");
    enum status st = load(lib);
    if (st == OK) st = check_version(lib);
    if (st != OK) {
        if (lib->handle) dlclose(lib->handle);
        free(lib);
        return st;
    }
    *out = lib;
    return OK;
}

static void ignore(void *user, int domain, uint32_t id, const void *data)
{
    (void)user, (void)domain, (void)id, (void)data;
}

static enum status subscribe(struct cupti_lib *lib)
{
    if (!lib->subscribe) return OK;
    struct cupti_subscriber_params p = {
        .size = CUPTI_SIZE(struct cupti_subscriber_params, old_size),
        .name = "sasstop",
        .old_name = lib->other,
        .old_size = sizeof lib->other,
    };
    cupti_result r = lib->subscribe(&lib->subscriber, ignore, NULL, &p);
    if (r != CUPTI_R_MULTIPLE_SUBSCRIBERS) lib->other[0] = '\0';
    lib->other[sizeof lib->other - 1] = '\0';
    /* Only another subscriber ends it here: after that no call may be made. What else goes wrong
     * shows up again, with a better name, in the calls that matter. */
    if (r == CUPTI_R_MULTIPLE_SUBSCRIBERS) return cupti_check(lib, r, "subscribing to CUPTI");
    if (r != CUPTI_R_SUCCESS) lib->subscriber = NULL;
    return OK;
}

enum status cupti_attach(struct cupti_lib *lib, int device)
{
    if (lib->attached) return OK;
    enum status st = subscribe(lib);
    if (st != OK) return st;
    struct cupti_plain_params init = {.size = sizeof init};
    st = cupti_check(lib, lib->profiler_init(&init), "initialising the profiler");
    if (st != OK) return st;
    lib->attached = true;
    struct cupti_chip_params chip = {.size = sizeof chip, .device = (size_t)device};
    st = cupti_check(lib, lib->chip_name(&chip), "asking for the chip's name");
    if (st != OK) return st;
    snprintf(lib->chip, sizeof lib->chip, "%s", chip.chip ? chip.chip : "");
    return OK;
}

void cupti_close(struct cupti_lib *lib)
{
    if (!lib) return;
    if (lib->subscriber && lib->unsubscribe) lib->unsubscribe(lib->subscriber);
    /* Never unloaded: its threads may still run, and its C++ runtime keeps memory until the end. */
    free(lib);
}
