/*
 * Job: the rules that make an instruction's name: key, class, width, flags.
 *
 * Invariants: a rule reads only bits of the word; a value that no rule knows is written as it is
 * ("LDS.?7"), never as its nearest neighbour. Keys stay under INSN_KEY_MAX: key_put() cuts.
 * To add a rule: its name in RULE_LIST (decode_priv.h), a function here, its lines in the two
 * tables at the end: the function, and the bits that it reads. Bit positions are of the 128-bit
 * word; sources are those of the opcode's row.
 */
#include "sass_view/decode_priv.h"
#include <stdio.h>
#include <string.h>

/* Appends text to the key; what doesn't fit is cut. */
static void key_put(struct draft *in, const char *s)
{
    size_t n = strlen(in->name.key), m = strlen(s), room = sizeof in->name.key - 1 - n;
    if (m > room) m = room;
    memcpy(in->name.key + n, s, m);
    in->name.key[n + m] = 0;
}

static void key_num(struct draft *in, const char *before, unsigned v)
{
    char s[24];
    snprintf(s, sizeof s, "%s%u", before, v);
    key_put(in, s);
}

/* names[v], or "?v" when there's none. */
static void key_pick(struct draft *in, const char *const *names, unsigned count, unsigned v)
{
    key_put(in, ".");
    if (v < count && names[v])
        key_put(in, names[v]);
    else
        key_num(in, "?", v);
}

/* Integer */

static void rule_size64(struct draft *in)
{
    key_put(in, ".64");
}

enum imad_kind { IMAD_PLAIN, IMAD_MOV, IMAD_IADD, IMAD_SHL };

static bool imad_is_move(unsigned form, bool rz_a, bool rz_b, bool rz_c, uint32_t imm)
{
    if (form == 1) return rz_a && rz_b;
    if (form == 2 || form == 3) return rz_a && rz_c;
    if (form == 5) return false;
    return form == 4 && (imm == 0 || (imm == 1 && rz_c));
}

/* The vendor renames multiply-adds that only move, add or shift. */
static unsigned select_imad(uint8_t sm, uint64_t lo, uint64_t hi)
{
    unsigned form = (unsigned)(lo >> 9 & 7);
    uint32_t imm = (uint32_t)(lo >> 32);
    bool rz_a = (lo >> 24 & 255) == 255, rz_b = (lo >> 32 & 255) == 255, rz_c = (hi & 255) == 255;
    (void)sm;
    if (hi >> (74 - 64) & 1) return IMAD_PLAIN; /* .X: carries in */
    if (imad_is_move(form, rz_a, rz_b, rz_c, imm)) return IMAD_MOV;
    if (form != 4) return IMAD_PLAIN;
    if (imm == 1) return IMAD_IADD;
    return rz_c && imm && !(imm & (imm - 1)) && imm != 0x10000 ? IMAD_SHL : IMAD_PLAIN;
}

static void rule_imad(struct draft *in)
{
    static const char *const names[] = {"", ".MOV", ".IADD", ".SHL"};
    unsigned kind = select_imad(in->sm, in->lo, in->hi);
    key_put(in, names[kind]);
    if (kind == IMAD_MOV) in->name.cls = INSN_CLASS_MOVE;
}

static void rule_imad_wide(struct draft *in)
{
    key_put(in, ".WIDE");
}

static void rule_imad_hi(struct draft *in)
{
    key_put(in, ".HI");
}

static void rule_cs2r(struct draft *in)
{
    if (!insn_bit(in, 80)) key_put(in, ".32");
}

/* Float */

static void rule_mufu(struct draft *in)
{
    static const char *const fn[] = {"COS", "SIN",    "EX2",    "LG2",  "RCP",
                                     "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH"};
    key_pick(in, fn, 10, insn_bits(in, 74, 6));
}

static void put_bf16(struct draft *in)
{
    if (insn_bit(in, 85)) key_put(in, ".BF16_V2");
}

