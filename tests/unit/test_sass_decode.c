/* The decoder on instruction words of our own kernels, whose names the vendor's disassembler agrees
 * with. */
#include "sass_view/decode.h"
#include "sass_view/decode_priv.h"
#include "sass_view/vendor.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    int sm;
    uint64_t lo, hi;
    const char *key;
    enum insn_class cls;
    int width;
} words[] = {
    {80, UINT64_C(0x0000000008007984), UINT64_C(0x000fe80000004800), "LDS.32", INSN_CLASS_SHARED,
     32},
    {80, UINT64_C(0x0003080000027984), UINT64_C(0x000ee20000008a00), "LDS.64", INSN_CLASS_SHARED,
     64},
    {90, UINT64_C(0x000000000a087984), UINT64_C(0x000e680000000c00), "LDS.128", INSN_CLASS_SHARED,
     128},
    {80, UINT64_C(0x000c82000e117984), UINT64_C(0x000fe20000000400), "LDS.U16", INSN_CLASS_SHARED,
     16},
    {90, UINT64_C(0x0000000604047981), UINT64_C(0x000ea8000c1e1d00), "LDG.128", INSN_CLASS_GLOBAL,
     128},
    {80, UINT64_C(0x0000000402037981), UINT64_C(0x000ea8000c1e1100), "LDG.U8", INSN_CLASS_GLOBAL,
     8},
    {121, UINT64_C(0x0000000402007981), UINT64_C(0x002ee2000c1e1900), "LDG.32", INSN_CLASS_GLOBAL,
     32},
    {100, UINT64_C(0xfe0000040408797e), UINT64_C(0x004ea20008121904), "LDG.256", INSN_CLASS_GLOBAL,
     256},
    {80, UINT64_C(0x000000000f11783b), UINT64_C(0x000fe80000000000), "LDSM.x1", INSN_CLASS_SHARED,
     32},
    {90, UINT64_C(0x000000000e08783b), UINT64_C(0x000f220000000200), "LDSM.x4", INSN_CLASS_SHARED,
     128},
    {121, UINT64_C(0x000000000f12783b), UINT64_C(0x000e680000004100), "LDSM.x2.T",
     INSN_CLASS_SHARED, 64},
    {120, UINT64_C(0x000000000c12783b), UINT64_C(0x000fe80000013800), "LDSM.x1.B8.T",
     INSN_CLASS_SHARED, 64},
    {120, UINT64_C(0x000000000c14783b), UINT64_C(0x000e68000000aa00), "LDSM.x4.B4",
     INSN_CLASS_SHARED, 128},
    {90, UINT64_C(0x000000040e007844), UINT64_C(0x000fe80000004200), "STSM.x4.T", INSN_CLASS_SHARED,
     128},
    {80, UINT64_C(0x0000000002077fae), UINT64_C(0x0003e8000b901c44), "LDGSTS.128.BYPASS",
     INSN_CLASS_ASYNC, 128},
    {121, UINT64_C(0x0100080004097fae), UINT64_C(0x000fe8000b9a1406), "LDGSTS.64", INSN_CLASS_ASYNC,
     64},
    {80, UINT64_C(0x0000000c08047237), UINT64_C(0x004ff60000405c04), "IMMA.16832.S8.S8",
     INSN_CLASS_TENSOR, 0},
    {86, UINT64_C(0x0000000700047237), UINT64_C(0x004fd80000044404), "IMMA.8816.U8.S8.SAT",
     INSN_CLASS_TENSOR, 0},
    {80, UINT64_C(0x0000000c08047237), UINT64_C(0x004ff60000781404), "IMMA.16864.S4.U4",
     INSN_CLASS_TENSOR, 0},
    {121, UINT64_C(0x0000000008047237), UINT64_C(0x004fde0000400404), "IMMA.16816.U8.U8",
     INSN_CLASS_TENSOR, 0},
    {80, UINT64_C(0x0000000a0c0c723c), UINT64_C(0x004fee0000041804), "HMMA.16816.F32.BF16",
     INSN_CLASS_TENSOR, 0},
    {90, UINT64_C(0x000000100412723c), UINT64_C(0x000fee00000008ff), "HMMA.16816.F16",
     INSN_CLASS_TENSOR, 0},
    {100, UINT64_C(0x000016080410723c), UINT64_C(0x004ff20000005a10), "HMMA.SP.16832.F32",
     INSN_CLASS_TENSOR, 0},
    {89, UINT64_C(0x000000060c08723c), UINT64_C(0x004fee0000081008), "HMMA.1688.F32.TF32",
     INSN_CLASS_TENSOR, 0},
    {80, UINT64_C(0x0000000c0804723d), UINT64_C(0x004ff60000011404), "BMMA.168256.XOR",
     INSN_CLASS_TENSOR, 0},
    {89, UINT64_C(0x000000060c08727a), UINT64_C(0x004fee0000006c08), "QMMA.16832.F32.E5M2.E4M3",
     INSN_CLASS_TENSOR, 0},
    {120, UINT64_C(0x613000100c0c747a), UINT64_C(0x004fd00000208004),
     "QMMA.SF.16832.F32.E4M3.E2M1.E8", INSN_CLASS_TENSOR, 0},
    {120, UINT64_C(0x613000100c0c747f), UINT64_C(0x004fd00000040004),
     "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X", INSN_CLASS_TENSOR, 0},
    {80, UINT64_C(0x0000000a0804723f), UINT64_C(0x004e360000000004), "DMMA.884", INSN_CLASS_TENSOR,
     0},
    {90, UINT64_C(0x00e00000081879f0), UINT64_C(0x000fe60008000818), "HGMMA.64x64x16.F32",
     INSN_CLASS_TENSOR, 0},
    {90, UINT64_C(0x00600000081879f1), UINT64_C(0x000fe60008001018), "IGMMA.64x16x32.S8.U8",
     INSN_CLASS_TENSOR, 0},
    {90, UINT64_C(0x00000000081879f3), UINT64_C(0x000fe60008002818), "QGMMA.64x8x32.F32.E4M3.E5M2",
     INSN_CLASS_TENSOR, 0},
    {100, UINT64_C(0x00ff04100e0075ea), UINT64_C(0x0001d80008000306), "UTCQMMA", INSN_CLASS_TENSOR,
     0},
    {80, UINT64_C(0x00000a00ff017624), UINT64_C(0x000fe400078e00ff), "IMAD.MOV", INSN_CLASS_MOVE,
     0},
    {90, UINT64_C(0x0000000400007824), UINT64_C(0x000fc800078e00ff), "IMAD.SHL", INSN_CLASS_INT, 0},
    {90, UINT64_C(0x0000000108107824), UINT64_C(0x000fe400078e0a0d), "IMAD.IADD", INSN_CLASS_INT,
     0},
    {80, UINT64_C(0x0000580008027625), UINT64_C(0x001fca00078e0209), "IMAD.WIDE", INSN_CLASS_INT,
     0},
    {80, UINT64_C(0x5555555604007827), UINT64_C(0x004fca00078e02ff), "IMAD.HI", INSN_CLASS_INT, 0},
    {121, UINT64_C(0x0000000404047835), UINT64_C(0x001fe400078e0200), "IADD.64", INSN_CLASS_INT, 0},
    {80, UINT64_C(0x00000005ff057435), UINT64_C(0x000fce00000001ff), "HFMA2.MOV", INSN_CLASS_MOVE,
     0},
    {100, UINT64_C(0x00000001ff097431), UINT64_C(0x000fe400000001ff), "HFMA2.MOV", INSN_CLASS_MOVE,
     0},
    {90, UINT64_C(0x0000001014167235), UINT64_C(0x004fe40000200013), "HFMA2.MMA.BF16_V2",
     INSN_CLASS_HALF, 0},
    {80, UINT64_C(0x20000000ff137230), UINT64_C(0x004fe20000004100), "HADD2.F32",
     INSN_CLASS_CONVERT, 0},
    {80, UINT64_C(0x0000000900077308), UINT64_C(0x020e220000001c00), "MUFU.RSQ64H", INSN_CLASS_MUFU,
     0},
    {89, UINT64_C(0x0000000c000c7245), UINT64_C(0x000fe20000201400), "I2FP", INSN_CLASS_CONVERT, 0},
    {90, UINT64_C(0x0001c80c01007387), UINT64_C(0x0001e60000100a00), "STL.64", INSN_CLASS_LOCAL,
     64},
    {90, UINT64_C(0x0001c800010c7983), UINT64_C(0x000ea20000300a00), "LDL.64", INSN_CLASS_LOCAL,
     64},
    {121, UINT64_C(0x00006b00ff0677ac), UINT64_C(0x000e620008000a00), "LDCU.64",
     INSN_CLASS_CONSTANT, 64},
    {90, UINT64_C(0x0000820000047ab9), UINT64_C(0x000fe20000000a00), "ULDC.64", INSN_CLASS_CONSTANT,
     64},
    {90, UINT64_C(0x00008400ff067b82), UINT64_C(0x000e220000000a00), "LDC.64", INSN_CLASS_CONSTANT,
     64},
    {80, UINT64_C(0x0c801f0006087f89), UINT64_C(0x000e2200000e0000), "SHFL.BFLY", INSN_CLASS_WARP,
     0},
    {80, UINT64_C(0x0000000000007b1d), UINT64_C(0x000fec0000010000), "BAR.SYNC", INSN_CLASS_SYNC,
     0},
    {90, UINT64_C(0x00000005ff0075a7), UINT64_C(0x001e220008000146), "SYNCS.PHASECHK.TRYWAIT",
     INSN_CLASS_SYNC, 0},
    {90, UINT64_C(0x00008000000079c5), UINT64_C(0x000fe40000010000), "WARPGROUP.DEPBAR",
     INSN_CLASS_SYNC, 0},
    {80, UINT64_C(0x0000040d0400798e), UINT64_C(0x0001e8000c10e78c), "RED", INSN_CLASS_GLOBAL, 0},
    {80, UINT64_C(0x0000000000087919), UINT64_C(0x000e220000002100), "S2R", INSN_CLASS_MOVE, 0},
    {90, UINT64_C(0x00000008040075b4), UINT64_C(0x0003d80008008000), "UTMALDG", INSN_CLASS_ASYNC,
     0},
    {100, UINT64_C(0x0000000806047249), UINT64_C(0x004fc80000000004), "FFMA2", INSN_CLASS_FLOAT, 0},
    {121, UINT64_C(0x3f80000005047455), UINT64_C(0x000fc80008000804), "UFFMA", INSN_CLASS_UNIFORM,
     0},
    {80, UINT64_C(0x000000080c0973a9), UINT64_C(0x000e2800001ee109), "ATOMG.CAS", INSN_CLASS_GLOBAL,
     0},
    {90, UINT64_C(0xffffffff14177836), UINT64_C(0x000fe40000000000), "VIADD", INSN_CLASS_INT, 0},
};

