/* Buffers and readers; see buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
}

bool buf_reserve(struct buf *b, size_t more)
{
    if (b->failed) return false;
    if (b->cap - b->len >= more) return true;
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->len < more) {
        if (cap > SIZE_MAX / 2) goto fail;
        cap *= 2;
    }
    uint8_t *p = realloc(b->data, cap);
    if (!p) goto fail;
    b->data = p;
    b->cap = cap;
    return true;
fail:
    b->failed = true;
    return false;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
    if (n == 0 || !buf_reserve(b, n)) return;
    memcpy(b->data + b->len, p, n);
    b->len += n;
}

static void put_le(struct buf *b, uint64_t v, int bytes)
{
    uint8_t tmp[8];
    for (int i = 0; i < bytes; i++) tmp[i] = (uint8_t)(v >> (8 * i));
    buf_put(b, tmp, (size_t)bytes);
}

void buf_u8(struct buf *b, uint8_t v)
{
    put_le(b, v, 1);
}

void buf_u16(struct buf *b, uint16_t v)
{
    put_le(b, v, 2);
}

void buf_u32(struct buf *b, uint32_t v)
{
    put_le(b, v, 4);
}

void buf_u64(struct buf *b, uint64_t v)
{
    put_le(b, v, 8);
}

void buf_f64(struct buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, 8);
    put_le(b, bits, 8);
}

void buf_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) buf_u8(b, (uint8_t)(v | 0x80));
    buf_u8(b, (uint8_t)v);
}

void buf_str8(struct buf *b, const char *s)
{
    size_t n = strlen(s);
    if (n > 255) n = 255;
    buf_u8(b, (uint8_t)n);
    buf_put(b, s, n);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && buf_reserve(b, (size_t)n + 1)) {
        vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

struct rd rd_make(const void *p, size_t n)
{
    return (struct rd){.p = p, .end = p ? (const uint8_t *)p + n : NULL};
}

size_t rd_left(const struct rd *r)
{
    return r->bad ? 0 : (size_t)(r->end - r->p);
}

const uint8_t *rd_bytes(struct rd *r, size_t n)
{
    if (r->bad || rd_left(r) < n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    if (n) r->p += n;
    return p;
}

static uint64_t get_le(struct rd *r, int bytes)
{
    const uint8_t *p = rd_bytes(r, (size_t)bytes);
    uint64_t v = 0;
    if (p)
        for (int i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t rd_u8(struct rd *r)
{
    return (uint8_t)get_le(r, 1);
}

uint16_t rd_u16(struct rd *r)
{
    return (uint16_t)get_le(r, 2);
}

uint32_t rd_u32(struct rd *r)
{
    return (uint32_t)get_le(r, 4);
}

uint64_t rd_u64(struct rd *r)
{
    return get_le(r, 8);
}

double rd_f64(struct rd *r)
{
    uint64_t bits = get_le(r, 8);
    double v;
    memcpy(&v, &bits, 8);
    return v;
}

uint64_t rd_varint(struct rd *r)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t byte = rd_u8(r);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return r->bad ? 0 : v;
    }
    r->bad = true;
    return 0;
}

static void copy_text(struct rd *r, size_t n, char *out, size_t size)
{
    const uint8_t *p = rd_bytes(r, n);
    size_t keep = p ? n : 0;
    if (size == 0) return;
    if (keep > size - 1) keep = size - 1;
    for (size_t i = 0; i < keep; i++) {
        uint8_t c = p[i];
        out[i] = (c < 32 && c != '\t' && c != '\n') || c == 127 ? '?' : (char)c;
    }
    out[keep] = '\0';
}

void rd_str8(struct rd *r, char *out, size_t size)
{
    copy_text(r, rd_u8(r), out, size);
}

void rd_str16(struct rd *r, char *out, size_t size)
{
    copy_text(r, rd_u16(r), out, size);
}
