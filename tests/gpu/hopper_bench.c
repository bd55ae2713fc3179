/*
 * The bf16 path of Hopper, on a GPU.
 *
 *   hopper_bench                            the test: to_bf16 makes the bytes of kernels/bf16.c;
 *                                           ends "N passed, N failed, N skipped"
 *   hopper_bench SHAPES KERNEL...           times kernels, interleaved; SHAPES = M,N,K;M,N,K;...
 *                                           also q4k_gemv_n1 or q6k_gemv_n1 at n = 1
 *
 * Timed: everything from f32 activations on, so a conversion (to_bf16, quantize_q8, by the kernel's
 * layout of activations) and the product, as one CUDA graph of back-to-back launches. Weights,
 * activations and outputs are rotated over four times the L2 ("cold"), or the same each time
 * ("hot"). Rounds go through all kernels, forwards and backwards in turn; medians and interquartile
 * ranges over rounds. The conversion and the product alone are timed the same way, cold.
 */
#include "kernels/bf16.h"
#include "kernels/launch.h"
#include "kernels/ops/ops.h"
#include "kernels/q8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, WARM = 2, KERNELS_MAX = 16, COPIES_MAX = 64, BATCH_US = 3000, LOOPS_MAX = 256 };

enum part { COLD, HOT, CONVERT, PRODUCT, PARTS };

struct bench {
    struct driver *drv;
    int dev;
    struct drv_ctx *ctx;
    struct drv_stream *stream;
    struct registry *reg;
    struct launcher *launcher;
    struct drv_event *start, *end;
    const struct variant *bf16, *q8;
};

struct buffers {
    struct shape s;
    int copies;
    size_t w_bytes, x_bytes, a_bytes, y_bytes;
    drv_ptr w, x, a, y; /* w and x: `copies` of them */
};

struct timing {
    const struct variant *v;
    struct drv_graph *graph[PARTS];
    struct drv_graph_exec *exec[PARTS];
    int launches[PARTS];
    float us[PARTS][ROUNDS];
};

static void must(enum status st, const char *what)
{
    if (st == OK) return;
    fprintf(stderr, "hopper_bench: %s: %s\n", what, err_msg());
    exit(err_exit_code(st));
}

static void call(const struct bench *b, drv_result r, const char *what)
{
    must(driver_check(b->drv, r, what), what);
}

/* Whether there is a GPU whose cubins hold the bf16 kernels. */
static enum status bench_open(struct bench *b)
{
    *b = (struct bench){0};
    enum status st = driver_open(&b->drv);
    if (st != OK) return st;
    call(b, b->drv->DeviceGet(&b->dev, 0), "device");
    call(b, b->drv->DevicePrimaryCtxRetain(&b->ctx, b->dev), "context");
    call(b, b->drv->CtxSetCurrent(b->ctx), "context");
    call(b, b->drv->StreamCreate(&b->stream, DRV_STREAM_NON_BLOCKING), "stream");
    call(b, b->drv->EventCreate(&b->start, DRV_EVENT_DEFAULT), "event");
    call(b, b->drv->EventCreate(&b->end, DRV_EVENT_DEFAULT), "event");
    int sm = 10 * driver_attribute(b->drv, b->dev, DRV_DEV_CC_MAJOR, 0) +
             driver_attribute(b->drv, b->dev, DRV_DEV_CC_MINOR, 0);
    struct registry_options o = {.sm = sm};
    st = registry_open(&o, &b->reg);
    if (st == OK) st = launcher_open(&b->launcher, b->drv, b->dev, b->reg);
    if (st != OK) return st;
    b->bf16 = registry_find(b->reg, "to_bf16");
    b->q8 = registry_find(b->reg, "quantize_q8");
    return b->bf16 && b->q8 ? OK : err_set(ERR_UNAVAILABLE, "no to_bf16 among the kernels");
}

static void bench_close(struct bench *b)
{
    launcher_close(b->launcher);
    registry_close(b->reg);
    if (b->ctx) b->drv->DevicePrimaryCtxRelease(b->dev);
    driver_close(b->drv);
}