static struct insn decode(int sm, uint64_t lo, uint64_t hi, uint32_t offset)
{
    struct decoder d;
    struct insn in;
    uint8_t b[INSN_BYTES];
    for (int i = 0; i < 8; i++) {
        b[i] = (uint8_t)(lo >> 8 * i);
        b[i + 8] = (uint8_t)(hi >> 8 * i);
    }
    decoder_init(&d, sm);
    insn_decode(&d, b, offset, &in);
    return in;
}

static void words_of_our_kernels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct insn in = decode(words[i].sm, words[i].lo, words[i].hi, 0);
        assert_string_equal(in.key, words[i].key);
        assert_int_equal(in.cls, words[i].cls);
        assert_int_equal(in.width, words[i].width);
        assert_memory_equal(in.key, in.mnemonic, strlen(in.mnemonic));
    }
}

static void same_bits_other_arch(void **state)
{
    (void)state;
    /* 9 bits that mean something else on another chip: 0x036 and 0x035 in form 1, 0x18e in form 4.
     */
    assert_string_equal(decode(75, 0x236, 0, 0).mnemonic, "HMMA");
    assert_string_equal(decode(90, 0x236, 0, 0).mnemonic, "VIADD");
    assert_string_equal(decode(90, 0x235, 0, 0).key, "HFMA2.MMA");
    assert_string_equal(decode(121, 0x235, 0, 0).key, "IADD.64");
    assert_string_equal(decode(86, 0x98e, 0, 0).mnemonic, "RED");
    assert_string_equal(decode(100, 0x98e, 0, 0).mnemonic, "REDG");
    assert_string_equal(decode(100, 0x24a, 0, 0).mnemonic, "FMUL2");
    assert_string_equal(decode(120, 0x24a, UINT64_C(1) << 27, 0).mnemonic, "UVIMNMX");
}