/* HADD2.F32 writes a 32-bit float: what compilers use it for is the conversion. */
static void rule_half(struct draft *in)
{
    if (in->op->base == 0x030 && insn_bit(in, 78)) {
        key_put(in, ".F32");
        in->name.cls = INSN_CLASS_CONVERT;
    }
    put_bf16(in);
}

/* Multiply by zero and add a constant, the immediate in C's place: a load of two 16-bit constants.
 */
static unsigned select_hfma2(uint8_t sm, uint64_t lo, uint64_t hi)
{
    (void)sm;
    return (lo >> 9 & 7) == 2 && (lo >> 24 & 255) == 255 && (hi & 255) == 255;
}

static void rule_hfma2(struct draft *in)
{
    if (select_hfma2(in->sm, in->lo, in->hi)) {
        key_put(in, ".MOV");
        in->name.cls = INSN_CLASS_MOVE;
        return;
    }
    if (in->op->rule == RULE_HFMA2_MMA) key_put(in, ".MMA");
    put_bf16(in);
}

/* Tensor */

/* Bits 76 and 78: result and addend are f32, else f16. Bits 79-80: which part of the product. */
static void rule_hmma_884(struct draft *in)
{
    static const char *const step[] = {"STEP0", "STEP1", "STEP2", "STEP3"};
    key_put(in, ".884");
    key_put(in, insn_bit(in, 76) ? ".F32" : ".F16");
    key_put(in, insn_bit(in, 78) ? ".F32" : ".F16");
    key_pick(in, step, 4, insn_bits(in, 79, 2));
}

static void rule_hmma(struct draft *in)
{
    static const char *const shape[] = {"1688", "16816", "1684", "16832"};
    static const char *const type[] = {NULL, "BF16", "TF32"};
    if (insn_bit(in, 73)) key_put(in, ".SP");
    key_pick(in, shape, 4, insn_bits(in, 75, 1) | insn_bits(in, 78, 1) << 1);
    key_put(in, insn_bit(in, 76) ? ".F32" : ".F16");
    unsigned t = insn_bits(in, 82, 2);
    if (t) key_pick(in, type, 3, t);
}

static void rule_imma(struct draft *in)
{
    static const char *const shape[] = {"8816", NULL, "8832", NULL, "16816", "16832", "16864"};
    static const char *const type[] = {"U8", "S8", "U4", "S4"};
    if (insn_bit(in, 72)) key_put(in, ".SP");
    key_pick(in, shape, 7, insn_bits(in, 75, 1) | insn_bits(in, 85, 2) << 1);
    key_pick(in, type, 4, insn_bits(in, 76, 1) | insn_bits(in, 83, 1) << 1);
    key_pick(in, type, 4, insn_bits(in, 78, 1) | insn_bits(in, 84, 1) << 1);
    if (insn_bit(in, 82)) key_put(in, ".SAT");
}

static void rule_bmma(struct draft *in)
{
    static const char *const shape[] = {"88128", "168128", "168256"};
    key_pick(in, shape, 3, insn_bits(in, 75, 2));
    key_put(in, insn_bit(in, 78) ? ".AND" : ".XOR");
}

static void rule_dmma(struct draft *in)
{
    static const char *const shape[] = {"884", "1684", NULL, "16816"};
    key_pick(in, shape, 4, insn_bits(in, 76, 2));
}

/* FP8, FP6, FP4 types of QMMA: three bits that lie apart. */
static void put_f8_type(struct draft *in, unsigned b0, unsigned b1, unsigned b2)
{
    static const char *const type[] = {"E4M3", "E5M2", NULL, "E3M2", "E2M3", "E2M1"};
    key_pick(
        in, type, 6,
        (unsigned)(insn_bits(in, b0, 1) | insn_bits(in, b1, 1) << 1 | insn_bits(in, b2, 1) << 2));
}

static void rule_qmma(struct draft *in)
{
    bool wide = insn_bit(in, 75), sparse = !wide && insn_bit(in, 76);
    key_put(in, wide ? ".16832" : sparse ? ".SP.16864" : ".16816");
    key_put(in, insn_bit(in, 77) ? ".F32" : ".F16");
    put_f8_type(in, 78, 82, 83);
    put_f8_type(in, 79, 84, 85);
}

