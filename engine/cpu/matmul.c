/*
 * Matrix products; see matmul.h for the arithmetic that every schedule keeps.
 *
 * Invariant: an output element is summed by one thread, over chunks in rising order, so schedules,
 * KD and the number of threads change nothing in it. The dots are integers, and the f32
 * sums around them scalar, in one order.
 */
#include "engine/cpu/matmul.h"

#include "engine/cpu/unpack.h"
#include "kernels/f16.h"
#include "kernels/q8.h"

#include <stdlib.h>
#include <string.h>

/* ---- activations ---- */

enum status cpu_acts_reserve(struct cpu_acts *a, uint32_t n, uint32_t k)
{
    size_t need = (size_t)n * k;
    if (need > a->cap) {
        cpu_acts_free(a);
        a->q = malloc(need);
        a->da = malloc(need / Q8_CHUNK * sizeof *a->da);
        a->dma = malloc(need / Q8_CHUNK * sizeof *a->dma);
        if (!a->q || !a->da || !a->dma) {
            cpu_acts_free(a);
            return err_set(ERR_NOMEM, "out of memory for %u x %u quantised activations", n, k);
        }
        a->cap = need;
    }
    a->n = n;
    a->k = k;
    return OK;
}

void cpu_acts_free(struct cpu_acts *a)
{
    free(a->q);
    free(a->da);
    free(a->dma);
    *a = (struct cpu_acts){0};
}

static void take_chunk(struct cpu_acts *a, size_t at, const uint8_t *chunk)
{
    int32_t sa;
    memcpy(&sa, chunk + Q8_SUM, sizeof sa);
    memcpy(a->q + at * Q8_CHUNK, chunk + Q8_QUANTS, Q8_CHUNK);
    a->da[at] = f16_to_f32(f16_load(chunk));
    a->dma[at] = a->da[at] * (float)sa;
}

void cpu_acts_from_chunks(struct cpu_acts *a, const uint8_t *chunks, uint32_t n, uint32_t k)
{
    size_t all = (size_t)n * (k / Q8_CHUNK);
    for (size_t i = 0; i < all; i++) take_chunk(a, i, chunks + i * Q8_CHUNK_BYTES);
}

struct quantize_job {
    struct cpu_acts *a;
    const float *x;
};

static void quantize_rows(void *ctx, uint32_t first, uint32_t end, unsigned thread)
{
    const struct quantize_job *j = ctx;
    uint32_t per_row = j->a->k / Q8_CHUNK;
    uint8_t chunk[Q8_CHUNK_BYTES];
    (void)thread;
    for (size_t i = (size_t)first * per_row; i < (size_t)end * per_row; i++) {
        q8_quantize_row(j->x + i * Q8_CHUNK, Q8_CHUNK, chunk);
        take_chunk(j->a, i, chunk);
    }
}

void cpu_quantize(struct pool *p, struct cpu_acts *a, const float *x, uint32_t n, uint32_t k)
{
    struct quantize_job j = {a, x};
    a->n = n;
    a->k = k;
    pool_run(p, n, 10.0 * k, quantize_rows, &j);
}

/* ---- quantised products ---- */

/* Unpacked weights of KD chunks of one row. */
struct stage {
    int16_t w[CPU_KD_MAX * 32];
    float s[CPU_KD_MAX], mn[CPU_KD_MAX];
};

/* Adds `chunks` chunks to the sums of `n` tokens; q, da, dma point at the first of the chunks of
 * the first token, `per_row` chunks a token. */
CPU_CLONES static void add_stage(const struct stage *st, uint32_t chunks, bool has_min, uint32_t n,
                                 uint32_t per_row, const int8_t *q, const float *da,
                                 const float *dma, float *sums)
{
    for (uint32_t t = 0; t < n; t++) {
        float sum = sums[t];
        for (uint32_t c = 0; c < chunks; c++) {
            const int16_t *w = st->w + c * 32;
            const int8_t *a = q + c * 32;
            int32_t dot = 0;
            for (int i = 0; i < 32; i++) dot += (int16_t)w[i] * (int16_t)a[i];
            sum += da[c] * st->s[c] * (float)dot;
            if (has_min) sum += dma[c] * st->mn[c];
        }
        sums[t] = sum;
        q += (size_t)per_row * 32;
        da += per_row;
        dma += per_row;
    }
}

static uint32_t chunks_from(uint32_t c0, uint32_t all, uint32_t kd)
{
    return all - c0 < kd ? all - c0 : kd;
}

