/* The diff of two kernels: alignment against a plain LCS, each verdict on made-up code, claims, the
 * command. */
#include "sass_view/diff.h"
#include "sass_view/operands.h"
#include "tests/lib/capture.h"
#include "tui/cmd_diff.h"
#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TINY "tests/fixtures/sass/tiny_sm_90a.cubin"
enum { SM = 90, CODE_MAX = 4096 };

/* A kernel made of instruction words; the caller frees the flow and the census. */
struct made {
    struct cubin c;
    struct cubin_kernel k;
    uint8_t code[CODE_MAX * INSN_BYTES];
    struct flow f;
    struct census s;
};

static void put(struct made *m, uint64_t lo, uint64_t hi)
{
    uint8_t *p = m->code + m->k.code_size;
    assert_true(m->k.code_size < sizeof m->code);
    memcpy(p, &lo, 8);
    memcpy(p + 8, &hi, 8);
    m->k.code_size += INSN_BYTES;
}

static void start(struct made *m)
{
    memset(m, 0, sizeof *m);
    m->c.sm = SM;
    m->k.name = "made";
    m->k.code = m->code;
}

static void finish(struct made *m)
{
    put(m, 0x000000000000794dULL, 0x000fea0003800000ULL); /* EXIT */
    assert_int_equal(flow_make(&m->f, &m->c, &m->k), OK);
    assert_int_equal(census_make(&m->s, &m->c, &m->k), OK);
}

static void drop(struct made *m)
{
    flow_free(&m->f);
    census_free(&m->s);
}

/* op 0..5: instructions with different keys; registers and control fields as given. */
static void put_op(struct made *m, unsigned op, unsigned reg, unsigned stall)
{
    static const uint64_t lo[] = {0x0000000000007221ULL, 0x0000000000007220ULL,
                                  0x0000000000007223ULL, 0x0000000000007210ULL,
                                  0x0000000000007212ULL, 0x0000000000007984ULL};
    static const uint64_t hi[] = {
        0, 0, 0, 0x07ffe0ff00000000ULL & 0x00000000ffffff00ULL, 0, UINT64_C(0x800)};
    put(m, lo[op] | (uint64_t)reg << 16 | (uint64_t)reg << 24,
        hi[op] | (uint64_t)stall << (105 - 64) | UINT64_C(0x7) << (110 - 64));
}

static uint64_t next_random(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33;
}

static uint32_t lcs(const unsigned *a, uint32_t n, const unsigned *b, uint32_t m)
{
    static uint32_t t[2][400];
    memset(t, 0, sizeof t);
    for (uint32_t i = 1; i <= n; i++)
        for (uint32_t j = 1; j <= m; j++)
            t[i & 1][j] = a[i - 1] == b[j - 1]                  ? t[(i - 1) & 1][j - 1] + 1
                          : t[(i - 1) & 1][j] > t[i & 1][j - 1] ? t[(i - 1) & 1][j]
                                                                : t[i & 1][j - 1];
    return t[n & 1][m];
}

/* Both sides whole, in order, partners of one key; as many as a longest common subsequence has. */
static void alignment_is_longest(void **state)
{
    (void)state;
    static struct made a, b;
    static unsigned sa[400], sb[400];
    uint64_t rng = 7;
    for (int round = 0; round < 300; round++) {
        uint32_t n = (uint32_t)(next_random(&rng) % 120), m = (uint32_t)(next_random(&rng) % 120);
        unsigned alphabet = 1 + (unsigned)(next_random(&rng) % 6);
        start(&a);
        start(&b);
        for (uint32_t i = 0; i < n; i++)
            put_op(&a, sa[i] = (unsigned)(next_random(&rng) % alphabet), 1, 1);
        for (uint32_t i = 0; i < m; i++)
            put_op(&b, sb[i] = (unsigned)(next_random(&rng) % alphabet), 2, 1);
        finish(&a);
        finish(&b);
        struct diff d;
        assert_int_equal(diff_make(&d, &a.f, &b.f, &a.s, &b.s), OK);
        uint32_t na = 0, nb = 0, pairs = 0;
        for (uint32_t i = 0; i < d.nlines; i++) {
            if (d.lines[i].a >= 0) assert_int_equal(d.lines[i].a, na++);
            if (d.lines[i].b >= 0) assert_int_equal(d.lines[i].b, nb++);
            if (d.lines[i].a < 0 || d.lines[i].b < 0) continue;
            assert_string_equal(a.f.insns[d.lines[i].a].key, b.f.insns[d.lines[i].b].key);
            pairs++;
        }
        assert_int_equal(na, n + 1);
        assert_int_equal(nb, m + 1);
        assert_true(d.aligned);
        assert_int_equal(pairs, lcs(sa, n, sb, m) + 1); /* and EXIT */
        assert_int_equal(d.n[0] + d.n[1] + d.n[2], pairs);
        diff_free(&d);
        drop(&a);
        drop(&b);
    }
}

