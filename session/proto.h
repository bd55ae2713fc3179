/*
 * Frames: the one unit that engine, socket, session file, screen and tests exchange.
 *
 * On the wire, little endian: u32 len (of the payload), u16 type, u16 version, u64 t_ns since the
 * first HELLO, payload, u32 CRC-32 (zlib's polynomial) of all bytes before it. len <= FRAME_MAX.
 * Payload fields follow proto.def in order; strings are u16 length + bytes; blobs u32 length +
 * bytes.
 *
 * Memory: encoders append to the caller's buf. Decoded messages copy strings; BLOB pointers point
 * into the frame's bytes and live as long as they do. Pure functions, safe from any thread.
 */
#ifndef SESSION_PROTO_H
#define SESSION_PROTO_H

#include "base/buf.h"
#include "base/status.h"

enum {
    FRAME_HEAD = 16,
    FRAME_TAIL = 4,
    FRAME_MAX = 1 << 20, /* payload bytes */
};

enum frame_type {
#define FRAME(UP, low, num, ver, cls, doc) FRAME_##UP = num,
#include "session/proto.def"
    FRAME_TYPE_END /* one past the highest */
};

struct blob {
    const uint8_t *data;
    uint32_t len;
};

/* struct msg_hello, struct msg_round, ... */
#define FRAME(UP, low, num, ver, cls, doc) struct msg_##low {
#define U8(n, d)                           uint8_t n;
#define U16(n, d)                          uint16_t n;
#define U32(n, d)                          uint32_t n;
#define U64(n, d)                          uint64_t n;
#define I32(n, d)                          int32_t n;
#define I64(n, d)                          int64_t n;
#define F64(n, d)                          double n;
#define STR(n, size, d)                    char n[size];
#define BLOB(n, d)                         struct blob n;
#define END(UP)                                                                                    \
    }                                                                                              \
    ;
#include "session/proto.def"

/* Room for any of them: what a reader decodes into before it knows the type. */
union msg_any {
#define FRAME(UP, low, num, ver, cls, doc) struct msg_##low low;
#include "session/proto.def"
};

/* One frame as it lies in memory: `payload` points into bytes that someone else owns. */
struct frame {
    uint16_t type, version;
    uint64_t t_ns;
    const uint8_t *payload;
    uint32_t len;
};

/* Appends a whole frame (header, payload, CRC) built from `msg`, which must be the struct msg_* of
 * `type`. ERR_LIMIT when the payload passes FRAME_MAX, ERR_NOMEM when the buffer failed; `out` is
 * left as it was in both cases. */
enum status proto_encode(struct buf *out, enum frame_type type, uint64_t t_ns, const void *msg);

/* Appends a frame as it is, with the header's values of `f` (its t_ns may have been changed) and a
 * new CRC. Errors and `out` as for proto_encode(). */
enum status proto_copy(struct buf *out, const struct frame *f);

/* Takes the first whole frame of [p, p+n): *used is its length in bytes, or 0 with ERR_AGAIN when
 * more bytes are needed. ERR_FORMAT when the bytes are no frame (length over the limit, wrong
 * CRC); *used is then the number of bytes to skip to look for the next frame, at least 1.
 * Unknown types are whole frames and give OK. */
enum status proto_next(const uint8_t *p, size_t n, struct frame *f, size_t *used);

/* Decodes the payload into the struct msg_* of f->type. ERR_FORMAT when a field runs past the
 * end of a payload of known version; a newer version's tail is left unread, an older one's
 * missing tail reads as zero. ERR_UNAVAILABLE for a type that this build doesn't know. */
enum status proto_decode(const struct frame *f, void *msg, size_t size);

const char *proto_name(unsigned type); /* "HELLO"; "?" when unknown */
size_t proto_size(unsigned type);      /* sizeof its struct msg_*; 0 when unknown */
bool proto_droppable(unsigned type);   /* class SAMPLE */
unsigned proto_version(unsigned type);

const char *proto_meaning(unsigned type); /* one sentence, for the documentation */

/* The fields of a type in order, for printing and documentation; NULL when unknown. */
enum field_kind {
    FIELD_U8,
    FIELD_U16,
    FIELD_U32,
    FIELD_U64,
    FIELD_I32,
    FIELD_I64,
    FIELD_F64,
    FIELD_STR,
    FIELD_BLOB
};
struct proto_field {
    enum field_kind kind;
    uint16_t size; /* bytes; of a string its array with the NUL; 0 for a blob */
    size_t offset; /* in the struct msg_* */
    const char *name, *doc;
};
const struct proto_field *proto_fields(unsigned type, unsigned *n);

/* Prints one line "NAME t=... field=value ..." for debugging and for `replay --dump`. */
void proto_print(const struct frame *f, struct buf *out);

/* Appends docs/FRAMES.md: every frame and field, in Markdown. */
void proto_docs(struct buf *out);

#endif
