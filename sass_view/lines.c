/*
 * Job: run a DWARF line program and keep the rows of one kernel.
 *
 * Invariants: every read is checked by struct rd; a program that breaks a rule ends there, with
 * what came before kept. A sequence that belongs to another kernel is run without keeping its rows.
 * Format: DWARF 2-4, chapter 6.2, and NVIDIA's extended opcode 0x90 {uleb context, uleb name}.
 */
#include "sass_view/lines.h"
#include "base/buf.h"
#include "sass_view/cubin_priv.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LNS_COPY = 1,
    LNS_ADVANCE_PC,
    LNS_ADVANCE_LINE,
    LNS_SET_FILE,
    LNS_SET_COLUMN,
    LNS_NEGATE_STMT,
    LNS_SET_BASIC_BLOCK,
    LNS_CONST_ADD_PC,
    LNS_FIXED_ADVANCE_PC,
    LNE_END_SEQUENCE = 1,
    LNE_SET_ADDRESS = 2,
    LNE_NV_CONTEXT = 0x90,
};

struct program {
    struct lines *out;
    const uint8_t *base; /* of the section: places of relocations count from here */
    const uint64_t *relocs;
    size_t nrelocs;
    uint32_t cap;
    bool nomem, full;
    /* of the unit */
    uint8_t min_length, line_range, opcode_base, lengths[256];
    int8_t line_base;
    uint32_t first_file; /* of this unit in out->files */
    /* of the sequence */
    uint64_t address;
    int64_t line;
    uint64_t file, context;
    bool ours;
    uint32_t first_row;
};

static int64_t read_sleb(struct rd *r)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t b;
    do {
        b = rd_u8(r);
        if (shift < 64) v |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
    } while (b & 0x80 && !r->bad);
    if (shift < 64 && b & 0x40) v |= ~UINT64_C(0) << shift;
    return (int64_t)v;
}

/* A string inside the reader; NULL when it doesn't end. */
static const char *read_string(struct rd *r)
{
    const uint8_t *end = memchr(r->p, 0, rd_left(r));
    const char *s = (const char *)r->p;
    if (!end || r->bad) {
        r->bad = true;
        return NULL;
    }
    r->p = end + 1;
    return s;
}

static void add_file(struct program *p, const char *dir, const char *name)
{
    struct lines *l = p->out;
    if (l->nfiles == LINES_FILES_MAX) return;
    if (!(l->nfiles & (l->nfiles - 1))) {
        size_t cap = l->nfiles ? 2 * (size_t)l->nfiles : 1;
        char **f = realloc(l->files, cap * sizeof *f);
        if (!f) {
            p->nomem = true;
            return;
        }
        l->files = f;
    }
    char path[LINES_NAME_MAX];
    if (dir && *dir && *name != '/')
        snprintf(path, sizeof path, "%s/%s", dir, name);
    else
        snprintf(path, sizeof path, "%s", name);
    if (!(l->files[l->nfiles] = strdup(path)))
        p->nomem = true;
    else
        l->nfiles++;
}

/* Folders and files of a unit's header. */
static void read_names(struct program *p, struct rd *r)
{
    const char *dirs[64], *s;
    uint64_t ndirs = 0;
    p->first_file = p->out->nfiles;
    while ((s = read_string(r)) && *s)
        if (ndirs < 64) dirs[ndirs++] = s;
    while ((s = read_string(r)) && *s && !p->nomem) {
        uint64_t dir = rd_varint(r);
        rd_varint(r); /* time */
        rd_varint(r); /* size */
        if (!r->bad) add_file(p, dir >= 1 && dir <= ndirs ? dirs[dir - 1] : NULL, s);
    }
}

static void start_sequence(struct program *p)
{
    p->address = 0;
    p->line = 1;
    p->file = 1;
    p->context = 0;
    p->ours = p->relocs == NULL;
    p->first_row = p->out->nrows;
}

