/*
 * Job: the table of chips and the arithmetic of resident blocks.
 *
 * Figures are facts of the CUDA C++ Programming Guide's table per compute capability, as of
 * CUDA 13.0. To add a chip: one row, in order of sm.
 */
#include "sass_view/occupancy.h"
#include <limits.h>
#include <stddef.h>

enum { KIB = 1024, WARP = 32, SUBCORES = 4, REG_UNIT = 256, REGS_MAX = 255, BLOCK_THREADS = 1024 };

static const struct chip_limits chips[] = {
    /* sm, threads, warps, blocks, regs, smem, smem a block, reserved, unit */
    {75, 1024, 32, 16, 65536, 64 * KIB, 64 * KIB, 0, 256},
    {80, 2048, 64, 32, 65536, 164 * KIB, 163 * KIB, KIB, 128},
    {86, 1536, 48, 16, 65536, 100 * KIB, 99 * KIB, KIB, 128},
    {87, 1536, 48, 16, 65536, 164 * KIB, 163 * KIB, KIB, 128},
    {89, 1536, 48, 24, 65536, 100 * KIB, 99 * KIB, KIB, 128},
    {90, 2048, 64, 32, 65536, 228 * KIB, 227 * KIB, KIB, 128},
    {100, 2048, 64, 32, 65536, 228 * KIB, 227 * KIB, KIB, 128},
    {103, 2048, 64, 32, 65536, 228 * KIB, 227 * KIB, KIB, 128},
    {110, 1536, 48, 24, 65536, 228 * KIB, 227 * KIB, KIB, 128},
    {120, 1536, 48, 24, 65536, 100 * KIB, 99 * KIB, KIB, 128},
    {121, 1536, 48, 24, 65536, 100 * KIB, 99 * KIB, KIB, 128},
};

const struct chip_limits *chip_limits_find(int sm)
{
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (chips[i].sm == sm) return &chips[i];
    return NULL;
}

static int round_up(int v, int unit)
{
    return (v + unit - 1) / unit * unit;
}

/* Registers live in four sub-cores: whole warps fit in each. A block's warps are checked as if
 * spread evenly over the four. */
static int blocks_by_regs(const struct chip_limits *lim, int regs, int warps)
{
    if (regs <= 0) return INT_MAX;
    if (regs > REGS_MAX) return 0;
    int a_warp = round_up(regs * WARP, REG_UNIT);
    if (a_warp * round_up(warps, SUBCORES) > lim->regs) return 0;
    return lim->regs / SUBCORES / a_warp * SUBCORES / warps;
}

static int blocks_by_smem(const struct chip_limits *lim, int smem)
{
    if (smem < 0) smem = 0;
    if (smem > lim->smem_block) return 0;
    int taken = round_up(smem + lim->smem_reserved, lim->smem_unit);
    return taken ? lim->smem / taken : INT_MAX;
}

struct occupancy occupancy_compute(const struct chip_limits *lim, int regs, int smem, int threads)
{
    struct occupancy o = {.limit = OCC_LIMIT_NONE};
    if (threads < 1 || threads > BLOCK_THREADS) {
        o.limit = OCC_LIMIT_THREADS;
        return o;
    }
    int warps = (threads + WARP - 1) / WARP;
    const struct {
        int blocks;
        enum occupancy_limit limit;
    } by[] = {
        {blocks_by_regs(lim, regs, warps), OCC_LIMIT_REGS},
        {blocks_by_smem(lim, smem), OCC_LIMIT_SMEM},
        {lim->warps / warps, OCC_LIMIT_THREADS},
        {lim->blocks, OCC_LIMIT_BLOCKS},
    };
    o.blocks = INT_MAX;
    for (size_t i = 0; i < sizeof by / sizeof by[0]; i++) {
        if (by[i].blocks >= o.blocks) continue;
        o.blocks = by[i].blocks;
        o.limit = by[i].limit;
    }
    o.warps = o.blocks * warps;
    o.fraction = (double)o.warps / lim->warps;
    return o;
}

const char *occupancy_limit_name(enum occupancy_limit l)
{
    switch (l) {
    case OCC_LIMIT_THREADS:
        return "threads";
    case OCC_LIMIT_BLOCKS:
        return "blocks";
    case OCC_LIMIT_REGS:
        return "registers";
    case OCC_LIMIT_SMEM:
        return "shared memory";
    default:
        return "none";
    }
}
