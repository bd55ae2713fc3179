/*
 * Planning a launch: pure arithmetic on descriptor, shape and device limits, no GPU. See launch.h.
 * A plan is either complete or refused with its reason; nothing is launched on a guess.
 */
#include "kernels/launch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRID_YZ_MAX = 65535, SMEM_UNIT = 128 };

int launch_parse_size(const char *text)
{
    if (!text || *text < '0' || *text > '9') return 0;
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    int shift = 0;
    if (*end == 'k' || *end == 'K')
        shift = 10, end++;
    else if (*end == 'm' || *end == 'M')
        shift = 20, end++;
    if (*end || v > (unsigned long long)INT_MAX >> shift) return 0;
    return (int)(v << shift);
}

static int static_smem(const struct variant *v)
{
    return v->static_smem > 0 ? v->static_smem : 0;
}

/* Empty when the device grants this much, else the reason. */
static bool fits(const struct device_limits *lim, const struct variant *v, uint32_t dyn, char *why,
                 size_t size)
{
    long long need = (long long)dyn + static_smem(v);
    if (need <= lim->smem_optin) return true;
    snprintf(why, size, "%s needs %lld bytes of shared memory a block, %s grants %d", v->kernel,
             need, lim->lowered ? "SASSTOP_SMEM_LIMIT" : "the device", lim->smem_optin);
    return false;
}

/* The least dynamic shared memory with which N blocks fit on an SM and N + 1 do not. */
static enum status pad_to_blocks(const struct device_limits *lim, int blocks,
                                 struct launch_plan *plan)
{
    long long own = static_smem(plan->ran) + lim->smem_reserved;
    long long have = plan->dyn_smem + own;
    long long least = lim->smem_sm / (blocks + 1) / SMEM_UNIT * SMEM_UNIT + SMEM_UNIT;
    if (have * blocks > lim->smem_sm) {
        snprintf(plan->why, sizeof plan->why,
                 "%s: %d blocks of %lld bytes do not fit in the SM's %d bytes of shared memory",
                 plan->ran->kernel, blocks, have, lim->smem_sm);
        return err_set(ERR_LIMIT, "%s", plan->why);
    }
    if (least > have) {
        plan->pad = (uint32_t)(least - have);
        plan->dyn_smem += plan->pad;
    }
    plan->blocks_per_sm = blocks;
    if (!fits(lim, plan->ran, plan->dyn_smem, plan->why, sizeof plan->why))
        return err_set(ERR_LIMIT, "%s (padded to %d blocks an SM)", plan->why, blocks);
    return OK;
}

static enum status set_grid(const struct kernel_family *fam, const struct shape *shape,
                            struct launch_plan *plan)
{
    fam->geometry(&plan->ran->desc, shape, plan->grid);
    plan->block = plan->ran->desc.threads;
    plan->dyn_smem = plan->ran->dyn_smem;
    if (plan->grid[1] > GRID_YZ_MAX || plan->grid[2] > GRID_YZ_MAX)
        return err_set(ERR_LIMIT,
                       "%s on m=%d n=%d k=%d needs a grid of %u x %u x %u; y and z end "
                       "at %d",
                       plan->ran->kernel, shape->m, shape->n, shape->k, plan->grid[0],
                       plan->grid[1], plan->grid[2], GRID_YZ_MAX);
    return OK;
}

/* The fallback reads the same inputs, or it is none. */
static const struct variant *find_fallback(const struct registry *reg,
                                           const struct device_limits *lim, const struct variant *v)
{
    char why[LAUNCH_WHY];
    const struct variant *f = reg ? registry_fallback(reg, v->family, v->kd) : NULL;
    if (!f || f == v || strcmp(f->desc.layout_b, v->desc.layout_b) ||
        strcmp(f->desc.layout_a, v->desc.layout_a))
        return NULL;
    return fits(lim, f, f->dyn_smem, why, sizeof why) ? f : NULL;
}

enum status launch_plan_make(const struct registry *reg, const struct device_limits *lim,
                             const struct variant *v, const struct shape *shape,
                             const struct launch_options *opt, struct launch_plan *plan)
{
    static const struct launch_options none = {0};
    if (!opt) opt = &none;
    *plan = (struct launch_plan){.asked = v, .ran = v};
    const struct kernel_family *fam = family_find(v->family);
    if (!fam)
        return err_set(ERR_USAGE, "%s is of family %s, which has no contract to launch by",
                       v->kernel, v->family);
    enum status st = fam->check_shape(shape);
    if (st != OK) return st;
    if (lim->sm && (int)v->desc.min_sm > lim->sm) {
        snprintf(plan->why, sizeof plan->why, "%s needs sm_%u, the device is sm_%d", v->kernel,
                 v->desc.min_sm, lim->sm);
        return err_set(ERR_LIMIT, "%s", plan->why);
    }
    if (!fits(lim, v, v->dyn_smem, plan->why, sizeof plan->why)) {
        const struct variant *f = opt->strict ? NULL : find_fallback(reg, lim, v);
        if (!f) return err_set(ERR_LIMIT, "%s", plan->why);
        plan->ran = f;
        plan->fell_back = true;
    }
    st = set_grid(fam, shape, plan);
    if (st == OK && opt->force_blocks_per_sm > 0)
        st = pad_to_blocks(lim, opt->force_blocks_per_sm, plan);
    return st;
}
