/*
 * Shared by cubin*.c, container.c and lines.c only: the checked view of the file's sections.
 * Every pointer here lies inside the copy that the cubin owns; counts and sizes are already
 * checked.
 */
#ifndef SASS_VIEW_CUBIN_PRIV_H
#define SASS_VIEW_CUBIN_PRIV_H

#include "sass_view/cubin.h"

struct cubin_section {
    const char *name;    /* "" when the file's name offset is off */
    const uint8_t *data; /* NULL for NOBITS */
    uint64_t size;
    uint64_t flags;
    uint32_t type, info, link;
};

struct cubin_sym {
    const char *name;
    uint64_t value, size;
    uint16_t section;
    uint8_t info, other;
};

struct cubin_priv {
    uint8_t *bytes;
    uint32_t e_flags;
    struct cubin_section *sections;
    size_t nsections;
    const struct cubin_section **by_name; /* sorted */
    struct cubin_sym *syms;
    size_t nsyms;
    uint32_t *func_at, *funcs; /* section s has the function symbols funcs[func_at[s]..[s + 1]) */
    uint32_t *objects;         /* symbols that are data objects */
    size_t nobjects;
    int32_t *module_regs, *module_stack; /* by symbol: what .nv.info says, or CUBIN_UNKNOWN */
};

/* The section called `prefix` followed by `name` ("" for the prefix alone), or NULL. */
const struct cubin_section *cubin_section_find(const struct cubin_priv *p, const char *prefix,
                                               const char *name);

/* Fills arch, sm, suffix and toolkit from e_flags, .nv.compat and the notes. */
enum status cubin_read_arch(struct cubin *c, const char *label);

/* Reads the attributes that .nv.info keeps by symbol. */
enum status cubin_read_module(struct cubin_priv *p, const char *label);

/* Fills the figures of kernel `k`, whose .text is section number `text`. */
void cubin_read_info(const struct cubin *c, struct cubin_kernel *k, size_t text);

/* Like cubin_open_memory() on bytes from malloc, which belong to the cubin at once (freed on
 * failure too). `sealed`: see cubin.h. */
enum status cubin_adopt(struct cubin *out, uint8_t *data, size_t size, const char *label,
                        bool sealed);

#endif
