/* Shared by expect*.c and diff_census.c only. */
#ifndef SASS_VIEW_EXPECT_PRIV_H
#define SASS_VIEW_EXPECT_PRIV_H

#include "sass_view/expect.h"

extern const char *const expect_figures[]; /* names, NULL at the end */

/* The sum of a side; false when a term isn't known. */
bool expect_evaluate(const struct expect_side *s, const struct census *c, enum census_scope scope,
                     int64_t *sum);

#endif
