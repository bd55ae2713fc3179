/*
 * Products: which kernel for which type and number of tokens.
 *
 * Quantised weights meet q8 chunks, made once for all products that read the same activations (q, k
 * and v; gate and up). Up to OPS_GEMV_MAX tokens go to a GEMV. Q4_K and Q6_K above that are the
 * selected variant of q4k_gemm and q6k_gemm (cuda_choice.c). To add a type: a row in KINDS.
 */
#include "engine/cuda/cuda_priv.h"

#include "kernels/q8.h"

#include <limits.h>

enum { MIN_K_Q = Q8_CHUNK };

/* Kernels of a type: GEMVs for up to 1, 2, 4, 8 tokens, and the GEMM; rows a block of the GEMV. */
struct kinds {
    bool known, quantised;
    int gemv[4], gemm;
    uint32_t gemv_rows;
    bool one; /* the first GEMV is of gemv_one.cuh */
};

static const struct kinds KINDS[] = {
    [QUANT_F32] = {true,
                   false,
                   {CUDA_F32_GEMV, CUDA_F32_GEMV, CUDA_F32_GEMV, CUDA_F32_GEMV},
                   CUDA_F32_GEMM,
                   4,
                   false},
    [QUANT_F16] = {true,
                   false,
                   {CUDA_F16_GEMV, CUDA_F16_GEMV, CUDA_F16_GEMV, CUDA_F16_GEMV},
                   CUDA_F16_GEMM,
                   4,
                   false},
    [QUANT_Q4_1] = {true,
                    true,
                    {CUDA_Q4_1_GEMV, CUDA_Q4_1_GEMV, CUDA_Q4_1_GEMV, CUDA_Q4_1_GEMV},
                    CUDA_Q4_1_GEMM,
                    4,
                    false},
    [QUANT_Q5_0] = {true,
                    true,
                    {CUDA_Q5_0_GEMV, CUDA_Q5_0_GEMV, CUDA_Q5_0_GEMV, CUDA_Q5_0_GEMV},
                    CUDA_Q5_0_GEMM,
                    4,
                    false},
    [QUANT_Q8_0] = {true,
                    true,
                    {CUDA_Q8_0_GEMV, CUDA_Q8_0_GEMV, CUDA_Q8_0_GEMV, CUDA_Q8_0_GEMV},
                    CUDA_Q8_0_GEMM,
                    4,
                    false},
    [QUANT_Q4_K] = {true,
                    true,
                    {CUDA_Q4K_GEMV_1, CUDA_Q4K_GEMV_2, CUDA_Q4K_GEMV_4, CUDA_Q4K_GEMV_8},
                    -1,
                    OPS_GEMV_ROWS,
                    true},
    [QUANT_Q6_K] = {true,
                    true,
                    {CUDA_Q6K_GEMV_1, CUDA_Q6K_GEMV_2, CUDA_Q6K_GEMV_4, CUDA_Q6K_GEMV_8},
                    CUDA_Q6K_GEMM,
                    OPS_GEMV_ROWS,
                    true},
};

enum status cuda_quantise(struct backend *b, const struct op *op)
{
    uint32_t k = op->w->k;
    uint64_t chunks = (uint64_t)op->n * (k / Q8_CHUNK);
    if (!b->q8_bf16 && b->q8_of == op->x.addr && b->q8_n == op->n && b->q8_k == k) return OK;
    if (chunks > INT_MAX / Q8_CHUNK_BYTES)
        return err_set(ERR_LIMIT, "%s: %u tokens x %u values are more than a step takes", op->role,
                       op->n, k);
    enum status st = cuda_grow(b, &b->q8, chunks * Q8_CHUNK_BYTES, "quantised activations");
    if (st != OK) return st;
    int n_chunks = (int)chunks;
    drv_ptr x = op->x.addr;
    void *args[] = {&x, &b->q8.p, &n_chunks};
    uint32_t per_block = OPS_FLAT / 8; /* eight lanes a chunk */
    struct cuda_launch l = {.v = b->kernel[CUDA_QUANTIZE],
                            .op = op,
                            .grid = {(uint32_t)((chunks + per_block - 1) / per_block), 1, 1},
                            .block = OPS_FLAT,
                            .dyn_smem = -1,
                            .m = k,
                            .n = op->n,
                            .bytes = (double)op->n * k * (4 + Q8_CHUNK_BYTES / 32.0),
                            .args = args};
    st = cuda_launch(b, &l);
    cuda_q8_holds(b, st == OK ? op->x.addr : 0, op->n, k);
    return st;
}

void cuda_q8_holds(struct backend *b, uint64_t x, uint32_t n, uint32_t k)
{
    b->q8_of = x;
    b->q8_n = n;
    b->q8_k = k;
    b->q8_bf16 = false;
}

bool cuda_is_quantised(const struct weight *w)
{
    return w->type >= 0 && (size_t)w->type < sizeof KINDS / sizeof KINDS[0] &&
           KINDS[w->type].quantised;
}

uint32_t cuda_gemv_one_blocks(const struct backend *b, uint32_t pairs)
{
    const uint32_t sms = (uint32_t)launcher_limits(b->launcher)->sms;
    return pairs < sms ? pairs : sms;
}

