/*
 * Reservoir statistics; see stats.h.
 *
 * Invariants: until STAT_KEEP values came, quantiles are exact; afterwards every value that was
 * added is kept with equal chance (Vitter's algorithm R). The generator starts from a constant, so
 * equal input gives equal output. What is not finite is left out.
 */
#include "session/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RNG_START = 0x9e3779b9 };

static uint32_t next_random(uint32_t *state)
{
    uint32_t x = *state ? *state : RNG_START; /* xorshift32 */
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* Even in [0, n): two draws make 64 bits, whose bias at any n met here is below 2^-32. */
static uint64_t random_below(uint32_t *state, uint64_t n)
{
    uint64_t hi = next_random(state), lo = next_random(state);
    return (hi << 32 | lo) % n;
}

void stat_add(struct series *s, double v)
{
    if (!isfinite(v)) return;
    if (s->n == 0 || v < s->min) s->min = v;
    if (s->n == 0 || v > s->max) s->max = v;
    s->n++;
    if (s->n <= STAT_KEEP) {
        s->kept[s->n - 1] = (float)v;
        return;
    }
    uint64_t at = random_below(&s->rng, s->n);
    if (at < STAT_KEEP) s->kept[at] = (float)v;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static uint32_t sorted(const struct series *s, float out[STAT_KEEP])
{
    uint32_t n = s->n < STAT_KEEP ? (uint32_t)s->n : STAT_KEEP;
    memcpy(out, s->kept, n * sizeof *out);
    qsort(out, n, sizeof *out, compare_floats);
    return n;
}

static double quantile_of(const float *v, uint32_t n, double q)
{
    if (n == 0) return (double)NAN;
    double at = q * (n - 1);
    if (at <= 0) return (double)v[0];
    if (at >= n - 1) return (double)v[n - 1];
    uint32_t i = (uint32_t)at;
    return (double)v[i] + (at - i) * ((double)v[i + 1] - (double)v[i]);
}

double stat_quantile(const struct series *s, double q)
{
    float v[STAT_KEEP];
    return quantile_of(v, sorted(s, v), q);
}

double stat_iqr(const struct series *s)
{
    float v[STAT_KEEP];
    uint32_t n = sorted(s, v);
    return n < 2 ? (double)NAN : quantile_of(v, n, 0.75) - quantile_of(v, n, 0.25);
}

struct value stat_median_value(const struct series *s, const char *source, struct value missing)
{
    float v[STAT_KEEP];
    uint32_t n = sorted(s, v);

    if (n == 0) return missing;
    double spread = n < 2 ? -1 : quantile_of(v, n, 0.75) - quantile_of(v, n, 0.25);
    uint32_t count = s->n > UINT32_MAX ? UINT32_MAX : (uint32_t)s->n;
    return value_spread(quantile_of(v, n, 0.5), spread, count, source);
}

struct value stat_ratio(const struct series *now, const struct series *before, const char *source)
{
    double a = stat_quantile(now, 0.5), b = stat_quantile(before, 0.5);

    if (now->n == 0 || before->n == 0)
        return value_missing(VALUE_PENDING, "one of the two generations has no timed round yet");
    if (!(a > 0) || !(b > 0)) return value_missing(VALUE_UNAVAILABLE, "a rate of 0 has no ratio");
    double r = a / b, ia = stat_iqr(now), ib = stat_iqr(before);
    double spread = isfinite(ia) && isfinite(ib) ? r * 0.5 * (ia / a + ib / b) : -1;
    return value_spread(r, spread, (uint32_t)(now->n < before->n ? now->n : before->n), source);
}

enum stat_says stat_ratio_says(const struct value *ratio, bool control)
{
    if (ratio->spread < 0) return STAT_NO_BAND;
    if (ratio->n < RATIO_ROUNDS) return STAT_FEW;
    if (!(fabs(ratio->v - 1) > ratio->spread)) return STAT_WITHIN;
    return control ? STAT_MOVED : ratio->v > 1 ? STAT_FASTER : STAT_SLOWER;
}

const char *stat_says_words(enum stat_says says)
{
    static const char *const words[] = {[STAT_NO_BAND] = "noise not known yet",
                                        [STAT_FEW] = "few rounds",
                                        [STAT_WITHIN] = "within noise",
                                        [STAT_MOVED] = "moved",
                                        [STAT_FASTER] = "faster",
                                        [STAT_SLOWER] = "slower"};
    return words[says];
}
