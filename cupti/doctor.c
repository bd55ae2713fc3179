/* Probing this machine for `sasstop doctor`: see doctor.h. Reads /proc, opens driver and CUPTI. */
#include "cupti/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/driver.h"
#include "cupti/lib.h"

enum { CAP_SYS_ADMIN_ = 21, CAP_PERFMON_ = 38, TEXT_MAX = 16384 };

/* ---- /proc ---- */

/* The text of a small file; "" when it can't be read. */
static void read_text(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = '\0';
    if (f) fclose(f);
}

/* Where the value of line "key:" starts; NULL when there is no such line. */
static const char *line_value(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = text; *p;) {
        if (strncmp(p, key, n) == 0 && p[n] == ':') return p + n + 1;
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
    return NULL;
}

int doctor_admin_only(const char *params)
{
    const char *v = line_value(params, "RmProfilingAdminOnly");
    if (!v) return -1;
    v += strspn(v, " \t");
    return *v == '1' ? 1 : *v == '0' ? 0 : -1;
}

bool doctor_has_cap(const char *status, int cap)
{
    const char *v = line_value(status, "CapEff");
    return v && (strtoull(v, NULL, 16) >> cap & 1);
}

static void read_machine(struct doctor *d)
{
    static char text[TEXT_MAX];
    read_text("/proc/driver/nvidia/params", text, sizeof text);
    d->admin_only = doctor_admin_only(text);
    read_text("/proc/self/status", text, sizeof text);
    d->root = geteuid() == 0;
    d->cap_sys_admin = doctor_has_cap(text, CAP_SYS_ADMIN_);
    d->cap_perfmon = doctor_has_cap(text, CAP_PERFMON_);
    read_text("/proc/1/cgroup", text, sizeof text);
    d->container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
                   strstr(text, "docker") || strstr(text, "kubepods") || strstr(text, "containerd");
    read_text("/proc/version", text, sizeof text);
    d->wsl = strstr(text, "icrosoft") != NULL;
    read_text("/proc/driver/nvidia/version", text, sizeof text);
    const char *v = strstr(text, "Kernel Module");
    v = v ? strpbrk(v, "0123456789") : NULL;
    if (v) snprintf(d->driver_build, sizeof d->driver_build, "%.*s", (int)strcspn(v, " \n"), v);
}

/* ---- driver and CUPTI ---- */

/* A current context, for the sources; false: d->driver_why says why not. */
static bool open_gpu(struct doctor *d, int ordinal, struct driver **drv, struct drv_ctx **ctx)
{
    int dev = 0;
    *ctx = NULL;
    enum status st = driver_open(drv);
    if (st != OK) goto out;
    d->driver_version = (*drv)->version;
    st = driver_check(*drv, (*drv)->DeviceGet(&dev, ordinal), "opening the device");
    if (st != OK) goto out;
    (*drv)->DeviceGetName(d->device, sizeof d->device, dev);
    d->sms = driver_attribute(*drv, dev, DRV_DEV_SM_COUNT, 0);
    d->cc_major = driver_attribute(*drv, dev, DRV_DEV_CC_MAJOR, 0);
    d->cc_minor = driver_attribute(*drv, dev, DRV_DEV_CC_MINOR, 0);
    st = driver_check(*drv, (*drv)->DevicePrimaryCtxRetain(ctx, dev), "making a context");
    if (st == OK) st = driver_check(*drv, (*drv)->CtxSetCurrent(*ctx), "making a context");
out:
    if (st != OK) snprintf(d->driver_why, sizeof d->driver_why, "%s", err_msg());
    return st == OK;
}

static struct cupti_lib *open_cupti(struct doctor *d, bool gpu, int device)
{
    struct cupti_lib *lib;
    if (cupti_open(&lib) != OK) {
        snprintf(d->cupti_why, sizeof d->cupti_why, "%s", err_msg());
        return NULL;
    }
    d->cupti_version = lib->version;
    snprintf(d->cupti_path, sizeof d->cupti_path, "%s", lib->path);
    if (gpu && cupti_attach(lib, device) == OK) {
        snprintf(d->chip, sizeof d->chip, "%s", lib->chip);
        return lib;
    }
    snprintf(d->cupti_why, sizeof d->cupti_why, "%s",
             gpu ? err_msg() : "not asked: no GPU to measure");
    snprintf(d->other, sizeof d->other, "%s", lib->other);
    cupti_close(lib);
    return NULL;
}

