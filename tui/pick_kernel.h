/*
 * Finds one kernel by what a user writes: FILE, FILE:KERNEL, FILE@ARCH:KERNEL.
 * FILE is what container.h opens, or a recording with its cubins. The caller owns a
 * picked kernel. One thread.
 */
#ifndef TUI_PICK_KERNEL_H
#define TUI_PICK_KERNEL_H

#include "sass_view/census.h"
#include "sass_view/container.h"

struct picked {
    char file[256];
    struct cubin cubin; /* open */
    const struct cubin_kernel *kernel;
    struct flow flow;
    struct census census;
};

/* KERNEL is a name or, when none is called so, a regular expression (POSIX extended) that one
 * kernel matches. Without it the file has one kernel, or `like`, a name that is looked for. Of
 * several archs the first that has the kernel is taken. ERR_FAILED with the choice when nothing
 * or more than one fits. *out is zeroed on failure. */
enum status pick_kernel(struct picked *out, const char *spec, const char *like);
void pick_free(struct picked *p); /* also fine on a zeroed struct */

#endif
