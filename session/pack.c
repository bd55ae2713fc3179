/*
 * Packed blobs of proto.def. Readers answer false at the end and at garbled items alike: a caller
 * that must tell them apart looks at rd.bad. To add a layout: one pair here, its words in
 * proto.def.
 */
#include "session/pack.h"

#include <math.h>
#include <string.h>

enum { PM_MISSING = 0xffff, PM_SCALE = 100 };

void pack_census_item(struct buf *b, const char *opcode, const char *cls, uint32_t count,
                      uint32_t in_loop)
{
    buf_str8(b, opcode);
    buf_str8(b, cls);
    buf_u32(b, count);
    buf_u32(b, in_loop);
}

bool unpack_census_item(struct rd *r, struct census_item *it)
{
    if (rd_left(r) == 0) return false;
    rd_str8(r, it->opcode, sizeof it->opcode);
    rd_str8(r, it->cls, sizeof it->cls);
    it->count = rd_u32(r);
    it->in_loop = rd_u32(r);
    it->hot = 0;
    return !r->bad;
}

unsigned hist_bin(uint64_t ns)
{
    /* 2^(1/4), 2^(1/2), 2^(3/4): compared against the mantissa in [1, 2). */
    static const double step[3] = {1.189207115002721, 1.4142135623730951, 1.681792830507429};

    if (ns == 0) return 0;
    int e = 63 - __builtin_clzll(ns);
    double mantissa = ldexp((double)ns, -e);
    unsigned bin = 4u * (unsigned)e;
    for (int i = 0; i < 3 && mantissa >= step[i]; i++) bin++;
    return bin > 255 ? 255 : bin;
}

void pack_hist(struct buf *b, const uint32_t counts[256])
{
    for (unsigned i = 0; i < 256; i++)
        if (counts[i]) {
            buf_u8(b, (uint8_t)i);
            buf_u32(b, counts[i]);
        }
}

bool unpack_hist(struct rd *r, uint8_t *bin, uint32_t *count)
{
    if (rd_left(r) == 0) return false;
    *bin = rd_u8(r);
    *count = rd_u32(r);
    return !r->bad;
}

void pack_metric(struct buf *b, uint16_t metric)
{
    buf_u16(b, metric);
}

bool unpack_metric(struct rd *r, uint16_t *metric)
{
    if (rd_left(r) == 0) return false;
    *metric = rd_u16(r);
    return !r->bad;
}

/* A start before the previous one has no delta; it is written as the previous start, so that the
 * stream stays readable. Writers send items in order of start. */
static void pack_time(struct buf *b, uint64_t *prev, uint64_t start, uint64_t dur)
{
    uint64_t at = start < *prev ? *prev : start;
    buf_varint(b, at - *prev);
    buf_varint(b, dur);
    *prev = at;
}

/* Times that would wrap are garbled. */
static void unpack_time(struct rd *r, uint64_t *prev, uint64_t *start, uint64_t *dur)
{
    uint64_t delta = rd_varint(r);
    *dur = rd_varint(r);
    if (delta > INT64_MAX - *prev || *dur > INT64_MAX - *prev - delta) r->bad = true;
    if (r->bad) return;
    *start = *prev += delta;
}

void pack_span(struct buf *b, uint64_t *prev, const struct span_item *s)
{
    buf_varint(b, s->row);
    pack_time(b, prev, s->start, s->dur);
}

bool unpack_span(struct rd *r, uint64_t *prev, struct span_item *s)
{
    if (rd_left(r) == 0) return false;
    uint64_t row = rd_varint(r);
    s->row = row > UINT32_MAX ? UINT32_MAX : (uint32_t)row;
    unpack_time(r, prev, &s->start, &s->dur);
    return !r->bad;
}

static uint16_t hundredths(double v)
{
    if (!isfinite(v)) return PM_MISSING;
    double scaled = v * PM_SCALE;
    if (scaled <= 0) return 0;
    return scaled >= PM_MISSING - 1 ? PM_MISSING - 1 : (uint16_t)lround(scaled);
}

void pack_pm(struct buf *b, uint64_t *prev, const struct pm_item *s, unsigned metrics)
{
    pack_time(b, prev, s->start, s->dur);
    for (unsigned i = 0; i < metrics; i++)
        buf_u16(b, i < PM_METRICS_MAX ? hundredths(s->v[i]) : PM_MISSING);
}

bool unpack_pm(struct rd *r, uint64_t *prev, struct pm_item *s, unsigned metrics)
{
    if (rd_left(r) == 0) return false;
    unpack_time(r, prev, &s->start, &s->dur);
    for (unsigned i = 0; i < metrics && !r->bad; i++) {
        uint16_t v = rd_u16(r);
        if (i < PM_METRICS_MAX) s->v[i] = v == PM_MISSING ? NAN : (double)v / PM_SCALE;
    }
    return !r->bad;
}

void pack_stall(struct buf *b, const char *reason, uint64_t samples, uint64_t not_issued)
{
    buf_str8(b, reason);
    buf_varint(b, samples);
    buf_varint(b, not_issued);
}

bool unpack_stall(struct rd *r, struct stall_item *s)
{
    if (rd_left(r) == 0) return false;
    rd_str8(r, s->reason, sizeof s->reason);
    s->samples = rd_varint(r);
    s->not_issued = rd_varint(r);
    return !r->bad;
}

void pack_heat(struct buf *b, const struct heat_item *h)
{
    buf_varint(b, h->index);
    buf_varint(b, h->samples);
    buf_varint(b, h->not_issued);
    buf_str8(b, h->reason);
    buf_varint(b, h->top);
}

bool unpack_heat(struct rd *r, struct heat_item *h)
{
    if (rd_left(r) == 0) return false;
    uint64_t index = rd_varint(r);
    if (index >= HEAT_INSNS_MAX) r->bad = true;
    h->index = r->bad ? 0 : (uint32_t)index;
    h->samples = rd_varint(r);
    h->not_issued = rd_varint(r);
    rd_str8(r, h->reason, sizeof h->reason);
    h->top = rd_varint(r);
    return !r->bad;
}

void pack_exec(struct buf *b, const struct exec_item *x)
{
    buf_varint(b, x->index);
    buf_varint(b, x->key);
    buf_varint(b, x->flags);
    buf_varint(b, x->inst);
    buf_varint(b, x->threads);
    buf_varint(b, x->pred_on);
}

bool unpack_exec(struct rd *r, struct exec_item *x)
{
    if (rd_left(r) == 0) return false;
    uint64_t index = rd_varint(r), key = rd_varint(r), flags = rd_varint(r);
    if (index >= EXEC_INSNS_MAX || key >= EXEC_INSNS_MAX || flags > UINT32_MAX) r->bad = true;
    x->index = r->bad ? 0 : (uint32_t)index;
    x->key = r->bad ? 0 : (uint32_t)key;
    x->flags = r->bad ? 0 : (uint32_t)flags;
    x->inst = rd_varint(r);
    x->threads = rd_varint(r);
    x->pred_on = rd_varint(r);
    return !r->bad;
}

void pack_exec_key(struct buf *b, const char *opcode, const char *cls)
{
    buf_str8(b, opcode);
    buf_str8(b, cls);
}

bool unpack_exec_key(struct rd *r, struct exec_key *k)
{
    if (rd_left(r) == 0) return false;
    rd_str8(r, k->opcode, sizeof k->opcode);
    rd_str8(r, k->cls, sizeof k->cls);
    return !r->bad;
}
