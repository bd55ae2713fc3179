/*
 * The CPU backend: runs operator lists with the functions of this folder. It is the reference that
 * the GPU is held against, so it keeps the KV cache in f32 and the same integer dots.
 *
 * Invariants: weights are views of the model's mapping, except vectors, which are widened to f32
 * once; buffers are plain memory, their address in struct buffer. To add an operator: a case in
 * run_op().
 */
#include "engine/backend.h"

#include "base/clock.h"
#include "engine/cpu/cpu_check.h"
#include "engine/cpu/cpu_kernels.h"
#include "engine/cpu/cpu_ops.h"
#include "engine/cpu/matmul.h"
#include "engine/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct timed {
    struct launch_info info;
    uint64_t start, dur;
};

struct backend {
    struct backend_options o;
    struct pool *pool;
    struct weight *weights;
    uint32_t nweights;
    struct cpu_kv *kv;
    uint32_t layers;
    struct cpu_acts acts;
    float *scores, *rows; /* of each thread: context floats; the longest row */
    uint32_t max_k;
    enum cpu_schedule schedule;
    uint32_t kd;
    struct timed *times;
    uint32_t ntimes, cap_times;
};

static void *ptr(const struct buffer *b)
{
    return (void *)(uintptr_t)b->addr;
}

static enum status cpu_open(const struct backend_options *o, struct backend **out)
{
    struct backend *b = calloc(1, sizeof *b);
    *out = NULL;
    if (!b) return err_set(ERR_NOMEM, "out of memory for the CPU backend");
    b->o = *o;
    b->schedule = CPU_TILES;
    b->kd = 8;
    enum status st = pool_open((unsigned)o->threads, &b->pool);
    if (st == OK) {
        b->scores = calloc((size_t)pool_threads(b->pool) * o->context, sizeof *b->scores);
        if (!b->scores) st = err_set(ERR_NOMEM, "out of memory for attention scores");
    }
    if (st != OK) {
        cpu_backend.close(b);
        return st;
    }
    *out = b;
    return OK;
}

/* "model name" of /proc/cpuinfo; "CPU" where there is none. */
static void processor_name(char *out, size_t size)
{
    char line[256], *p;
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "CPU");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) || !(p = strchr(line, ':'))) continue;
        p += 1 + (p[1] == ' ');
        p[strcspn(p, "\n")] = '\0';
        snprintf(out, size, "%s", p);
        break;
    }
    if (f) fclose(f);
}

static enum status cpu_limits(struct backend *b, struct backend_limits *out)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    *out = (struct backend_limits){.sms = pool_threads(b->pool)};
    processor_name(out->device, sizeof out->device);
    if (pages > 0 && page > 0) out->memory = (uint64_t)pages * (uint64_t)page;
    if (l2 > 0) out->l2_bytes = (uint64_t)l2;
    return OK;
}

/* A vector as f32 of our own; a matrix as it lies in the mapping. */
static enum status take_tensor(struct backend *b, const struct gguf_tensor *t, struct weight *w)
{
    *w = (struct weight){.src = t, .m = 1, .k = (uint32_t)t->ne[0], .type = (int)t->type};
    if (t->n_dims > 1) {
        w->m = (uint32_t)t->ne[1];
        w->data = (struct buffer){(uint64_t)(uintptr_t)t->data, t->bytes};
        if (w->k > b->max_k) b->max_k = w->k;
        return OK;
    }
    float *v = malloc(w->k * sizeof *v);
    if (!v) return err_set(ERR_NOMEM, "out of memory for tensor %s", t->name);
    quant_dequant_row(t->type, t->data, v, w->k);
    w->type = QUANT_F32;
    w->data = (struct buffer){(uint64_t)(uintptr_t)v, w->k * sizeof *v};
    return OK;
}

static enum status cpu_load(struct backend *b, const struct model *m,
                            void (*progress)(void *ctx, uint64_t done, uint64_t total), void *ctx)
{
    const struct gguf *g = model_gguf(m);
    size_t n = gguf_tensor_count(g);
    b->weights = calloc(n, sizeof *b->weights);
    if (!b->weights) return err_set(ERR_NOMEM, "out of memory for %zu tensors", n);
    for (; b->nweights < n; b->nweights++) {
        enum status st = take_tensor(b, gguf_tensor_at(g, b->nweights), &b->weights[b->nweights]);
        if (st != OK) return st;
        if (progress) progress(ctx, b->nweights + 1, n);
    }
    b->rows = malloc((size_t)pool_threads(b->pool) * (b->max_k ? b->max_k : 1) * sizeof *b->rows);
    return b->rows ? OK : err_set(ERR_NOMEM, "out of memory for weight rows");
}

