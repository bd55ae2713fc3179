/*
 * Job: walk fatbins and note their entries, from headers alone.
 *
 * A fatbin is {u32 magic, u16 version 1, u16 header size, u64 size of entries}; an entry is {u16
 * kind, u16, u32 header size, u64 payload size, u32 packed size, u32 offset of an extension, u16
 * minor, u16 major, u32 SM, u32 name offset, u32 name length, u64 flags, u64, u64 unpacked size}.
 * Invariants: every step moves on; no offset leaves the range that was handed in; what came before
 * a broken entry is kept. To add a flag: the enum, note_entry().
 */
#include "base/buf.h"
#include "sass_view/container_priv.h"
#include <inttypes.h>
#include <stdio.h>

enum {
    FATBIN_MAGIC = 0xba55ed50,
    FATBIN_MAGIC_OLD = 0x1ee55a01,
    FATBIN_HEADER = 16,
    ENTRY_HEADER = 64,
    ENTRY_HEADER_MAX = 1 << 20,
    KIND_PTX = 1,
    KIND_CUBIN = 2,
};
enum {
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_A = 0x100000,
    FLAG_F = 0x200000,
};

struct entry {
    uint16_t kind;
    uint32_t header, packed, sm;
    uint64_t payload, flags, raw;
};

static bool read_entry(struct source *src, uint64_t at, struct entry *e)
{
    uint8_t b[ENTRY_HEADER];
    if (!source_read(src, at, b, sizeof b)) return false;
    struct rd r = rd_make(b, sizeof b);
    e->kind = rd_u16(&r);
    rd_u16(&r);
    e->header = rd_u32(&r);
    e->payload = rd_u64(&r);
    e->packed = rd_u32(&r);
    rd_bytes(&r, 8); /* extension, version */
    e->sm = rd_u32(&r);
    rd_bytes(&r, 8); /* name */
    e->flags = rd_u64(&r);
    rd_u64(&r);
    e->raw = rd_u64(&r);
    return true;
}

static void note_entry(struct part *p, const struct entry *e, uint64_t at)
{
    const char *suffix = e->flags & FLAG_A ? "a" : e->flags & FLAG_F ? "f" : "";
    p->kind = e->kind == KIND_CUBIN ? PART_CUBIN : e->kind == KIND_PTX ? PART_PTX : PART_OTHER;
    p->sm = e->sm <= 9999 ? (int)e->sm : 0;
    snprintf(p->arch, sizeof p->arch, "%s_%d%s", p->kind == PART_PTX ? "compute" : "sm", p->sm,
             suffix);
    p->offset = at + e->header;
    p->size = e->packed ? e->packed : e->payload;
    p->raw_size = e->packed ? e->raw : e->payload;
    p->packing = !e->packed             ? PACKING_STORED
                 : e->flags & FLAG_LZ4  ? PACKING_LZ4
                 : e->flags & FLAG_ZSTD ? PACKING_ZSTD
                                        : PACKING_UNKNOWN;
}

/* Entries in [at, end). False when one is broken: `damage` is set. */
static bool walk_entries(struct container *c, uint64_t at, uint64_t end, bool relocatable)
{
    while (end - at >= ENTRY_HEADER) {
        struct entry e;
        bool whole = read_entry(&c->priv->src, at, &e) && e.header >= ENTRY_HEADER &&
                     e.header <= ENTRY_HEADER_MAX && e.header <= end - at &&
                     e.payload <= end - at - e.header && e.packed <= e.payload;
        if (!whole) {
            snprintf(c->damage, sizeof c->damage, "broken fatbin entry at byte 0x%" PRIx64, at);
            return false;
        }
        struct part *p = container_add(c);
        if (!p) {
            snprintf(c->damage, sizeof c->damage, "entries past number %zu left out", c->nparts);
            return false;
        }
        note_entry(p, &e, at);
        p->relocatable = relocatable;
        p->fatbin = c->nfatbins;
        at += e.header + e.payload;
    }
    return true;
}

/* The first place at or after `at` with a non-zero word; `end` when there's none. */
static uint64_t skip_zeros(struct source *src, uint64_t at, uint64_t end)
{
    uint64_t word;
    while (at < end && end - at >= sizeof word && source_read(src, at, &word, sizeof word) && !word)
        at += sizeof word;
    return at;
}

enum status fatbin_walk(struct container *c, uint64_t off, uint64_t len, bool relocatable)
{
    struct source *src = &c->priv->src;
    uint64_t at = off, end = off + len;
    while ((at = skip_zeros(src, at, end)) < end && end - at >= FATBIN_HEADER) {
        uint8_t b[FATBIN_HEADER];
        if (!source_read(src, at, b, sizeof b))
            return err_set(ERR_IO, "%s: can't be read at byte 0x%" PRIx64, c->label, at);
        struct rd r = rd_make(b, sizeof b);
        uint32_t magic = rd_u32(&r);
        rd_u16(&r);
        uint64_t header = rd_u16(&r), size = rd_u64(&r);
        if (magic != FATBIN_MAGIC || header < FATBIN_HEADER || header > end - at ||
            size > end - at - header) {
            snprintf(c->damage, sizeof c->damage, "%s at byte 0x%" PRIx64,
                     magic == FATBIN_MAGIC_OLD ? "a fatbin of the oldest form (before CUDA 4)"
                                               : "a broken fatbin",
                     at);
            return OK;
        }
        if (!walk_entries(c, at + header, at + header + size, relocatable)) return OK;
        c->nfatbins++;
        at += header + size;
    }
    return OK;
}
