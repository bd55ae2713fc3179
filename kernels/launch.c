/*
 * The launcher: modules, functions, limits, and the one place that launches. Plans are made in
 * launch_plan.c. See launch.h.
 */
#include "kernels/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMEM_WITHOUT_OPTIN = 48 * 1024, SM_OVERLAPS = 90 };

struct loaded {
    struct drv_func *func;
    int smem_allowed; /* MAX_DYNAMIC_SMEM set so far */
};

struct module {
    const uint8_t *bytes; /* the registry's copy: its address is the key */
    struct drv_module *handle;
};

struct launcher {
    const struct driver *drv;
    const struct registry *reg;
    struct device_limits lim;
    struct loaded *loaded; /* by variant index */
    struct module *modules;
    int n_modules;
    bool serial, always_serial; /* nothing starts before its predecessor's end */
};

static void read_limits(struct launcher *l, int dev)
{
    const struct driver *d = l->drv;
    struct device_limits *m = &l->lim;
    m->sm = 10 * driver_attribute(d, dev, DRV_DEV_CC_MAJOR, 0) +
            driver_attribute(d, dev, DRV_DEV_CC_MINOR, 0);
    m->sms = driver_attribute(d, dev, DRV_DEV_SM_COUNT, 1);
    m->smem_optin = driver_attribute(d, dev, DRV_DEV_SMEM_OPTIN, SMEM_WITHOUT_OPTIN);
    m->smem_sm = driver_attribute(d, dev, DRV_DEV_SMEM_PER_SM, m->smem_optin);
    m->smem_reserved = driver_attribute(d, dev, DRV_DEV_SMEM_RESERVED, 0);
    int cap = launch_parse_size(getenv("SASSTOP_SMEM_LIMIT"));
    if (cap > 0 && cap < m->smem_optin) {
        m->smem_optin = cap;
        m->lowered = true;
    }
}

enum status launcher_open(struct launcher **out, const struct driver *drv, int dev,
                          const struct registry *reg)
{
    *out = NULL;
    const char *cap = getenv("SASSTOP_SMEM_LIMIT");
    if (cap && *cap && launch_parse_size(cap) == 0)
        return err_set(ERR_USAGE, "SASSTOP_SMEM_LIMIT=%s is no size; write it as 99K or 101376",
                       cap);
    struct launcher *l = calloc(1, sizeof *l);
    size_t n = (size_t)registry_count(reg) + 1;
    if (l) {
        l->loaded = calloc(n, sizeof *l->loaded);
        l->modules = calloc(n, sizeof *l->modules);
    }
    if (!l || !l->loaded || !l->modules) {
        launcher_close(l);
        return err_set(ERR_NOMEM, "out of memory");
    }
    l->drv = drv;
    l->reg = reg;
    const char *serial = getenv("SASSTOP_SERIAL");
    l->serial = l->always_serial = serial && !strcmp(serial, "1");
    read_limits(l, dev);
    *out = l;
    return OK;
}

void launcher_close(struct launcher *l)
{
    if (!l) return;
    for (int i = 0; i < l->n_modules; i++) l->drv->ModuleUnload(l->modules[i].handle);
    free(l->loaded);
    free(l->modules);
    free(l);
}

const struct device_limits *launcher_limits(const struct launcher *l)
{
    return &l->lim;
}

static enum status get_module(struct launcher *l, const struct variant *v, struct drv_module **out)
{
    for (int i = 0; i < l->n_modules; i++)
        if (l->modules[i].bytes == v->bytes) {
            *out = l->modules[i].handle;
            return OK;
        }
    enum status st = driver_check(l->drv, l->drv->ModuleLoadData(out, v->bytes), "loading");
    if (st != OK) return err_prefix(st, "%s", v->path);
    l->modules[l->n_modules++] = (struct module){v->bytes, *out};
    return OK;
}

enum status launcher_function(struct launcher *l, const struct variant *v, struct drv_func **f)
{
    struct loaded *ld = &l->loaded[v->index];
    if (!ld->func) {
        struct drv_module *m;
        enum status st = get_module(l, v, &m);
        if (st == OK)
            st =
                driver_check(l->drv, l->drv->ModuleGetFunction(&ld->func, m, v->kernel), v->kernel);
        /* Blocks of two kernels meet on an SM only when both want it divided the same way. */
        if (st == OK && v->desc.features & VARIANT_EARLY)
            st = driver_check(
                l->drv, l->drv->FuncSetAttribute(ld->func, DRV_FUNC_SMEM_CARVEOUT, 100), v->kernel);
        if (st != OK) return st;
        ld->smem_allowed = SMEM_WITHOUT_OPTIN;
    }
    *f = ld->func;
    return OK;
}