static void unknown_keeps_its_number(void **state)
{
    (void)state;
    struct insn in = decode(90, 0x1ff, UINT64_C(1) << 27, 32);
    assert_string_equal(in.key, "?0x11ff");
    assert_int_equal(in.cls, INSN_CLASS_UNKNOWN);
    assert_true(in.flags & INSN_UNKNOWN);
    assert_int_equal(in.target, INSN_NO_TARGET);
    /* wgmma belongs to one chip: no guess elsewhere. */
    assert_true(decode(80, 0x9f0, 0, 0).flags & INSN_UNKNOWN);
    assert_true(decode(120, 0x9f0, 0, 0).flags & INSN_UNKNOWN);
    struct decoder d;
    assert_false(decoder_init(&d, 52));
    assert_true(decoder_init(&d, 86));
}

static void unknown_width_is_said(void **state)
{
    (void)state;
    /* LDSM with the count field at 3, an IMMA shape that isn't listed. */
    assert_string_equal(decode(90, 0x83b, 3 << 8, 0).key, "LDSM.?3");
    assert_string_equal(decode(90, 0x237, 1 << 11, 0).key, "IMMA.?1.U8.U8");
}

static void branch_targets(void **state)
{
    (void)state;
    /* BRA to itself: -16 bytes from the next instruction, in both layouts of the field. */
    struct insn in = decode(80, UINT64_C(0xfffffff000007947), UINT64_C(0x000fc0000383ffff), 0x250);
    assert_string_equal(in.key, "BRA");
    assert_int_equal(in.target, 0x250);
    in = decode(90, UINT64_C(0xfffffffc00fc7947), UINT64_C(0x000fc0000383ffff), 0x250);
    assert_int_equal(in.target, 0x250);
    assert_true(in.flags & INSN_BRANCH);
    assert_false(in.flags & INSN_CONDITIONAL);
    /* The whole range of the field may be asked for: no overflow, just a far target. */
    in = decode(90, UINT64_C(0xffffffffffff7947), UINT64_MAX, UINT32_MAX & ~15u);
    assert_true(in.flags & INSN_BRANCH);
}