/* One weight row past `n` tokens from t0 on, sums kept for CPU_TILE_TOKENS at a time. */
static void one_row(const struct cpu_product *p, uint32_t row, uint32_t t0, uint32_t n)
{
    uint32_t per_row = p->acts->k / 32;
    const uint8_t *w = (const uint8_t *)p->w + (size_t)row * quant_row_bytes(p->type, p->acts->k);
    float sums[CPU_TILE_TOKENS] = {0};
    struct stage st;
    for (uint32_t c0 = 0; c0 < per_row; c0 += p->kd) {
        uint32_t chunks = chunks_from(c0, per_row, p->kd);
        size_t at = (size_t)t0 * per_row + c0;
        cpu_unpack(p->type, w, c0, chunks, st.w, st.s, st.mn);
        add_stage(&st, chunks, cpu_has_min(p->type), n, per_row, p->acts->q + at * 32,
                  p->acts->da + at, p->acts->dma + at, sums);
    }
    for (uint32_t t = 0; t < n; t++) p->y[(size_t)(t0 + t) * p->m + row] = sums[t];
}

static void rows_job(void *ctx, uint32_t first, uint32_t end, unsigned thread)
{
    const struct cpu_product *p = ctx;
    (void)thread;
    for (uint32_t r = first; r < end; r++)
        for (uint32_t t = 0; t < p->acts->n; t += CPU_TILE_TOKENS)
            one_row(p, r, t, chunks_from(t, p->acts->n, CPU_TILE_TOKENS));
}

/* CPU_TILE_ROWS rows past CPU_TILE_TOKENS tokens: the activations of a stage stay in the L1. */
static void one_tile(const struct cpu_product *p, uint32_t r0, uint32_t rows, uint32_t t0,
                     uint32_t n)
{
    uint32_t per_row = p->acts->k / 32;
    size_t bytes = quant_row_bytes(p->type, p->acts->k);
    const uint8_t *w = (const uint8_t *)p->w + (size_t)r0 * bytes;
    float sums[CPU_TILE_ROWS][CPU_TILE_TOKENS] = {{0}};
    struct stage st;
    for (uint32_t c0 = 0; c0 < per_row; c0 += p->kd) {
        uint32_t chunks = chunks_from(c0, per_row, p->kd);
        size_t at = (size_t)t0 * per_row + c0;
        for (uint32_t r = 0; r < rows; r++) {
            cpu_unpack(p->type, w + r * bytes, c0, chunks, st.w, st.s, st.mn);
            add_stage(&st, chunks, cpu_has_min(p->type), n, per_row, p->acts->q + at * 32,
                      p->acts->da + at, p->acts->dma + at, sums[r]);
        }
    }
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t r = 0; r < rows; r++) p->y[(size_t)(t0 + t) * p->m + r0 + r] = sums[r][t];
}

static void tiles_job(void *ctx, uint32_t first, uint32_t end, unsigned thread)
{
    const struct cpu_product *p = ctx;
    (void)thread;
    for (uint32_t g = first; g < end; g++)
        for (uint32_t t = 0; t < p->acts->n; t += CPU_TILE_TOKENS)
            one_tile(p, g * CPU_TILE_ROWS, chunks_from(g * CPU_TILE_ROWS, p->m, CPU_TILE_ROWS), t,
                     chunks_from(t, p->acts->n, CPU_TILE_TOKENS));
}

void cpu_matmul_q(struct pool *p, enum cpu_schedule s, const struct cpu_product *c)
{
    struct cpu_product job = *c;
    double cost = (double)c->acts->n * c->acts->k;
    if (s == CPU_ROWS)
        pool_run(p, c->m, cost, rows_job, &job);
    else
        pool_run(p, (c->m + CPU_TILE_ROWS - 1) / CPU_TILE_ROWS, cost * CPU_TILE_ROWS, tiles_job,
                 &job);
}

/* ---- float products ---- */

CPU_CLONES float cpu_dot(const float *a, const float *b, uint32_t n)
{
    float lane[8] = {0};
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++) lane[l] += a[i + l] * b[i + l];
    for (int l = 0; i < n; i++, l++) lane[l] += a[i] * b[i];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

struct float_job {
    enum quant_type type;
    const uint8_t *w;
    const float *x;
    float *y, *rows;
    uint32_t m, n, k;
};

static void float_rows(void *ctx, uint32_t first, uint32_t end, unsigned thread)
{
    const struct float_job *j = ctx;
    size_t bytes = quant_row_bytes(j->type, j->k);
    float *row = j->rows + (size_t)thread * j->k;
    for (uint32_t r = first; r < end; r++) {
        quant_dequant_row(j->type, j->w + r * bytes, row, j->k);
        for (uint32_t t = 0; t < j->n; t++)
            j->y[(size_t)t * j->m + r] = cpu_dot(row, j->x + (size_t)t * j->k, j->k);
    }
}

void cpu_matmul_f(struct pool *p, enum quant_type type, const void *w, uint32_t m, const float *x,
                  uint32_t n, uint32_t k, float *y, float *rows)
{
    struct float_job j = {type, w, x, y, rows, m, n, k};
    pool_run(p, m, (double)n * k, float_rows, &j);
}
