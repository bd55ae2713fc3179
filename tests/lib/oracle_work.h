/*
 * The operators of the oracle (tests/gpu/oracle.c): at least twelve kernels on shapes of an 8 B
 * model, long enough to be measured. Buffers and weights live until the process ends.
 */
#ifndef TESTS_ORACLE_WORK_H
#define TESTS_ORACLE_WORK_H

#include "engine/backend.h"

enum {
    ORACLE_WORKS = 32,
    ORACLE_TOKENS = 2048,  /* most of a step */
    ORACLE_CONTEXT = 4096, /* of the cache */
    ORACLE_KV_DIM = 8 * 128,
};

struct oracle_work {
    const char *name, *family, *variant; /* family NULL: nothing to select */
    struct op op;
    uint32_t pos0;
    const char *kernel; /* prefix of the launches that are wanted; "" = all */
    unsigned first, count;
    uint32_t kd;
};

/* Fills works[ORACLE_WORKS]. The backend is open, a model is loaded, its cache has one layer of
 * ORACLE_KV_DIM. What this GPU can't run is left out, with a line on stdout. */
enum status oracle_works(struct backend *gpu, struct oracle_work *works, unsigned *n);

#endif