static enum status allow_smem(struct launcher *l, const struct variant *v, uint32_t dyn,
                              struct drv_func **f)
{
    enum status st = launcher_function(l, v, f);
    struct loaded *ld = &l->loaded[v->index];
    if (st != OK || (int)dyn <= ld->smem_allowed) return st;
    st = driver_check(l->drv, l->drv->FuncSetAttribute(*f, DRV_FUNC_MAX_DYNAMIC_SMEM, (int)dyn),
                      v->kernel);
    if (st == OK) ld->smem_allowed = (int)dyn;
    return st;
}

static enum status launch(struct launcher *l, const struct variant *v, const uint32_t grid[3],
                          uint32_t block, uint32_t dyn, void **args, struct drv_stream *stream)
{
    struct drv_func *f;
    enum status st = allow_smem(l, v, dyn, &f);
    if (st != OK) return st;
    if (!l->serial && v->desc.features & VARIANT_EARLY && l->lim.sm >= SM_OVERLAPS) {
        static const struct drv_launch_attribute early = {.id = DRV_LAUNCH_OVERLAP,
                                                          .value = {.allowed = 1}};
        struct drv_launch how = {.grid = {grid[0], grid[1], grid[2]},
                                 .block = {block, 1, 1},
                                 .smem = dyn,
                                 .stream = stream,
                                 .attributes = &early,
                                 .n_attributes = 1};
        return driver_check(l->drv, l->drv->LaunchKernelEx(&how, f, args, NULL), v->kernel);
    }
    return driver_check(
        l->drv,
        l->drv->LaunchKernel(f, grid[0], grid[1], grid[2], block, 1, 1, dyn, stream, args, NULL),
        v->kernel);
}

void launcher_serial(struct launcher *l, bool serial)
{
    l->serial = serial || l->always_serial;
}

enum status launcher_run(struct launcher *l, const struct variant *v, const struct shape *shape,
                         const struct launch_options *opt, void **args, struct drv_stream *stream,
                         struct launch_plan *plan)
{
    struct launch_plan own;
    if (!plan) plan = &own;
    enum status st = launch_plan_make(l->reg, &l->lim, v, shape, opt, plan);
    if (st != OK) return st;
    return launch(l, plan->ran, plan->grid, plan->block, plan->dyn_smem, args, stream);
}

enum status launcher_run_plain(struct launcher *l, const struct variant *v, const uint32_t grid[3],
                               uint32_t block, int dyn_smem, void **args, struct drv_stream *stream)
{
    uint32_t dyn = dyn_smem < 0 ? v->dyn_smem : (uint32_t)dyn_smem;
    int need = (int)dyn + (v->static_smem > 0 ? v->static_smem : 0);
    if (block == 0 || block > v->desc.threads)
        return err_set(ERR_USAGE, "%s: %u threads a block, it takes 1 to %u", v->kernel, block,
                       v->desc.threads);
    if (need > l->lim.smem_optin)
        return err_set(ERR_LIMIT, "%s needs %d bytes of shared memory a block, %s grants %d",
                       v->kernel, need, l->lim.lowered ? "SASSTOP_SMEM_LIMIT" : "the device",
                       l->lim.smem_optin);
    if (l->lim.sm && (int)v->desc.min_sm > l->lim.sm)
        return err_set(ERR_LIMIT, "%s needs sm_%u, the device is sm_%d", v->kernel, v->desc.min_sm,
                       l->lim.sm);
    return launch(l, v, grid, block, dyn, args, stream);
}

enum status launcher_occupancy(struct launcher *l, const struct launch_plan *plan, int *blocks)
{
    struct drv_func *f;
    enum status st = allow_smem(l, plan->ran, plan->dyn_smem, &f);
    if (st != OK) return st;
    return driver_check(l->drv,
                        l->drv->OccupancyMaxActiveBlocksPerMultiprocessor(
                            blocks, f, (int)plan->block, plan->dyn_smem),
                        plan->ran->kernel);
}
