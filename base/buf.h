/*
 * Growable byte buffer and bounds-checked reader, little endian.
 *
 * buf: owned by the caller, zero-initialised is empty, buf_free() releases. When memory runs out
 * `failed` is set and later puts do nothing: check once at the end.
 * rd: a view of bytes owned by someone else. A read past the end sets `bad`, gives 0, and every
 * later read gives 0 too: check once at the end. Neither is safe to share between threads.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data;
    size_t len, cap;
    bool failed;
};

void buf_free(struct buf *b);
void buf_reset(struct buf *b); /* keeps the memory */
bool buf_reserve(struct buf *b, size_t more);
void buf_put(struct buf *b, const void *p, size_t n);
void buf_u8(struct buf *b, uint8_t v);
void buf_u16(struct buf *b, uint16_t v);
void buf_u32(struct buf *b, uint32_t v);
void buf_u64(struct buf *b, uint64_t v);
void buf_f64(struct buf *b, double v);
void buf_varint(struct buf *b, uint64_t v);  /* LEB128 */
void buf_str8(struct buf *b, const char *s); /* u8 length, bytes; cut at 255 */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct rd {
    const uint8_t *p, *end;
    bool bad;
};

struct rd rd_make(const void *p, size_t n);
size_t rd_left(const struct rd *r);
const uint8_t *rd_bytes(struct rd *r, size_t n); /* NULL when bad */
uint8_t rd_u8(struct rd *r);
uint16_t rd_u16(struct rd *r);
uint32_t rd_u32(struct rd *r);
uint64_t rd_u64(struct rd *r);
double rd_f64(struct rd *r);
uint64_t rd_varint(struct rd *r);
/* Copies a string into out[size], always terminated, cut to fit; control bytes become '?'
 * except tab and newline, so that hostile input can't drive a terminal. */
void rd_str8(struct rd *r, char *out, size_t size);
void rd_str16(struct rd *r, char *out, size_t size);

#endif