static enum diff_verdict verdict(struct made *a, struct made *b, uint32_t n[DIFF_KINDS])
{
    struct diff d;
    finish(a);
    finish(b);
    assert_int_equal(diff_make(&d, &a->f, &b->f, &a->s, &b->s), OK);
    enum diff_verdict v = d.verdict;
    memcpy(n, d.n, sizeof d.n);
    diff_free(&d);
    drop(a);
    drop(b);
    return v;
}

static void verdicts(void **state)
{
    (void)state;
    static struct made a, b;
    static const struct {
        unsigned op[2], reg[2], stall[2];
        enum diff_verdict verdict;
    } rows[] = {
        {{0, 1}, {3, 4}, {1, 1}, DIFF_IDENTICAL},
        {{0, 1}, {3, 4}, {1, 9}, DIFF_SCHEDULE}, /* another stall count */
        {{0, 1}, {3, 5}, {1, 1}, DIFF_SCHEDULE}, /* a renamed register */
        {{1, 0}, {4, 3}, {1, 1}, DIFF_SCHEDULE}, /* another order */
        {{0, 2}, {3, 4}, {1, 1}, DIFF_DIFFERENT},
    };
    uint32_t n[DIFF_KINDS];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start(&a);
        start(&b);
        put_op(&a, 0, 3, 1);
        put_op(&a, 1, 4, 1);
        for (int k = 0; k < 2; k++) put_op(&b, rows[i].op[k], rows[i].reg[k], rows[i].stall[k]);
        enum diff_verdict v = verdict(&a, &b, n);
        if (v != rows[i].verdict) fail_msg("row %zu: %s", i, diff_verdict_name(v));
    }
    /* Another address offset: the census is the same, the instruction isn't. */
    start(&a);
    start(&b);
    put(&a, 0x0000100002007984ULL, 0x800);
    put(&b, 0x0000200002007984ULL, 0x800);
    assert_int_equal(verdict(&a, &b, n), DIFF_CENSUS);
    assert_int_equal(n[DIFF_OPERANDS], 1);
}

static void claims(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum claim_state state;
        const char *says;
    } rows[] = {
        {"FADD 2 -> 1", CLAIM_MET, "met: A holds 2, B 1"},
        {"FADD + FMUL in kernel 2 -> 1", CLAIM_MET, "met"},
        {"FADD 1 -> 2", CLAIM_INCUMBENT, "A holds 2, not 1: what is claimed is there already"},
        {"FADD 2 -> 0", CLAIM_UNMET, "but B holds 1, not 0: predicted NOISE"},
        {"schedule only", CLAIM_UNMET, "not only the schedule: different"},
        {"regs 2 -> 1", CLAIM_INCUMBENT, "A holds 0"},
    };
    static const char *const broken[] = {"",          "FADD",          "FADD -> 1",
                                         "FADD 2 ->", "FADD 2 -> 1 x", "fadd 2 -> 1"};
    static struct made a, b;
    struct diff d;
    struct claim c;
    struct claim_result r;
    start(&a);
    start(&b);
    put_op(&a, 0, 1, 1);
    put_op(&a, 0, 2, 1);
    put_op(&b, 0, 1, 1);
    finish(&a);
    finish(&b);
    assert_int_equal(diff_make(&d, &a.f, &b.f, &a.s, &b.s), OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (claim_parse(&c, rows[i].text)) fail_msg("%s: %s", rows[i].text, err_msg());
        claim_hold(&c, &d, &a.s, &b.s, &r);
        if (r.state != rows[i].state || !strstr(r.text, rows[i].says))
            fail_msg("%s: %d, %s", rows[i].text, r.state, r.text);
    }
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        if (claim_parse(&c, broken[i]) != ERR_FORMAT) fail_msg("%s was taken", broken[i]);
    a.s.regs = CUBIN_UNKNOWN;
    assert_int_equal(claim_parse(&c, "regs 2 -> 1"), OK);
    claim_hold(&c, &d, &a.s, &b.s, &r);
    assert_int_equal(r.state, CLAIM_UNKNOWN);
    diff_free(&d);
    drop(&a);
    drop(&b);
}

