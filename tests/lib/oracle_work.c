/* The oracle's operators; see oracle_work.h. To add one: an add() in oracle_works(). */
#include "tests/lib/oracle_work.h"

#include "engine/cuda/cuda.h"
#include "engine/quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POS = 3000, HEADS = 32, KV_HEADS = 8, HEAD = 128 }; /* POS: of the decode step */

static struct backend *gpu;
static struct oracle_work *works;
static unsigned nworks;
static enum status failed;

static void check(enum status st)
{
    if (failed == OK) failed = st;
}

static float value_at(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return (float)(int32_t)(z >> 32) * 0x1p-33f;
}

/* The same values in each; made once, since Nsight Compute starts the program once for each pass.
 */
static struct buffer floats(size_t n)
{
    static float *v;
    static size_t made;
    struct buffer b;
    if (n > made) v = realloc(v, n * sizeof *v);
    if (!v) abort();
    for (; made < n; made++) v[made] = value_at(made);
    check(cuda_backend.alloc(gpu, n * sizeof *v, &b));
    check(cuda_upload(gpu, &b, 0, v, n * sizeof *v));
    return b;
}

/* Rows of one pattern: what is measured does not depend on the values. */
static const struct weight *weight_of(enum quant_type type, uint32_t m, uint32_t k)
{
    struct weight *w = calloc(1, sizeof *w);
    size_t row = quant_row_bytes(type, k);
    float *v = malloc(k * sizeof *v);
    uint8_t *rows = malloc(m * row);
    if (!w || !v || !rows) abort();
    for (uint32_t i = 0; i < k; i++) v[i] = value_at(i) / 8;
    quant_quantize_row(type, v, rows, k);
    for (uint32_t i = 1; i < m; i++) memcpy(rows + i * row, rows, row);
    *w = (struct weight){.m = m, .k = k, .type = (int)type};
    check(cuda_backend.alloc(gpu, m * row, &w->data));
    check(cuda_upload(gpu, &w->data, 0, rows, m * row));
    free(v);
    free(rows);
    return w;
}

static struct oracle_work *add(const char *name, struct op op, const char *kernel)
{
    struct oracle_work *w = &works[nworks++];
    op.role = name;
    *w = (struct oracle_work){.name = name, .op = op, .kernel = kernel};
    return w;
}

/* A variant that this GPU lacks is left out, aloud. */
static void add_gemm(const char *name, const char *variant, const char *kernel, const char *wanted,
                     struct op op)
{
    const struct kernel_info *kernels;
    uint32_t n = cuda_backend.kernels(gpu, &kernels);
    for (uint32_t i = 0; i < n; i++) {
        const struct kernel_info *k = &kernels[i];
        if (strcmp(k->family, "q4k_gemm") || strcmp(k->variant, variant)) continue;
        if (strcmp(k->name, kernel) && strncmp(k->name, kernel, strlen(kernel))) continue;
        if (cuda_backend.select(gpu, "q4k_gemm", variant, k->kd) != OK) break;
        struct oracle_work *w = add(name, op, wanted);
        w->family = "q4k_gemm";
        w->variant = variant;
        w->kd = k->kd;
        return;
    }
    printf("skip %s: not on this GPU\n", name);
}

enum status oracle_works(struct backend *b, struct oracle_work *list, unsigned *count)
{
    gpu = b;
    works = list;
    nworks = 0;
    failed = OK;
    uint32_t d = 4096, ff = 14336, kv = KV_HEADS * HEAD;
    struct buffer x = floats((size_t)ORACLE_TOKENS * ff), x2 = floats((size_t)ORACLE_TOKENS * ff);
    struct buffer y = floats((size_t)ORACLE_TOKENS * ff);
    /* Rotated in place, once more with each launch: what others read would change with it, and a
     * division takes more instructions for some values. */
    struct buffer rotated = floats((size_t)ORACLE_TOKENS * d);
    const struct weight *w4 = weight_of(QUANT_Q4_K, d, d);
    const struct weight *tall = weight_of(QUANT_Q4_K, ff, d), *norm = weight_of(QUANT_F32, 1, d);
    const struct weight *tall6 = weight_of(QUANT_Q6_K, ff, d);
    struct op gemm = {.kind = OP_MATMUL, .layer = -1, .n = 512, .w = w4, .x = x, .y = y};
    struct op tall_gemm = gemm, gemm6 = gemm, gemv = gemm, gemv6 = gemm;
    /* Two that last longer than 300 us, for the live SM%. */
    tall_gemm.w = tall;
    gemm6.w = tall6;
    gemv.n = gemv6.n = 1;
    gemv.w = tall;
    gemv6.w = tall6;
    add_gemm("gemm_narrow", "narrow", "narrow_kd8", "narrow", tall_gemm);
    add_gemm("gemm_wide", "wide", "wide_kd8", "wide", gemm);
    add_gemm("gemm_nb", "nb", "nb_kd8", "nb", gemm);
    add_gemm("gemm_nb_pad", "nb_pad", "nb_pad_kd8", "nb_pad", gemm);
    add_gemm("gemm_hopper", "hopper_n256", "hopper_n256", "hopper_n256", gemm);
    add("gemm_q6k", gemm6, "q6k_gemm");
    struct op attn = {.kind = OP_ATTENTION,
                      .n = 512,
                      .heads = HEADS,
                      .kv_heads = KV_HEADS,
                      .head_dim = HEAD,
                      .scale = 0.09f,
                      .x = x,
                      .y = y};
    struct op store = {.kind = OP_KV_STORE, .n = ORACLE_TOKENS, .dim = kv, .x = x, .x2 = x2};
    add("kv_store", store, "");
    add("attn_prefill", attn, "attn_prefill");
    attn.n = 1;
    add("attn_decode", attn, "attn_decode_128")->pos0 = POS;
    add("rms_norm",
        (struct op){
            .kind = OP_NORM, .n = ORACLE_TOKENS, .dim = d, .eps = 1e-6f, .w = norm, .x = x, .y = y},
        "rms_norm");
    add("rope",
        (struct op){.kind = OP_ROPE,
                    .n = ORACLE_TOKENS,
                    .heads = HEADS,
                    .head_dim = HEAD,
                    .rope_base = 10000,
                    .rope_scale = 1,
                    .x = rotated,
                    .y = rotated},
        "rope");
    add("add", (struct op){.kind = OP_ADD, .n = ORACLE_TOKENS, .dim = ff, .x = x, .x2 = x2, .y = y},
        "add");
    add("glu", (struct op){.kind = OP_GLU, .n = ORACLE_TOKENS, .dim = ff, .x = x, .x2 = x2, .y = y},
        "glu_silu");
    add_gemm("gemv_q4k", "nb", "nb_kd8", "q4k_gemv", gemv);
    add("gemv_q6k", gemv6, "q6k_gemv");
    gemv.w = w4;
    gemv.n = 4;
    add_gemm("gemv_q4k_4", "nb", "nb_kd8", "q4k_gemv", gemv);
    add_gemm("quantize", "nb", "nb_kd8", "quantize", gemm);
    *count = nworks;
    return failed;
}
