/*
 * Cubin reader: what an NVIDIA ELF (e_machine 190) says about its kernels, with no GPU.
 *
 * cubin_open_*() checks the whole file before anything is handed out: every offset, size and index
 * is held against the file, and a file that breaks a rule is refused with a message that names the
 * rule. A struct cubin owns a copy of the bytes; everything it points at lives until cubin_close().
 * After opening it is read-only, so any number of threads may read it.
 *
 * Formats: research on nvcc 13.0's output (ABI 8) and CUDA 11/12 files (ABI 7). The second form of
 * the code that sm_100+ files carry (.nv.capmerc*, .nv.merc*) isn't SASS and is skipped.
 */
#ifndef SASS_VIEW_CUBIN_H
#define SASS_VIEW_CUBIN_H

#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CUBIN_SIZE_MAX = 256 << 20, /* a larger file is refused */
    CUBIN_KERNELS_MAX = 65536,
    CUBIN_UNKNOWN = -1, /* a figure that the file doesn't state */
};

/* A function inside a kernel's .text section: the kernel's body and the local functions it calls.
 */
struct cubin_func {
    const char *name;
    uint32_t offset, size; /* bytes within .text.K */
};

/* One kernel. Figures are CUBIN_UNKNOWN (-1) when the file doesn't state them. */
struct cubin_kernel {
    const char *name;    /* as in the symbol table (mangled) */
    const uint8_t *code; /* bytes of .text.K: body, local callees and padding */
    uint32_t code_size;  /* multiple of 16 */
    uint64_t code_hash;  /* xxh64 of .text.K followed by .nv.info.K: the kernel's identity */
    bool entry;          /* launchable; false: a device function compiled apart (-rdc) */
    int regs;            /* registers a thread */
    int smem; /* static shared memory a block, bytes, without the 1 KiB reserved on sm_90+ */
    int smem_reserved; /* the reserved bytes that the section counts in, 0 below sm_90 */
    int stack;         /* frame bytes a thread (local memory) */
    int spill_store;   /* spill bytes a thread: stores, loads; unknown when the file has no */
    int spill_load;    /* spill annotations but has a frame */
    int barriers;      /* named barriers used */
    int params;        /* number of parameters */
    int param_bytes;   /* size of the parameter area */
    int max_threads;   /* from launch bounds or required block size; unknown when unbounded */
    int max_regs;      /* register cap from launch bounds or a compiler option; unknown when none */
    struct cubin_func *funcs; /* sorted by offset, the kernel's own first; may be empty */
    size_t nfuncs;
};

struct cubin {
    int sm;                       /* 80, 86, 89, 90, 100, 120, 121... */
    bool sealed;                  /* its licence forbids disassembly: no instruction is decoded */
    bool arch_suffix;             /* an 'a' target, where the file says so */
    char arch[16];                /* "sm_90a", "sm_121" */
    int abi;                      /* EI_ABIVERSION: 7 or 8 */
    char toolkit[16];             /* "13.0", or "" when not stated */
    uint64_t file_hash;           /* xxh64 of the file */
    size_t size;                  /* bytes of the file */
    struct cubin_kernel *kernels; /* sorted by name */
    size_t nkernels;
    struct cubin_priv *priv;
};

/* Copies `size` bytes from `data` and reads them. `label` (a path, "module 3") starts messages.
 * On OK the caller closes *out. On failure *out is zeroed: ERR_FORMAT (not a cubin, or a broken
 * one), ERR_LIMIT, ERR_NOMEM. A cubin with no kernels is fine. */
enum status cubin_open_memory(struct cubin *out, const void *data, size_t size, const char *label);

/* The same for a file; ERR_IO when it can't be read. */
enum status cubin_open_file(struct cubin *out, const char *path);

void cubin_close(struct cubin *c); /* also fine on a zeroed struct */

/* The file's bytes (c->size of them). */
const uint8_t *cubin_bytes(const struct cubin *c);

/* The kernel called exactly `name`, or NULL. */
const struct cubin_kernel *cubin_find_kernel(const struct cubin *c, const char *name);

/* The initial bytes of the data object `name` (a __device__ const variable), owned by the cubin.
 * ERR_FAILED when there's no such object, or it has no bytes in the file (zero-initialised). */
enum status cubin_symbol(const struct cubin *c, const char *name, const void **ptr, size_t *size);

/* The n-th data object's name (symbol-table order), NULL past the end: `for (i = 0; (s = ...);
 * i++)`. */
const char *cubin_object_name(const struct cubin *c, size_t n);

#endif