static uint32_t bounded32(uint64_t v)
{
    return v <= UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

static void emit(struct program *p)
{
    struct lines *l = p->out;
    if (!p->ours || p->address > UINT32_MAX) return;
    if (l->nrows == LINES_ROWS_MAX) {
        p->full = true;
        return;
    }
    if (l->nrows == p->cap) {
        uint32_t cap = p->cap ? p->cap * 2 : 64;
        struct line_row *rows = realloc(l->rows, cap * sizeof *rows);
        if (!rows) {
            p->nomem = true;
            return;
        }
        l->rows = rows;
        p->cap = cap;
    }
    /* A context names a row of this sequence that is there already. */
    uint32_t have = l->nrows - p->first_row;
    uint32_t up = p->context && p->context <= have ? p->first_row + (uint32_t)p->context : 0;
    uint64_t file = p->file ? p->file - 1 + p->first_file : UINT32_MAX;
    l->rows[l->nrows++] = (struct line_row){
        .offset = (uint32_t)p->address,
        .file = bounded32(file),
        .line = p->line > 0 ? bounded32((uint64_t)p->line) : 0,
        .inlined_at = up,
    };
}

static bool is_ours(const struct program *p, uint64_t place)
{
    for (size_t i = 0; i < p->nrelocs; i++)
        if (p->relocs[i] == place) return true;
    return p->relocs == NULL;
}

static void run_extended(struct program *p, struct rd *r)
{
    uint64_t n = rd_varint(r);
    const uint8_t *bytes = n <= rd_left(r) ? rd_bytes(r, (size_t)n) : NULL;
    if (!bytes || !n) {
        r->bad = true;
        return;
    }
    struct rd x = rd_make(bytes, (size_t)n);
    switch (rd_u8(&x)) {
    case LNE_END_SEQUENCE:
        start_sequence(p);
        break;
    case LNE_SET_ADDRESS:
        p->ours = is_ours(p, (uint64_t)(x.p - p->base));
        p->address = n == 9 ? rd_u64(&x) : n == 5 ? rd_u32(&x) : 0;
        break;
    case LNE_NV_CONTEXT:
        p->context = rd_varint(&x);
        break;
    default: /* its length is known: pass over it */
        break;
    }
}

static void run_special(struct program *p, uint8_t op)
{
    unsigned adjusted = (unsigned)(op - p->opcode_base);
    p->address += (uint64_t)(adjusted / p->line_range) * p->min_length;
    p->line = (int64_t)((uint64_t)p->line +
                        (uint64_t)(int64_t)(p->line_base + (int)(adjusted % p->line_range)));
    emit(p);
}

static void run_standard(struct program *p, struct rd *r, uint8_t op)
{
    switch (op) {
    case LNS_COPY:
        emit(p);
        break;
    case LNS_ADVANCE_PC:
        p->address += rd_varint(r) * p->min_length;
        break;
    case LNS_ADVANCE_LINE:
        p->line = (int64_t)((uint64_t)p->line + (uint64_t)read_sleb(r));
        break;
    case LNS_SET_FILE:
        p->file = rd_varint(r);
        break;
    case LNS_SET_COLUMN:
        rd_varint(r);
        break;
    case LNS_NEGATE_STMT:
    case LNS_SET_BASIC_BLOCK:
        break;
    case LNS_CONST_ADD_PC:
        p->address += (uint64_t)((255 - p->opcode_base) / p->line_range) * p->min_length;
        break;
    case LNS_FIXED_ADVANCE_PC:
        p->address += rd_u16(r);
        break;
    default:
        for (unsigned i = 0; i < p->lengths[op]; i++) rd_varint(r);
        break;
    }
}

/* One unit; false when it breaks a rule. */
static bool run_unit(struct program *p, struct rd *r)
{
    unsigned version = rd_u16(r);
    uint32_t header = rd_u32(r);
    if (r->bad || version < 2 || version > 4 || header > rd_left(r)) return false;
    struct rd h = rd_make(rd_bytes(r, header), header);
    p->min_length = rd_u8(&h);
    if (version >= 4) rd_u8(&h); /* operations an instruction */
    rd_u8(&h);
    p->line_base = (int8_t)rd_u8(&h);
    p->line_range = rd_u8(&h);
    p->opcode_base = rd_u8(&h);
    if (h.bad || !p->line_range || !p->opcode_base) return false;
    for (unsigned i = 1; i < p->opcode_base; i++) p->lengths[i] = rd_u8(&h);
    read_names(p, &h);
    if (h.bad) return false;
    start_sequence(p);
    while (rd_left(r) && !r->bad && !p->nomem && !p->full) {
        uint8_t op = rd_u8(r);
        if (op == 0)
            run_extended(p, r);
        else if (op >= p->opcode_base)
            run_special(p, op);
        else
            run_standard(p, r, op);
    }
    return !r->bad && !p->full;
}

struct keyed {
    struct line_row row;
    uint32_t was;
};

static int by_offset(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->row.offset != y->row.offset) return x->row.offset < y->row.offset ? -1 : 1;
    return x->was < y->was ? -1 : x->was > y->was;
}