static void to_device(const struct bench *b, drv_ptr *p, const void *from, size_t bytes,
                      size_t copies)
{
    call(b, b->drv->MemAlloc(p, bytes * copies + OPS_PAD), "buffer");
    for (size_t i = 0; from && i < copies; i++)
        call(b, b->drv->MemcpyHtoD(*p + i * bytes, from, bytes), "upload");
}

/* f32 values in (-1, 1), of a counter. */
static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        x[i] = (float)(int32_t)(z >> 20) * 0x1p-31f;
    }
}

static void convert(const struct bench *b, bool bf16, drv_ptr x, drv_ptr out, const struct shape *s)
{
    int n = s->n, k = s->k, chunks = n * (k / Q8_CHUNK);
    uint32_t grid_q8[3] = {(uint32_t)(chunks + OPS_FLAT / 8 - 1) / (OPS_FLAT / 8), 1, 1};
    uint32_t grid_bf16[3] = {(uint32_t)k / 256, (uint32_t)(n + 7) / 8, 1};
    void *args_q8[] = {&x, &out, &chunks}, *args_bf16[] = {&x, &out, &n, &k};
    must(launcher_run_plain(b->launcher, bf16 ? b->bf16 : b->q8, bf16 ? grid_bf16 : grid_q8,
                            OPS_FLAT, -1, bf16 ? args_bf16 : args_q8, b->stream),
         "conversion");
}

/* ---- the test ---- */

static bool same_bytes(struct bench *b, int n, int k)
{
    struct shape s = {1, n, k};
    size_t values = (size_t)n * (size_t)k, bytes = bf16_bytes(n, k);
    float *x = malloc(values * 4);
    uint8_t *want = calloc(1, bytes), *got = malloc(bytes);
    drv_ptr dx, da;
    if (!x || !want || !got) abort();
    fill(x, values);
    /* Ties, a carry into the exponent, the largest, infinities and a NaN among them. */
    static const uint32_t odd[] = {0x3f808000, 0x3f818000, 0x3fffffff, 0x7f7fffff, 0x7f800000,
                                   0xff800000, 0x7fc00001, 0x00000001, 0x80000000, 0x00808000};
    memcpy(x, odd, sizeof odd);
    for (int t = 0; t < n; t++) bf16_put_row(x + (size_t)t * (size_t)k, n, t, k, want);
    memset(got, 0xa5, bytes);
    to_device(b, &dx, x, values * 4, 1);
    to_device(b, &da, got, bytes, 1);
    call(b, b->drv->CtxSynchronize(), "upload");
    convert(b, true, dx, da, &s);
    call(b, b->drv->StreamSynchronize(b->stream), "to_bf16");
    call(b, b->drv->MemcpyDtoH(got, da, bytes), "download");
    bool same = !memcmp(want, got, bytes);
    b->drv->MemFree(dx);
    b->drv->MemFree(da);
    free(x);
    free(want);
    free(got);
    return same;
}

static int test(void)
{
    static const int shapes[][2] = {{1, 256}, {7, 512}, {8, 256}, {33, 1024}, {512, 14336}};
    struct bench b;
    int passed = 0, failed = 0, n = (int)(sizeof shapes / sizeof *shapes);
    enum status st = bench_open(&b);
    if (st == ERR_UNAVAILABLE) {
        printf("skip to_bf16: %s\n0 passed, 0 failed, %d skipped\n", err_msg(), n);
        bench_close(&b);
        return EXIT_OK;
    }
    must(st, "device");
    for (int i = 0; i < n; i++) {
        bool ok = same_bytes(&b, shapes[i][0], shapes[i][1]);
        printf("%s to_bf16 makes the CPU's bytes: %d tokens of %d\n", ok ? "ok  " : "FAIL",
               shapes[i][0], shapes[i][1]);
        ok ? passed++ : failed++;
    }
    bench_close(&b);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed ? EXIT_FAILED : EXIT_OK;
}

/* ---- the bench ---- */

