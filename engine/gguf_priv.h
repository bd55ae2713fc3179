/*
 * What gguf.c and gguf_parse.c share; nobody else includes this.
 *
 * gguf_parse() fills a zeroed struct whose `base`, `len` and `name` are set; on failure the caller
 * frees what was filled in.
 */
#ifndef ENGINE_GGUF_PRIV_H
#define ENGINE_GGUF_PRIV_H

#include "engine/gguf.h"

struct gguf_kv {
    struct gguf_str key;
    enum gguf_type type, elem; /* elem: of an array */
    bool nested;               /* an array of arrays: checked, skipped, not readable */
    uint64_t n;                /* array length, else 1 */
    const uint8_t *data;       /* scalars */
    struct gguf_str str;       /* GGUF_STR */
    struct gguf_str *strs;     /* array of strings, owned */
};

struct gguf {
    char *name;
    const uint8_t *base;
    size_t len;
    void (*release)(void *data, size_t len); /* NULL: the bytes belong to the caller */
    size_t data_start;
    uint32_t alignment;
    uint64_t header_hash;

    struct gguf_kv *kv; /* sorted by key after parsing */
    size_t n_kv;
    struct gguf_tensor *tensors; /* file order */
    size_t n_tensors;
    const struct gguf_tensor **by_name; /* sorted */
};

enum status gguf_parse(struct gguf *g);

/* Bytes of a scalar of a metadata type; 0 for strings, arrays and unknown types. */
size_t gguf_scalar_size(uint32_t type);
int gguf_str_cmp(struct gguf_str a, struct gguf_str b);
const struct gguf_kv *gguf_kv_find(const struct gguf *g, const char *key);

#endif