/* Puts rows in order of offset (they nearly are) and moves the references along. Of rows at one
 * offset the last one counts, as the program order says. */
static bool sort_rows(struct lines *l)
{
    bool sorted = true;
    for (uint32_t i = 1; i < l->nrows; i++)
        sorted = sorted && l->rows[i - 1].offset <= l->rows[i].offset;
    if (sorted) return true;
    uint32_t *to = malloc(l->nrows * sizeof *to);
    struct keyed *k = malloc(l->nrows * sizeof *k);
    if (to && k) {
        for (uint32_t i = 0; i < l->nrows; i++) k[i] = (struct keyed){l->rows[i], i};
        qsort(k, l->nrows, sizeof *k, by_offset);
        for (uint32_t i = 0; i < l->nrows; i++) to[k[i].was] = i;
        for (uint32_t i = 0; i < l->nrows; i++) {
            l->rows[i] = k[i].row;
            if (l->rows[i].inlined_at) l->rows[i].inlined_at = 1 + to[l->rows[i].inlined_at - 1];
        }
    }
    bool ok = to && k;
    free(to);
    free(k);
    return ok;
}

enum status lines_parse(struct lines *out, const uint8_t *data, size_t size, const uint64_t *relocs,
                        size_t nrelocs)
{
    struct program p = {.out = out, .base = data, .relocs = relocs, .nrelocs = nrelocs};
    struct rd r = rd_make(data, size);
    *out = (struct lines){0};
    while (rd_left(&r) >= 10 && !p.nomem) {
        uint32_t n = rd_u32(&r);
        if (n > rd_left(&r)) n = 0;
        struct rd unit = rd_make(rd_bytes(&r, n), n);
        if (n && run_unit(&p, &unit)) continue;
        out->damaged = true;
        break;
    }
    if (!p.nomem && sort_rows(out)) return OK;
    lines_free(out);
    return err_set(ERR_NOMEM, "out of memory for the line table");
}

/* The places in section `name` whose relocation is to one of the kernel's function symbols. */
static uint64_t *find_relocs(const struct cubin *c, const struct cubin_kernel *k, const char *name,
                             size_t *n)
{
    const struct cubin_priv *p = c->priv;
    const struct cubin_section *rel = cubin_section_find(p, ".rela", name);
    size_t each = rel ? 24 : 16;
    if (!rel) rel = cubin_section_find(p, ".rel", name);
    *n = 0;
    if (!rel || !rel->data) return NULL;
    uint64_t *places = malloc((rel->size / each + 1) * sizeof *places);
    struct rd r = rd_make(rel->data, rel->size);
    while (places && rd_left(&r) >= each) {
        uint64_t place = rd_u64(&r), info = rd_u64(&r);
        if (each == 24) rd_u64(&r);
        uint64_t sym = info >> 32;
        if (sym >= p->nsyms) continue;
        const struct cubin_section *s =
            p->syms[sym].section < p->nsections ? &p->sections[p->syms[sym].section] : NULL;
        if (s && s->data == k->code && k->code) places[(*n)++] = place;
    }
    return places;
}

enum status lines_read(struct lines *out, const struct cubin *c, const struct cubin_kernel *k)
{
    static const char *const names[] = {".debug_line", ".nv_debug_line_sass"};
    *out = (struct lines){0};
    for (int i = 0; i < 2; i++) {
        const struct cubin_section *s = cubin_section_find(c->priv, names[i], "");
        size_t n;
        uint64_t *places = s && s->data ? find_relocs(c, k, names[i], &n) : NULL;
        enum status st = places && n ? lines_parse(out, s->data, s->size, places, n) : OK;
        free(places);
        out->ptx = i == 1;
        if (st || out->nrows) return st;
        lines_free(out);
    }
    return OK;
}

void lines_free(struct lines *l)
{
    for (uint32_t i = 0; i < l->nfiles; i++) free(l->files[i]);
    free(l->files);
    free(l->rows);
    *l = (struct lines){0};
}

const struct line_row *lines_at(const struct lines *l, uint32_t offset)
{
    uint32_t lo = 0, hi = l->nrows; /* the first row above */
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (l->rows[mid].offset <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? &l->rows[lo - 1] : NULL;
}