static int run_command(const char *const *args, char *out, size_t size)
{
    char *argv[12] = {"diff"};
    int argc = 1;
    for (; args[argc - 1] && argc < 11; argc++) argv[argc] = (char *)args[argc - 1];
    return capture_command(cmd_diff, argc, argv, out, size);
}

static void command(void **state)
{
    (void)state;
    static const struct {
        const char *args[6];
        int status;
        const char *says;
    } rows[] = {
        {{TINY ":tiny_kd4", TINY ":tiny"}, EXIT_OK, "verdict: identical bytes"},
        {{TINY ":tiny_kd4", TINY}, EXIT_OK, "verdict: identical bytes"},
        {{TINY "@90a:tiny", TINY ":frame", "--same"}, EXIT_FAILED, "verdict: different"},
        {{TINY ":tiny", "tests/fixtures/sass/tiny_sm_80.cubin", "--claim", "IMMA 1 -> 1"},
         EXIT_OK,
         "claim: IMMA 1 -> 1: met"},
        {{TINY ":tiny", TINY, "--claim", "schedule only"}, EXIT_FAILED, "predicted NOISE"},
        {{"tests/fixtures/code.sasstop@90a:tiny", TINY}, EXIT_OK, "verdict: identical bytes"},
        {{"tests/fixtures/code.sasstop@75:tiny", TINY}, EXIT_FAILED, "no kernel like tiny for 75"},
        {{TINY ":tiny", TINY, "--code"}, EXIT_OK, "IMMA.16832.S8.S8 R"},
        {{TINY, TINY},
         EXIT_FAILED,
         "2 kernels fit, name one after ':' (FILE:KERNEL): frame tiny_kd4"},
        {{"tests/fixtures/h200_walk.sasstop", TINY}, EXIT_FAILED, " more\n"},
        {{TINY ":nix", TINY}, EXIT_FAILED, "no kernel like nix"},
        {{TINY "@80:tiny", TINY}, EXIT_FAILED, "no kernel like tiny for 80"},
        {{TINY ":(", TINY}, EXIT_USAGE, "not a regular expression"},
        {{TINY}, EXIT_USAGE, "two kernels"},
        {{TINY ":tiny", TINY, "--claim", "x"}, EXIT_USAGE, "--claim: a claim is"},
        {{"--help"}, EXIT_OK, "usage: sasstop diff"},
    };
    static char out[1 << 16];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = run_command(rows[i].args, out, sizeof out);
        if (status != rows[i].status || !strstr(out, rows[i].says))
            fail_msg("row %zu: status %d: %s", i, status, out);
    }
    const char *json[] = {TINY ":tiny", TINY ":frame", "--json", NULL};
    assert_int_equal(run_command(json, out, sizeof out), EXIT_OK);
    cJSON *o = cJSON_Parse(out);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "verdict")), "different");
    int a = 0, b = 0;
    const cJSON *r;
    cJSON_ArrayForEach(r, cJSON_GetObjectItem(o, "opcodes"))
    {
        a += cJSON_GetObjectItem(r, "total_a")->valueint;
        b += cJSON_GetObjectItem(r, "total_b")->valueint;
    }
    assert_int_equal(a, 59);
    assert_int_equal(b, 100);
    const cJSON *regs = cJSON_GetObjectItem(cJSON_GetObjectItem(o, "resources"), "registers");
    assert_int_equal(cJSON_GetObjectItem(regs, "a")->valueint, 32);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(o, "claim")));
    cJSON_Delete(o);
}

static void operands(void **state)
{
    (void)state;
    static const struct {
        uint64_t lo, hi;
        const char *text;
    } rows[] = {
        {0x0000100002007984ULL, 0x800, "R0, [R2+0x10]"},
        {0xfffff00002007984ULL, 0x800, "R0, [R2-0x10]"},
        {0x00001000ff027984ULL, 0x800, "R2, [0x10]"},
        {0x0000000305047223ULL, 0x00000000000000ffULL, "R4, R5, R3, RZ"},
        {0x3f80000005047823ULL, 0x0000000000000007ULL, "R4, R5, 0x3f800000, R7"},
    };
    char text[64];
    const struct decoder *d = decoder_get(SM);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t code[INSN_BYTES];
        struct insn in;
        memcpy(code, &rows[i].lo, 8);
        memcpy(code + 8, &rows[i].hi, 8);
        insn_decode(d, code, 0, &in);
        insn_operand_text(&in, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
    struct insn in;
    uint8_t none[INSN_BYTES] = {0xff, 0xff};
    insn_decode(d, none, 0, &in);
    assert_string_equal(insn_operand_text(&in, text, sizeof text), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alignment_is_longest),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(claims),
        cmocka_unit_test(command),
        cmocka_unit_test(operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
