/* The CPU backend's operators as the screen names them. Constant data, any thread. */
#ifndef ENGINE_CPU_KERNELS_H
#define ENGINE_CPU_KERNELS_H

#include "engine/backend.h"

/* Order of cpu_kernels(). */
enum cpu_kernel {
    CPU_ROWS_KD4,
    CPU_ROWS_KD8,
    CPU_TILES_KD4,
    CPU_TILES_KD8,
    CPU_Q4K_GEMV,
    CPU_Q6K,
    CPU_Q8_0,
    CPU_Q5_0,
    CPU_Q4_1,
    CPU_F16,
    CPU_F32,
    CPU_QUANTIZE,
    CPU_EMBED,
    CPU_NORM,
    CPU_ROPE,
    CPU_KV_STORE,
    CPU_ATTENTION,
    CPU_GLU,
    CPU_ADD,
    CPU_LAST,
    CPU_ARGMAX,
    CPU_KERNELS
};

const struct kernel_info *cpu_kernels(void);

/* What launch_info says about an operator run as kernel `k` on this list. */
struct launch_info cpu_launch_info(const struct op *op, enum cpu_kernel k);

#endif
