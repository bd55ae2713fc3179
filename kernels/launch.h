/*
 * The one way a kernel is launched.
 *
 * A launcher belongs to one device and context: it loads the cubins of a registry on first use,
 * reads the device's limits once, works out grid, block and dynamic shared memory from descriptor
 * and shape, and refuses before the launch what the device doesn't grant. Use it from one thread
 * with the context current. The registry and the driver must outlive it.
 *
 * The guard. A kernel whose dynamic + static shared memory exceeds the device's opt-in limit is not
 * launched. The family's fallback of the same KD runs instead, and the result says what was asked,
 * what ran and why. $SASSTOP_SMEM_LIMIT ("99K", "101376") lowers the limit, never raises it.
 */
#ifndef KERNELS_LAUNCH_H
#define KERNELS_LAUNCH_H

#include "base/driver.h"
#include "base/status.h"
#include "kernels/family.h"
#include "kernels/registry.h"

enum { LAUNCH_WHY = 200 };

struct device_limits {
    int sm; /* 10 * major + minor */
    int sms;
    int smem_optin;    /* bytes a block may ask for, after $SASSTOP_SMEM_LIMIT */
    int smem_sm;       /* bytes an SM has */
    int smem_reserved; /* bytes the driver takes from each block */
    bool lowered;      /* by $SASSTOP_SMEM_LIMIT */
};

struct launch_options {
    int force_blocks_per_sm; /* pad dynamic shared memory so that exactly N fit (0: don't) */
    bool strict;             /* no fallback: ERR_LIMIT with the reason instead */
};

/* What a launch would be, or was. */
struct launch_plan {
    const struct variant *asked, *ran; /* differ after a fallback */
    bool fell_back;
    char why[LAUNCH_WHY]; /* reason of the fallback or the refusal; "" when there is none */
    uint32_t grid[3], block;
    uint32_t dyn_smem; /* bytes, padding included */
    uint32_t pad;      /* bytes added by force_blocks_per_sm */
    int blocks_per_sm; /* what the padding was asked to reach; 0: not asked */
};

/* Plans a GEMM launch. Pure: no GPU needed, `reg` only for the fallback. ERR_LIMIT when neither
 * the kernel nor a fallback fits (or `strict`); plan->why holds the reason too. ERR_USAGE for a
 * shape that the family refuses. */
enum status launch_plan_make(const struct registry *reg, const struct device_limits *lim,
                             const struct variant *v, const struct shape *shape,
                             const struct launch_options *opt, struct launch_plan *plan);

/* Reads "99K", "101376", "1M"; 0 when it is no size. */
int launch_parse_size(const char *text);

struct launcher;

/* The context must be current. */
enum status launcher_open(struct launcher **out, const struct driver *drv, int dev,
                          const struct registry *reg);
void launcher_close(struct launcher *l); /* unloads the modules; NULL is fine */
const struct device_limits *launcher_limits(const struct launcher *l);

/* Kernels with VARIANT_EARLY start before their predecessor's end, unless `serial`: then a kernel's
 * time is its own. With $SASSTOP_SERIAL=1 they never do. */
void launcher_serial(struct launcher *l, bool serial);

/* The loaded function of a variant (loading it if needed), for attributes and occupancy. */
enum status launcher_function(struct launcher *l, const struct variant *v, struct drv_func **f);

/* Plans and launches a family's kernel (launch_plan_make's errors). `args` as for
 * cuLaunchKernel: pointers to each argument in the family's order (kernels/family.h). Asynchronous:
 * a fault shows at the next synchronisation. `plan` may be NULL. */
enum status launcher_run(struct launcher *l, const struct variant *v, const struct shape *shape,
                         const struct launch_options *opt, void **args, struct drv_stream *stream,
                         struct launch_plan *plan);

/* Launches a kernel without a family contract (kernels/ops): grid, block and dynamic shared memory
 * by the caller, held against descriptor and device. `dyn_smem` -1: the descriptor's sum. */
enum status launcher_run_plain(struct launcher *l, const struct variant *v, const uint32_t grid[3],
                               uint32_t block, int dyn_smem, void **args,
                               struct drv_stream *stream);

/* Blocks of this plan's kernel that fit on one SM by the driver's own count. */
enum status launcher_occupancy(struct launcher *l, const struct launch_plan *plan, int *blocks);

#endif