static enum status pick(const struct backend *b, const struct op *op, const struct kinds *kinds,
                        struct cuda_launch *l)
{
    uint32_t m = op->w->m, n = op->n;
    bool one = n == 1 && kinds->one;
    if (one && op->w->k <= OPS_GEMV_ONE_K) {
        l->v = b->kernel[kinds->gemv[0]];
        l->grid[0] = cuda_gemv_one_blocks(b, (m + 1) / 2);
    } else if (one) {
        l->v = b->kernel[kinds->gemv[1]]; /* it takes rows of any length */
        l->grid[0] = (m + kinds->gemv_rows - 1) / kinds->gemv_rows;
    } else if (n <= OPS_GEMV_MAX) {
        l->v = b->kernel[kinds->gemv[n == 1 ? 0 : n == 2 ? 1 : n <= 4 ? 2 : 3]];
        l->grid[0] = (m + kinds->gemv_rows - 1) / kinds->gemv_rows;
    } else if (cuda_chosen(b, op)) {
        l->v = cuda_chosen(b, op);
        l->gemm = true;
    } else if (kinds->gemm >= 0) {
        l->v = b->kernel[kinds->gemm];
        l->grid[0] = (m + OPS_GEMM_TILE - 1) / OPS_GEMM_TILE;
        l->grid[1] = (n + OPS_GEMM_TILE - 1) / OPS_GEMM_TILE;
    } else {
        return err_set(
            ERR_UNAVAILABLE,
            "%s holds no kernel of family q4k_gemm; `make cubins` builds them, --backend "
            "cpu works without",
            registry_dir(b->reg));
    }
    l->block = l->v->desc.threads;
    return OK;
}

static enum status bias(struct backend *b, const struct op *op)
{
    uint32_t m = op->w->m;
    uint64_t all = (uint64_t)op->n * m;
    int im = (int)m, count = (int)all;
    drv_ptr y = op->y.addr, v = op->bias->data.addr;
    void *args[] = {&y, &v, &im, &count};
    struct cuda_launch l = {.v = b->kernel[CUDA_ADD_BIAS],
                            .op = op,
                            .grid = {(uint32_t)((all + OPS_FLAT - 1) / OPS_FLAT), 1, 1},
                            .block = OPS_FLAT,
                            .dyn_smem = -1,
                            .m = m,
                            .n = op->n,
                            .bytes = 8.0 * (double)all,
                            .args = args};
    return cuda_launch(b, &l);
}

static enum status check(const struct op *op)
{
    const struct weight *w = op->w;
    size_t len = quant_block_len((enum quant_type)w->type);
    if (w->type < 0 || (size_t)w->type >= sizeof KINDS / sizeof KINDS[0] || !KINDS[w->type].known)
        return err_set(ERR_UNAVAILABLE, "%s: products with %s weights aren't computed on the GPU",
                       op->role, quant_name((uint32_t)w->type));
    if (!w->m || !w->k || w->k > INT_MAX / 2 || w->k % len ||
        (KINDS[w->type].quantised && w->k % MIN_K_Q))
        return err_set(ERR_USAGE, "%s: rows of %u values don't fit %s", op->role, w->k,
                       quant_name((uint32_t)w->type));
    if ((uint64_t)op->n * w->m > INT_MAX - OPS_FLAT || op->n > CUDA_MAX_TOKENS)
        return err_set(ERR_LIMIT, "%s: %u tokens x %u rows are more than a kernel here counts",
                       op->role, op->n, w->m);
    return OK;
}

enum status cuda_matmul(struct backend *b, const struct op *op)
{
    if (!quant_known((uint32_t)op->w->type))
        return err_set(ERR_UNAVAILABLE, "%s: tensor type %s isn't computed on the GPU", op->role,
                       quant_name((uint32_t)op->w->type));
    enum status st = check(op);
    if (st != OK) return st;
    const struct kinds *kinds = &KINDS[op->w->type];
    bool bf16 = cuda_wants_bf16(b, op);
    if (kinds->quantised && (st = bf16 ? cuda_to_bf16(b, op) : cuda_quantise(b, op)) != OK)
        return st;

    int m = (int)op->w->m, n = (int)op->n, k = (int)op->w->k;
    const struct variant *chosen = op->n > OPS_GEMV_MAX ? cuda_chosen(b, op) : NULL;
    bool int8 = chosen && cuda_wants_int8(chosen);
    drv_ptr w = op->w->data.addr, x = kinds->quantised ? b->q8.p : op->x.addr, y = op->y.addr;
    if (int8 && (st = cuda_expanded(b, op, &w)) != OK) return st;
    void *args[] = {&w, &x, &y, &m, &n, &k};
    double row = (double)quant_row_bytes((enum quant_type)op->w->type, op->w->k);
    if (int8) row = op->w->k / 256 * OPS_EXPAND_UNITS * 16.0;
    double act = bf16 ? 2.0 : kinds->quantised ? Q8_CHUNK_BYTES / 32.0 : 4.0;
    struct cuda_launch l = {.op = op,
                            .grid = {1, 1, 1},
                            .dyn_smem = -1,
                            .m = op->w->m,
                            .n = op->n,
                            .k = op->w->k,
                            .macs = (double)m * n * k,
                            .bytes = m * row + n * (k * act + m * 4.0),
                            .args = args};
    st = pick(b, op, kinds, &l);
    if (st == OK) st = cuda_launch(b, &l);
    if (st == OK && op->bias) st = bias(b, op);
    return st;
}
