/*
 * Job: the rules that complete an instruction's key, width, flags and branch target.
 *
 * Invariants: a rule reads only bits of the word; a value that no rule knows is written as it is
 * ("LDS.?7"), never as its nearest neighbour. Keys stay under INSN_KEY_MAX: key_put() cuts.
 * To add a rule: its name in RULE_LIST (decode_priv.h), a function here, its line in the table at
 * the end. Bit positions are of the 128-bit word; sources are those of the opcode's row.
 */
#include "sass_view/decode_priv.h"
#include <stdio.h>
#include <string.h>

/* Appends text to the key; what doesn't fit is cut. */
static void key_put(struct insn *in, const char *s)
{
    size_t n = strlen(in->key), m = strlen(s), room = sizeof in->key - 1 - n;
    if (m > room) m = room;
    memcpy(in->key + n, s, m);
    in->key[n + m] = 0;
}

static void key_num(struct insn *in, const char *before, unsigned v)
{
    char s[24];
    snprintf(s, sizeof s, "%s%u", before, v);
    key_put(in, s);
}

/* names[v], or "?v" when there's none. */
static void key_pick(struct insn *in, const char *const *names, unsigned count, unsigned v)
{
    key_put(in, ".");
    if (v < count && names[v])
        key_put(in, names[v]);
    else
        key_num(in, "?", v);
}

/* Integer */

static void rule_size64(struct insn *in)
{
    key_put(in, ".64");
}

static bool imad_is_move(unsigned form, const struct insn *in, uint32_t imm)
{
    bool rz_a = in->a == 255, rz_c = in->c == 255;
    if (form == 1) return rz_a && in->b == 255;
    if (form == 2 || form == 3) return rz_a && rz_c;
    if (form == 5) return false;
    return form == 4 && (imm == 0 || (imm == 1 && rz_c));
}

/* The vendor renames multiply-adds that only move, add or shift. */
static void rule_imad(struct insn *in)
{
    unsigned form = insn_bits(in, 9, 3);
    uint32_t imm = (uint32_t)insn_bits(in, 32, 32);
    if (insn_bit(in, 74)) return; /* .X: carries in */
    if (imad_is_move(form, in, imm)) {
        key_put(in, ".MOV");
        in->cls = INSN_CLASS_MOVE;
    } else if (form == 4 && imm == 1) {
        key_put(in, ".IADD");
    } else if (form == 4 && in->c == 255 && imm && !(imm & (imm - 1)) && imm != 0x10000) {
        key_put(in, ".SHL");
    }
}

static void rule_imad_wide(struct insn *in)
{
    key_put(in, ".WIDE");
}

static void rule_imad_hi(struct insn *in)
{
    key_put(in, ".HI");
}

static void rule_cs2r(struct insn *in)
{
    if (!insn_bit(in, 80)) key_put(in, ".32");
}

/* Float */

static void rule_mufu(struct insn *in)
{
    static const char *const fn[] = {"COS", "SIN",    "EX2",    "LG2",  "RCP",
                                     "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH"};
    key_pick(in, fn, 10, insn_bits(in, 74, 6));
}

static void put_bf16(struct insn *in)
{
    if (insn_bit(in, 85)) key_put(in, ".BF16_V2");
}

/* HADD2.F32 writes a 32-bit float: what compilers use it for is the conversion. */
static void rule_half(struct insn *in)
{
    if (in->op->base == 0x030 && insn_bit(in, 78)) {
        key_put(in, ".F32");
        in->cls = INSN_CLASS_CONVERT;
    }
    put_bf16(in);
}

/* Multiply by zero and add a constant, the immediate in C's place: a load of two 16-bit constants.
 */
static bool hfma2_is_constant(const struct insn *in)
{
    return insn_bits(in, 9, 3) == 2 && in->a == 255 && in->c == 255;
}

static void rule_hfma2(struct insn *in)
{
    if (hfma2_is_constant(in)) {
        key_put(in, ".MOV");
        in->cls = INSN_CLASS_MOVE;
        return;
    }
    if (in->op->rule == RULE_HFMA2_MMA) key_put(in, ".MMA");
    put_bf16(in);
}

/* Tensor */

static void rule_hmma_884(struct insn *in)
{
    key_put(in, ".884");
}

static void rule_hmma(struct insn *in)
{
    static const char *const shape[] = {"1688", "16816", "1684", "16832"};
    static const char *const type[] = {NULL, "BF16", "TF32"};
    if (insn_bit(in, 73)) key_put(in, ".SP");
    key_pick(in, shape, 4, insn_bits(in, 75, 1) | insn_bits(in, 78, 1) << 1);
    key_put(in, insn_bit(in, 76) ? ".F32" : ".F16");
    unsigned t = insn_bits(in, 82, 2);
    if (t) key_pick(in, type, 3, t);
}

