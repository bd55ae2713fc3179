/* Shared by registry.c (contents and look-up) and registry_scan.c (files) only. */
#ifndef KERNELS_REGISTRY_PRIV_H
#define KERNELS_REGISTRY_PRIV_H

#include "kernels/registry.h"

#include <limits.h>

enum {
    REGISTRY_FILES_MAX = 512,
    REGISTRY_ARCHS_MAX = 32,
    REGISTRY_FILE_BYTES = 64 << 20, /* a larger cubin is left out */
};

struct registry_file {
    char *path;
    uint8_t *bytes;
    size_t size;
};

struct registry {
    char dir[PATH_MAX];
    struct variant v[REGISTRY_MAX];
    int n;
    struct registry_file files[REGISTRY_FILES_MAX];
    int n_files;
    char *notes[REGISTRY_NOTES_MAX];
    int n_notes;
    bool every_arch; /* the same file of several architectures is kept */
};

/* Fills r->v from r->dir: the architectures in `archs` (suffixes) best first. */
enum status registry_scan(struct registry *r, const char (*archs)[REGISTRY_ARCH], const int *order,
                          int n, bool include_broken);

/* Adds the cubins of a flat folder that run on `sm`; when that is 0, those whose architecture is
 * among archs[order[0..n)], or all with every_arch. */
enum status registry_scan_flat(struct registry *r, const char *dir,
                               const char (*archs)[REGISTRY_ARCH], const int *order, int n, int sm);

/* The sm_* directories of `dir`; returns how many, at most `max`, -1 when it can't be read. */
int registry_list_archs(const char *dir, char (*archs)[REGISTRY_ARCH], int max);

/* Adds "PATH: message" to the notes; silently full at REGISTRY_NOTES_MAX. */
void registry_add_note(struct registry *r, const char *path, const char *message);

#endif
