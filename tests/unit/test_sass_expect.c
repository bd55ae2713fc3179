/*
 * Expectations: the language, what each state says, and the rules beside our kernels held against
 * what was built from them.
 */
#include "sass_view/cubin.h"
#include "sass_view/expect.h"
#include "tests/lib/capture.h"
#include "tui/cmd_sass.h"
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TINY "tests/fixtures/sass/tiny_sm_90a.cubin"
#define HEAD "kernel tiny_kd4\n"

static void tiny(struct cubin *c, struct census *s)
{
    if (cubin_open_file(c, TINY)) fail_msg("%s", err_msg());
    const struct cubin_kernel *k = cubin_find_kernel(c, "tiny_kd4");
    assert_non_null(k);
    assert_int_equal(census_make(s, c, k), OK);
}

static struct expect_result check_one(const char *text, const struct census *s, const char *toolkit)
{
    struct expect_set set;
    struct expect_result r;
    if (expect_parse(&set, text, strlen(text), "t")) fail_msg("%s", err_msg());
    assert_int_equal(set.nrules, 1);
    assert_true(expect_applies(&set, set.rules[0].section, s));
    expect_hold(&set, &set.rules[0], s, toolkit, &r);
    expect_free(&set);
    return r;
}

static void states(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        enum expect_state state;
        const char *says;
    } rows[] = {
        {"regs <= 32", EXPECT_HELD, "regs <= 32: is 32"},
        {"regs < 32", EXPECT_OFF, "regs < 32: is 32"},
        {"LDSM.x4 == 2 in hot", EXPECT_OFF, "LDSM.x4 == 2 in hot: is 1, 1 fewer than 2"},
        {"IMMA == 1 in loop # why", EXPECT_HELD, "IMMA == 1 in loop"},
        {"IMMA + LDSM - 1 == LDSM.x4 in hot", EXPECT_HELD, "IMMA + LDSM"},
        {"tensor >= 1", EXPECT_HELD, "tensor >= 1: is 1"},
        {"tensor == shared", EXPECT_OFF, "fewer than"},
        {"total == 59", EXPECT_HELD, "total == 59"},
        {"NOSUCH == 0", EXPECT_HELD, "NOSUCH == 0"},
        {"LDSM > 0 in hot -> r1 reopens", EXPECT_REOPENED, "LDSM > 0 in hot: is 1: r1 reopens"},
        {"LDSM > 1 -> r1 reopens", EXPECT_CLOSED, "LDSM > 1: is 1, not met; once it is, r1 reopens"},
        {"exact total == 59", EXPECT_HELD, "total == 59"},
    };
    struct cubin c;
    struct census s;
    tiny(&c, &s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, HEAD "%s\n", rows[i].rule);
        struct expect_result r = check_one(text, &s, "13.0");
        if (r.state != rows[i].state || !strstr(r.text, rows[i].says))
            fail_msg("%s: %s, %s", rows[i].rule, expect_state_name(r.state), r.text);
    }
    s.regs = CUBIN_UNKNOWN;
    assert_int_equal(check_one(HEAD "regs <= 32", &s, "13.0").state, EXPECT_UNKNOWN);
    s.loops_known = false;
    assert_int_equal(check_one(HEAD "IMMA == 0 in hot", &s, "13.0").state, EXPECT_UNKNOWN);
    assert_int_equal(check_one(HEAD "IMMA == 1", &s, "13.0").state, EXPECT_HELD);
    assert_true(expect_fails(EXPECT_OFF) && expect_fails(EXPECT_UNKNOWN));
    assert_false(expect_fails(EXPECT_SKIPPED) || expect_fails(EXPECT_REOPENED));
    census_free(&s);
    cubin_close(&c);
}

/* Exact rules are about one compiler's output; the same code is the same whatever is stated. */
static void binding(void **state)
{
    (void)state;
    struct cubin c;
    struct census s;
    tiny(&c, &s);
    const char *other = HEAD "code 0000000000000001 CUDA 12.9\nexact total == 60\n";
    struct expect_result r = check_one(other, &s, "13.0");
    assert_int_equal(r.state, EXPECT_SKIPPED);
    assert_string_equal(r.text, "total == 60: counted with CUDA 12.9, this is 13.0");
    assert_int_equal(check_one(other, &s, "12.9").state, EXPECT_OFF);
    const char *same = HEAD "code ee209bbab7b9d115 CUDA 12.9\nexact total == 60\n";
    assert_int_equal(check_one(same, &s, "13.0").state, EXPECT_OFF);

    struct expect_set set;
    assert_int_equal(expect_parse(&set, same, strlen(same), "t"), OK);
    assert_false(expect_code_changed(&set, 0, &s));
    set.sections[0].codes[0].hash++;
    assert_true(expect_code_changed(&set, 0, &s));
    expect_free(&set);
    const char *globs = "kernel tiny_* sm_90a\nregs == 1\nkernel tiny_kd4 sm_80\nregs == 1\n";
    assert_int_equal(expect_parse(&set, globs, strlen(globs), "t"), OK);
    assert_true(expect_applies(&set, 0, &s));
    assert_false(expect_applies(&set, 1, &s));
    expect_free(&set);
    census_free(&s);
    cubin_close(&c);
}