/* Block-scaled: one scale (ue8m0) for 32 elements, always into a 32-bit float. */
static void rule_qmma_sf(struct draft *in)
{
    key_put(in, insn_bit(in, 80) ? ".SF.SP.16864.F32" : ".SF.16832.F32");
    put_f8_type(in, 78, 82, 83);
    put_f8_type(in, 79, 84, 85);
    key_put(in, ".E8");
}

static void rule_omma_sf(struct draft *in)
{
    key_put(in, ".SF.16864.F32.E2M1.E2M1");
    if (insn_bit(in, 83)) key_put(in, ".E8"); /* one scale for 32 */
    if (insn_bit(in, 82)) key_put(in, ".UE4M3.4X");
}

/* wgmma writes 64 rows. */
static void put_wgmma(struct draft *in, unsigned n, unsigned k)
{
    char s[24];
    snprintf(s, sizeof s, ".64x%ux%u", n, k);
    key_put(in, s);
}

static void rule_hgmma(struct draft *in)
{
    put_wgmma(in, 8 * ((unsigned)insn_bits(in, 53, 5) + 1), insn_bit(in, 58) ? 8 : 16);
    key_put(in, insn_bit(in, 75) ? ".F32" : ".F16");
    if (insn_bit(in, 76)) key_put(in, ".BF16");
    if (insn_bit(in, 77)) key_put(in, ".TF32");
}

/* N of integer and binary wgmma: 8, 16, 24, 32, then steps of 16 from 48 up to 256. */
static unsigned wgmma_n(unsigned i)
{
    return i < 4 ? 8 * (i + 1) : 16 * (i - 1);
}

static void rule_igmma(struct draft *in)
{
    put_wgmma(in, wgmma_n((unsigned)insn_bits(in, 53, 6) / 3), 32);
    key_put(in, insn_bit(in, 76) ? ".S8" : ".U8");
    key_put(in, insn_bit(in, 82) ? ".S8" : ".U8");
}

static void rule_bgmma(struct draft *in)
{
    put_wgmma(in, wgmma_n((unsigned)insn_bits(in, 53, 5)), 256);
}

static void rule_qgmma(struct draft *in)
{
    put_wgmma(in, 8 * ((unsigned)insn_bits(in, 53, 5) + 1), 32);
    key_put(in, insn_bit(in, 75) ? ".F32" : ".F16");
    key_put(in, insn_bit(in, 76) ? ".E5M2" : ".E4M3");
    key_put(in, insn_bit(in, 77) ? ".E5M2" : ".E4M3");
}

static void rule_utcmma(struct draft *in)
{
    static const char *const kind[8] = {"UTCHMMA", "UTCOMMA", "UTCIMMA", NULL,
                                        NULL,      NULL,      "UTCQMMA", NULL};
    unsigned k =
        (unsigned)(insn_bits(in, 73, 1) << 2 | insn_bits(in, 72, 1) << 1 | insn_bits(in, 63, 1));
    in->name.mnemonic = kind[k] ? kind[k] : "UTCMMA";
    in->name.key[0] = 0;
    key_put(in, in->name.mnemonic);
    if (!kind[k]) key_num(in, ".?", k);
    if (insn_bit(in, 85)) key_put(in, ".2CTA");
}

/* Memory */

/* Loads and stores have their width in bits 73-75; LDGSTS moved up by one in sm_100. */
static void put_width(struct draft *in, unsigned at)
{
    static const char *const name[] = {"U8", "S8", "U16", "S16", "32", "64", "128", "U.128"};
    static const uint16_t bits[] = {8, 8, 16, 16, 32, 64, 128, 128};
    unsigned w = (unsigned)insn_bits(in, at, 3);
    key_pick(in, name, 8, w);
    in->name.width = bits[w];
}

