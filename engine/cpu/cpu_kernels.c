/* The table of CPU operators, and their work in multiply-adds and bytes. */
#include "engine/cpu/cpu_kernels.h"

#include "engine/quant.h"

#define CPU_OP(i, nm, what)                                                                        \
    [i] = {.name = nm, .family = "ops", .variant = "", .cls = "f32", .note = what}
#define CPU_MM(i, nm, c, what)                                                                     \
    [i] = {.name = nm, .family = "matmul", .variant = "", .cls = c, .note = what}
#define CPU_GEMM(i, nm, v, depth, st, what)                                                        \
    [i] = {.name = nm,                                                                             \
           .family = "q4k_gemm",                                                                   \
           .variant = v,                                                                           \
           .kd = depth,                                                                            \
           .cls = "q8",                                                                            \
           .standing = st,                                                                         \
           .note = what}

static const char ROWS[] = "one weight row at a time past 32 tokens";
static const char TILES[] = "8 weight rows past 32 tokens, whose activations stay in the L1";

static const struct kernel_info KERNELS[CPU_KERNELS] = {
    CPU_GEMM(CPU_ROWS_KD4, "rows_kd4", "rows", 4, 0, ROWS),
    CPU_GEMM(CPU_ROWS_KD8, "rows_kd8", "rows", 8, KERNEL_FALLBACK, ROWS),
    CPU_GEMM(CPU_TILES_KD4, "tiles_kd4", "tiles", 4, 0, TILES),
    CPU_GEMM(CPU_TILES_KD8, "tiles_kd8", "tiles", 8, KERNEL_START, TILES),
    [CPU_Q4K_GEMV] = {.name = "q4k_gemv",
                      .family = "q4k_gemv",
                      .variant = "dot",
                      .cls = "q8",
                      .note = "Q4_K weights times one token"},
    CPU_MM(CPU_Q6K, "q6k", "q8", "Q6_K weights, integer dots"),
    CPU_MM(CPU_Q8_0, "q8_0", "q8", "Q8_0 weights, integer dots"),
    CPU_MM(CPU_Q5_0, "q5_0", "q8", "Q5_0 weights, integer dots"),
    CPU_MM(CPU_Q4_1, "q4_1", "q8", "Q4_1 weights, integer dots"),
    CPU_MM(CPU_F16, "f16", "f32", "F16 weights, f32 sums"),
    CPU_MM(CPU_F32, "f32", "f32", "F32 weights, f32 sums"),
    CPU_OP(CPU_QUANTIZE, "quantize_q8", "activations to q8 chunks of 32"),
    CPU_OP(CPU_EMBED, "embed", "rows of the embedding"),
    CPU_OP(CPU_NORM, "rmsnorm", "root-mean-square norm"),
    CPU_OP(CPU_ROPE, "rope", "rotary positions"),
    CPU_OP(CPU_KV_STORE, "kv_store", "keys and values into the cache"),
    CPU_OP(CPU_ATTENTION, "attention", "causal attention over the cache"),
    CPU_OP(CPU_GLU, "glu", "gated activation"),
    CPU_OP(CPU_ADD, "add", "residual sum"),
    CPU_OP(CPU_LAST, "last_row", "the last token's row"),
    CPU_OP(CPU_ARGMAX, "argmax", "the most likely token"),
};

const struct kernel_info *cpu_kernels(void)
{
    return KERNELS;
}

static double elements(const struct op *op)
{
    return (double)op->n * op->dim * (op->heads && op->kind == OP_NORM ? op->heads : 1);
}

struct launch_info cpu_launch_info(const struct op *op, enum cpu_kernel k)
{
    struct launch_info i = {.kernel = k, .m = op->dim, .n = op->n, .role = op->role};
    if (op->kind == OP_MATMUL) {
        double weights =
            (double)op->w->m * (double)quant_row_bytes((enum quant_type)op->w->type, op->w->k);
        i.k = op->w->k;
        i.m = k == CPU_QUANTIZE ? op->w->k : op->w->m;
        if (k == CPU_QUANTIZE) {
            i.k = 0;
            i.role = "activations"; /* one row for all products of this length */
            i.bytes = (double)op->n * op->w->k * (4 + 40.0 / 32);
        } else {
            i.macs = (double)op->w->m * op->n * op->w->k;
            i.bytes = weights + (double)op->n * (op->w->k * 40.0 / 32 + op->w->m * 4.0);
        }
    } else if (op->kind == OP_ATTENTION) {
        i.m = op->heads * op->head_dim;
    } else if (op->kind == OP_ROPE) {
        i.m = op->heads * op->head_dim;
        i.bytes = 8.0 * op->n * i.m;
    } else {
        i.bytes = 4.0 * elements(op) * (op->kind == OP_GLU || op->kind == OP_ADD ? 3 : 2);
    }
    return i;
}
