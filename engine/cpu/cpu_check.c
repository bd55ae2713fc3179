/*
 * Parity of the CPU schedules; see cpu_check.h. The reference is q4k_dot_exact: the same integer
 * dots combined in double.
 *
 * Limits: an f32 sum of t terms errs by at most t * 2^-24 * sum|terms|, and each term has two more
 * roundings: (t + 3) * 2^-24 * mag for one element, t = 2k/32. For the whole (NMSE) the roundings
 * act as a random walk; 1e-10 is 20 times what k = 14,336 gives.
 */
#include "engine/cpu/cpu_check.h"

#include "engine/synth.h"
#include "kernels/q4k_gemm/ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double NMSE_LIMIT = 1e-10;
static const double SD = 0.02; /* of weights */

struct inputs {
    uint8_t *w, *chunks;
    float *y;
    struct cpu_acts acts;
};

static void inputs_free(struct inputs *in)
{
    free(in->w);
    free(in->chunks);
    free(in->y);
    cpu_acts_free(&in->acts);
}

static enum status inputs_make(const uint32_t mnk[3], struct inputs *in)
{
    uint32_t m = mnk[0], n = mnk[1], k = mnk[2];
    size_t wrow = q4k_row_bytes((int)k), arow = q8_row_bytes((int)k);
    float *v = malloc(k * sizeof *v);
    in->w = malloc(m * wrow);
    in->chunks = malloc(n * arow);
    in->y = malloc((size_t)m * n * sizeof *in->y);
    if (!v || !in->w || !in->chunks || !in->y || cpu_acts_reserve(&in->acts, n, k) != OK) {
        free(v);
        return err_set(ERR_NOMEM, "out of memory for the parity check of %u x %u x %u", m, n, k);
    }
    /* Quantising takes its time: 32 rows of their own, then copies. */
    for (uint32_t r = 0; r < m; r++) {
        if (r >= 32) {
            memcpy(in->w + r * wrow, in->w + (r % 32) * wrow, wrow);
            continue;
        }
        synth_gauss(1, (uint64_t)r * k, v, k);
        for (uint32_t i = 0; i < k; i++) v[i] *= (float)SD;
        quant_quantize_row(QUANT_Q4_K, v, in->w + r * wrow, k);
    }
    for (uint32_t t = 0; t < n; t++) {
        synth_gauss(2, (uint64_t)t * k, v, k);
        q8_quantize_row(v, (int)k, in->chunks + t * arow);
    }
    cpu_acts_from_chunks(&in->acts, in->chunks, n, k);
    for (size_t i = 0; i < (size_t)m * n; i++) in->y[i] = NAN;
    free(v);
    return OK;
}

struct sums {
    double err, ref, worst;
    uint64_t checked, bad;
};

static void check_one(const struct inputs *in, const uint32_t mnk[3], uint32_t t, uint32_t r,
                      struct sums *s)
{
    int k = (int)mnk[2];
    double mag, y = (double)in->y[(size_t)t * mnk[0] + r];
    double ref =
        q4k_dot_exact(in->w + r * q4k_row_bytes(k), in->chunks + t * q8_row_bytes(k), k, &mag);
    double e = fabs(y - ref), limit = (2.0 * k / 32 + 3) * 0x1p-24 * mag;
    if (!(e <= limit)) s->bad++; /* a NaN is bad */
    s->err += e * e;
    s->ref += ref * ref;
    if (e > s->worst) s->worst = e;
    s->checked++;
}

static void check_all(const struct inputs *in, const uint32_t mnk[3], struct sums *s)
{
    uint32_t m = mnk[0], n = mnk[1];
    if ((double)m * n * mnk[2] <= CHECK_FULL_MACS) {
        for (uint32_t t = 0; t < n; t++)
            for (uint32_t r = 0; r < m; r++) check_one(in, mnk, t, r, s);
        return;
    }
    check_one(in, mnk, 0, 0, s);
    check_one(in, mnk, 0, m - 1, s);
    check_one(in, mnk, n - 1, 0, s);
    check_one(in, mnk, n - 1, m - 1, s);
    for (uint32_t i = 0; i < CHECK_SAMPLES; i++) {
        uint32_t ctr[4] = {i, 0, 0, 0}, key[2] = {7, 11}, rnd[4];
        synth_philox(ctr, key, rnd);
        check_one(in, mnk, rnd[0] % n, rnd[1] % m, s);
    }
}

enum status cpu_check_q4k(struct pool *p, enum cpu_schedule sch, uint32_t kd, const uint32_t mnk[3],
                          struct parity_result *out)
{
    struct inputs in = {0};
    struct sums s = {0};
    uint64_t nan = 0;
    *out = (struct parity_result){0};
    if (!mnk[0] || !mnk[1] || !mnk[2] || mnk[2] % Q4K_BLOCK || (kd != 4 && kd != 8))
        return err_set(ERR_USAGE,
                       "q4k_gemm takes k in multiples of 256 and KD 4 or 8, not k %u, KD %u",
                       mnk[2], kd);
    enum status st = inputs_make(mnk, &in);
    if (st != OK) goto out;
    struct cpu_product job = {QUANT_Q4_K, in.w, mnk[0], &in.acts, in.y, kd};
    cpu_matmul_q(p, sch, &job);
    for (size_t i = 0; i < (size_t)mnk[0] * mnk[1]; i++) nan += isnan(in.y[i]) != 0;
    check_all(&in, mnk, &s);
    double rms = sqrt(s.ref / (double)s.checked);
    out->nmse = s.ref > 0 ? s.err / s.ref : s.err;
    out->worst = rms > 0 ? s.worst / rms : s.worst;
    out->passed = !nan && !s.bad && out->nmse <= NMSE_LIMIT;
    snprintf(out->text, sizeof out->text, "%llu outputs against f64: %llu off, %llu NaN, NMSE %.2g",
             (unsigned long long)s.checked, (unsigned long long)s.bad, (unsigned long long)nan,
             out->nmse);
out:
    inputs_free(&in);
    return st;
}
