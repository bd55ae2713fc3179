/*
 * GGUF version 3 reader (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
 *
 * The file is mapped read-only; names, strings, arrays and tensor data are views of the mapping and
 * live until gguf_close(). Every count, size, offset, type, string length, alignment, nesting and
 * name is checked when the file is opened, so what the getters return can be used without further
 * checks of the file. After gguf_open() an object is only read: any number of threads may use it.
 */
#ifndef ENGINE_GGUF_H
#define ENGINE_GGUF_H

#include "base/status.h"
#include "engine/quant.h"

/* Limits; a file beyond one is refused by its name. */
enum {
    GGUF_MAX_KV = 65536,
    GGUF_MAX_TENSORS = 65536,
    GGUF_MAX_KEY = 65535,       /* bytes, from the format's description */
    GGUF_MAX_TENSOR_NAME = 127, /* bytes; the format says 64, files in use stay below */
    GGUF_MAX_DIMS = 4,
    GGUF_MAX_NESTING = 4, /* arrays in arrays */
};

/* Metadata value types, numbered as in the file. */
enum gguf_type {
    GGUF_U8 = 0,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STR,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT,
};

/* Bytes in the mapping, not terminated. */
struct gguf_str {
    const char *p;
    size_t len;
};

struct gguf_tensor {
    const char *name; /* terminated, owned by the gguf */
    enum quant_type type;
    uint32_t n_dims;            /* 1..4 */
    uint64_t ne[GGUF_MAX_DIMS]; /* ne[0] = row length (fastest); unused ones are 1 */
    const void *data;           /* aligned to the file's alignment (>= 8) */
    size_t bytes;               /* rows * quant_row_bytes(type, ne[0]) */
};

struct gguf;

/* Maps and checks `path`. ERR_IO: can't be read; ERR_FORMAT: not a sound GGUF v3 file, or holds a
 * tensor type not read here (named); ERR_LIMIT, ERR_NOMEM. *out is NULL on failure. */
enum status gguf_open(const char *path, struct gguf **out);

/* The same on bytes in memory (8-byte aligned), named `name` in messages. With `release`, the bytes
 * belong to the gguf at once, also on failure, and release(data, len) gives them back; without,
 * they must outlive it. */
enum status gguf_open_memory(const void *data, size_t len, const char *name,
                             void (*release)(void *data, size_t len), struct gguf **out);

void gguf_close(struct gguf *g); /* NULL is fine */

const char *gguf_name(const struct gguf *g);               /* path or name it was opened by */
uint64_t gguf_header_hash(const struct gguf *g);           /* xxh64 of all before the tensor data */
const void *gguf_bytes(const struct gguf *g, size_t *len); /* the whole file */

size_t gguf_tensor_count(const struct gguf *g);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i);           /* file order */
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name); /* or NULL */

/* Metadata. gguf_has() tells whether a key is there. The getters fail with ERR_FORMAT when the key
 * is missing or its type or range doesn't fit; the ones ending in _or give `def` when it is
 * missing, and still fail on a wrong type. u32 takes any integer type whose value fits; f32 takes
 * F32 and F64. */
bool gguf_has(const struct gguf *g, const char *key);
enum status gguf_get_u32(const struct gguf *g, const char *key, uint32_t *out);
enum status gguf_get_u32_or(const struct gguf *g, const char *key, uint32_t def, uint32_t *out);
enum status gguf_get_f32(const struct gguf *g, const char *key, float *out);
enum status gguf_get_f32_or(const struct gguf *g, const char *key, float def, float *out);
enum status gguf_get_bool_or(const struct gguf *g, const char *key, bool def, bool *out);
enum status gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *out);
enum status gguf_get_str_or(const struct gguf *g, const char *key, const char *def,
                            struct gguf_str *out);

/* An array of scalars or strings. `elem` is the type it must have. */
struct gguf_array {
    enum gguf_type elem;
    size_t n;
    const uint8_t *data;         /* n little-endian scalars, any alignment; NULL for strings */
    const struct gguf_str *strs; /* n strings, for GGUF_STR */
};
enum status gguf_get_array(const struct gguf *g, const char *key, enum gguf_type elem,
                           struct gguf_array *out);

/* Copies a string for printing: cut to fit, terminated, control and non-UTF-8 bytes become '?'. */
char *gguf_str_copy(struct gguf_str s, char *out, size_t size);
bool gguf_str_is(struct gguf_str s, const char *text);

#endif
