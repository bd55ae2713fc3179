/*
 * Shared by decode*.c and operands.c only: a table row and the rules that complete a key.
 */
#ifndef SASS_VIEW_DECODE_PRIV_H
#define SASS_VIEW_DECODE_PRIV_H

#include "sass_view/decode.h"

/* One a rule in decode_names.c, in any order; the name is that of the last-but-one column. */
#define RULE_LIST(X)                                                                               \
    X(PLAIN)                                                                                       \
    X(SIZE64) X(IMAD) X(IMAD_WIDE) X(IMAD_HI) X(CS2R) X(MUFU) X(HALF) X(HFMA2) X(HFMA2_MMA)        \
        X(HMMA_884) X(IMMA) X(HMMA) X(BMMA) X(DMMA) X(QMMA) X(QMMA_SF) X(OMMA_SF) X(UTCMMA)        \
            X(LOAD) X(STORE) X(LOAD256) X(STORE256) X(CAS) X(LDSM) X(STSM) X(LDGSTS) X(SHFL)       \
                X(BAR) X(SYNCS) X(WARPGROUP) /* from here on also in decode_control.c */ X(HGMMA)  \
                    X(IGMMA) X(BGMMA) X(QGMMA) X(NOP) X(BSYNC) X(BSSY) X(CALL_ABS) X(CALL_REL)     \
                        X(BRA) X(JUMP) X(EXIT) X(RET)

enum insn_rule {
#define X(name) RULE_##name,
    RULE_LIST(X)
#undef X
        RULE_FLOW_FIRST = RULE_HGMMA, /* the first of those that decode_control.c knows */
};

struct opcode {
    uint16_t base;
    uint8_t forms, uniform;
    uint8_t sm_min, sm_max;
    uint8_t cls, rule;
    const char *mnemonic, *evidence;
};

/* Bits first..first+n-1 of a 128-bit word, n <= 64. */
static inline uint64_t word_bits(uint64_t lo, uint64_t hi, unsigned first, unsigned n)
{
    uint64_t v = first >= 64 ? hi >> (first - 64) : lo >> first;
    if (first < 64 && first && first + n > 64) v |= hi << (64 - first);
    return n >= 64 ? v : v & ((UINT64_C(1) << n) - 1);
}

/* The same of anything that has the fields lo and hi: an instruction, a draft. */
#define insn_bits(in, first, n) word_bits((in)->lo, (in)->hi, first, n)
#define insn_bit(in, n)         (insn_bits(in, n, 1) != 0)

/* What a rule makes of an instruction; kept for all instructions of the row whose selected bits are
 * equal. */
struct insn_name {
    char key[INSN_KEY_MAX];
    const char *mnemonic;
    uint16_t width, flags;
    uint8_t cls;
};

/* What a rule reads and writes. */
struct draft {
    const struct opcode *op;
    uint8_t sm;
    uint64_t lo, hi;
    struct insn_name name;
};

enum { SELECT_FIELDS = 4, SELECT_BITS_MAX = 9 };

/* The bits that a rule reads, at most SELECT_BITS_MAX in all: they number the names of a row. */
struct select {
    struct {
        uint8_t first, n;
    } field[SELECT_FIELDS];
    /* For rules that look at whole registers or immediates: their number, < 4. May be NULL. */
    unsigned (*special)(uint8_t sm, uint64_t lo, uint64_t hi);
};

/* Of a rule; never NULL. */
const struct select *insn_select(enum insn_rule rule);

/* Makes the name: `d` has all but the name set. */
void insn_make_name(struct draft *d);

/* What isn't part of a name: targets of branches, conditions, dummies. */
void insn_apply_rule(struct insn *in, enum insn_rule rule);

#endif