static void compiler_made_dummy(void **state)
{
    (void)state;
    /* wgmma.commit_group with no fresh MMA: HGMMA RZ, gdesc[URZ], RZ. Beside it, a real one. */
    assert_true(decode(90, UINT64_C(0x000000003fff79f0), UINT64_C(0x000fe6000c0000ff), 0).flags &
                INSN_DUMMY);
    assert_false(decode(90, UINT64_C(0x00000000041879f0), UINT64_C(0x000fe2000c0008ff), 0).flags &
                 INSN_DUMMY);
}

static void guards(void **state)
{
    (void)state;
    char b[16];
    struct insn in = decode(80, 0x794d, UINT64_C(0x000fea0003800000), 0);
    assert_string_equal(in.key, "EXIT");
    assert_string_equal(insn_guard_text(&in, b, sizeof b), "");
    in = decode(80, 0x194d, UINT64_C(0x000fea0003800000), 0);
    assert_string_equal(insn_guard_text(&in, b, sizeof b), "@P1 ");
    in = decode(80, 0x994d, UINT64_C(0x000fea0003800000), 0);
    assert_string_equal(insn_guard_text(&in, b, sizeof b), "@!P1 ");
    in = decode(90, 0x1882, 0, 0);
    assert_string_equal(in.mnemonic, "UMOV");
    assert_string_equal(insn_guard_text(&in, b, sizeof b), "@UP1 ");
}

static void control_fields(void **state)
{
    (void)state;
    /* stall 5, no yield (bit 109 set), write scoreboard 2, read 7 = none, wait on 0 and 3, reuse A.
     */
    uint64_t hi = (UINT64_C(5) << 41) | (UINT64_C(1) << 45) | (UINT64_C(2) << 46) |
                  (UINT64_C(7) << 49) | (UINT64_C(9) << 52) | (UINT64_C(1) << 58);
    struct insn in = decode(90, 0x7984, hi, 0);
    assert_int_equal(in.ctl.stall, 5);
    assert_false(in.ctl.yield);
    assert_int_equal(in.ctl.write_bar, 2);
    assert_int_equal(in.ctl.read_bar, INSN_NO_BAR);
    assert_int_equal(in.ctl.wait_mask, 9);
    assert_int_equal(in.ctl.reuse, 1);
}

static void every_opcode_decodes(void **state)
{
    (void)state;
    static const int sms[] = {70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121};
    struct opcode_info op;
    size_t rows = 0;
    for (; opcode_info(rows, &op); rows++) {
        bool found = false;
        for (size_t s = 0; s < sizeof sms / sizeof sms[0]; s++) {
            if (sms[s] < op.sm_min || sms[s] > op.sm_max) continue;
            for (unsigned form = 0; form < 16; form++) {
                if (!(op.forms >> (form & 7) & 1)) continue;
                uint64_t lo = op.base | (form & 7) << 9, hi = (uint64_t)(form >> 3) << 27;
                found |= decode(sms[s], lo, hi, 0).cls != INSN_CLASS_UNKNOWN;
            }
        }
        if (!found) fail_msg("row %zu (%s) can't be reached", rows, op.mnemonic);
        assert_true(op.base < 512 && op.forms && op.evidence[0] && op.cls < INSN_CLASS_UNKNOWN);
    }
    assert_true(rows > 200);
}

