/*
 * Blocks that fit on one SM, computed from registers, shared memory and threads.
 *
 * Limits are the per-compute-capability table of the CUDA C++ Programming Guide (13.0), one row a
 * chip in occupancy.c. Pure functions, no memory, any thread.
 */
#ifndef SASS_VIEW_OCCUPANCY_H
#define SASS_VIEW_OCCUPANCY_H

#include <stdint.h>

struct chip_limits {
    int sm;
    int threads, warps, blocks; /* resident on an SM */
    int regs;                   /* 32-bit registers an SM */
    int smem;                   /* shared memory an SM, bytes */
    int smem_block;             /* the most that a block can ask for (opt-in), bytes */
    int smem_reserved;          /* taken by the system from each block, bytes */
    int smem_unit;              /* allocation granularity, bytes */
};

enum occupancy_limit {
    OCC_LIMIT_NONE,
    OCC_LIMIT_THREADS, /* threads or warps */
    OCC_LIMIT_BLOCKS,
    OCC_LIMIT_REGS,
    OCC_LIMIT_SMEM,
};

struct occupancy {
    int blocks;                 /* a SM; 0: one block doesn't fit */
    int warps;                  /* resident, = blocks * warps a block */
    double fraction;            /* warps / the chip's warps */
    enum occupancy_limit limit; /* what binds first (registers before shared memory on a tie) */
};

/* The row for sm (80, 86, 87, 89, 90, 100, 103, 110, 120, 121...), or NULL: unknown chip. */
const struct chip_limits *chip_limits_find(int sm);

/* `regs` a thread (0 or less: not known, not a limit), `smem` bytes a block (static + dynamic,
 * without the reserved part), `threads` a block. Registers are given to warps in units of 256,
 * inside one of four sub-cores. */
struct occupancy occupancy_compute(const struct chip_limits *lim, int regs, int smem, int threads);

const char *occupancy_limit_name(enum occupancy_limit l); /* "registers" */

#endif
