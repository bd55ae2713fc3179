/*
 * Encoding and decoding of frames, driven by one table of fields a type that proto.def expands to.
 *
 * Invariants: a whole frame has a known length, a type and version that are not 0, and a right CRC;
 * everything after that is checked field by field. To add a frame or field: proto.def alone.
 */
#include "session/proto.h"

#include <string.h>

#include "session/crc.h"

/* The highest numbers that are taken for a frame's: what is above is noise, which lets a reader
 * find its way back after damage. */
enum { TYPE_MAX = 1023, VERSION_MAX = 255 };

/* One function a type, since only inside it can a field's row name the struct it belongs to. */
#define FRAME(UP, low, num, ver, cls, doc)                                                         \
    static const struct proto_field *fields_##low(unsigned *n)                                     \
    {                                                                                              \
        typedef struct msg_##low msg;                                                              \
        static const struct proto_field f[] = {
#define ROW(kind, n, size, d) {kind, size, offsetof(msg, n), #n, d},
#define U8(n, d)              ROW(FIELD_U8, n, 1, d)
#define U16(n, d)             ROW(FIELD_U16, n, 2, d)
#define U32(n, d)             ROW(FIELD_U32, n, 4, d)
#define U64(n, d)             ROW(FIELD_U64, n, 8, d)
#define I32(n, d)             ROW(FIELD_I32, n, 4, d)
#define I64(n, d)             ROW(FIELD_I64, n, 8, d)
#define F64(n, d)             ROW(FIELD_F64, n, 8, d)
#define STR(n, size, d)       ROW(FIELD_STR, n, size, d)
#define BLOB(n, d)            ROW(FIELD_BLOB, n, 0, d)
#define END(UP)                                                                                    \
    }                                                                                              \
    ;                                                                                              \
    *n = sizeof f / sizeof *f;                                                                     \
    return f;                                                                                      \
    }
#include "session/proto.def"
#undef ROW

struct type_row {
    const char *name, *meaning;
    uint16_t version;
    bool droppable;
    size_t size;
    const struct proto_field *(*fields)(unsigned *n);
};

enum { CLASS_CONTROL = 0, CLASS_SAMPLE = 1 };

