/* Tables on stdout of what a struct found holds, after found_join(), and of what turns cost; for
 * tests on a GPU. */
#ifndef TESTS_COUNTER_PRINT_H
#define TESTS_COUNTER_PRINT_H

#include "cupti/turns.h"
#include "tests/lib/counter_found.h"

/* j[f->kernels]: live figures beside exact ones. */
void counter_print_kernels(const struct found *f, const struct found_joined *j);
void counter_print_stalls(const struct found *f);
void counter_print_windows(const struct found *f);
void counter_print_costs(const struct turns *t);

#endif
