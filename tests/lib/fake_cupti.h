/*
 * A CUPTI made of paper: every call of cupti/calls.def with CUPTI's rules as measured (who excludes
 * whom, in which order), so that the sources run without a GPU and a broken order is noticed.
 *
 * In process: fake_cupti_open(). As a library: compiled with -shared -DFAKE_CUPTI_SO it exports
 * CUPTI's names, for $SASSTOP_CUPTI. $FAKE_CUPTI scripts answers:
 * "cuptiPmSamplingEnable=35,version=120000". One state a process; fake_cupti_reset() starts anew.
 * Not for several threads but pm's decode.
 */
#ifndef TESTS_FAKE_CUPTI_H
#define TESTS_FAKE_CUPTI_H

#include "cupti/lib.h"

struct fake_cupti {
    /* to set */
    size_t pm_samples; /* a window gives: 600 */
    size_t pc_pcs;     /* a window gives: 100 */
    size_t passes;     /* of the range profiler: 1 */
    size_t pc_late;    /* PCs that only appear at disable */
    size_t sass_insns; /* a counted launch gives: 3 */
    /* to read */
    _Atomic unsigned violations; /* calls against the rules */
    char last_violation[80];
    unsigned hosts; /* host objects alive */
    _Atomic unsigned calls;
    bool pm_enabled, pc_enabled, range_enabled, activity_on, sass_configured, sass_enabled;
    unsigned sass_launches; /* that ran patched */
};

extern struct fake_cupti fake_cupti;

/* A library bound to the fake, attached, chip GH100. Free with free(). */
struct cupti_lib *fake_cupti_open(void);
void fake_cupti_reset(void);

/* A kernel runs: activity sees it when it is on. invalid: without usable times. */
void fake_cupti_launch(const char *kernel, bool invalid);
/* A graph of n kernels runs as one launch; node `invalid` has no usable times (n: none). */
void fake_cupti_graph(const char *const *kernels, size_t n, size_t invalid);

#endif
