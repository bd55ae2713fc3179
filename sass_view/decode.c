/*
 * Job: from 16 bytes to a struct insn: fields that every instruction has, and the row of the table.
 *
 * Invariants: decoding has no failure and reads exactly 16 bytes; a 13-bit opcode without a row for
 * the arch is unknown. Field positions hold for all chips since sm_70.
 * To add an opcode: a row in opcodes.def. To add a rule for modifiers: decode_names.c.
 */
#include "sass_view/decode.h"
#include "sass_view/decode_priv.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of the sets of forms in opcodes.def: bit n of the value = bits 9-11 may be n. */
enum {
    F1 = 0x02,
    F2 = 0x04,
    F4 = 0x10,
    F5 = 0x20,
    F6 = 0x40,
    F7 = 0x80,
    F12 = 0x06,
    F14 = 0x12,
    F15 = 0x22,
    F16 = 0x42,
    F17 = 0x82,
    F24 = 0x14,
    F25 = 0x24,
    F26 = 0x44,
    F35 = 0x28,
    F46 = 0x50,
    F57 = 0xa0,
    F67 = 0xc0,
    F124 = 0x16,
    F125 = 0x26,
    F136 = 0x4a,
    F146 = 0x52,
    F147 = 0x92,
    F246 = 0x54,
    F1237 = 0x8e,
    F1247 = 0x96,
    F1456 = 0x72,
    F2467 = 0xd4,
    F12456 = 0x76,
    F123456 = 0x7e,
    F1234567 = 0xfe,
};
enum { U0, U1, UX };

static const struct opcode opcodes[] = {
#define OP(base, forms, u, lo, hi, name, cls, rule, evidence)                                      \
    {base, forms, u, lo, hi, INSN_CLASS_##cls, RULE_##rule, name, evidence},
#include "sass_view/opcodes.def"
#undef OP
};
enum { NOPCODES = sizeof opcodes / sizeof opcodes[0] };

/* Names are made when they are first met and kept: names[first + number], with a row's number given
 * by the bits that its rule reads. Whoever makes one first wins, so that threads need no lock. */
struct row_names {
    uint32_t first;
    bool guard_uniform;
    const struct select *select;
};
static struct row_names row_names[NOPCODES];
static _Atomic(struct insn_name *) *names;
static _Atomic(struct insn_name *) unknown_names[8192];
static struct insn_name no_memory = {.key = "?", .mnemonic = "?", .cls = INSN_CLASS_UNKNOWN};

static unsigned select_bits(const struct select *s)
{
    unsigned bits = s->special ? 3 : 0;
    for (int i = 0; i < SELECT_FIELDS; i++) bits += s->field[i].n;
    return bits;
}

/* The uniform datapath's own operations are guarded by uniform predicates, and so is the exchange of
 * an mbarrier's word, which has uniform operands alone; those that cross over from the vector side
 * (R2UR) by ordinary ones. */
static bool has_uniform_guard(const struct opcode *op)
{
    enum { SYNCS_EXCH = 0x1b2 };
    bool own =
        op->mnemonic[0] == 'U' && (op->cls == INSN_CLASS_UNIFORM || op->cls == INSN_CLASS_ASYNC ||
                                   op->cls == INSN_CLASS_CONSTANT || op->cls == INSN_CLASS_TENSOR);
    return own || op->base == SYNCS_EXCH || !strcmp(op->mnemonic, "LDCU");
}

static void make_rows(void)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < NOPCODES; i++) {
        const struct select *s = insn_select((enum insn_rule)opcodes[i].rule);
        row_names[i] = (struct row_names){
            .first = n, .guard_uniform = has_uniform_guard(&opcodes[i]), .select = s};
        n += 1u << select_bits(s);
    }
    names = calloc(n, sizeof *names);
}

bool decoder_init(struct decoder *d, int sm)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool any = false;
    pthread_once(&once, make_rows);
    *d = (struct decoder){.sm = sm};
    for (unsigned i = 0; i < NOPCODES; i++) {
        const struct opcode *op = &opcodes[i];
        if (sm < op->sm_min || sm > op->sm_max) continue;
        any = true;
        for (unsigned key = op->base; key < 8192; key += 512) {
            bool u = key >> 12;
            if (!(op->forms >> (key >> 9 & 7) & 1) || (op->uniform == U0 && u) ||
                (op->uniform == U1 && !u))
                continue;
            if (!d->row[key]) d->row[key] = (uint16_t)(i + 1);
        }
    }
    return any;
}

const struct decoder *decoder_get(int sm)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct decoder *kept[256], none;
    if (sm < 0 || sm > 255) return &none; /* no row is for it: all is unknown */
    pthread_mutex_lock(&lock);
    if (!kept[sm] && (kept[sm] = malloc(sizeof **kept))) decoder_init(kept[sm], sm);
    const struct decoder *d = kept[sm] ? kept[sm] : &none;
    pthread_mutex_unlock(&lock);
    return d;
}

