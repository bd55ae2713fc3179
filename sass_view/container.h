/*
 * What a file holds for the GPU: a cubin, a fatbin, a host executable, object or shared library
 * that nvcc put fatbins into, or PTX text.
 *
 * container_open_*() reads headers only; the code of one part is read, unpacked (LZ4, zstd) and
 * checked by container_cubin(). So listing a library of hundreds of megabytes costs its headers.
 * A damaged fatbin keeps the parts before the damage and says so in `damage`.
 *
 * A container holds the open file (or a copy of the bytes) until container_close(). One thread at
 * a time; cubins that were opened from it are independent and outlive it.
 *
 * NVIDIA's licence forbids disassembling its libraries: cubins of a file with such a soname
 * (`vendor`) are opened sealed (cubin.h): names and resources, no instructions.
 *
 * Formats: nvcc 13.0's output. Fatbins lie one after another in the sections .nv_fatbin and
 * __nv_relfatbin, 8-byte aligned, with zeros between.
 */
#ifndef SASS_VIEW_CONTAINER_H
#define SASS_VIEW_CONTAINER_H

#include "base/status.h"
#include "sass_view/cubin.h"

enum { CONTAINER_PARTS_MAX = 1 << 18 };

enum container_kind { CONTAINER_CUBIN, CONTAINER_FATBIN, CONTAINER_HOST, CONTAINER_PTX };

enum part_kind { PART_CUBIN, PART_PTX, PART_OTHER };
enum part_packing { PACKING_STORED, PACKING_LZ4, PACKING_ZSTD, PACKING_UNKNOWN };

struct part {
    enum part_kind kind;
    enum part_packing packing;
    char arch[16];     /* "sm_90a", "sm_121"; PTX: "compute_90" */
    int sm;            /* 90; 0: not stated */
    bool relocatable;  /* compiled with -rdc=true, not linked yet */
    uint32_t fatbin;   /* number of its fatbin in the file, from 0 */
    uint64_t offset;   /* in the file */
    uint64_t size;     /* bytes in the file */
    uint64_t raw_size; /* bytes unpacked */
};

struct container {
    enum container_kind kind;
    struct part *parts; /* in file order */
    size_t nparts, ncubins, nptx;
    uint64_t size; /* bytes of the file */
    uint32_t nfatbins;
    char soname[128]; /* of a shared library; "" when it has none */
    bool vendor;      /* an NVIDIA library whose licence forbids disassembly */
    char damage[160]; /* where reading stopped, "" when the file was whole */
    char label[256];
    struct container_priv *priv;
};

/* On OK the caller closes *out. ERR_FORMAT: nothing for the GPU in it, or broken; ERR_IO;
 * ERR_LIMIT; ERR_NOMEM. On failure *out is zeroed. */
enum status container_open_file(struct container *out, const char *path);
/* The same for bytes in memory, which are copied (a module caught at run time). */
enum status container_open_memory(struct container *out, const void *data, size_t size,
                                  const char *label);
void container_close(struct container *c); /* also fine on a zeroed struct */

/* Unpacks and opens part `i`, a cubin. ERR_FORMAT also when it doesn't unpack to its stated size;
 * ERR_USAGE when it's no cubin. The caller closes *out. */
enum status container_cubin(const struct container *c, size_t i, struct cubin *out);

const char *container_kind_name(enum container_kind k); /* "host program" */
const char *part_packing_name(enum part_packing p);     /* "zstd" */

/* Whether `arch` ("sm_90a", "90a", "90") names the part's or cubin's arch; a plain number takes
 * any suffix. NULL takes all. */
bool arch_matches(const char *have, const char *arch);

#endif
