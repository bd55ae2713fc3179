/* Mean and spread of a value over repeats, value by value; for tests. */
#ifndef TESTS_REPEATS_H
#define TESTS_REPEATS_H

#include <math.h>

/* m2: the sum of squared distances from the mean. Zeroed: no value yet. */
struct repeats {
    double mean, m2;
    unsigned n;
};

static inline void repeats_add(struct repeats *r, double v)
{
    double off = v - r->mean;
    r->mean += off / ++r->n;
    r->m2 += off * (v - r->mean);
}

/* Of a sample; 0 with fewer than two values. */
static inline double repeats_sd(const struct repeats *r)
{
    return r->n > 1 ? sqrt(r->m2 / (r->n - 1)) : 0;
}

#endif
