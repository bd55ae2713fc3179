/* What runs after a fault: the last good variant, else the engine's default, else its family's
 * fallback, and never one that is wrong on purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/session_lab.h"
#include "tui/restart.h"

static struct session *s;
static uint32_t generations;
static char got[48];
static uint32_t got_kd;

enum { STARTS = 1, FALLBACK = 2, BROKEN = 4 };

static void offer(const char *name, uint32_t kd, unsigned standing)
{
    struct msg_variant_def v = {
        .family = "q4k_gemm", .kd = kd, .ok = 1, .standing = (uint8_t)standing};
    strcpy(v.variant, name);
    lab_apply(s, FRAME_VARIANT_DEF, &v);
}

static void ran(const char *family, const char *name, uint32_t kd, const char *parity)
{
    struct msg_generation g = {.generation = ++generations, .kd = kd, .reason = "flip"};
    strcpy(g.family, family);
    strcpy(g.variant, name);
    strcpy(g.parity, parity);
    lab_apply(s, FRAME_GENERATION, &g);
}

static void faults(const char *name, uint32_t kd)
{
    struct msg_fault f = {.family = "q4k_gemm", .kind = "killed", .kd = kd, .blames = 1};
    strcpy(f.variant, name);
    lab_apply(s, FRAME_FAULT, &f);
}

static bool choose(void)
{
    got[0] = 0;
    return restart_choose(s, got, sizeof got, &got_kd);
}

static void offer_all(void)
{
    offer("broken_barrier", 8, BROKEN);
    offer("mmq_r1", 8, 0);
    offer("narrow", 8, FALLBACK);
    offer("narrow", 4, FALLBACK);
    offer("nb", 8, STARTS);
}

static void the_default_comes_first(void **state)
{
    (void)state;
    offer_all();
    assert_false(choose()); /* nothing has run */
    ran("q4k_gemm", "mmq_r1", 8, "unchecked");
    assert_true(choose());
    assert_string_equal(got, "nb");
    assert_int_equal(got_kd, 8);
}

static void the_fallback_when_the_default_faulted(void **state)
{
    (void)state;
    offer_all();
    ran("q4k_gemm", "nb", 8, "unchecked");
    faults("nb", 8);
    assert_true(choose());
    assert_string_equal(got, "narrow");
    assert_int_equal(got_kd, 8); /* of the same depth */
    ran("q4k_gemm", "narrow", 8, "unchecked");
    faults("narrow", 8);
    assert_true(choose());
    assert_string_equal(got, "narrow");
    assert_int_equal(got_kd, 4);
}

static void never_one_that_is_wrong_on_purpose(void **state)
{
    (void)state;
    offer("broken_barrier", 8, BROKEN);
    offer("nb", 8, STARTS);
    ran("q4k_gemm", "broken_barrier", 8, "ok");
    ran("q4k_gemm", "nb", 8, "ok");
    assert_false(choose());
}

static void not_back_to_a_forced_one(void **state)
{
    (void)state;
    offer_all();
    ran("q4k_gemm", "narrow", 4, "unchecked");
    ran("q4k_gemm", "mmq_r1", 8, "forced");
    ran("q4k_gemm", "nb", 8, "ok");
    assert_true(choose());
    assert_string_equal(got, "narrow");
    assert_int_equal(got_kd, 4);
}

/* --variant selects in q4k_gemm alone: another family's name there would be refused. */
static void another_family_leaves_q4k_as_it_was(void **state)
{
    (void)state;
    offer_all();
    ran("q4k_gemm", "narrow", 4, "ok");
    ran("q6k_gemm", "q6k_wide", 8, "ok");
    assert_true(choose());
    assert_string_equal(got, "narrow");
    assert_int_equal(got_kd, 4);
}

static int setup(void **state)
{
    (void)state;
    generations = 0;
    s = calloc(1, sizeof *s);
    return !s || session_init(s) != OK;
}

static int teardown(void **state)
{
    (void)state;
    session_free(s);
    free(s);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_default_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(the_fallback_when_the_default_faulted, setup, teardown),
        cmocka_unit_test_setup_teardown(never_one_that_is_wrong_on_purpose, setup, teardown),
        cmocka_unit_test_setup_teardown(not_back_to_a_forced_one, setup, teardown),
        cmocka_unit_test_setup_teardown(another_family_leaves_q4k_as_it_was, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
