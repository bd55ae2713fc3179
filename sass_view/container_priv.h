/*
 * Shared by container.c, fatbin.c, hostelf.c and unpack.c only.
 *
 * A source hands out bytes of a file or of memory at any offset. Small reads come from a window of
 * the file, so that walking headers doesn't cost a system call each. A file that shrinks meanwhile
 * is a failed read, never a fault.
 */
#ifndef SASS_VIEW_CONTAINER_PRIV_H
#define SASS_VIEW_CONTAINER_PRIV_H

#include "sass_view/container.h"

enum { SOURCE_WINDOW = 64 << 10 };

struct source {
    int fd; /* -1: memory */
    const uint8_t *mem;
    uint64_t size;
    uint8_t *window; /* SOURCE_WINDOW bytes, files only */
    uint64_t window_at;
    size_t window_len;
};

struct container_priv {
    struct source src;
    uint8_t *copy; /* of a container opened from memory */
    size_t cap;    /* of parts */
};

/* Copies n bytes at `off`; false when they don't exist. */
bool source_read(struct source *s, uint64_t off, void *dst, size_t n);

/* A zeroed part at the end of the list; NULL at CONTAINER_PARTS_MAX or without memory. */
struct part *container_add(struct container *c);

/* Walks the fatbins in [off, off + len). Sets `damage` and stops where a rule is broken. */
enum status fatbin_walk(struct container *c, uint64_t off, uint64_t len, bool relocatable);

/* Finds the sections of a host ELF file that hold fatbins, and its soname. */
enum status hostelf_walk(struct container *c);

/* Fills raw[raw_size] from a packed payload; false when it isn't exactly that. */
bool unpack(enum part_packing p, const uint8_t *data, size_t size, uint8_t *raw, size_t raw_size);

#endif
