/*
 * Opening, closing and asking a GGUF file; the checks are in gguf_parse.c.
 *
 * Invariants: a struct gguf that was handed out is sound and never changes. The getters name file
 * and key in every failure. To read another value type, add a getter here; it must check type and
 * range.
 */
#include "engine/gguf_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void release_mapping(void *data, size_t len)
{
    munmap(data, len);
}

enum status gguf_open_memory(const void *data, size_t len, const char *name,
                             void (*release)(void *data, size_t len), struct gguf **out)
{
    enum status st;

    *out = NULL;
    struct gguf *g = calloc(1, sizeof *g);
    if (g) g->name = strdup(name);
    if (!g || !g->name) {
        free(g);
        if (release) release((void *)(uintptr_t)data, len);
        return err_set(ERR_NOMEM, "%s: no memory to open it", name);
    }
    g->base = data;
    g->len = len;
    g->release = release;
    st = gguf_parse(g);
    if (st)
        gguf_close(g);
    else
        *out = g;
    return st;
}

enum status gguf_open(const char *path, struct gguf **out)
{
    struct stat info;
    enum status st = OK;
    void *map = MAP_FAILED;

    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return err_set(ERR_IO, "%s: can't be opened: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0)
        st = err_set(ERR_IO, "%s: can't be examined: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        st = err_set(ERR_IO, "%s: not a regular file, so it can't be mapped", path);
    else if (info.st_size == 0)
        st = err_set(ERR_FORMAT, "%s: the file is empty", path);
    else if ((map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        st = err_set(ERR_IO, "%s: can't be mapped: %s", path, strerror(errno));
    close(fd);
    return st ? st : gguf_open_memory(map, (size_t)info.st_size, path, release_mapping, out);
}

void gguf_close(struct gguf *g)
{
    if (!g) return;
    if (g->release) g->release((void *)(uintptr_t)g->base, g->len);
    for (size_t i = 0; i < g->n_kv; i++) free(g->kv[i].strs);
    for (size_t i = 0; i < g->n_tensors; i++) free((void *)(uintptr_t)g->tensors[i].name);
    free(g->kv);
    free(g->tensors);
    free(g->by_name);
    free(g->name);
    free(g);
}

const char *gguf_name(const struct gguf *g)
{
    return g->name;
}

uint64_t gguf_header_hash(const struct gguf *g)
{
    return g->header_hash;
}

const void *gguf_bytes(const struct gguf *g, size_t *len)
{
    *len = g->len;
    return g->base;
}

size_t gguf_tensor_count(const struct gguf *g)
{
    return g->n_tensors;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i)
{
    return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name)
{
    size_t lo = 0, hi = g->n_tensors;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(name, g->by_name[mid]->name);
        if (c == 0) return g->by_name[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct gguf_kv *gguf_kv_find(const struct gguf *g, const char *key)
{
    struct gguf_str want = {key, strlen(key)};
    size_t lo = 0, hi = g->n_kv;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = gguf_str_cmp(want, g->kv[mid].key);
        if (c == 0) return &g->kv[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

bool gguf_has(const struct gguf *g, const char *key)
{
    return gguf_kv_find(g, key) != NULL;
}

static enum status missing(const struct gguf *g, const char *key)
{
    return err_set(ERR_FORMAT, "%s: the metadata key %s is missing", g->name, key);
}

static enum status mistyped(const struct gguf *g, const char *key, const char *want)
{
    return err_set(ERR_FORMAT, "%s: the metadata key %s isn't %s", g->name, key, want);
}

/* The file is little endian, and so is every machine this runs on (CUDA's hosts). */
static uint64_t load_bits(const struct gguf_kv *kv)
{
    uint64_t v = 0;
    memcpy(&v, kv->data, gguf_scalar_size(kv->type));
    return v;
}

static bool as_i64(const struct gguf_kv *kv, int64_t *out)
{
    switch (kv->type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
    case GGUF_I64:
        *out = (int64_t)load_bits(kv);
        return kv->type != GGUF_U64 || *out >= 0;
    case GGUF_I8:
        *out = (int8_t)load_bits(kv);
        return true;
    case GGUF_I16:
        *out = (int16_t)load_bits(kv);
        return true;
    case GGUF_I32:
        *out = (int32_t)load_bits(kv);
        return true;
    default:
        return false;
    }
}

static enum status take_u32(const struct gguf *g, const struct gguf_kv *kv, const char *key,
                            uint32_t *out)
{
    int64_t v = 0;
    if (!as_i64(kv, &v) || v < 0 || v > UINT32_MAX)
        return mistyped(g, key, "an integer from 0 to 4294967295");
    *out = (uint32_t)v;
    return OK;
}

static enum status take_f32(const struct gguf *g, const struct gguf_kv *kv, const char *key,
                            float *out)
{
    if (kv->type == GGUF_F32) {
        memcpy(out, kv->data, sizeof *out);
    } else if (kv->type == GGUF_F64) {
        double d;
        memcpy(&d, kv->data, sizeof d);
        *out = (float)d;
    } else {
        return mistyped(g, key, "a floating-point number");
    }
    return OK;
}

enum status gguf_get_u32(const struct gguf *g, const char *key, uint32_t *out)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    return kv ? take_u32(g, kv, key, out) : missing(g, key);
}

enum status gguf_get_u32_or(const struct gguf *g, const char *key, uint32_t def, uint32_t *out)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    *out = def;
    return kv ? take_u32(g, kv, key, out) : OK;
}

enum status gguf_get_f32(const struct gguf *g, const char *key, float *out)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    return kv ? take_f32(g, kv, key, out) : missing(g, key);
}

enum status gguf_get_f32_or(const struct gguf *g, const char *key, float def, float *out)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    *out = def;
    return kv ? take_f32(g, kv, key, out) : OK;
}

enum status gguf_get_bool_or(const struct gguf *g, const char *key, bool def, bool *out)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    *out = def;
    if (!kv) return OK;
    if (kv->type != GGUF_BOOL) return mistyped(g, key, "a boolean");
    *out = kv->data[0] != 0;
    return OK;
}

enum status gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *out)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    if (!kv) return missing(g, key);
    if (kv->type != GGUF_STR) return mistyped(g, key, "a string");
    *out = kv->str;
    return OK;
}

enum status gguf_get_str_or(const struct gguf *g, const char *key, const char *def,
                            struct gguf_str *out)
{
    *out = (struct gguf_str){def, strlen(def)};
    return gguf_has(g, key) ? gguf_get_str(g, key, out) : OK;
}

enum status gguf_get_array(const struct gguf *g, const char *key, enum gguf_type elem,
                           struct gguf_array *out)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    if (!kv) return missing(g, key);
    if (kv->type != GGUF_ARRAY || kv->elem != elem || kv->nested)
        return mistyped(g, key, "an array of the type that belongs there");
    *out =
        (struct gguf_array){.elem = elem, .n = (size_t)kv->n, .data = kv->data, .strs = kv->strs};
    return OK;
}

/* Bytes of the UTF-8 character at p, or 0 if it is malformed or a C1 control (U+0080 to U+009F).
 * Only what printing needs: overlong three-byte forms and surrogates pass, since no terminal acts
 * on them. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
    static const unsigned char by_nibble[16] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 3, 4};
    size_t n = by_nibble[p[0] >> 4];
    if (n == 0 || n > left || (n > 1 && p[0] < 0xc2) || p[0] > 0xf4) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return p[0] == 0xc2 && p[1] < 0xa0 ? 0 : n;
}

char *gguf_str_copy(struct gguf_str s, char *out, size_t size)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t o = 0;

    if (size == 0) return out;
    for (size_t i = 0; i < s.len;) {
        size_t n = utf8_len(p + i, s.len - i);
        bool plain = n > 1 || (n == 1 && p[i] >= 32 && p[i] != 127);
        size_t step = n ? n : 1;
        if (o + (plain ? n : 1) > size - 1) break;
        if (plain)
            memcpy(out + o, p + i, n);
        else
            out[o] = '?';
        o += plain ? n : 1;
        i += step;
    }
    out[o] = '\0';
    return out;
}

bool gguf_str_is(struct gguf_str s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.p, text, s.len) == 0;
}
