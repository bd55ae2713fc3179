/*
 * Job: what an instruction does to the flow of control: branch targets, conditions, dummies.
 *
 * Invariants: these depend on addresses and registers, so they are worked out for each instruction,
 * while names (decode_names.c) are made once. To add a rule: a case in insn_apply_rule().
 */
#include "sass_view/decode_priv.h"

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

static void apply_control(struct insn *in, enum insn_rule rule)
{
    switch (rule) {
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

/* Where BSYNC goes on: 30 bits, units of 4 bytes. */
static int64_t bssy_target(const struct insn *in)
{
    uint64_t d = (uint64_t)sign_extend(insn_bits(in, 34, 30), 30);
    return (int64_t)((uint64_t)in->offset + INSN_BYTES + (d << 2));
}

void insn_apply_rule(struct insn *in, enum insn_rule rule)
{
    switch (rule) {
    case RULE_NOP:
        in->flags |= INSN_NOP;
        break;
    case RULE_BSYNC:
        in->flags |= INSN_RECONVERGE;
        break;
    case RULE_BSSY:
        in->flags |= INSN_PUSH;
        in->target = bssy_target(in);
        break;
    case RULE_HGMMA:
    case RULE_IGMMA:
    case RULE_BGMMA:
    case RULE_QGMMA:
        /* A destination of RZ with descriptor URZ is the compiler's own filler. */
        if (in->dst == 255 && insn_bits(in, 24, 6) == 63) in->flags |= INSN_DUMMY;
        break;
    default:
        if (rule >= RULE_CALL_ABS) apply_control(in, rule);
        break;
    }
}