static const struct weight *cpu_get_weight(struct backend *b, const struct gguf_tensor *t)
{
    for (uint32_t i = 0; t && i < b->nweights; i++)
        if (b->weights[i].src == t) return &b->weights[i];
    return NULL;
}

static enum status cpu_alloc(struct backend *b, size_t bytes, struct buffer *out)
{
    void *p = calloc(1, bytes ? bytes : 1);
    (void)b;
    if (!p) return err_set(ERR_NOMEM, "out of memory for a buffer of %zu bytes", bytes);
    *out = (struct buffer){(uint64_t)(uintptr_t)p, bytes};
    return OK;
}

static void cpu_release(struct backend *b, struct buffer *buf)
{
    (void)b;
    free(ptr(buf));
    *buf = (struct buffer){0};
}

static enum status cpu_download(struct backend *b, const struct buffer *from, size_t offset,
                                void *to, size_t bytes)
{
    (void)b;
    if (offset > from->bytes || bytes > from->bytes - offset)
        return err_set(ERR_LIMIT, "a read of %zu bytes at %zu is outside a buffer of %zu", bytes,
                       offset, from->bytes);
    memcpy(to, (const uint8_t *)ptr(from) + offset, bytes);
    return OK;
}

static enum status cpu_kv_init(struct backend *b, uint32_t layers, const uint32_t *kv_dim)
{
    b->kv = calloc(layers, sizeof *b->kv);
    if (!b->kv) return err_set(ERR_NOMEM, "out of memory for the KV cache");
    for (b->layers = 0; b->layers < layers; b->layers++) {
        struct cpu_kv *kv = &b->kv[b->layers];
        kv->dim = kv_dim[b->layers];
        kv->k = calloc((size_t)b->o.context * kv->dim, sizeof *kv->k);
        kv->v = calloc((size_t)b->o.context * kv->dim, sizeof *kv->v);
        if (kv->k && kv->v) continue;
        b->layers++;
        return err_set(ERR_NOMEM, "out of memory for a KV cache of %u positions", b->o.context);
    }
    return OK;
}

/* ---- running ---- */

static enum cpu_kernel matmul_kernel(const struct backend *b, const struct op *op)
{
    switch ((enum quant_type)op->w->type) {
    case QUANT_Q4_K:
        if (op->n == 1) return CPU_Q4K_GEMV;
        return b->schedule == CPU_ROWS ? (b->kd == 4 ? CPU_ROWS_KD4 : CPU_ROWS_KD8)
                                       : (b->kd == 4 ? CPU_TILES_KD4 : CPU_TILES_KD8);
    case QUANT_Q6_K:
        return CPU_Q6K;
    case QUANT_Q8_0:
        return CPU_Q8_0;
    case QUANT_Q5_0:
        return CPU_Q5_0;
    case QUANT_Q4_1:
        return CPU_Q4_1;
    case QUANT_F16:
        return CPU_F16;
    case QUANT_F32:
        break;
    }
    return CPU_F32;
}

static bool is_float(const struct weight *w)
{
    return w->type == QUANT_F32 || w->type == QUANT_F16;
}

static void matmul(struct backend *b, const struct op *op, enum cpu_kernel k)
{
    float *y = ptr(&op->y);
    if (is_float(op->w)) {
        cpu_matmul_f(b->pool, (enum quant_type)op->w->type, ptr(&op->w->data), op->w->m,
                     ptr(&op->x), op->n, op->w->k, y, b->rows);
    } else {
        struct cpu_product p = {.type = (enum quant_type)op->w->type,
                                .w = ptr(&op->w->data),
                                .m = op->w->m,
                                .acts = &b->acts,
                                .y = y,
                                .kd = k <= CPU_TILES_KD8 ? b->kd : 8};
        cpu_matmul_q(b->pool, k == CPU_ROWS_KD4 || k == CPU_ROWS_KD8 ? CPU_ROWS : CPU_TILES, &p);
    }
    if (op->bias) cpu_bias(op->n, op->w->m, ptr(&op->bias->data), y);
}

