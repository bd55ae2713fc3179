/*
 * What the ladder's machine code must be made of, read out of the cubins: the class counts that the
 * steps it stands for are about. Held for the compiler that they were seen with; with another one
 * only matrix instructions are held, and the rest is reported.
 */
#include "kernels/registry.h"
#include "sass_view/census.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char TOOLKIT[] = "13.0"; /* nvcc 13.0.88 */

struct fact {
    const char *file, *kernel, *key;
    uint32_t
        n; /* in the hot loop: a super-block for nb_kd8, KD chunks for narrow, a chunk for wide */
    bool any_compiler;
};

static const struct fact facts[] = {
    /* Each word of nibbles read once; scales of two tokens; two {dsv, dmv}; A fragments. */
    {"nb", "nb_kd8", "LDS.32", 16, false},
    {"nb", "nb_kd8", "LDS.64", 32, false},
    {"nb", "nb_kd8", "LDS.128", 16, false},
    {"nb", "nb_kd8", "LDSM.x4", 32, true},
    {"nb", "nb_kd8", "IMMA", 64, true},
    {"nb", "nb_kd4", "LDS.32", 8, false},
    /* Times 8 warps: 72 ldmatrix a block and chunk, 64 without those of B, 48 as 32 x 64. */
    {"wide", "wide_kd8", "LDSM.x4", 9, true},
    {"wide", "wide_kd4", "LDSM.x4", 9, true},
    {"wide", "wide_kd8", "IMMA", 16, true},
    {"wide_prefold", "wide_prefold_kd8", "LDSM.x4", 9, true},
    {"wide_lds", "wide_lds_kd8", "LDSM.x4", 8, true},
    {"wide_lds", "wide_lds_kd8", "LDS.32", 4, false},
    {"wide_32x64", "wide_32x64_kd8", "LDSM.x4", 6, true},
    {"wide_32x64", "wide_32x64_kd4", "LDSM.x4", 6, true},
    {"wide_32x64", "wide_32x64_kd8", "IMMA", 16, true},
    /* The fold: FMUL 32 -> 20 a chunk; the conversions were shared already. */
    {"narrow_prefold", "narrow_prefold_kd4", "FMUL", 4 * 32, false},
    {"narrow_prefold", "narrow_prefold_kd4", "I2FP", 4 * 20, false},
    {"narrow", "narrow_kd4", "FMUL", 4 * 20, false},
    {"narrow", "narrow_kd4", "I2FP", 4 * 20, false},
    {"narrow", "narrow_kd4", "IMMA", 16, true},
    {"wide_prefold", "wide_prefold_kd4", "FMUL", 128, false},
    {"wide", "wide_kd4", "FMUL", 80, false},
};

static void check_arch(const char *arch)
{
    int held = 0, told = 0;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const struct fact *f = &facts[i];
        char path[128];
        struct cubin c;
        struct census s;
        snprintf(path, sizeof path, "build/cubin/sm_%s/q4k_gemm/%s.cubin", arch, f->file);
        if (cubin_open_file(&c, path) != OK) {
            print_message("%s\n", err_msg());
            skip();
        }
        const struct cubin_kernel *k = cubin_find_kernel(&c, f->kernel);
        assert_non_null(k);
        assert_int_equal(census_make(&s, &c, k), OK);
        assert_true(s.loops_known);
        assert_int_equal(s.unknown, 0);
        uint32_t n = census_count(&s, f->key, CENSUS_HOT);
        if (f->any_compiler || !strcmp(c.toolkit, TOOLKIT)) {
            if (n != f->n)
                print_message("%s sm_%s: %s %u, should be %u\n", f->kernel, arch, f->key, n, f->n);
            assert_int_equal(n, f->n);
            held++;
        } else if (n != f->n) {
            print_message("toolkit %s: %s %s %u, was %u with %s\n", c.toolkit, f->kernel, f->key, n,
                          f->n, TOOLKIT);
            told++;
        }
        census_free(&s);
        cubin_close(&c);
    }
    assert_true(held > 0);
    if (told) print_message("%d facts not held: another compiler\n", told);
}

static void ladder_on_sm_90a(void **state)
{
    (void)state;
    check_arch("90a");
}

static void ladder_on_sm_121(void **state)
{
    (void)state;
    check_arch("121");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ladder_on_sm_90a),
        cmocka_unit_test(ladder_on_sm_121),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
