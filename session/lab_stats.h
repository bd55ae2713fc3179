/*
 * Statistics of an experiment: what paired timings say, and the verdict that they allow.
 *
 * A pair is one timing of A and one of B next to each other, in alternating order. Its figure is
 * d = ln(time of A / time of B): positive when B is faster, a gain of e^d - 1. A drift of the
 * machine enters pairs of either order with opposite signs and so cancels in the middle.
 *
 * Estimate: the median of the mean of every two pairs (Hodges, Lehmann). Interval: the exact one of
 * the signed-rank test (Wilcoxon; Tukey's form over those means), at least 95 %. It needs pairs
 * that are independent and symmetric round the effect, which the alternating order provides, and no
 * normal distribution; up to 29 % of outliers can't carry it away.
 * Noise band: the largest gain that A against itself is compatible with, by the same interval over
 * A/A pairs. An effect counts as real when its whole interval lies outside the band.
 *
 * Pure functions; no clock, no I/O; any thread. Logarithms throughout; lab_gain() gives a fraction.
 */
#ifndef SESSION_LAB_STATS_H
#define SESSION_LAB_STATS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAB_PAIRS_MAX = 400, /* of one kind */
    LAB_MIN_PAIRS = 8,   /* fewer give no verdict */
    LAB_MIN_AA = 6,      /* the fewest that give a 95 % interval at all */
    LAB_MORE_MAX = 9999, /* more pairs than anyone would run; see lab_more_text() */
};

/* Limits of what is refused; fractions. */
#define LAB_LEVEL          0.95
#define LAB_DRIFT_CLOCK    0.03  /* of the SM clock, first third to last */
#define LAB_DRIFT_TIME     0.10  /* of A's own time, where the clock isn't known */
#define LAB_PAIR_CLOCK     0.02  /* clocks within one pair: further apart, the pair is dropped */
#define LAB_CLOCK_DISAGREE 0.005 /* us against cycles */

struct lab_interval {
    double est, median, lo, hi;
    uint32_t n;
    bool known; /* false: too few for the level; est and median still hold when n > 0 */
};

/* Of d[0..n), n <= LAB_PAIRS_MAX (more are left out). ERR_NOMEM. */
enum status lab_interval_of(const double *d, uint32_t n, struct lab_interval *out);

/* ln(median of the last third / median of the first third); 0 below 6 values. */
double lab_drift(const double *v, uint32_t n);

double lab_gain(double log_ratio); /* e^d - 1 */

enum lab_verdict { LAB_OPEN, LAB_LAND, LAB_REVERT, LAB_NOISE, LAB_INVALID };
/* "about 12 more pairs", "1 more pair", "over 1000 more pairs". Returns out. */
char *lab_more_text(uint32_t more, char *out, size_t size);

const char *lab_verdict_name(enum lab_verdict v); /* "LAND"... */
enum lab_verdict lab_verdict_parse(const char *name);

/* Everything that a verdict may depend on. */
struct lab_evidence {
    double bar;       /* gain as a fraction: 0.04. <= 0: B may lose that much, not more */
    const double *ab; /* d of A/B pairs in time */
    uint32_t n;
    const double *aa; /* d of A against A */
    uint32_t naa;
    const double *control; /* d of the third kernel: timed beside A against timed beside B */
    uint32_t ncontrol;     /* 0: none was there */
    const double *cycles;  /* d of the same A/B pairs in SM cycles */
    uint32_t ncycles;      /* 0: not known */
    double drift;          /* lab_drift() of the clock when `drift_of_clock`, else of A's time */
    bool drift_of_clock;
    const char *gate_failed; /* reason; NULL: every gate was passed or forced */
};

struct lab_result {
    enum lab_verdict verdict;
    bool firm;     /* the whole interval lies on one side of the bar */
    char why[240]; /* one sentence */
    struct lab_interval ab, aa, control, cycles;
    double band;       /* noise band, >= 0 */
    double detectable; /* smallest true effect found with 80 % probability; 0 = not known */
    uint32_t more;     /* pairs that would settle it; 0 = settled, LAB_MORE_MAX = hopeless */
};

/* ERR_NOMEM. */
enum status lab_judge(const struct lab_evidence *e, struct lab_result *out);

/* Pairs to add to reach an interval of +-half (logarithm); 0 when reached. */
uint32_t lab_pairs_for(const struct lab_interval *i, double half);

#endif