static const struct type_row types[FRAME_TYPE_END] = {
#define FRAME(UP, low, num, ver, cls, doc)                                                         \
    [num] = {#UP, doc, ver, CLASS_##cls == CLASS_SAMPLE, sizeof(struct msg_##low), fields_##low},
#include "session/proto.def"
};

static const struct type_row *type_row(unsigned type)
{
    return type < FRAME_TYPE_END && types[type].name ? &types[type] : NULL;
}

const char *proto_name(unsigned type)
{
    const struct type_row *t = type_row(type);
    return t ? t->name : "?";
}

const char *proto_meaning(unsigned type)
{
    const struct type_row *t = type_row(type);
    return t ? t->meaning : "";
}

size_t proto_size(unsigned type)
{
    const struct type_row *t = type_row(type);
    return t ? t->size : 0;
}

bool proto_droppable(unsigned type)
{
    const struct type_row *t = type_row(type);
    return t && t->droppable;
}

unsigned proto_version(unsigned type)
{
    const struct type_row *t = type_row(type);
    return t ? t->version : 0;
}

const struct proto_field *proto_fields(unsigned type, unsigned *n)
{
    const struct type_row *t = type_row(type);
    *n = 0;
    return t ? t->fields(n) : NULL;
}

/* ---- writing ---- */

static void put_field(struct buf *out, const struct proto_field *f, const uint8_t *msg)
{
    const void *p = msg + f->offset;
    struct blob blob;
    double d;
    uint64_t u = 0;

    switch (f->kind) {
    case FIELD_U8:
        buf_u8(out, *(const uint8_t *)p);
        break;
    case FIELD_U16:
        buf_u16(out, *(const uint16_t *)p);
        break;
    case FIELD_U32:
    case FIELD_I32:
        buf_u32(out, *(const uint32_t *)p);
        break;
    case FIELD_U64:
    case FIELD_I64:
        memcpy(&u, p, 8);
        buf_u64(out, u);
        break;
    case FIELD_F64:
        memcpy(&d, p, 8);
        buf_f64(out, d);
        break;
    case FIELD_STR:
        u = strnlen(p, f->size - 1u);
        buf_u16(out, (uint16_t)u);
        buf_put(out, p, u);
        break;
    case FIELD_BLOB:
        memcpy(&blob, p, sizeof blob);
        buf_u32(out, blob.data ? blob.len : 0);
        if (blob.data) buf_put(out, blob.data, blob.len);
        break;
    }
}

static void put_head(struct buf *out, uint32_t len, uint16_t type, uint16_t version, uint64_t t_ns)
{
    buf_u32(out, len);
    buf_u16(out, type);
    buf_u16(out, version);
    buf_u64(out, t_ns);
}

static enum status take_back(struct buf *out, size_t at, enum status st)
{
    out->len = at;
    out->failed = false;
    return st;
}

enum status proto_encode(struct buf *out, enum frame_type type, uint64_t t_ns, const void *msg)
{
    const struct type_row *t = type_row(type);
    size_t at = out->len;
    unsigned n = 0;

    if (!t) return err_set(ERR_USAGE, "no frame has the type number %u", (unsigned)type);
    const struct proto_field *f = t->fields(&n);
    put_head(out, 0, (uint16_t)type, t->version, t_ns);
    for (unsigned i = 0; i < n; i++) put_field(out, &f[i], msg);
    if (out->failed)
        return take_back(out, at, err_set(ERR_NOMEM, "out of memory for a %s frame", t->name));
    size_t len = out->len - at - FRAME_HEAD;
    if (len > FRAME_MAX)
        return take_back(out, at,
                         err_set(ERR_LIMIT, "a %s frame of %zu bytes is over the limit of %d",
                                 t->name, len, FRAME_MAX));
    for (int i = 0; i < 4; i++) out->data[at + (size_t)i] = (uint8_t)(len >> (8 * i));
    buf_u32(out, crc32_of(out->data + at, FRAME_HEAD + len));
    if (out->failed)
        return take_back(out, at, err_set(ERR_NOMEM, "out of memory for a %s frame", t->name));
    return OK;
}

enum status proto_copy(struct buf *out, const struct frame *f)
{
    size_t at = out->len;

    if (f->len > FRAME_MAX)
        return err_set(ERR_LIMIT, "a frame of %u bytes is over the limit of %d", f->len, FRAME_MAX);
    put_head(out, f->len, f->type, f->version, f->t_ns);
    buf_put(out, f->payload, f->len);
    if (!out->failed) buf_u32(out, crc32_of(out->data + at, FRAME_HEAD + (size_t)f->len));
    if (out->failed) return take_back(out, at, err_set(ERR_NOMEM, "out of memory for a frame"));
    return OK;
}

/* ---- reading ---- */

enum status proto_next(const uint8_t *p, size_t n, struct frame *f, size_t *used)
{
    struct rd r = rd_make(p, n);

    *used = 0;
    if (n < FRAME_HEAD) return ERR_AGAIN;
    uint32_t len = rd_u32(&r);
    f->type = rd_u16(&r);
    f->version = rd_u16(&r);
    f->t_ns = rd_u64(&r);
    f->len = len;
    f->payload = p + FRAME_HEAD;
    if (len > FRAME_MAX || f->type == 0 || f->type > TYPE_MAX || f->version == 0 ||
        f->version > VERSION_MAX) {
        *used = 1;
        return err_set(ERR_FORMAT, "bytes that are no frame (length %u, type %u)", len, f->type);
    }
    size_t whole = FRAME_HEAD + (size_t)len + FRAME_TAIL;
    if (n < whole) return ERR_AGAIN;
    struct rd tail = rd_make(p + FRAME_HEAD + len, FRAME_TAIL);
    if (rd_u32(&tail) != crc32_of(p, FRAME_HEAD + (size_t)len)) {
        *used = 1;
        return err_set(ERR_FORMAT, "a %s frame whose checksum is wrong", proto_name(f->type));
    }
    *used = whole;
    return OK;
}

static void get_field(struct rd *r, const struct proto_field *f, uint8_t *msg)
{
    void *p = msg + f->offset;
    struct blob blob;
    uint64_t u;
    uint32_t w;
    double d;

    switch (f->kind) {
    case FIELD_U8:
        *(uint8_t *)p = rd_u8(r);
        break;
    case FIELD_U16:
        *(uint16_t *)p = rd_u16(r);
        break;
    case FIELD_U32:
    case FIELD_I32:
        w = rd_u32(r);
        memcpy(p, &w, 4);
        break;
    case FIELD_U64:
    case FIELD_I64:
        u = rd_u64(r);
        memcpy(p, &u, 8);
        break;
    case FIELD_F64:
        d = rd_f64(r);
        memcpy(p, &d, 8);
        break;
    case FIELD_STR:
        rd_str16(r, p, f->size);
        break;
    case FIELD_BLOB:
        blob.len = rd_u32(r);
        blob.data = rd_bytes(r, blob.len);
        if (!blob.data) blob.len = 0;
        memcpy(p, &blob, sizeof blob);
        break;
    }
}

enum status proto_decode(const struct frame *f, void *msg, size_t size)
{
    const struct type_row *t = type_row(f->type);
    unsigned n = 0;

    if (!t) return err_set(ERR_UNAVAILABLE, "frame type %u is newer than this program", f->type);
    if (size < t->size) return err_set(ERR_USAGE, "room of %zu bytes for a %s", size, t->name);
    memset(msg, 0, size);
    const struct proto_field *fields = t->fields(&n);
    struct rd r = rd_make(f->payload, f->len);
    for (unsigned i = 0; i < n; i++) {
        if (f->version < t->version && rd_left(&r) == 0) return OK; /* an older, shorter one */
        get_field(&r, &fields[i], msg);
        if (r.bad) {
            memset(msg, 0, size);
            return err_set(ERR_FORMAT, "a %s frame ends inside its field %s", t->name,
                           fields[i].name);
        }
    }
    return OK;
}

/* ---- printing ---- */

static void print_text(const char *s, struct buf *out)
{
    buf_u8(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            buf_printf(out, "\\%c", *s);
        else if (*s == '\n')
            buf_printf(out, "\\n");
        else
            buf_u8(out, (uint8_t)*s);
    }
    buf_u8(out, '"');
}

static void print_field(const struct proto_field *f, const uint8_t *msg, struct buf *out)
{
    const uint8_t *p = msg + f->offset;
    uint64_t u = 0;
    int64_t i64;
    int32_t i32;
    double d;
    struct blob blob;

    buf_printf(out, " %s=", f->name);
    switch (f->kind) {
    case FIELD_U8:
    case FIELD_U16:
    case FIELD_U32:
    case FIELD_U64:
        memcpy(&u, p, f->size); /* little endian machines only, as everywhere here */
        buf_printf(out, "%llu", (unsigned long long)u);
        break;
    case FIELD_I32:
        memcpy(&i32, p, 4);
        buf_printf(out, "%d", i32);
        break;
    case FIELD_I64:
        memcpy(&i64, p, 8);
        buf_printf(out, "%lld", (long long)i64);
        break;
    case FIELD_F64:
        memcpy(&d, p, 8);
        buf_printf(out, "%.6g", d);
        break;
    case FIELD_STR:
        print_text((const char *)p, out);
        break;
    case FIELD_BLOB:
        memcpy(&blob, p, sizeof blob);
        buf_printf(out, "<%u bytes>", blob.len);
        break;
    }
}

void proto_print(const struct frame *f, struct buf *out)
{
    union msg_any msg;
    unsigned n = 0;
    const struct proto_field *fields = proto_fields(f->type, &n);

    buf_printf(out, "%s t=%llu.%09llu", proto_name(f->type),
               (unsigned long long)(f->t_ns / 1000000000),
               (unsigned long long)(f->t_ns % 1000000000));
    if (!fields)
        buf_printf(out, " type=%u version=%u <%u bytes>", f->type, f->version, f->len);
    else if (proto_decode(f, &msg, sizeof msg) != OK)
        buf_printf(out, " garbled: %s", err_msg());
    else
        for (unsigned i = 0; i < n; i++) print_field(&fields[i], (const uint8_t *)&msg, out);
    buf_u8(out, '\n');
}