static void vendor_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
        uint32_t offset;
    } rows[] = {
        {"        /*0040*/              @!P0 BRA `(.L_x_3) ;", "@!P0 BRA `(.L_x_3)", 0x40},
        {"        /*1a0*/  { LDS.64 R4, [R2] ;   /* 0x1 */", "LDS.64 R4, [R2]", 0x1a0},
        {".L_x_3:", NULL, 0},
        {"        /*0040*/", NULL, 0},
        {"  /* 0x000fe20003f06070 */", NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        uint32_t off = 0;
        bool is = vendor_line(rows[i].line, &off, text, sizeof text);
        assert_int_equal(is, rows[i].text != NULL);
        if (!is) continue;
        assert_string_equal(text, rows[i].text);
        assert_int_equal(off, rows[i].offset);
    }
}

/* What is installed gives a line an instruction; what isn't says so. */
static void vendor_text_of_a_kernel(void **state)
{
    (void)state;
    struct cubin c;
    struct vendor_text t;
    if (cubin_open_file(&c, "tests/fixtures/sass/tiny_sm_90a.cubin")) fail_msg("%s", err_msg());
    const struct cubin_kernel *k = cubin_find_kernel(&c, "tiny_kd4");
    enum status st = vendor_read(&t, &c, k);
    if (!vendor_installed()) {
        assert_int_equal(st, ERR_UNAVAILABLE);
        assert_non_null(strstr(err_msg(), "isn't installed"));
    } else {
        if (st) fail_msg("%s", err_msg());
        assert_int_equal(t.n, k->code_size / INSN_BYTES);
        for (uint32_t i = 0; i < t.n; i++) assert_non_null(t.line[i]);
    }
    vendor_free(&t);
    cubin_close(&c);
}

static uint64_t next_random(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33 | *s << 31;
}

/* Names are kept by the bits that a rule says it reads: the kept one must be the one that the rule
 * makes of the whole word, for any word. */
static void names_depend_on_the_selected_bits_alone(void **state)
{
    (void)state;
    static const int archs[] = {75, 80, 89, 90, 100, 121};
    uint64_t rng = 3;
    size_t known = 0;
    for (int round = 0; round < 600000; round++) {
        const struct decoder *d = decoder_get(archs[round % 6]);
        uint64_t word[2] = {next_random(&rng), next_random(&rng)};
        if (round & 1) word[0] |= UINT64_C(0xff) << (round & 2 ? 24 : 32); /* RZ is looked at */
        if (round & 4) word[1] |= 0xff;
        if (round & 8) word[0] = (word[0] & 0xffffffff) | UINT64_C(1) << (32 + round % 31);
        struct opcode_info row;
        if (!opcode_info((size_t)(round / 6 % 400), &row)) continue;
        unsigned form = (unsigned)__builtin_ctz(row.forms);
        word[0] = (word[0] & ~UINT64_C(0xfff)) | row.base | form << 9;
        struct insn in;
        insn_decode(d, (const uint8_t *)word, 0, &in);
        if (!in.op) continue;
        struct draft w = {.op = in.op, .sm = in.sm, .lo = in.lo, .hi = in.hi};
        insn_make_name(&w);
        if (strcmp(in.key, w.name.key) || in.cls != w.name.cls || in.width != w.name.width ||
            strcmp(in.mnemonic, w.name.mnemonic))
            fail_msg("%016llx %016llx: %s, the rule says %s", (unsigned long long)in.hi,
                     (unsigned long long)in.lo, in.key, w.name.key);
        known++;
    }
    assert_true(known > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_our_kernels),
        cmocka_unit_test(same_bits_other_arch),
        cmocka_unit_test(unknown_keeps_its_number),
        cmocka_unit_test(unknown_width_is_said),
        cmocka_unit_test(branch_targets),
        cmocka_unit_test(compiler_made_dummy),
        cmocka_unit_test(guards),
        cmocka_unit_test(control_fields),
        cmocka_unit_test(every_opcode_decodes),
        cmocka_unit_test(names_depend_on_the_selected_bits_alone),
        cmocka_unit_test(vendor_lines),
        cmocka_unit_test(vendor_text_of_a_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