static void rule_memory(struct draft *in)
{
    put_width(in, 73);
    in->name.flags |= in->op->rule == RULE_STORE ? INSN_STORE : INSN_LOAD;
}

static unsigned ldgsts_width_at(uint8_t sm)
{
    return sm >= 100 ? 74 : 73;
}

static unsigned select_ldgsts(uint8_t sm, uint64_t lo, uint64_t hi)
{
    return (unsigned)word_bits(lo, hi, ldgsts_width_at(sm), 3);
}

static void rule_ldgsts(struct draft *in)
{
    put_width(in, ldgsts_width_at(in->sm));
    if (!insn_bit(in, 81)) key_put(in, ".BYPASS");
    in->name.flags |= INSN_LOAD;
}

static void rule_memory256(struct draft *in)
{
    key_put(in, ".256");
    in->name.width = 256;
    in->name.flags |= in->op->rule == RULE_STORE256 ? INSN_STORE : INSN_LOAD;
}

static void rule_cas(struct draft *in)
{
    key_put(in, ".CAS");
}

/* One 8x8 matrix of 16-bit elements is 32 bits a thread. */
static void rule_matrix(struct draft *in)
{
    static const char *const count[] = {"x1", "x2", "x4"};
    unsigned n = (unsigned)insn_bits(in, 72, 2);
    key_pick(in, count, 3, n);
    in->name.width = (uint16_t)(n < 3 ? 32u << n : 0);
    if (in->op->rule == RULE_LDSM && insn_bit(in, 80)) {
        key_put(in, ".B8.T"); /* 16x16 bytes: two registers a matrix */
        in->name.width *= 2;
    } else if (insn_bit(in, 79)) {
        key_put(in, in->op->rule == RULE_STSM ? ".B8.T" : insn_bit(in, 75) ? ".B4" : ".B6");
    } else if (insn_bit(in, 78)) {
        key_put(in, ".T");
    }
    in->name.flags |= in->op->rule == RULE_STSM ? INSN_STORE : INSN_LOAD;
}

/* Lanes, barriers */

static void rule_shfl(struct draft *in)
{
    static const char *const mode[] = {"IDX", "UP", "DOWN", "BFLY"};
    key_pick(in, mode, 4, insn_bits(in, 58, 2));
}

static void rule_bar(struct draft *in)
{
    static const char *const kind[] = {"SYNC", "ARV", "RED", "SCAN"};
    key_pick(in, kind, 4, insn_bits(in, 77, 2));
}

static void rule_syncs(struct draft *in)
{
    switch (in->op->base) {
    case 0x1b1:
        key_put(in, ".CCTL");
        return;
    case 0x1b2:
        key_put(in, ".EXCH");
        return;
    default:
        break;
    }
    if (insn_bits(in, 9, 3) == 4)
        key_put(in, ".ARRIVE");
    else
        key_put(in, insn_bit(in, 72) ? ".PHASECHK.TRYWAIT" : ".PHASECHK");
}

static void rule_warpgroup(struct draft *in)
{
    key_put(in, insn_bit(in, 80) ? ".DEPBAR" : ".ARRIVE");
}

typedef void rule_fn(struct draft *in);