static void rule_imma(struct insn *in)
{
    static const char *const shape[] = {"8816", NULL, "8832", NULL, "16816", "16832", "16864"};
    static const char *const type[] = {"U8", "S8", "U4", "S4"};
    if (insn_bit(in, 72)) key_put(in, ".SP");
    key_pick(in, shape, 7, insn_bits(in, 75, 1) | insn_bits(in, 85, 2) << 1);
    key_pick(in, type, 4, insn_bits(in, 76, 1) | insn_bits(in, 83, 1) << 1);
    key_pick(in, type, 4, insn_bits(in, 78, 1) | insn_bits(in, 84, 1) << 1);
    if (insn_bit(in, 82)) key_put(in, ".SAT");
}

static void rule_bmma(struct insn *in)
{
    static const char *const shape[] = {"88128", "168128", "168256"};
    key_pick(in, shape, 3, insn_bits(in, 75, 2));
    key_put(in, insn_bit(in, 78) ? ".AND" : ".XOR");
}

static void rule_dmma(struct insn *in)
{
    static const char *const shape[] = {"884", "1684", NULL, "16816"};
    key_pick(in, shape, 4, insn_bits(in, 76, 2));
}

/* FP8, FP6, FP4 types of QMMA: three bits that lie apart. */
static void put_f8_type(struct insn *in, unsigned b0, unsigned b1, unsigned b2)
{
    static const char *const type[] = {"E4M3", "E5M2", NULL, "E3M2", "E2M3", "E2M1"};
    key_pick(
        in, type, 6,
        (unsigned)(insn_bits(in, b0, 1) | insn_bits(in, b1, 1) << 1 | insn_bits(in, b2, 1) << 2));
}

static void rule_qmma(struct insn *in)
{
    bool wide = insn_bit(in, 75), sparse = !wide && insn_bit(in, 76);
    key_put(in, wide ? ".16832" : sparse ? ".SP.16864" : ".16816");
    key_put(in, insn_bit(in, 77) ? ".F32" : ".F16");
    put_f8_type(in, 78, 82, 83);
    put_f8_type(in, 79, 84, 85);
}

/* Block-scaled: one scale (ue8m0) for 32 elements, always into a 32-bit float. */
static void rule_qmma_sf(struct insn *in)
{
    key_put(in, insn_bit(in, 80) ? ".SF.SP.16864.F32" : ".SF.16832.F32");
    put_f8_type(in, 78, 82, 83);
    put_f8_type(in, 79, 84, 85);
    key_put(in, ".E8");
}

static void rule_omma_sf(struct insn *in)
{
    key_put(in, ".SF.16864.F32.E2M1.E2M1");
    if (insn_bit(in, 83)) key_put(in, ".E8"); /* one scale for 32 */
    if (insn_bit(in, 82)) key_put(in, ".UE4M3.4X");
}

/* wgmma writes 64 rows; a destination of RZ with descriptor URZ is the compiler's own filler. */
static void put_wgmma(struct insn *in, unsigned n, unsigned k)
{
    char s[24];
    snprintf(s, sizeof s, ".64x%ux%u", n, k);
    key_put(in, s);
    if (in->dst == 255 && insn_bits(in, 24, 6) == 63) in->flags |= INSN_DUMMY;
}

static void rule_hgmma(struct insn *in)
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

static void rule_igmma(struct insn *in)
{
    put_wgmma(in, wgmma_n((unsigned)insn_bits(in, 53, 6) / 3), 32);
    key_put(in, insn_bit(in, 76) ? ".S8" : ".U8");
    key_put(in, insn_bit(in, 82) ? ".S8" : ".U8");
}

static void rule_bgmma(struct insn *in)
{
    put_wgmma(in, wgmma_n((unsigned)insn_bits(in, 53, 5)), 256);
}

static void rule_qgmma(struct insn *in)
{
    put_wgmma(in, 8 * ((unsigned)insn_bits(in, 53, 5) + 1), 32);
    key_put(in, insn_bit(in, 75) ? ".F32" : ".F16");
    key_put(in, insn_bit(in, 76) ? ".E5M2" : ".E4M3");
    key_put(in, insn_bit(in, 77) ? ".E5M2" : ".E4M3");
}

static void rule_utcmma(struct insn *in)
{
    static const char *const kind[8] = {"UTCHMMA", "UTCOMMA", "UTCIMMA", NULL,
                                        NULL,      NULL,      "UTCQMMA", NULL};
    unsigned k =
        (unsigned)(insn_bits(in, 73, 1) << 2 | insn_bits(in, 72, 1) << 1 | insn_bits(in, 63, 1));
    in->mnemonic = kind[k] ? kind[k] : "UTCMMA";
    in->key[0] = 0;
    key_put(in, in->mnemonic);
    if (!kind[k]) key_num(in, ".?", k);
    if (insn_bit(in, 85)) key_put(in, ".2CTA");
}

/* Memory */

/* Loads and stores have their width in bits 73-75; LDGSTS moved up by one in sm_100. */
static void put_width(struct insn *in, unsigned at)
{
    static const char *const name[] = {"U8", "S8", "U16", "S16", "32", "64", "128", "U.128"};
    static const uint16_t bits[] = {8, 8, 16, 16, 32, 64, 128, 128};
    unsigned w = (unsigned)insn_bits(in, at, 3);
    key_pick(in, name, 8, w);
    in->width = bits[w];
}

