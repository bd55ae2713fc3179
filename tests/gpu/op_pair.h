/*
 * Pairs of buffers and weights, one copy on the CPU backend and one on the GPU's, and their
 * comparison: what ops_check.c is written in. Everything is static: included by one program.
 *
 * Tolerances. Integer dots are exact on both sides; what differs is the order of f32 sums and the
 * last bits of expf, sinf, tanhf. A sum of c terms that cancel by a factor f is off by about f *
 * sqrt(c) * 2^-24 of its size: with c <= 2400 (the longest row here) and f <= 20 (Q4_K's min term
 * against its scale term) 6e-5, squared 3e-9. NMSE_MAX 1e-8 is three times that; WORST_MAX 1e-3 of
 * the reference's root mean square is four deviations of sixteen times that for the tail of many
 * outputs. A wrong index, scale or sign moves the NMSE to 1e-4 and up.
 *
 * GEMMs of the class bf16 (kernels/bf16_class.h) round activations and expanded weights to bf16,
 * where the reference rounds activations to q8 chunks, so both roundings stand between them. Of q8:
 * activations here are at most three standard deviations, a step of a chunk at most 3/127 of one,
 * its error's square at most (3/127)^2 / 12 = 4.7e-5 of the value's. Of bf16: 2^-16 / 6 = 2.5e-6 of
 * the squares of what is rounded: the products twice, a sub-block's scale and min terms and their
 * sum. Those two are 10 and 9 times the sum's square: values of 0 to 15 with a deviation of 2.5
 * about 7.5, so 22 in all and 5.6e-5. Together 1.0e-4; BF16_NMSE_MAX is twice that, since the rows'
 * scales are few, and BF16_WORST_MAX five deviations of it for the tail of 33,024 outputs. A
 * super-block of the nine of the longest row wrong moves the NMSE to 0.1.
 */
#ifndef TESTS_GPU_OP_PAIR_H
#define TESTS_GPU_OP_PAIR_H

#include "engine/cuda/cuda.h"
#include "engine/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double NMSE_MAX = 1e-8, WORST_MAX = 1e-3;
static const double BF16_NMSE_MAX = 2e-4, BF16_WORST_MAX = 0.07;

/* Limits of compare(). */
static double nmse_max = 1e-8, worst_max = 1e-3;

static struct backend *cpu, *gpu;
static int passed, failed;
static uint64_t seed = 88172645463325252u;

/* ---- data ---- */

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static void *need(size_t bytes)
{
    void *p = calloc(1, bytes + 1);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

static void must(enum status st)
{
    if (st == OK) return;
    fprintf(stderr, "ops_check: %s\n", err_msg());
    exit(1);
}

static float *randoms(size_t n, double scale)
{
    float *v = need(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)((uniform() + uniform() + uniform() - 1.5) * 2 * scale);
    return v;
}

/* The same bytes in both backends. */
struct pair {
    struct buffer c, g;
};

static struct pair pair_of(const void *bytes, size_t n)
{
    struct pair p;
    must(cpu_backend.alloc(cpu, n, &p.c));
    must(cuda_backend.alloc(gpu, n, &p.g));
    if (bytes) {
        memcpy((void *)(uintptr_t)p.c.addr, bytes, n);
        must(cuda_upload(gpu, &p.g, 0, bytes, n));
    }
    return p;
}

static inline struct pair pair_random(size_t n, double scale)
{
    float *v = randoms(n, scale);
    struct pair p = pair_of(v, n * sizeof *v);
    free(v);
    return p;
}

/* An output: NaN on the GPU. */
static struct pair pair_out(size_t n)
{
    struct pair p = pair_of(NULL, n * sizeof(float));
    void *nan = need(n * sizeof(float));
    memset(nan, 0xff, n * sizeof(float));
    must(cuda_upload(gpu, &p.g, 0, nan, n * sizeof(float)));
    free(nan);
    return p;
}

static void pair_free(struct pair *p)
{
    cpu_backend.release(cpu, &p->c);
    cuda_backend.release(gpu, &p->g);
}

struct weights {
    struct weight c, g;
    struct pair p;
};

static struct weights weights_of(enum quant_type type, uint32_t m, uint32_t k, double scale)
{
    struct weights w;
    size_t row = quant_row_bytes(type, k);
    float *v = randoms((size_t)m * k, scale);
    uint8_t *rows = need(m * row);
    for (uint32_t i = 0; i < m; i++) quant_quantize_row(type, v + (size_t)i * k, rows + i * row, k);
    w.p = pair_of(rows, m * row);
    w.c = w.g = (struct weight){.m = m, .k = k, .type = (int)type};
    w.c.data = w.p.c;
    w.g.data = w.p.g;
    free(v);
    free(rows);
    return w;
}

/* ---- running and comparing ---- */

static void result(bool ok, const char *what, const char *text)
{
    if (ok)
        passed++;
    else
        failed++;
    if (!ok || getenv("VERBOSE")) printf("%s %s: %s\n", ok ? "ok  " : "FAIL", what, text);
}

static inline void compare(const char *what, const struct pair *y, size_t n)
{
    float *a = need(n * sizeof *a), *b = need(n * sizeof *b);
    double err = 0, ref = 0, worst = 0;
    size_t bad = 0, at = 0;
    char text[160];
    must(cpu_backend.download(cpu, &y->c, 0, a, n * sizeof *a));
    must(cuda_backend.download(gpu, &y->g, 0, b, n * sizeof *b));
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)b[i] - a[i]);
        if (!isfinite(b[i])) bad++;
        if (!(d <= worst)) worst = d, at = i;
        err += d * d;
        ref += (double)a[i] * a[i];
    }
    double rms = sqrt(ref / (double)n), nmse = ref > 0 ? err / ref : err;
    worst = rms > 0 ? worst / rms : worst;
    snprintf(text, sizeof text, "nmse %.2e, worst %.2e of rms at %zu, %zu not finite of %zu", nmse,
             worst, at, bad, n);
    result(!bad && nmse <= nmse_max && worst <= worst_max, what, text);
    free(a);
    free(b);
}

/* Runs one operator on both; g has its GPU pointers in place. */
static bool run_both(const char *what, const struct op *c, const struct op *g,
                     const uint32_t *tokens, uint32_t pos0, struct step_result r[2])
{
    memset(r, 0, 2 * sizeof *r);
    must(cpu_backend.run(cpu, c, 1, tokens, c->n, pos0, false, TIMING_NONE, &r[0]));
    enum status st = cuda_backend.run(gpu, g, 1, tokens, g->n, pos0, false, TIMING_NONE, &r[1]);
    if (st != OK) result(false, what, err_msg());
    return st == OK;
}

struct io {
    struct pair *x, *x2, *y;
    const struct weights *w, *bias, *factors;
    const uint32_t *tokens;
    uint32_t pos0;
};

static inline bool run_op(const char *what, struct op op, const struct io *io)
{
    struct op c = op, g = op;
    struct step_result r[2];
    c.role = g.role = what;
    if (io->x) c.x = io->x->c, g.x = io->x->g;
    if (io->x2) c.x2 = io->x2->c, g.x2 = io->x2->g;
    if (io->y) c.y = io->y->c, g.y = io->y->g;
    if (io->w) c.w = &io->w->c, g.w = &io->w->g;
    if (io->bias) c.bias = &io->bias->c, g.bias = &io->bias->g;
    if (io->factors) c.rope_factors = &io->factors->c, g.rope_factors = &io->factors->g;
    return run_both(what, &c, &g, io->tokens, io->pos0, r);
}

#endif