/* Opens a source, arms it once where permission shows only then, keeps its state. */
static void ask(struct doctor *d, enum counter_role role, const struct counter_env *env)
{
    struct counter_source *src;
    struct counter_state *s = &d->sources[role];
    *s = (struct counter_state){
        .role = role, .name = counter_role_name(role), .health = COUNTER_UNAVAILABLE};
    if (counter_open(role, false, env, &src) != OK) {
        snprintf(s->why, sizeof s->why, "%s", err_msg());
        return;
    }
    if (src->state.health == COUNTER_READY && counter_arm(src) == OK) counter_disarm(src);
    *s = src->state;
    counter_close(src);
    if (env->lib || role == COUNTER_EVENTS) return;
    /* Without the library a source can only say that there is none: here the cause is known. */
    const char *cause = d->driver_why[0] ? d->driver_why : d->cupti_why;
    size_t n = strcspn(cause, ";");
    snprintf(s->why, sizeof s->why, "%.*s", (int)n, cause);
    snprintf(s->remedy, sizeof s->remedy, "%s",
             d->driver_why[0] ? "install the NVIDIA driver, or replay a recorded session"
             : cause[n]       ? cause + n + 2
                              : "");
}

void doctor_run(struct doctor *d, int device)
{
    static struct driver
        *drv; /* stays open, like the context: CUPTI's threads may still use them */
    struct drv_ctx *ctx;
    *d = (struct doctor){.admin_only = -1};
    read_machine(d);
    bool gpu = open_gpu(d, device, &drv, &ctx);
    struct cupti_lib *lib = open_cupti(d, gpu, device);
    struct counter_env env = {.lib = lib, .driver = gpu ? drv : NULL, .ctx = ctx, .device = device};
    for (int r = 0; r < COUNTER_ROLES; r++) ask(d, (enum counter_role)r, &env);
    cupti_close(lib);
}

/* ---- text ---- */

static void text_machine(const struct doctor *d, struct buf *out)
{
    if (d->driver_version)
        buf_printf(out, "driver    %s, CUDA %d.%d\n", d->driver_build[0] ? d->driver_build : "?",
                   d->driver_version / 1000, d->driver_version % 1000 / 10);
    else
        buf_printf(out, "driver    none: %s\n", d->driver_why);
    if (d->device[0])
        buf_printf(out, "device    %s, sm_%d%d, %d SMs%s%s\n", d->device, d->cc_major, d->cc_minor,
                   d->sms, d->chip[0] ? ", chip " : "", d->chip);
    if (d->driver_version && d->driver_why[0]) buf_printf(out, "          %s\n", d->driver_why);
    if (d->cupti_version)
        buf_printf(out, "CUPTI     %u, %s%s%s\n", d->cupti_version, d->cupti_path,
                   d->cupti_why[0] ? "; " : "", d->cupti_why);
    else if (d->cupti_why[0])
        buf_printf(out, "CUPTI     %s\n", d->cupti_why);
    buf_printf(out, "counters  %s\n",
               d->admin_only == 1   ? "restricted to administrators (RmProfilingAdminOnly: 1)"
               : d->admin_only == 0 ? "open to every user (RmProfilingAdminOnly: 0)"
                                    : "not known (no /proc/driver/nvidia/params)");
    buf_printf(out, "process   %s%s%s%s%s\n", d->root ? "root" : "not root",
               d->cap_sys_admin ? ", CAP_SYS_ADMIN" : "", d->cap_perfmon ? ", CAP_PERFMON" : "",
               d->container ? ", in a container" : "", d->wsl ? ", under WSL" : "");
}

void doctor_text(const struct doctor *d, struct buf *out)
{
    text_machine(d, out);
    buf_printf(out, "\nsources\n");
    for (int r = 0; r < COUNTER_ROLES; r++) {
        const struct counter_state *s = &d->sources[r];
        buf_printf(out, "  %-9s %-12s %s\n", s->name, counter_health_name(s->health),
                   s->health == COUNTER_READY ? s->detail : s->why);
        if (s->health != COUNTER_READY && s->remedy[0])
            buf_printf(out, "  %-9s %-12s try: %s\n", "", "", s->remedy);
    }
    if (d->sources[COUNTER_EVENTS].health == COUNTER_READY)
        buf_printf(out, "\ntiming works in any case%s\n",
                   d->cupti_version
                       ? "; beside counters in a process of its own, which never opens "
                         "CUPTI, if the GPU holds the weights twice (--timer)"
                       : "");
}