static void make_buffers(struct bench *b, const struct kernel_family *fam, const struct shape *s,
                         struct buffers *f)
{
    struct family_inputs in;
    size_t values = (size_t)s->n * (size_t)s->k;
    float *x = malloc(values * 4);
    if (!x) abort();
    *f = (struct buffers){.s = *s, .w_bytes = fam->b_bytes(s), .x_bytes = values * 4};
    f->a_bytes = bf16_bytes(s->n, s->k);
    if (f->a_bytes < q8_row_bytes(s->k) * (size_t)s->n)
        f->a_bytes = q8_row_bytes(s->k) * (size_t)s->n;
    size_t l2 = (size_t)driver_attribute(b->drv, b->dev, DRV_DEV_L2_BYTES, 64 << 20);
    size_t copies = 4 * l2 / f->w_bytes + 1;
    f->copies = copies > COPIES_MAX ? COPIES_MAX : (int)copies;
    must(fam->make_inputs(s, INPUT_RANDOM, 1, &in), "inputs");
    fill(x, values);
    to_device(b, &f->w, in.b, f->w_bytes, (size_t)f->copies);
    to_device(b, &f->x, x, f->x_bytes, (size_t)f->copies);
    to_device(b, &f->a, NULL, f->a_bytes, (size_t)f->copies);
    to_device(b, &f->y, NULL, fam->y_bytes(s), 1);
    call(b, b->drv->CtxSynchronize(), "upload");
    family_inputs_free(&in);
    free(x);
}

static void free_buffers(const struct bench *b, struct buffers *f)
{
    b->drv->MemFree(f->w);
    b->drv->MemFree(f->x);
    b->drv->MemFree(f->a);
    b->drv->MemFree(f->y);
}

static void launch(struct bench *b, struct buffers *f, const struct variant *v, enum part part,
                   int i)
{
    size_t c = part == HOT ? 0 : (size_t)(i % f->copies);
    drv_ptr w = f->w + c * f->w_bytes, x = f->x + c * f->x_bytes, a = f->a + c * f->a_bytes;
    void *args[] = {&w, &a, &f->y, &f->s.m, &f->s.n, &f->s.k};
    if (part != PRODUCT) convert(b, !strcmp(v->desc.layout_a, "bf16"), x, a, &f->s);
    if (part == CONVERT) return;
    const uint32_t sms = (uint32_t)launcher_limits(b->launcher)->sms, pairs = (uint32_t)f->s.m / 2;
    const uint32_t grid[3] = {pairs < sms ? pairs : sms, 1, 1};
    if (family_find(v->family))
        must(launcher_run(b->launcher, v, &f->s, NULL, args, b->stream, NULL), v->kernel);
    else
        must(launcher_run_plain(b->launcher, v, grid, v->desc.threads, -1, args, b->stream),
             v->kernel);
}

static float elapsed(const struct bench *b, struct drv_graph_exec *exec)
{
    float ms;
    call(b, b->drv->EventRecord(b->start, b->stream), "event");
    call(b, b->drv->GraphLaunch(exec, b->stream), "graph");
    call(b, b->drv->EventRecord(b->end, b->stream), "event");
    call(b, b->drv->EventSynchronize(b->end), "a kernel");
    call(b, b->drv->EventElapsedTime(&ms, b->start, b->end), "event");
    return ms * 1000;
}

static void capture(struct bench *b, struct buffers *f, struct timing *t, enum part part, int loops)
{
    call(b, b->drv->StreamBeginCapture(b->stream, DRV_CAPTURE_THREAD_LOCAL), "capture");
    for (int i = 0; i < loops; i++) launch(b, f, t->v, part, i);
    call(b, b->drv->StreamEndCapture(b->stream, &t->graph[part]), "capture");
    call(b, b->drv->GraphInstantiate(&t->exec[part], t->graph[part], 0), "graph");
    t->launches[part] = loops;
}

static void drop(const struct bench *b, struct timing *t, int part)
{
    b->drv->GraphExecDestroy(t->exec[part]);
    b->drv->GraphDestroy(t->graph[part]);
}

