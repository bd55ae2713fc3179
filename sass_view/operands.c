/*
 * Job: the operands of the opcodes that most code is made of.
 *
 * Invariants: only fields that the opcode is known to have are printed (bit positions: decode.h's
 * struct insn, and bits 32-63 for immediates, 38-58 for constants, 40-63 for offsets). To add an
 * opcode: a row in `shapes`; letters: d destination, a b c sources, B the second source in any of
 * its forms, C the third, m an address [a + offset], M the same with the constant bank, s a stored
 * register (b), p a destination predicate (bits 81-83), t the target.
 */
#include "sass_view/operands.h"
#include "sass_view/decode_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct shape {
    const char *mnemonic, *fields;
} shapes[] = {
    {"ATOMG", "dms"},  {"ATOMS", "dms"},  {"BMMA", "dabc"},  {"BRA", "t"},      {"BSSY", "t"},
    {"CALL", "t"},     {"DADD", "daC"},   {"DFMA", "daBC"},  {"DMMA", "dabc"},  {"DMUL", "daB"},
    {"FADD", "daX"},   {"FFMA", "daBC"},  {"FMNMX", "daB"},  {"FMUL", "daB"},   {"FSEL", "daB"},
    {"FSETP", "paB"},  {"HADD2", "daX"},  {"HFMA2", "daBC"}, {"HMMA", "dabc"},  {"HMUL2", "daB"},
    {"HSETP2", "paB"}, {"I2F", "dB"},     {"I2FP", "dB"},    {"F2F", "dB"},     {"F2I", "dB"},
    {"IABS", "dB"},    {"IADD3", "daBC"}, {"IDP", "daBC"},   {"IMAD", "daBC"},  {"IMMA", "dabc"},
    {"IMNMX", "daB"},  {"ISETP", "paB"},  {"LD", "dm"},      {"LDC", "dM"},     {"LDG", "dm"},
    {"LDGSTS", "dm"},  {"LDL", "dm"},     {"LDS", "dm"},     {"LDSM", "dm"},    {"LEA", "daB"},
    {"LOP3", "daBC"},  {"MOV", "dB"},     {"MUFU", "dB"},    {"POPC", "dB"},    {"PRMT", "daBC"},
    {"QMMA", "dabc"},  {"RED", "ms"},     {"REDG", "ms"},    {"S2R", "d"},      {"SEL", "daB"},
    {"SHF", "daBC"},   {"SHFL", "da"},    {"ST", "ms"},      {"STG", "ms"},     {"STL", "ms"},
    {"STS", "ms"},     {"STSM", "ms"},    {"VIADD", "daB"},  {"VIMNMX", "daB"},
};

static const struct shape *find(const char *mnemonic)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (!strcmp(shapes[i].mnemonic, mnemonic)) return &shapes[i];
    return NULL;
}

struct text {
    char *out;
    size_t n, size;
};

static void put(struct text *t, const char *s)
{
    for (; *s && t->n + 1 < t->size; s++) t->out[t->n++] = *s;
    if (t->size) t->out[t->n] = 0;
}

static void put_reg(struct text *t, unsigned r, bool uniform, int sm)
{
    char s[16];
    unsigned zero = uniform && sm < 100 ? 63 : 255;
    if (uniform && sm < 100) r &= 63;
    if (r == zero)
        put(t, uniform ? "URZ" : "RZ");
    else {
        snprintf(s, sizeof s, "%s%u", uniform ? "UR" : "R", r);
        put(t, s);
    }
}

static void put_hex(struct text *t, int64_t v)
{
    char s[32];
    snprintf(s, sizeof s, "%s0x%" PRIx64, v < 0 ? "-" : "", v < 0 ? (uint64_t)-v : (uint64_t)v);
    put(t, s);
}

static void put_constant(struct text *t, const struct insn *in)
{
    char s[40];
    snprintf(s, sizeof s, "c[0x%x][0x%x]", (unsigned)insn_bits(in, 54, 5),
             (unsigned)insn_bits(in, 38, 16));
    put(t, s);
}

/* The source that stands where the form puts it: register, immediate, constant, uniform. */
static void put_moving(struct text *t, const struct insn *in)
{
    unsigned form = (unsigned)insn_bits(in, 9, 3);
    if (form == 2 || form == 4)
        put_hex(t, (int64_t)insn_bits(in, 32, 32));
    else if (form == 3 || form == 5)
        put_constant(t, in);
    else
        put_reg(t, in->b, form == 6 || form == 7, in->sm);
}

/* Forms 2, 3 and 7 put the odd source in C's place and B's register in bits 64-71. */
static bool swapped(const struct insn *in)
{
    unsigned form = (unsigned)insn_bits(in, 9, 3);
    return form == 2 || form == 3 || form == 7;
}

static void put_address(struct text *t, const struct insn *in)
{
    int64_t off = (int64_t)insn_bits(in, 40, 24);
    if (off & 0x800000) off -= 0x1000000;
    put(t, "[");
    if (in->a != 255) put_reg(t, in->a, false, in->sm);
    if (off || in->a == 255) {
        if (in->a != 255 && off >= 0) put(t, "+");
        put_hex(t, off);
    }
    put(t, "]");
}

static void put_predicate(struct text *t, unsigned p)
{
    char s[4] = {'P', p == INSN_PT ? 'T' : (char)('0' + p), 0};
    put(t, s);
}

static void put_field(struct text *t, const struct insn *in, char field)
{
    switch (field) {
    case 'd':
        put_reg(t, in->dst, false, in->sm);
        break;
    case 'a':
        put_reg(t, in->a, false, in->sm);
        break;
    case 'b':
    case 's':
        put_reg(t, in->b, false, in->sm);
        break;
    case 'c':
        put_reg(t, in->c, false, in->sm);
        break;
    case 'B':
        if (swapped(in))
            put_reg(t, in->c, false, in->sm);
        else
            put_moving(t, in);
        break;
    case 'C':
        if (swapped(in))
            put_moving(t, in);
        else
            put_reg(t, in->c, false, in->sm);
        break;
    case 'X': /* additions: B in forms 4 and 5, C in the others */
        if (insn_bits(in, 9, 3) == 1)
            put_reg(t, in->b, false, in->sm);
        else
            put_moving(t, in);
        break;
    case 'm':
        put_address(t, in);
        break;
    case 'M':
        put_constant(t, in);
        break;
    case 'p':
        put_predicate(t, (unsigned)insn_bits(in, 81, 3));
        break;
    case 't':
    default:
        if (in->target == INSN_NO_TARGET)
            put(t, "(indirect)");
        else
            put_hex(t, in->target);
        break;
    }
}

char *insn_operand_text(const struct insn *in, char *out, size_t size)
{
    struct text t = {.out = out, .size = size};
    const struct shape *s = find(in->mnemonic);
    if (size) out[0] = 0;
    for (size_t i = 0; s && s->fields[i]; i++) {
        if (i) put(&t, ", ");
        put_field(&t, in, s->fields[i]);
    }
    return out;
}
