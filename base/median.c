/* See median.h. */
#include "base/median.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_doubles(double *v, size_t n)
{
    if (n) qsort(v, n, sizeof *v, by_value);
}

double median_iqr(double *v, size_t n, double *iqr)
{
    if (iqr) *iqr = (double)NAN;
    if (!n) return (double)NAN;
    sort_doubles(v, n);
    if (iqr) *iqr = v[n * 3 / 4] - v[n / 4];
    return v[n / 2];
}
