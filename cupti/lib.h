/*
 * libcupti, found at run time, and words for what it answers.
 *
 * One struct cupti_lib a process, made by cupti_open() and shared by all sources. cupti_open() only
 * loads and binds: it needs no GPU and leaves the process as it was. cupti_attach() is what touches
 * the GPU side, once, after cuInit: subscribe, profiler initialise, chip name. The library is never
 * unloaded (its threads may still run, its C++ runtime keeps memory); cupti_close() frees the
 * struct alone.
 *
 * Any thread may read the struct after cupti_attach(). A process that must be timed clean is one
 * that never called cupti_open().
 */
#ifndef CUPTI_LIB_H
#define CUPTI_LIB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cupti/abi.h"

/* The oldest version taken: PM sampling, the range profiler and cuptiSubscribe_v2 as declared in
 * abi.h, and activity records of generation 10. */
enum { CUPTI_MIN_VERSION = 130000 };

struct cupti_lib {
    void *handle;
    char path[256];   /* file that was loaded */
    uint32_t version; /* 130001 = CUDA 13.0 update 1 */
    bool attached;
    void *subscriber;
    char other[64]; /* name of the other profiler when it holds CUPTI, else "" */
    char chip[32];  /* "GH100"; "" before cupti_attach() */
#define CALL(field, symbol, args, level) cupti_result(*field) args;
#include "cupti/calls.def"
#undef CALL
};

/* Looks for libcupti: $SASSTOP_CUPTI (a file; nothing else is tried when set), libcupti.so.13 on
 * the loader's path, then $CUDA_HOME, /usr/local/cuda and /usr/local/cuda-13* in lib64 and
 * extras/CUPTI/lib64. ERR_UNAVAILABLE with the reason when there is none, or one that is too old.
 */
enum status cupti_open(struct cupti_lib **out);
void cupti_close(struct cupti_lib *lib); /* NULL is fine */

/* Once, on the launching thread, after cuInit and with a context current: subscribes under our name
 * (so that another profiler is told by name), initialises the profiler, reads the chip's name.
 * ERR_UNAVAILABLE: counters can't be used, the message says why; the library stays loaded. */
enum status cupti_attach(struct cupti_lib *lib, int device);

/* OK for 0, else err_set("what: NAME (number): explanation"): ERR_UNAVAILABLE for what this
 * machine does not allow, ERR_FAILED for the rest. */
enum status cupti_check(const struct cupti_lib *lib, cupti_result r, const char *what);

/* Name and words for a result; all static, never NULL. why: what happened and what still works;
 * remedy: what to try, "" when nothing helps; lasting: trying again later is pointless. */
struct cupti_words {
    const char *name, *why, *remedy;
    bool lasting;
};
struct cupti_words cupti_explain(cupti_result r);

/* True if every call whose field name starts with `prefix` ("pm_") was found. */
bool cupti_has(const struct cupti_lib *lib, const char *prefix);

#endif