static void last_row(const struct op *op)
{
    const float *x = ptr(&op->x);
    memcpy(ptr(&op->y), x + (size_t)(op->n - 1) * op->dim, op->dim * sizeof *x);
}

struct step {
    const uint32_t *tokens;
    uint32_t pos0;
    struct step_result *result;
};

static void run_kernel(struct backend *b, const struct op *op, enum cpu_kernel k,
                       const struct step *s)
{
    switch (k) {
    case CPU_QUANTIZE:
        cpu_quantize(b->pool, &b->acts, ptr(&op->x), op->n, op->w->k);
        break;
    case CPU_EMBED:
        cpu_embed(op, s->tokens, ptr(&op->y));
        break;
    case CPU_NORM:
        cpu_norm(b->pool, op, ptr(&op->x), ptr(&op->y));
        break;
    case CPU_ROPE:
        cpu_rope(op, s->pos0, ptr(&op->x));
        break;
    case CPU_KV_STORE:
        cpu_kv_store(op, s->pos0, &b->kv[op->layer]);
        break;
    case CPU_ATTENTION:
        cpu_attention(b->pool, op, &b->kv[op->layer], s->pos0, b->o.context, b->scores);
        break;
    case CPU_GLU:
        cpu_glu(op, ptr(&op->x), ptr(&op->x2), ptr(&op->y));
        break;
    case CPU_ADD:
        cpu_add(op, ptr(&op->x), ptr(&op->x2), ptr(&op->y));
        break;
    case CPU_LAST:
        last_row(op);
        break;
    case CPU_ARGMAX:
        cpu_argmax(ptr(&op->y), op->dim, s->result);
        break;
    default:
        matmul(b, op, k);
        break;
    }
}

static enum status keep_time(struct backend *b, const struct launch_info *info, uint64_t start,
                             uint64_t dur)
{
    if (b->ntimes == b->cap_times) {
        uint32_t cap = b->cap_times ? b->cap_times * 2 : 256;
        struct timed *t = realloc(b->times, cap * sizeof *t);
        if (!t) return err_set(ERR_NOMEM, "out of memory for operator times");
        b->times = t;
        b->cap_times = cap;
    }
    b->times[b->ntimes++] = (struct timed){*info, start, dur};
    return OK;
}

/* Runs one kernel with what `timing` asks for around it. */
static enum status launch(struct backend *b, const struct op *op, enum cpu_kernel k,
                          const struct step *s, enum timing timing)
{
    const struct backend_hooks *h = &b->o.hooks;
    if (timing == TIMING_NONE) {
        run_kernel(b, op, k, s);
        return OK;
    }
    struct launch_info info = cpu_launch_info(op, k);
    if (timing == TIMING_EXTERNAL) {
        if (h->on_launch) h->on_launch(h->ctx, &info);
        run_kernel(b, op, k, s);
        if (h->on_launched) h->on_launched(h->ctx, &info);
        return OK;
    }
    uint64_t wall = clock_wall_ns(), start = clock_mono_ns();
    run_kernel(b, op, k, s);
    return keep_time(b, &info, wall, clock_mono_ns() - start);
}

static enum status run_op(struct backend *b, const struct op *op, const struct step *s,
                          enum timing timing)
{
    static const enum cpu_kernel plain[] = {
        [OP_EMBED] = CPU_EMBED,         [OP_NORM] = CPU_NORM, [OP_ROPE] = CPU_ROPE,
        [OP_KV_STORE] = CPU_KV_STORE,   [OP_GLU] = CPU_GLU,   [OP_ADD] = CPU_ADD,
        [OP_ATTENTION] = CPU_ATTENTION, [OP_LAST] = CPU_LAST, [OP_ARGMAX] = CPU_ARGMAX,
    };
    if (op->kind != OP_MATMUL) return launch(b, op, plain[op->kind], s, timing);
    if (!is_float(op->w)) {
        enum status st = cpu_acts_reserve(&b->acts, op->n, op->w->k);
        if (st == OK) st = launch(b, op, CPU_QUANTIZE, s, timing);
        if (st != OK) return st;
    }
    return launch(b, op, matmul_kernel(b, op), s, timing);
}

