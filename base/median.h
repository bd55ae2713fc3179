/*
 * Medians of a few measurements. The order is changed in place; pure otherwise, any thread.
 */
#ifndef BASE_MEDIAN_H
#define BASE_MEDIAN_H

#include <stddef.h>

/* Ascending; no NAN among them. */
void sort_doubles(double *v, size_t n);

/* Sorts v and gives its (upper) median v[n / 2]; *iqr, unless NULL: v[3n / 4] - v[n / 4]. NAN for
 * n = 0. */
double median_iqr(double *v, size_t n, double *iqr);

#endif
