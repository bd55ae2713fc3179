/*
 * A bench for tests of counter sources: a paper CUPTI (fake_cupti.h) and a sink that keeps what the
 * sources find of two kernels. Set up and torn down around each test; asserts end the test.
 */
#ifndef TESTS_CUPTI_LAB_H
#define TESTS_CUPTI_LAB_H

#include "tests/lib/counter_found.h"
#include "tests/lib/fake_cupti.h"

struct cupti_lab {
    struct found found;
    struct cupti_lib *lib; /* bound to the paper CUPTI */
};

extern struct cupti_lab lab;
extern const char *const cupti_lab_names[2]; /* "kernel_a", "kernel_b" */

int cupti_lab_setup(void **state); /* for cmocka; a paper CUPTI with no script */
int cupti_lab_teardown(void **state);

struct counter_env cupti_lab_env(void);
/* A real source on the lab's environment. */
struct counter_source *cupti_lab_open(enum counter_role role);
/* Closes it: nothing of CUPTI's may be left, no rule of it may have been broken. */
void cupti_lab_close(struct counter_source *src);

#endif
