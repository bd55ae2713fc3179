/*
 * What of the opcode table the compiled corpus shows: every row must be met in it, but for those of
 * not_provoked, each with its reason. A row in neither fails, and so does one that is on the list
 * and met after all. The list holds for nvcc 13.0 (so the test skips with any other one); nothing
 * of the vendor's disassembler is needed.
 */
#include "sass_view/cubin.h"
#include "sass_view/decode.h"
#include "tests/lib/sass_lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 512 };

/* A row by its opcode, name and first arch (one opcode may have a row for each of several). */
static const struct row {
    uint16_t base;
    int sm_min;
    const char *mnemonic, *reason;
} not_provoked[] = {
    {0x154, 120, "MOV64IUR", "others' table of sm_120 only: 64-bit constants came as two moves"},
    {0x0a6, 120, "UIMAD",
     "a product for one token had it; divisions of its size alone take other ways"},
    {0x022, 70, "FSWZADD", "derivatives in graphics shaders"},
    {0x0bc, 90, "UCLEA", "others' listings only: mapa came as UPRMT or PRMT"},
    {0x1c2, 75, "R2UR", "nvcc 13.0 kept the tried values in vector registers below sm_90"},
    {0x05c, 120, "UF2I", "others' table of sm_120 only: conversions to integer came as F2I"},
    {0x085, 120, "UIMNMX", "others' table of sm_120 only: it came as UVIMNMX"},
    {0x0ba, 120, "UF2FP", "others' table of sm_120 only: packing came as F2FP"},
    {0x140, 100, "CCTL", "invalidation of cached constants: no fence tried made it"},
    {0x190, 90, "CCTLL", "others' listings only: prefetch.local made nothing on sm_90"},
    {0x077, 120, "ACQSHMINIT", "others' table of sm_120 only"},
    {0x14a, 70, "JMP", "others' listings only: jumps come as BRA"},
    {0x14c, 70, "JMX", "others' listings only: jump tables come as BRX"},
    {0x159, 75, "JMXU", "others' listings only: jump tables come as BRXU"},
    {0x15b, 70, "KILL", "graphics shaders"},
    {0x198, 70, "SULD", "formatted loads: PTX has suld.b only"},
};

struct seen {
    size_t rows[ROWS];
    size_t files, insns, unknown;
};

static void count_file(struct seen *s, const char *path)
{
    struct cubin c;
    if (cubin_open_file(&c, path)) fail_msg("%s", err_msg());
    const struct decoder *d = decoder_get(c.sm);
    for (size_t k = 0; k < c.nkernels; k++)
        for (uint32_t at = 0; at + INSN_BYTES <= c.kernels[k].code_size; at += INSN_BYTES) {
            struct insn in;
            insn_decode(d, c.kernels[k].code + at, at, &in);
            s->insns++;
            size_t row = d->row[in.code];
            if (!row) {
                s->unknown++;
                print_message("%s %s %x: unknown opcode %x\n", path, c.kernels[k].name, at,
                              in.code);
            } else if (row <= ROWS)
                s->rows[row - 1]++;
        }
    cubin_close(&c);
    s->files++;
}

static const struct row *listed(const struct opcode_info *op)
{
    for (size_t i = 0; i < sizeof not_provoked / sizeof not_provoked[0]; i++)
        if (not_provoked[i].base == op->base && not_provoked[i].sm_min == op->sm_min &&
            !strcmp(not_provoked[i].mnemonic, op->mnemonic))
            return &not_provoked[i];
    return NULL;
}

static void every_row_is_met_or_listed(void **state)
{
    (void)state;
    static struct seen s;
    struct opcode_info op;
    size_t rows = 0, met = 0, wrong = 0;
    const char *why = "";
    const struct lab_source *src;
    if (!lab_have_nvcc()) {
        print_message("no nvcc here: nothing to compile the corpus with\n");
        skip();
    }
    if (!lab_nvcc_is("13.0")) {
        print_message("not nvcc 13.0: the list of what it doesn't provoke holds for that one\n");
        skip();
    }
    for (size_t i = 0; (src = lab_corpus(i)); i++) {
        const char *path = lab_build(src, &why);
        if (!path) fail_msg("%s for sm_%s: %s", src->name, src->arch, why);
        count_file(&s, path);
    }
    for (; opcode_info(rows, &op); rows++) {
        assert_true(rows < ROWS);
        const struct row *r = listed(&op);
        met += s.rows[rows] != 0;
        if ((s.rows[rows] != 0) == !r) continue;
        wrong++;
        print_message("0x%03x %s (sm_%d to %d, evidence %s): %s\n", op.base, op.mnemonic, op.sm_min,
                      op.sm_max, op.evidence,
                      r ? "listed, and met after all" : "neither met nor listed");
    }
    print_message("%zu cubins, %zu instructions, %zu unknown; %zu of %zu rows met\n", s.files,
                  s.insns, s.unknown, met, rows);
    assert_int_equal(wrong, 0);
    assert_int_equal(s.unknown, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_met_or_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
