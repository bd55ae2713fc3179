/*
 * Outputs against the reference; see kcheck.h. Pure: the unit tests feed it outputs made on the
 * CPU.
 *
 * Up to CHECK_FULL_MACS every output is compared; above, CHECK_SAMPLES of them (more
 * only when there are more tile edges than that), the edges first, and every output is still held
 * to be written and every guard byte to be untouched. Limits come from the family's tolerance():
 * derived there, none is set here.
 */
#include "kernels/kcheck/kcheck.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *check_disposition_name(enum disposition d)
{
    static const char *const names[] = {"ok", "failed", "refused", "fault", "hang", "skipped"};
    return (unsigned)d < sizeof names / sizeof *names ? names[d] : "unknown";
}

size_t check_buffer_bytes(const struct kernel_family *fam, const struct shape *s)
{
    return fam->y_bytes(s) + 2 * (size_t)CHECK_GUARD_BYTES;
}

void check_buffer_fill(const struct kernel_family *fam, const struct shape *s, uint8_t *buffer)
{
    size_t y = fam->y_bytes(s);
    memset(buffer, CHECK_GUARD, CHECK_GUARD_BYTES);
    memset(buffer + CHECK_GUARD_BYTES, 0xff, y); /* all ones: a NaN in every float */
    memset(buffer + CHECK_GUARD_BYTES + y, CHECK_GUARD, CHECK_GUARD_BYTES);
}

static long long count_changed(const uint8_t *guard)
{
    long long n = 0;
    for (size_t i = 0; i < CHECK_GUARD_BYTES; i++) n += guard[i] != CHECK_GUARD;
    return n;
}

static uint64_t draw(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The e-th edge of a dimension cut into tiles: first and last index of each tile. */
static int edge(int size, int tile, int e)
{
    int at = e / 2 * tile + (e & 1 ? tile - 1 : 0);
    return at < size ? at : size - 1;
}

static int edges(int size, int tile)
{
    return 2 * ((size + tile - 1) / tile);
}

bool check_sample(const struct variant_desc *d, const struct shape *s, uint64_t seed, int i,
                  int *token, int *row)
{
    int tm = d->tile_m ? (int)d->tile_m : s->m, tn = d->tile_n ? (int)d->tile_n : s->n;
    int em = edges(s->m, tm), en = edges(s->n, tn);
    if (i >= CHECK_SAMPLES && i >= em + en) return false;
    uint64_t r = draw(seed, (uint64_t)i);
    *token = (int)(r % (uint64_t)s->n);
    *row = (int)((r >> 32) % (uint64_t)s->m);
    /* Every row edge, then every token edge, each against the other dimension's edges in turn;
     * then random ones. */
    if (i < em) {
        *row = edge(s->m, tm, i);
        if (i & 2) *token = edge(s->n, tn, i % en);
    } else if (i < em + en) {
        *token = edge(s->n, tn, i - em);
        if (i & 2) *row = edge(s->m, tm, i % em);
    }
    return true;
}

struct sums {
    double error2, value2, limit2;
};

static void compare_one(const struct kernel_family *fam, const struct variant_desc *d,
                        const struct shape *s, const struct family_inputs *in, const float *y,
                        int token, int row, struct sums *sums, struct comparison *out)
{
    struct reference_value ref = fam->reference(s, in, token, row);
    if (strcmp(d->numeric, "q8") != 0) fam->widen(s, in, token, row, &ref);
    struct tolerance tol = fam->tolerance(d, s, &ref);
    double error = fabs((double)y[(size_t)token * (size_t)s->m + (size_t)row] - ref.v);
    out->compared++;
    if (isnan(error)) return; /* counted as unwritten */
    /* A limit of 0 (nothing but zeros was added) allows nothing. */
    double ratio = error == 0 ? 0 : tol.worst > 0 ? error / tol.worst : INFINITY;
    sums->error2 += error * error;
    sums->value2 += ref.v * ref.v;
    sums->limit2 += tol.mean_square;
    if (ratio > 1) out->wrong++;
    if (ratio > out->worst) {
        out->worst = ratio;
        out->worst_token = token;
        out->worst_row = row;
    }
}

void check_compare(const struct kernel_family *fam, const struct variant_desc *d,
                   const struct shape *s, const struct family_inputs *in, const uint8_t *buffer,
                   uint64_t seed, struct comparison *out)
{
    size_t n_y = (size_t)s->m * (size_t)s->n;
    const float *y = (const float *)(buffer + CHECK_GUARD_BYTES);
    struct sums sums = {0};
    *out = (struct comparison){0};
    out->guard_bytes =
        count_changed(buffer) + count_changed(buffer + CHECK_GUARD_BYTES + fam->y_bytes(s));
    for (size_t i = 0; i < n_y; i++) out->unwritten += isnan(y[i]) != 0;
    if (fam->macs(s) <= CHECK_FULL_MACS) {
        for (int t = 0; t < s->n; t++)
            for (int r = 0; r < s->m; r++) compare_one(fam, d, s, in, y, t, r, &sums, out);
    } else {
        int token, row;
        for (int i = 0; check_sample(d, s, seed, i, &token, &row); i++)
            compare_one(fam, d, s, in, y, token, row, &sums, out);
    }
    out->nmse = sums.value2 > 0 ? sums.error2 / sums.value2 : sums.error2 > 0 ? INFINITY : 0;
    out->nmse_limit = sums.value2 > 0 ? sums.limit2 / sums.value2 : 0;
}

bool check_verdict(const struct comparison *c, char *why)
{
    why[0] = '\0';
    if (c->guard_bytes)
        snprintf(why, CHECK_WHY, "%lld bytes outside the output were written", c->guard_bytes);
    else if (c->unwritten)
        snprintf(why, CHECK_WHY, "%lld outputs not written, or NaN", c->unwritten);
    else if (c->wrong)
        snprintf(why, CHECK_WHY,
                 "%lld of %lld outputs wrong, worst %.3g x its limit at token %d "
                 "row %d",
                 c->wrong, c->compared, c->worst, c->worst_token, c->worst_row);
    else if (c->nmse > c->nmse_limit)
        snprintf(why, CHECK_WHY, "NMSE %.3g above its limit %.3g", c->nmse, c->nmse_limit);
    return why[0] == '\0';
}