static inline uint64_t load64(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

/* Puts a name into its place, unless another thread did; the one that is there. */
static const struct insn_name *keep(_Atomic(struct insn_name *) *place,
                                    const struct insn_name *made)
{
    struct insn_name *mine = malloc(sizeof *mine), *there = NULL;
    if (!mine) return &no_memory;
    *mine = *made;
    if (atomic_compare_exchange_strong(place, &there, mine)) return mine;
    free(mine);
    return there;
}

static const struct insn_name *unknown_name(uint16_t code)
{
    const struct insn_name *n = atomic_load_explicit(&unknown_names[code], memory_order_acquire);
    if (n) return n;
    struct insn_name made = {.mnemonic = "?", .flags = INSN_UNKNOWN, .cls = INSN_CLASS_UNKNOWN};
    snprintf(made.key, sizeof made.key, "?0x%04x", code);
    return keep(&unknown_names[code], &made);
}

static const struct insn_name *known_name(const struct insn *in, unsigned row)
{
    const struct select *s = row_names[row].select;
    unsigned number = s->special ? s->special(in->sm, in->lo, in->hi) : 0;
    for (int i = 0; i < SELECT_FIELDS && s->field[i].n; i++)
        number =
            number << s->field[i].n | (unsigned)insn_bits(in, s->field[i].first, s->field[i].n);
    _Atomic(struct insn_name *) *place = &names[row_names[row].first + number];
    const struct insn_name *n = atomic_load_explicit(place, memory_order_acquire);
    if (n) return n;
    struct draft d = {.op = &opcodes[row], .sm = in->sm, .lo = in->lo, .hi = in->hi};
    insn_make_name(&d);
    return keep(place, &d.name);
}

static inline void decode_control(struct insn *in)
{
    uint32_t ctl = (uint32_t)(in->hi >> (105 - 64));
    in->ctl = (struct insn_ctl){
        .stall = ctl & 15,
        .yield = !(ctl >> 4 & 1),
        .write_bar = ctl >> 5 & 7,
        .read_bar = ctl >> 8 & 7,
        .wait_mask = ctl >> 11 & 63,
        .reuse = ctl >> 17 & 7,
    };
}

void insn_decode(const struct decoder *d, const uint8_t *code, uint32_t offset, struct insn *out)
{
    uint64_t lo = load64(code), hi = load64(code + 8);
    *out = (struct insn){
        .offset = offset,
        .sm = (uint8_t)d->sm,
        .code = (uint16_t)((lo & 0xfff) | (hi >> 27 & 1) << 12),
        .guard = (uint8_t)(lo >> 12 & 7),
        .guard_not = lo >> 15 & 1,
        .dst = (uint8_t)(lo >> 16),
        .a = (uint8_t)(lo >> 24),
        .b = (uint8_t)(lo >> 32),
        .c = (uint8_t)hi,
        .target = INSN_NO_TARGET,
        .lo = lo,
        .hi = hi,
    };
    decode_control(out);
    unsigned row = d->row[out->code];
    const struct insn_name *n = row && names ? known_name(out, row - 1) : unknown_name(out->code);
    out->mnemonic = n->mnemonic;
    out->key = n->key;
    out->cls = n->cls;
    out->width = n->width;
    out->flags = n->flags;
    if (!row) return;
    out->op = &opcodes[row - 1];
    out->guard_uniform = row_names[row - 1].guard_uniform;
    if (out->op->rule >= RULE_FLOW_FIRST) insn_apply_rule(out, (enum insn_rule)out->op->rule);
}

char *insn_guard_text(const struct insn *in, char *buf, size_t size)
{
    if (in->guard == INSN_PT && !in->guard_not) {
        if (size) buf[0] = 0;
        return buf;
    }
    char reg[4] = {(char)('0' + in->guard), 0};
    snprintf(buf, size, "@%s%sP%s ", in->guard_not ? "!" : "", in->guard_uniform ? "U" : "",
             in->guard == INSN_PT ? "T" : reg);
    return buf;
}

static const char *const class_names[INSN_CLASSES] = {
#define X(id, name, help) [INSN_CLASS_##id] = name,
    INSN_CLASS_LIST(X)
#undef X
};
static const char *const class_helps[INSN_CLASSES] = {
#define X(id, name, help) [INSN_CLASS_##id] = help,
    INSN_CLASS_LIST(X)
#undef X
};

const char *insn_class_name(enum insn_class c)
{
    return (unsigned)c < INSN_CLASSES ? class_names[c] : "unknown";
}

const char *insn_class_help(enum insn_class c)
{
    return (unsigned)c < INSN_CLASSES ? class_helps[c] : "";
}

bool opcode_info(size_t i, struct opcode_info *out)
{
    if (i >= NOPCODES) return false;
    const struct opcode *op = &opcodes[i];
    *out = (struct opcode_info){.mnemonic = op->mnemonic,
                                .evidence = op->evidence,
                                .base = op->base,
                                .forms = op->forms,
                                .sm_min = op->sm_min,
                                .sm_max = op->sm_max,
                                .cls = (enum insn_class)op->cls};
    return true;
}