static void rule_memory(struct insn *in)
{
    put_width(in, 73);
    in->flags |= in->op->rule == RULE_STORE ? INSN_STORE : INSN_LOAD;
}

static void rule_ldgsts(struct insn *in)
{
    put_width(in, in->sm >= 100 ? 74 : 73);
    if (!insn_bit(in, 81)) key_put(in, ".BYPASS");
    in->flags |= INSN_LOAD;
}

static void rule_memory256(struct insn *in)
{
    key_put(in, ".256");
    in->width = 256;
    in->flags |= in->op->rule == RULE_STORE256 ? INSN_STORE : INSN_LOAD;
}

static void rule_cas(struct insn *in)
{
    key_put(in, ".CAS");
}

/* One 8x8 matrix of 16-bit elements is 32 bits a thread. */
static void rule_matrix(struct insn *in)
{
    static const char *const count[] = {"x1", "x2", "x4"};
    unsigned n = (unsigned)insn_bits(in, 72, 2);
    key_pick(in, count, 3, n);
    in->width = (uint16_t)(n < 3 ? 32u << n : 0);
    if (in->op->rule == RULE_LDSM && insn_bit(in, 80)) {
        key_put(in, ".B8.T"); /* 16x16 bytes: two registers a matrix */
        in->width *= 2;
    } else if (insn_bit(in, 79)) {
        key_put(in, in->op->rule == RULE_STSM ? ".B8.T" : insn_bit(in, 75) ? ".B4" : ".B6");
    } else if (insn_bit(in, 78)) {
        key_put(in, ".T");
    }
    in->flags |= in->op->rule == RULE_STSM ? INSN_STORE : INSN_LOAD;
}

/* Lanes, barriers */

static void rule_shfl(struct insn *in)
{
    static const char *const mode[] = {"IDX", "UP", "DOWN", "BFLY"};
    key_pick(in, mode, 4, insn_bits(in, 58, 2));
}

static void rule_bar(struct insn *in)
{
    static const char *const kind[] = {"SYNC", "ARV", "RED", "SCAN"};
    key_pick(in, kind, 4, insn_bits(in, 77, 2));
}

static void rule_syncs(struct insn *in)
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

static void rule_warpgroup(struct insn *in)
{
    key_put(in, insn_bit(in, 80) ? ".DEPBAR" : ".ARRIVE");
}

/* Control */

static int64_t sign_extend(uint64_t v, unsigned bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return (int64_t)((v ^ sign) - sign);
}

/* Distances are in units of 4 bytes from the next instruction; sm_90 widened the field. The sum is
 * done unsigned: hostile code may ask for any 64-bit distance. */
static int64_t relative_target(const struct insn *in)
{
    uint64_t v = insn_bits(in, 34, 48);
    int64_t d = in->sm >= 90 ? sign_extend(v << 8 | insn_bits(in, 16, 8), 56) : sign_extend(v, 48);
    return (int64_t)((uint64_t)in->offset + INSN_BYTES + ((uint64_t)d << 2));
}

/* A branch may also depend on a source predicate (87-90) or a uniform one (bit 91). */
static bool branch_has_condition(const struct insn *in)
{
    return insn_bits(in, 87, 4) != INSN_PT || insn_bit(in, 91);
}

static void rule_control(struct insn *in)
{
    switch (in->op->rule) {
    case RULE_BRA:
        in->flags |= INSN_BRANCH;
        in->target = relative_target(in);
        break;
    case RULE_JUMP:
        in->flags |= INSN_BRANCH;
        break;
    case RULE_EXIT:
        in->flags |= INSN_EXIT;
        break;
    case RULE_RET:
        in->flags |= INSN_RETURN;
        break;
    case RULE_CALL_ABS:
        in->flags |= INSN_CALL;
        return;
    case RULE_CALL_REL:
        in->flags |= INSN_CALL;
        if (insn_bits(in, 9, 3) == 4) in->target = relative_target(in);
        return;
    default:
        return;
    }
    if (branch_has_condition(in)) in->flags |= INSN_CONDITIONAL;
}

static void rule_bssy(struct insn *in)
{
    in->flags |= INSN_PUSH;
    uint64_t d = (uint64_t)sign_extend(insn_bits(in, 34, 30), 30);
    in->target = (int64_t)((uint64_t)in->offset + INSN_BYTES + (d << 2));
}

static void rule_bsync(struct insn *in)
{
    in->flags |= INSN_RECONVERGE;
}

static void rule_nop(struct insn *in)
{
    in->flags |= INSN_NOP;
}

typedef void rule_fn(struct insn *in);

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
    [RULE_NOP] = rule_nop,
    [RULE_BSYNC] = rule_bsync,
    [RULE_BSSY] = rule_bssy,
    [RULE_CALL_ABS] = rule_control,
    [RULE_CALL_REL] = rule_control,
    [RULE_BRA] = rule_control,
    [RULE_JUMP] = rule_control,
    [RULE_EXIT] = rule_control,
    [RULE_RET] = rule_control,
};

void insn_apply_rule(struct insn *in)
{
    key_put(in, in->op->mnemonic);
    if (rules[in->op->rule]) rules[in->op->rule](in);
}
