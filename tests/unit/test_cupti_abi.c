/*
 * Own declarations of CUPTI against CUDA's headers: compiles tests/unit/cupti_abi/check.c, which
 * consists of static assertions. Skipped where the headers or a compiler are missing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "cupti/lib.h"

static const char *cuda_include(void)
{
    static const char *const dirs[] = {"/usr/local/cuda/include", "/usr/local/cuda-13.0/include"};
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/cupti_pmsampling.h", dirs[i]);
        if (access(path, R_OK) == 0) return dirs[i];
    }
    return NULL;
}

static int compile(const char *include, const char *extra)
{
    char cmd[512];
    snprintf(cmd, sizeof cmd,
             "${CC:-cc} -std=c11 -D_GNU_SOURCE -fsyntax-only -I. -isystem tests/unit/cupti_abi "
             "-isystem %s %s tests/unit/cupti_abi/check.c 2>/dev/null",
             include, extra);
    return system(cmd);
}

static void layouts_match(void **state)
{
    (void)state;
    const char *include = cuda_include();
    if (!include || system("${CC:-cc} --version >/dev/null 2>&1") != 0) {
        print_message("skipped: no CUDA 13 headers under /usr/local/cuda, or no C compiler\n");
        skip();
    }
    assert_int_equal(compile(include, ""), 0);
    assert_int_not_equal(compile(include, "-DBREAK"), 0); /* the check can fail */
}

/* Every result that abi.h names has words of its own, and the lasting ones say what to do or that
 * nothing helps. */
static void results_have_words(void **state)
{
    (void)state;
    static const int named[] = {1,  2,  7,  8,  12, 14, 15, 26, 27, 33, 35,
                                38, 39, 40, 41, 42, 43, 44, 45, 46, 999};
    struct cupti_lib lib = {0};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        struct cupti_words w = cupti_explain(named[i]);
        assert_true(w.name[0] && w.why[0]);
        enum status st = cupti_check(&lib, named[i], "opening");
        assert_int_equal(st, w.lasting ? ERR_UNAVAILABLE : ERR_FAILED);
        assert_non_null(strstr(err_msg(), w.name));
    }
    assert_int_equal(cupti_check(&lib, 5, "opening"), ERR_FAILED);
    assert_non_null(strstr(err_msg(), "(5)"));
    assert_int_equal(cupti_check(&lib, 0, "opening"), OK);
    struct cupti_words p = cupti_explain(CUPTI_R_INSUFFICIENT_PRIVILEGES);
    assert_non_null(strstr(p.remedy, "NVreg_RestrictProfilingToAdminUsers=0"));
    assert_non_null(strstr(p.remedy, "CAP_PERFMON"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_match),
        cmocka_unit_test(results_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