static void broken_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "no rules"},
        {"kernel\n", "line 1: 'kernel' needs a name"},
        {"kernel a 90a\n", "'90a' is no arch"},
        {"\ncode 1 CUDA 13.0\n", "line 2: 'code' stands before"},
        {"kernel a\ncode xyz CUDA 13.0\n", "line 2: write: code"},
        {"regs\n", "a comparison"},
        {"regs == \n", "missing"},
        {"frobs == 1\n", "neither a class nor a figure"},
        {"12x == 1\n", "is no number"},
        {"99999999999999999 == 1\n", "is no number"},
        {"regs == 1 in side\n", "kernel, loop or hot"},
        {"regs == 1 2\n", "left over"},
        {"regs == 1 ->\n", "nothing follows"},
        {"regs == 1+1+1+1+1+1+1+1+1\n", "more than 8 terms"},
        {"AVERYLONGOPCODE.AVERYLONGOPCODE.AVERYLONGOPCODE == 1\n", "is no opcode"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct expect_set set;
        assert_int_equal(expect_parse(&set, rows[i].text, strlen(rows[i].text), "t"), ERR_FORMAT);
        if (!strstr(err_msg(), rows[i].says)) fail_msg("row %zu: %s", i, err_msg());
        assert_null(set.rules);
    }
}

static void the_gate(void **state)
{
    (void)state;
    static const struct {
        const char *rules;
        int status;
        const char *says;
    } rows[] = {
        {"kernel tiny_kd4 sm_90a\nspill == 0\n", EXIT_OK, "1 held, 0 off"},
        {"kernel tiny_kd4 sm_90a\nspill == 1\n", EXIT_FAILED, "1 rules don't hold"},
        {"kernel gone sm_90a\nspill == 0\n", EXIT_FAILED, "no kernel of that name"},
        {"kernel gone sm_80\nspill == 0\n", EXIT_OK, "1 skipped"},
        {"kernel tiny_kd4\nLDSM > 0 -> r1 reopens\n", EXIT_OK, "1 reopened"},
        {"kernel tiny_kd4\ncode 0000000000000001 CUDA 13.0\nspill == 0\n", EXIT_OK,
         "not the code that the rules name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[] = "/tmp/expect_XXXXXX", out[4096];
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_true(write(fd, rows[i].rules, strlen(rows[i].rules)) > 0);
        close(fd);
        char *argv[] = {"sass", "--expect", path, TINY, NULL};
        int status = capture_command(cmd_sass, 4, argv, out, sizeof out);
        unlink(path);
        if (status != rows[i].status || !strstr(out, rows[i].says))
            fail_msg("row %zu: status %d: %s", i, status, out);
    }
}

/* A file whose kernels are for another architecture alone leaves an empty cubin. */
static bool holds_kernels(const char *path)
{
    struct cubin c;
    if (cubin_open_file(&c, path) != OK) fail_msg("%s", err_msg());
    bool some = c.nkernels > 0;
    cubin_close(&c);
    return some;
}

/* kernels/FAMILY/NAME.expect against build/cubin/ARCH/FAMILY/NAME.cubin, every arch that was built.
 */
static void our_kernels(void **state)
{
    (void)state;
    glob_t rules;
    unsigned checked = 0;
    if (glob("kernels/*/*.expect", 0, NULL, &rules)) fail_msg("no rules beside the kernels");
    for (size_t i = 0; i < rules.gl_pathc; i++) {
        glob_t cubins;
        char pattern[256], *argv[24] = {"sass", "--expect", rules.gl_pathv[i]};
        static char out[1 << 16];
        const char *name = rules.gl_pathv[i] + strlen("kernels/");
        snprintf(pattern, sizeof pattern, "build/cubin/*/%.*s.cubin",
                 (int)(strlen(name) - strlen(".expect")), name);
        if (glob(pattern, 0, NULL, &cubins)) continue;
        int argc = 3;
        for (size_t k = 0; k < cubins.gl_pathc && argc < 23; k++)
            if (holds_kernels(cubins.gl_pathv[k])) argv[argc++] = cubins.gl_pathv[k];
        if (capture_command(cmd_sass, argc, argv, out, sizeof out) != EXIT_OK) fail_msg("%s", out);
        const char *last = strstr(out, ".expect: ");
        print_message("%s", last ? last + 9 : out);
        checked++;
        globfree(&cubins);
    }
    globfree(&rules);
    if (!checked) {
        print_message(
            "no cubins under build/cubin (no nvcc here): the kernels' rules aren't held\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),   cmocka_unit_test(binding),     cmocka_unit_test(broken_files),
        cmocka_unit_test(the_gate), cmocka_unit_test(our_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
