/*
 * Shared by decode.c and decode_names.c only: a table row and the rules that complete a key.
 */
#ifndef SASS_VIEW_DECODE_PRIV_H
#define SASS_VIEW_DECODE_PRIV_H

#include "sass_view/decode.h"

/* One a rule in decode_names.c, in any order; the name is that of the last-but-one column. */
#define RULE_LIST(X)                                                                               \
    X(PLAIN)                                                                                       \
    X(SIZE64)                                                                                      \
    X(IMAD)                                                                                        \
    X(IMAD_WIDE)                                                                                   \
    X(IMAD_HI)                                                                                     \
    X(CS2R) X(MUFU) X(HALF) X(HFMA2) X(HFMA2_MMA) X(HMMA_884) X(IMMA) X(HMMA) X(BMMA) X(DMMA)      \
        X(QMMA) X(QMMA_SF) X(OMMA_SF) X(HGMMA) X(IGMMA) X(BGMMA) X(QGMMA) X(UTCMMA) X(LOAD)        \
            X(STORE) X(LOAD256) X(STORE256) X(CAS) X(LDSM) X(STSM) X(LDGSTS) X(SHFL) X(BAR)        \
                X(SYNCS) X(WARPGROUP) X(NOP) X(BSYNC) X(BSSY) X(CALL_ABS) X(CALL_REL) X(BRA)       \
                    X(JUMP) X(EXIT) X(RET)

enum insn_rule {
#define X(name) RULE_##name,
    RULE_LIST(X)
#undef X
};

struct opcode {
    uint16_t base;
    uint8_t forms, uniform;
    uint8_t sm_min, sm_max;
    uint8_t cls, rule;
    const char *mnemonic, *evidence;
};

/* Bits first..first+n-1 of the instruction word, n <= 64. */
static inline uint64_t insn_bits(const struct insn *in, unsigned first, unsigned n)
{
    uint64_t v = first >= 64 ? in->hi >> (first - 64) : in->lo >> first;
    if (first < 64 && first && first + n > 64) v |= in->hi << (64 - first);
    return n >= 64 ? v : v & ((UINT64_C(1) << n) - 1);
}

static inline bool insn_bit(const struct insn *in, unsigned n)
{
    return insn_bits(in, n, 1) != 0;
}

/* Completes key, class, width, flags and target; the rest of *in, its row included, is set. */
void insn_apply_rule(struct insn *in);

#endif
