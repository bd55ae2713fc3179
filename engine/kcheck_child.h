/*
 * Running kcheck and keeping what it says on stdout: a fault or an endless loop there harms nobody
 * here. The child gets a clean signal mask and its own process group; it is ended by its pid when
 * it takes too long, or when its caller has no more use for it. Launching thread.
 */
#ifndef ENGINE_KCHECK_CHILD_H
#define ENGINE_KCHECK_CHILD_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum kcheck_end {
    KCHECK_DONE,     /* it ended; *wstatus is waitpid's */
    KCHECK_LATE,     /* it took longer than `seconds` and was killed */
    KCHECK_GIVEN_UP, /* `go_on` said so */
};

/* Runs argv (argv[0] = the path) and appends its stdout to *answer. `go_on` is called about four
 * times a second; false gives the run up. ERR_UNAVAILABLE when it can't be started. */
enum status kcheck_run(char *const argv[], int seconds, bool (*go_on)(void *ctx), void *ctx,
                       struct buf *answer, enum kcheck_end *end, int *wstatus);

#endif
