/*
 * The kernels on disk, read out of their cubins with no GPU.
 *
 * registry_open() scans DIR/sm_XX/FAMILY/NAME.cubin (and FAMILY/broken/NAME.cubin) and keeps one
 * entry per descriptor. DIR is $SASSTOP_CUBINS, else "cubin" beside the running program, else
 * beside the folder that it lies in. For each file the first architecture in load order that has
 * it is taken: exact with suffix (sm_90a), exact (sm_90), same major and lower minor (sm_86 ->
 * sm_80), nearest first.
 *
 * A user's own kernels, built elsewhere, come from one flat folder: EXTRA/NAME.cubin, family and
 * all by their descriptors alone; a cubin that doesn't run on the architecture in use is left out
 * and named in the notes.
 *
 * The registry owns everything that it hands out, entries live until registry_close(). After
 * opening it is read-only: any thread may read. A file that can't be used is left out and named in
 * registry_note(); it never fails the rest.
 */
#ifndef KERNELS_REGISTRY_H
#define KERNELS_REGISTRY_H

#include "base/status.h"
#include "kernels/variant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REGISTRY_MAX = 512,      /* descriptors */
    REGISTRY_NOTES_MAX = 64, /* files left out that are named */
    REGISTRY_ARCH = 12,      /* "90a" */
};

/* One kernel. Figures are -1 when the cubin doesn't state them. */
struct variant {
    struct variant_desc desc;
    char name[VARIANT_NAME];   /* file name: "nb" */
    char kernel[VARIANT_NAME]; /* symbol: "nb_kd8" */
    char family[24];
    int kd; /* 0 = none */
    bool broken;
    char arch[REGISTRY_ARCH]; /* of the chosen cubin: "90a" */
    const char *path;
    const uint8_t *bytes; /* the cubin: what is loaded is what is shown */
    size_t n_bytes;
    uint64_t cubin_hash, code_hash; /* of the file; of this kernel's code: its identity */
    int regs, static_smem, spill_bytes;
    uint32_t dyn_smem; /* sum of the descriptor's buffers */
    int index;         /* of this entry: 0 .. registry_count() - 1 */
};

struct registry;

struct registry_options {
    const char *dir;     /* NULL: as above */
    int sm;              /* 10 * major + minor of the device; 0: no device, see registry_open */
    const char *arch;    /* "90a": only this directory, whatever `sm` is; NULL: by load order */
    bool every_arch;     /* every directory, a kernel once for each: for lists only, since names
                          * stand more than once; `sm` and `arch` don't count */
    bool include_broken; /* $SASSTOP_ALLOW_BROKEN=1 does the same */
    const char *extra;   /* a user's own cubins, see above; NULL: $SASSTOP_VARIANTS, or none */
};

/* Without a device (sm 0) and without `arch`, the highest architecture present is read, so that a
 * laptop can list and disassemble. ERR_UNAVAILABLE when there is no directory or nothing that fits
 * the device; the message says what was looked for and which architectures are there. */
enum status registry_open(const struct registry_options *opt, struct registry **out);
void registry_close(struct registry *r); /* NULL is fine */

int registry_count(const struct registry *r);
const struct variant *registry_get(const struct registry *r, int i); /* NULL out of range */

/* By kernel symbol ("nb_kd8"); NULL when there is none. */
const struct variant *registry_find(const struct registry *r, const char *kernel);
/* By file name and depth; kd 0 for kernels without. */
const struct variant *registry_find_kd(const struct registry *r, const char *family,
                                       const char *name, int kd);
/* What the launcher falls back to: the family's VARIANT_FALLBACK of this depth, or NULL. */
const struct variant *registry_fallback(const struct registry *r, const char *family, int kd);

/* The next (step > 0) or previous variant of the same family and KD, in name order and wrapping;
 * broken ones are passed over unless they are in. Returns v itself when it is alone. */
const struct variant *registry_cycle(const struct registry *r, const struct variant *v, int step);
/* The same file's next or previous KD, wrapping. */
const struct variant *registry_cycle_kd(const struct registry *r, const struct variant *v,
                                        int step);

const char *registry_dir(const struct registry *r);
int registry_notes(const struct registry *r);
const char *registry_note(const struct registry *r, int i); /* "PATH: why it was left out" */

/* Load order, alone: of `n` directory suffixes ("90a", "121") writes the indices usable on a device
 * of `sm` into order[n], best first; returns how many. Malformed ones are never usable. */
int registry_load_order(const char *const *archs, int n, int sm, int *order);

/* Checks one descriptor against its symbol and file name; OK, or ERR_FORMAT with the reason. */
enum status registry_check_desc(const struct variant_desc *d, const char *symbol,
                                const char *file_stem, const char *family);

#endif