static void tell_times(struct backend *b)
{
    const struct backend_hooks *h = &b->o.hooks;
    for (uint32_t i = 0; i < b->ntimes && h->on_time; i++)
        h->on_time(h->ctx, &b->times[i].info, b->times[i].start, b->times[i].dur);
    b->ntimes = 0;
}

static enum status cpu_run(struct backend *b, const struct op *ops, uint32_t nops,
                           const uint32_t *tokens, uint32_t n, uint32_t pos0, bool decode,
                           enum timing timing, struct step_result *result)
{
    struct step_result unused;
    struct step s = {tokens, pos0, result ? result : &unused};
    (void)decode;
    if (pos0 > b->o.context || n > b->o.context - pos0)
        return err_set(ERR_LIMIT, "position %u is past the context of %u: raise --context",
                       pos0 + n, b->o.context);
    for (uint32_t i = 0; i < nops; i++) {
        enum status st = run_op(b, &ops[i], &s, timing);
        if (st != OK) return st;
    }
    tell_times(b);
    return OK;
}

static enum status cpu_sync(struct backend *b)
{
    (void)b;
    return OK;
}

static uint32_t cpu_kernel_list(struct backend *b, const struct kernel_info **list)
{
    (void)b;
    *list = cpu_kernels();
    return CPU_KERNELS;
}

static enum status cpu_select(struct backend *b, const char *family, const char *variant,
                              uint32_t kd)
{
    bool rows = !strcmp(variant, "rows");
    if (strcmp(family, "q4k_gemm") || (!rows && strcmp(variant, "tiles")))
        return err_set(ERR_USAGE,
                       "the CPU backend has no variant %s of %s; it has rows and tiles of q4k_gemm",
                       variant, family);
    if (kd != 4 && kd != 8)
        return err_set(ERR_USAGE, "KD %u is not there: %s has 4 and 8", kd, variant);
    b->schedule = rows ? CPU_ROWS : CPU_TILES;
    b->kd = kd;
    return OK;
}

static bool cpu_selected(struct backend *b, const char *family, const char **variant, uint32_t *kd)
{
    if (strcmp(family, "q4k_gemm")) return false;
    *variant = b->schedule == CPU_ROWS ? "rows" : "tiles";
    *kd = b->kd;
    return true;
}

static enum status cpu_check(struct backend *b, const char *family, const char *variant,
                             uint32_t kd, const uint32_t mnk[3], struct parity_result *out)
{
    if (strcmp(family, "q4k_gemm"))
        return err_set(ERR_USAGE, "there is no check of family %s on the CPU", family);
    if (strcmp(variant, "rows") && strcmp(variant, "tiles"))
        return err_set(ERR_USAGE, "the CPU backend has no variant %s of %s", variant, family);
    return cpu_check_q4k(b->pool, strcmp(variant, "rows") ? CPU_TILES : CPU_ROWS, kd, mnk, out);
}

static void *cpu_none(struct backend *b)
{
    (void)b;
    return NULL;
}

static void cpu_close(struct backend *b)
{
    if (!b) return;
    pool_close(b->pool);
    for (uint32_t i = 0; i < b->nweights; i++)
        if (b->weights[i].src->n_dims <= 1) free(ptr(&b->weights[i].data));
    for (uint32_t i = 0; i < b->layers; i++) {
        free(b->kv[i].k);
        free(b->kv[i].v);
    }
    free(b->weights);
    free(b->kv);
    cpu_acts_free(&b->acts);
    free(b->scores);
    free(b->rows);
    free(b->times);
    free(b);
}

const struct backend_ops cpu_backend = {
    .name = "cpu",
    .open = cpu_open,
    .limits = cpu_limits,
    .load = cpu_load,
    .get_weight = cpu_get_weight,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .download = cpu_download,
    .kv_init = cpu_kv_init,
    .run = cpu_run,
    .sync = cpu_sync,
    .kernels = cpu_kernel_list,
    .select = cpu_select,
    .selected = cpu_selected,
    .check = cpu_check,
    .context = cpu_none,
    .stream = cpu_none,
    .close = cpu_close,
};