/* Enough launches for a batch of BATCH_US, whole rotations of the buffers. */
static void make_graphs(struct bench *b, struct buffers *f, struct timing *t)
{
    launch(b, f, t->v, COLD, 0); /* fills `a` and loads the modules before any capture */
    for (int i = 0; i < f->copies; i++) launch(b, f, t->v, CONVERT, i);
    call(b, b->drv->StreamSynchronize(b->stream), t->v->kernel);
    for (int p = 0; p < PARTS; p++) {
        capture(b, f, t, (enum part)p, f->copies);
        elapsed(b, t->exec[p]);
        int turns = (int)(BATCH_US / elapsed(b, t->exec[p])) + 1;
        if (turns * f->copies > LOOPS_MAX) turns = LOOPS_MAX / f->copies + 1;
        drop(b, t, p);
        capture(b, f, t, (enum part)p, turns * f->copies);
    }
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_one(const struct shape *s, struct timing *t)
{
    double tera = 2.0 * s->m * s->n * s->k * 1e-6;
    printf("%6d %5d %6d  %-20s", s->m, s->n, s->k, t->v->kernel);
    for (int p = 0; p < PARTS; p++) {
        qsort(t->us[p], ROUNDS, sizeof t->us[p][0], by_value);
        printf("  %8.2f +-%-5.2f", t->us[p][ROUNDS / 2],
               t->us[p][ROUNDS * 3 / 4] - t->us[p][ROUNDS / 4]);
    }
    printf("  %6.1f\n", tera / t->us[COLD][ROUNDS / 2]);
}

static void bench_shape(struct bench *b, const struct shape *s, char **names, int n)
{
    static struct timing t[KERNELS_MAX];
    struct buffers f;
    for (int i = 0; i < n; i++) {
        t[i] = (struct timing){.v = registry_find(b->reg, names[i])};
        if (!t[i].v || strcmp(t[i].v->family, t[0].v->family))
            must(err_set(ERR_USAGE, "no kernel %s, or of another family", names[i]), "kernels");
    }
    bool q4 = !strcmp(t[0].v->desc.layout_b, "q4_k");
    const struct kernel_family *fam = family_find(t[0].v->family);
    if (!fam && s->n == 1) fam = family_find(q4 ? "q4k_gemm" : "q6k_gemm"); /* FAMILY_n1 */
    if (!fam) must(err_set(ERR_USAGE, "%s has no contract", t[0].v->family), "kernels");
    make_buffers(b, fam, s, &f);
    for (int i = 0; i < n; i++) make_graphs(b, &f, &t[i]);
    for (int r = -WARM; r < ROUNDS; r++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < PARTS; p++) {
                struct timing *x = &t[r & 1 ? n - 1 - j : j];
                float us = elapsed(b, x->exec[p]) / (float)x->launches[p];
                if (r >= 0) x->us[p][r] = us;
            }
    for (int i = 0; i < n; i++) {
        print_one(s, &t[i]);
        for (int p = 0; p < PARTS; p++) drop(b, &t[i], p);
    }
    fflush(stdout);
    free_buffers(b, &f);
}

int main(int argc, char **argv)
{
    if (argc < 3) return test();
    if (argc - 2 > KERNELS_MAX) argc = KERNELS_MAX + 2;
    struct bench b;
    must(bench_open(&b), "device");
    printf("%6s %5s %6s  %-20s  %-16s  %-16s  %-16s  %-16s  %s\n", "m", "n", "k", "kernel",
           "us, cold", "us, hot", "conversion", "product", "TFLOP/s, cold");
    for (char *p = argv[1]; *p;) {
        struct shape s;
        int used = 0;
        if (sscanf(p, "%d,%d,%d%n", &s.m, &s.n, &s.k, &used) != 3)
            must(err_set(ERR_USAGE, "shapes are M,N,K;M,N,K"), p);
        bench_shape(&b, &s, argv + 2, argc - 2);
        p += used;
        if (*p) p++;
    }
    bench_close(&b);
    return EXIT_OK;
}
