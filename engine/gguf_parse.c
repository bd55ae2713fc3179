/*
 * Checks a GGUF image and builds its tables.
 *
 * Job: one pass over header, metadata and tensor table, then the checks that need all of them
 * (duplicates, data extents). Invariants: nothing is read outside [base, base + len); memory taken
 * is bounded by a small multiple of the file's bytes, since a count is believed only if that many
 * items fit in what is left. To add a metadata type, give it a size in gguf_scalar_size().
 */
#include "engine/gguf_priv.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    ALIGN_MIN = 8,
    ALIGN_MAX = 1 << 20,
    ALIGN_DEFAULT = 32,
    TENSOR_INFO_MIN = 8 + 1 + 4 + 8 + 4 + 8
};

size_t gguf_scalar_size(uint32_t type)
{
    static const uint8_t sizes[GGUF_TYPE_COUNT] = {
        [GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_U16] = 2, [GGUF_I16] = 2,
        [GGUF_U32] = 4, [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1,
        [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
    };
    return type < GGUF_TYPE_COUNT ? sizes[type] : 0;
}

int gguf_str_cmp(struct gguf_str a, struct gguf_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static enum status cut_short(const struct gguf *g, const char *where)
{
    return err_set(ERR_FORMAT,
                   "%s: the file ends inside %s; it is damaged or was not downloaded to its end: "
                   "fetch it again",
                   g->name, where);
}

/* A string of at most `max` bytes. */
static enum status read_str(struct gguf *g, struct rd *r, const char *what, uint64_t max,
                            struct gguf_str *out)
{
    uint64_t len = rd_u64(r);
    if (r->bad) return cut_short(g, what);
    if (len > max)
        return err_set(ERR_FORMAT, "%s: %s has a length of %llu bytes, more than the %llu allowed",
                       g->name, what, (unsigned long long)len, (unsigned long long)max);
    if (len > rd_left(r)) return cut_short(g, what);
    out->len = (size_t)len;
    out->p = (const char *)rd_bytes(r, (size_t)len);
    return OK;
}

static enum status check_bools(const struct gguf *g, const char *key, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] > 1)
            return err_set(ERR_FORMAT, "%s: %s holds %u where a boolean (0 or 1) belongs", g->name,
                           key, p[i]);
    return OK;
}

static enum status read_array(struct gguf *g, struct rd *r, const char *key, struct gguf_kv *kv,
                              int depth);

static enum status read_string_array(struct gguf *g, struct rd *r, const char *key,
                                     struct gguf_kv *kv)
{
    if (kv->n > rd_left(r) / 8) return cut_short(g, key);
    kv->strs = calloc((size_t)kv->n + 1, sizeof *kv->strs);
    if (!kv->strs) return err_set(ERR_NOMEM, "%s: no memory for %s", g->name, key);
    for (uint64_t i = 0; i < kv->n; i++) {
        enum status st = read_str(g, r, key, UINT32_MAX, &kv->strs[i]);
        if (st) return st;
    }
    return OK;
}

/* Arrays in arrays are walked to find their end and dropped: no architecture here uses one. */
static enum status skip_nested_arrays(struct gguf *g, struct rd *r, const char *key,
                                      struct gguf_kv *kv, int depth)
{
    if (kv->n > rd_left(r) / 12) return cut_short(g, key);
    for (uint64_t i = 0; i < kv->n; i++) {
        struct gguf_kv inner = {0};
        enum status st = read_array(g, r, key, &inner, depth + 1);
        free(inner.strs);
        if (st) return st;
    }
    kv->nested = true;
    return OK;
}

static enum status read_array(struct gguf *g, struct rd *r, const char *key, struct gguf_kv *kv,
                              int depth)
{
    uint32_t elem = rd_u32(r);
    kv->n = rd_u64(r);
    if (r->bad) return cut_short(g, key);
    if (depth > GGUF_MAX_NESTING)
        return err_set(ERR_LIMIT, "%s: %s nests arrays deeper than %d", g->name, key,
                       GGUF_MAX_NESTING);
    if (elem >= GGUF_TYPE_COUNT)
        return err_set(ERR_FORMAT, "%s: %s is an array of an unknown type (%u)", g->name, key,
                       elem);
    kv->elem = (enum gguf_type)elem;
    if (elem == GGUF_STR) return read_string_array(g, r, key, kv);
    if (elem == GGUF_ARRAY) return skip_nested_arrays(g, r, key, kv, depth);

    size_t size = gguf_scalar_size(elem);
    if (kv->n > rd_left(r) / size) return cut_short(g, key);
    kv->data = rd_bytes(r, (size_t)kv->n * size);
    return elem == GGUF_BOOL ? check_bools(g, key, kv->data, (size_t)kv->n) : OK;
}

static enum status read_value(struct gguf *g, struct rd *r, const char *key, struct gguf_kv *kv)
{
    uint32_t type = rd_u32(r);
    if (r->bad) return cut_short(g, key);
    if (type >= GGUF_TYPE_COUNT)
        return err_set(ERR_FORMAT, "%s: %s has an unknown type (%u)", g->name, key, type);
    kv->type = (enum gguf_type)type;
    kv->n = 1;
    if (type == GGUF_STR) return read_str(g, r, key, UINT32_MAX, &kv->str);
    if (type == GGUF_ARRAY) return read_array(g, r, key, kv, 1);
    kv->data = rd_bytes(r, gguf_scalar_size(type));
    if (!kv->data) return cut_short(g, key);
    return type == GGUF_BOOL ? check_bools(g, key, kv->data, 1) : OK;
}

static int cmp_kv(const void *a, const void *b)
{
    return gguf_str_cmp(((const struct gguf_kv *)a)->key, ((const struct gguf_kv *)b)->key);
}

static enum status check_name(const struct gguf *g, const char *what, struct gguf_str s)
{
    if (s.len == 0) return err_set(ERR_FORMAT, "%s: a %s is empty", g->name, what);
    if (memchr(s.p, '\0', s.len))
        return err_set(ERR_FORMAT, "%s: a %s holds a zero byte", g->name, what);
    return OK;
}

static enum status read_metadata(struct gguf *g, struct rd *r)
{
    char key[96];
    enum status st;

    for (size_t i = 0; i < g->n_kv; i++) {
        struct gguf_kv *kv = &g->kv[i];
        if ((st = read_str(g, r, "a metadata key", GGUF_MAX_KEY, &kv->key))) return st;
        if ((st = check_name(g, "metadata key", kv->key))) return st;
        if ((st = read_value(g, r, gguf_str_copy(kv->key, key, sizeof key), kv))) return st;
    }
    qsort(g->kv, g->n_kv, sizeof *g->kv, cmp_kv);
    for (size_t i = 1; i < g->n_kv; i++)
        if (cmp_kv(&g->kv[i - 1], &g->kv[i]) == 0)
            return err_set(ERR_FORMAT, "%s: the metadata key %s is there twice", g->name,
                           gguf_str_copy(g->kv[i].key, key, sizeof key));
    return OK;
}

static enum status read_alignment(struct gguf *g)
{
    uint32_t a;
    enum status st = gguf_get_u32_or(g, "general.alignment", ALIGN_DEFAULT, &a);
    if (st) return st;
    if (a < ALIGN_MIN || a > ALIGN_MAX || (a & (a - 1)))
        return err_set(ERR_FORMAT,
                       "%s: general.alignment is %u; a power of two from %d to %d belongs there",
                       g->name, a, ALIGN_MIN, ALIGN_MAX);
    g->alignment = a;
    return OK;
}

static enum status read_dims(const struct gguf *g, struct rd *r, struct gguf_tensor *t)
{
    t->n_dims = rd_u32(r);
    if (r->bad) return cut_short(g, "the tensor table");
    if (t->n_dims < 1 || t->n_dims > GGUF_MAX_DIMS)
        return err_set(ERR_FORMAT, "%s: tensor %s has %u dimensions; 1 to %d are possible", g->name,
                       t->name, t->n_dims, GGUF_MAX_DIMS);
    uint64_t count = 1;
    for (uint32_t d = 0; d < GGUF_MAX_DIMS; d++) {
        t->ne[d] = d < t->n_dims ? rd_u64(r) : 1;
        if (r->bad) return cut_short(g, "the tensor table");
        if (t->ne[d] == 0 || __builtin_mul_overflow(count, t->ne[d], &count) || count > INT64_MAX)
            return err_set(ERR_FORMAT, "%s: tensor %s has a dimension of zero or too many values",
                           g->name, t->name);
    }
    return OK;
}

/* Type, size and place of the data, all but the end of the file, which is known later. */
static enum status read_extent(const struct gguf *g, struct rd *r, struct gguf_tensor *t,
                               uint64_t *offset)
{
    uint32_t type = rd_u32(r);
    *offset = rd_u64(r);
    if (r->bad) return cut_short(g, "the tensor table");
    if (!quant_known(type))
        return err_set(
            ERR_FORMAT,
            "%s: tensor %s is of type %u (%s), which isn't read here; use a file of F32, F16, "
            "Q4_1, Q5_0, Q8_0, Q4_K and Q6_K tensors, such as a Q4_K_M",
            g->name, t->name, type, quant_name(type));
    t->type = (enum quant_type)type;
    size_t row = quant_row_bytes(t->type, t->ne[0]);
    if (!row)
        return err_set(ERR_FORMAT, "%s: tensor %s has rows of %llu values, no multiple of %s's %zu",
                       g->name, t->name, (unsigned long long)t->ne[0], quant_name(type),
                       quant_block_len(t->type));
    if (__builtin_mul_overflow(row, t->ne[1] * t->ne[2] * t->ne[3], &t->bytes))
        return err_set(ERR_FORMAT, "%s: tensor %s is too large", g->name, t->name);
    if (*offset % g->alignment)
        return err_set(ERR_FORMAT, "%s: tensor %s begins at offset %llu, no multiple of %u",
                       g->name, t->name, (unsigned long long)*offset, g->alignment);
    return OK;
}

static enum status read_tensor(struct gguf *g, struct rd *r, struct gguf_tensor *t,
                               uint64_t *offset)
{
    struct gguf_str name;
    enum status st = read_str(g, r, "a tensor name", GGUF_MAX_TENSOR_NAME, &name);
    if (st || (st = check_name(g, "tensor name", name))) return st;
    char *copy = malloc(name.len + 1);
    if (!copy) return err_set(ERR_NOMEM, "%s: no memory for its tensor names", g->name);
    t->name = gguf_str_copy(name, copy, name.len + 1);
    if ((st = read_dims(g, r, t))) return st;
    return read_extent(g, r, t, offset);
}

struct extent {
    uint64_t offset;
    struct gguf_tensor *t;
};

static int cmp_extent(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Every tensor inside the file, none on top of another. */
static enum status place_tensors(struct gguf *g, struct extent *ext)
{
    size_t avail = g->data_start <= g->len ? g->len - g->data_start : 0;
    uint64_t end = 0;

    qsort(ext, g->n_tensors, sizeof *ext, cmp_extent);
    for (size_t i = 0; i < g->n_tensors; i++) {
        struct gguf_tensor *t = ext[i].t;
        if (ext[i].offset > avail || t->bytes > avail - ext[i].offset)
            return err_set(
                ERR_FORMAT,
                "%s: the data of tensor %s lie beyond the end of the file; it is damaged or was "
                "not downloaded to its end: fetch it again",
                g->name, t->name);
        if (ext[i].offset < end)
            return err_set(ERR_FORMAT, "%s: the data of tensors %s and %s overlap", g->name,
                           ext[i - 1].t->name, t->name);
        end = ext[i].offset + t->bytes;
        t->data = g->base + g->data_start + ext[i].offset;
    }
    return OK;
}

static int cmp_tensor_name(const void *a, const void *b)
{
    return strcmp((*(const struct gguf_tensor *const *)a)->name,
                  (*(const struct gguf_tensor *const *)b)->name);
}

static enum status index_names(struct gguf *g)
{
    for (size_t i = 0; i < g->n_tensors; i++) g->by_name[i] = &g->tensors[i];
    qsort(g->by_name, g->n_tensors, sizeof *g->by_name, cmp_tensor_name);
    for (size_t i = 1; i < g->n_tensors; i++)
        if (strcmp(g->by_name[i - 1]->name, g->by_name[i]->name) == 0)
            return err_set(ERR_FORMAT, "%s: tensor %s is there twice", g->name,
                           g->by_name[i]->name);
    return OK;
}

static enum status read_tensors(struct gguf *g, struct rd *r)
{
    enum status st = OK;
    struct extent *ext = calloc(g->n_tensors + 1, sizeof *ext);
    if (!ext) return err_set(ERR_NOMEM, "%s: no memory for its tensor table", g->name);

    for (size_t i = 0; i < g->n_tensors && !st; i++) {
        ext[i].t = &g->tensors[i];
        st = read_tensor(g, r, &g->tensors[i], &ext[i].offset);
    }
    if (st) goto out;
    if ((st = index_names(g))) goto out;
    size_t header = (size_t)(r->p - g->base);
    g->data_start = (header + g->alignment - 1) & ~(size_t)(g->alignment - 1);
    g->header_hash = XXH64(g->base, header, 0);
    st = place_tensors(g, ext);
out:
    free(ext);
    return st;
}

static enum status read_magic(const struct gguf *g, struct rd *r)
{
    const uint8_t *magic = rd_bytes(r, 4);
    uint32_t version = rd_u32(r);
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return err_set(ERR_FORMAT, "%s: not a GGUF file (it doesn't begin with \"GGUF\")", g->name);
    if (r->bad) return cut_short(g, "its header");
    if (version == 0x03000000u)
        return err_set(ERR_FORMAT, "%s: a big-endian GGUF file; only little-endian ones are read",
                       g->name);
    if (version != 3)
        return err_set(ERR_FORMAT,
                       "%s: GGUF version %u; only version 3 is read: convert it again with "
                       "a current tool",
                       g->name, version);
    return OK;
}

static enum status read_counts(struct gguf *g, struct rd *r)
{
    uint64_t tensors = rd_u64(r), kv = rd_u64(r);
    if (r->bad) return cut_short(g, "its header");
    if (tensors > GGUF_MAX_TENSORS || kv > GGUF_MAX_KV)
        return err_set(ERR_LIMIT,
                       "%s: %llu tensors and %llu metadata keys; at most %d and %d are read",
                       g->name, (unsigned long long)tensors, (unsigned long long)kv,
                       GGUF_MAX_TENSORS, GGUF_MAX_KV);
    if (kv > rd_left(r) / 13 || tensors > rd_left(r) / TENSOR_INFO_MIN)
        return cut_short(g, "its tables");
    g->kv = calloc((size_t)kv + 1, sizeof *g->kv);
    g->tensors = calloc((size_t)tensors + 1, sizeof *g->tensors);
    g->by_name = calloc((size_t)tensors + 1, sizeof *g->by_name);
    if (!g->kv || !g->tensors || !g->by_name)
        return err_set(ERR_NOMEM, "%s: no memory for its tables", g->name);
    g->n_kv = (size_t)kv;
    g->n_tensors = (size_t)tensors;
    return OK;
}

enum status gguf_parse(struct gguf *g)
{
    struct rd r = rd_make(g->base, g->len);
    enum status st;

    if ((st = read_magic(g, &r))) return st;
    if ((st = read_counts(g, &r))) return st;
    if ((st = read_metadata(g, &r))) return st;
    if ((st = read_alignment(g))) return st;
    return read_tensors(g, &r);
}
