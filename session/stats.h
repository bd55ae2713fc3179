/*
 * Statistics of bounded memory: a series is a reservoir that keeps at most STAT_KEEP values, drawn
 * evenly from all that were added by a generator seeded with a constant, so that equal input gives
 * equal output (reports of a live session and of its recording are equal byte for byte).
 * What is not finite is left out. Zero-initialised = empty.
 */
#ifndef SESSION_STATS_H
#define SESSION_STATS_H

#include "base/value.h"

enum { STAT_KEEP = 256 };

struct series {
    uint64_t n;
    double min, max;
    uint32_t rng;
    float kept[STAT_KEEP];
};

void stat_add(struct series *s, double v);
double stat_quantile(const struct series *s, double q); /* linear interpolation; NAN when empty */
double stat_iqr(const struct series *s);                /* NAN when n < 2 */

/* Median with interquartile range as a value; `missing` when empty. */
struct value stat_median_value(const struct series *s, const char *source, struct value missing);

/* Ratio of two medians with its noise: spread = r * sqrt((iqr_a/a)^2 + (iqr_b/b)^2) / 1.349 is
 * not used; the noise band here is half the sum of relative interquartile ranges, which needs no
 * normal distribution. Missing when either is empty. */
struct value stat_ratio(const struct series *now, const struct series *before, const char *source);

/* What a ratio says. STAT_FEW: either side has less than RATIO_ROUNDS; a band of fewer is itself
 * chance. A control, which nobody touched, isn't faster or slower: it moved, and so may the rest
 * have. */
enum { RATIO_ROUNDS = 8 };
enum stat_says { STAT_NO_BAND, STAT_FEW, STAT_WITHIN, STAT_MOVED, STAT_FASTER, STAT_SLOWER };
enum stat_says stat_ratio_says(const struct value *ratio, bool control);
const char *stat_says_words(enum stat_says says);

#endif