/* RULE_PLAIN has none: the mnemonic says it all. */
static rule_fn *const rules[] = {

    [RULE_SIZE64] = rule_size64,
    [RULE_IMAD] = rule_imad,
    [RULE_IMAD_WIDE] = rule_imad_wide,
    [RULE_IMAD_HI] = rule_imad_hi,
    [RULE_CS2R] = rule_cs2r,
    [RULE_MUFU] = rule_mufu,
    [RULE_HALF] = rule_half,
    [RULE_HFMA2] = rule_hfma2,
    [RULE_HFMA2_MMA] = rule_hfma2,
    [RULE_HMMA_884] = rule_hmma_884,
    [RULE_IMMA] = rule_imma,
    [RULE_HMMA] = rule_hmma,
    [RULE_BMMA] = rule_bmma,
    [RULE_DMMA] = rule_dmma,
    [RULE_QMMA] = rule_qmma,
    [RULE_QMMA_SF] = rule_qmma_sf,
    [RULE_OMMA_SF] = rule_omma_sf,
    [RULE_HGMMA] = rule_hgmma,
    [RULE_IGMMA] = rule_igmma,
    [RULE_BGMMA] = rule_bgmma,
    [RULE_QGMMA] = rule_qgmma,
    [RULE_UTCMMA] = rule_utcmma,
    [RULE_LOAD] = rule_memory,
    [RULE_STORE] = rule_memory,
    [RULE_LOAD256] = rule_memory256,
    [RULE_STORE256] = rule_memory256,
    [RULE_CAS] = rule_cas,
    [RULE_LDSM] = rule_matrix,
    [RULE_STSM] = rule_matrix,
    [RULE_LDGSTS] = rule_ldgsts,
    [RULE_SHFL] = rule_shfl,
    [RULE_BAR] = rule_bar,
    [RULE_SYNCS] = rule_syncs,
    [RULE_WARPGROUP] = rule_warpgroup,
};

void insn_make_name(struct draft *d)
{
    d->name = (struct insn_name){.mnemonic = d->op->mnemonic, .cls = d->op->cls};
    key_put(d, d->op->mnemonic);
    if (d->op->rule < sizeof rules / sizeof rules[0] && rules[d->op->rule]) rules[d->op->rule](d);
}

/* The bits that each rule above reads. A rule and its row here belong together: a test holds that
 * names don't depend on other bits. */
static const struct select selects[] = {
    [RULE_IMAD] = {.special = select_imad},
    [RULE_CS2R] = {{{80, 1}}, NULL},
    [RULE_MUFU] = {{{74, 6}}, NULL},
    [RULE_HALF] = {{{78, 1}, {85, 1}}, NULL},
    [RULE_HFMA2] = {{{85, 1}}, select_hfma2},
    [RULE_HFMA2_MMA] = {{{85, 1}}, select_hfma2},
    [RULE_IMMA] = {{{72, 1}, {75, 2}, {78, 1}, {82, 5}}, NULL},
    [RULE_HMMA_884] = {{{76, 1}, {78, 3}}, NULL},
    [RULE_HMMA] = {{{73, 1}, {75, 2}, {78, 1}, {82, 2}}, NULL},
    [RULE_BMMA] = {{{75, 2}, {78, 1}}, NULL},
    [RULE_DMMA] = {{{76, 2}}, NULL},
    [RULE_QMMA] = {{{75, 5}, {82, 4}}, NULL},
    [RULE_QMMA_SF] = {{{78, 3}, {82, 4}}, NULL},
    [RULE_OMMA_SF] = {{{82, 2}}, NULL},
    [RULE_HGMMA] = {{{53, 6}, {75, 3}}, NULL},
    [RULE_IGMMA] = {{{53, 6}, {76, 1}, {82, 1}}, NULL},
    [RULE_BGMMA] = {{{53, 5}}, NULL},
    [RULE_QGMMA] = {{{53, 5}, {75, 3}}, NULL},
    [RULE_UTCMMA] = {{{63, 1}, {72, 2}, {85, 1}}, NULL},
    [RULE_LOAD] = {{{73, 3}}, NULL},
    [RULE_STORE] = {{{73, 3}}, NULL},
    [RULE_LDSM] = {{{72, 2}, {75, 1}, {78, 3}}, NULL},
    [RULE_STSM] = {{{72, 2}, {75, 1}, {78, 3}}, NULL},
    [RULE_LDGSTS] = {{{81, 1}}, select_ldgsts},
    [RULE_SHFL] = {{{58, 2}}, NULL},
    [RULE_BAR] = {{{77, 2}}, NULL},
    [RULE_SYNCS] = {{{9, 3}, {72, 1}}, NULL},
    [RULE_WARPGROUP] = {{{80, 1}}, NULL},
};

const struct select *insn_select(enum insn_rule rule)
{
    static const struct select none;
    return (size_t)rule < sizeof selects / sizeof selects[0] ? &selects[rule] : &none;
}
