/*
 * Roofline and regime of a kernel: what sets its time, told from figures alone.
 *
 * Roofline (Williams, Waterman, Patterson 2009): a kernel of I operations a byte can do at most
 * min(compute ceiling, I x DRAM ceiling). Ceilings are measured on the machine (CEILING frames) or
 * unknown; a multiply-add is two operations.
 *
 * Regime: of the parts whose use is known in per cent of their peak (DRAM, L2, L1 with shared
 * memory, tensor, ALU and FMA pipes, issue slots) the busiest sets the time when it is at
 * REGIME_BUSY or over. When all are known to be below, warps wait: latency. Where a figure that
 * could decide is missing, nothing is decided.
 *
 * Pure; the strings are in the struct.
 */
#ifndef SESSION_REGIME_H
#define SESSION_REGIME_H

#include <stdbool.h>

#include "base/value.h"

enum { REGIME_BUSY = 60 }; /* per cent of a part's peak from which it is taken to set the time */

enum regime_kind {
    REGIME_UNKNOWN,
    REGIME_MEMORY, /* DRAM, L2, or L1 with shared memory */
    REGIME_PIPE,   /* tensor, ALU or FMA */
    REGIME_ISSUE,
    REGIME_LATENCY,
};

struct regime_in {
    double macs, least_bytes;   /* a call; 0 = unknown */
    struct value us, dram_rate; /* a call; bytes a second */
    /* Per cent of the peak. issue: of a scheduler's active cycles. */
    struct value dram, l1, l2, tensor, alu, fma, issue; /* l1: with shared memory */
    bool issue_elapsed;     /* issue is of elapsed cycles: those of idle SMs are in it */
    struct value sm_active; /* per cent of the time that an SM has warps */
    struct value stall;     /* share of the top stall reason, per cent */
    const char *stall_name;
    struct value dram_ceiling, compute_ceiling; /* B/s, MAC/s */
    const char *compute_name;                   /* "int8 mma" */
};

struct regime {
    enum regime_kind kind;
    struct value intensity;  /* operations a byte */
    struct value rate;       /* operations a second */
    struct value roof;       /* the same, at most, at this intensity */
    struct value roof_share; /* rate over roof, per cent */
    struct value saving; /* per cent of the time that 10 % fewer instructions can save at most */
    char roofline[240], decided[240], payoff[200];
};

void regime_of(const struct regime_in *in, struct regime *out);
const char *regime_name(enum regime_kind k); /* "issue bound", ... */

#endif
