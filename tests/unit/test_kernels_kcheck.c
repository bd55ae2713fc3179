/* The checker's own judgement, on outputs made by the CPU: what passes, and what must not. */
#include "kernels/kcheck/kcheck.h"
#include "kernels/q4k_gemm/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct variant_desc desc = {.tile_m = 64, .tile_n = 64};

struct fixture {
    const struct kernel_family *fam;
    struct shape s;
    struct family_inputs in;
    uint8_t *buffer;
    float *y;
};

static void make(struct fixture *f, int m, int n, int k, enum input_kind kind)
{
    f->fam = family_find("q4k_gemm");
    f->s = (struct shape){m, n, k};
    assert_int_equal(f->fam->make_inputs(&f->s, kind, 3, &f->in), OK);
    f->buffer = malloc(check_buffer_bytes(f->fam, &f->s));
    assert_non_null(f->buffer);
    check_buffer_fill(f->fam, &f->s, f->buffer);
    f->y = (float *)(f->buffer + CHECK_GUARD_BYTES);
    for (int t = 0; t < n; t++)
        for (int r = 0; r < m; r++)
            f->y[(size_t)t * (size_t)m + (size_t)r] = q4k_dot_chunked(
                f->in.b + (size_t)r * q4k_row_bytes(k), f->in.a + (size_t)t * q8_row_bytes(k), k);
}

static void drop(struct fixture *f)
{
    family_inputs_free(&f->in);
    free(f->buffer);
}

static bool sound(struct fixture *f, struct comparison *c, char *why)
{
    check_compare(f->fam, &desc, &f->s, &f->in, f->buffer, 1, c);
    return check_verdict(c, why);
}

static void the_reference_passes_on_every_kind(void **state)
{
    (void)state;
    for (int kind = 0; kind < INPUT_KINDS; kind++) {
        struct fixture f;
        struct comparison c;
        char why[CHECK_WHY];
        make(&f, 65, 7, 1024, (enum input_kind)kind);
        assert_true(sound(&f, &c, why));
        assert_int_equal(c.compared, 65 * 7);
        assert_true(c.worst <= 1 && c.nmse <= c.nmse_limit);
        drop(&f);
    }
}

static void one_small_slip_is_seen(void **state)
{
    (void)state;
    struct fixture f;
    struct comparison c;
    char why[CHECK_WHY];
    make(&f, 64, 5, 512, INPUT_RANDOM);
    struct reference_value ref = f.fam->reference(&f.s, &f.in, 2, 9);
    /* Three times what rounding may do, on one output. */
    f.y[2 * 64 + 9] = (float)(ref.v + 3 * f.fam->tolerance(&desc, &f.s, &ref).worst);
    assert_false(sound(&f, &c, why));
    assert_int_equal(c.wrong, 1);
    assert_int_equal(c.worst_token, 2);
    assert_int_equal(c.worst_row, 9);
    assert_non_null(strstr(why, "token 2 row 9"));
    drop(&f);
}

static void unwritten_outputs_and_guards_are_seen(void **state)
{
    (void)state;
    struct fixture f;
    struct comparison c;
    char why[CHECK_WHY];
    make(&f, 33, 3, 256, INPUT_RANDOM);
    float keep = f.y[50];
    f.y[50] = NAN;
    assert_false(sound(&f, &c, why));
    assert_int_equal(c.unwritten, 1);
    f.y[50] = keep;
    f.y[33 * 3] = 0; /* one float past the end */
    assert_false(sound(&f, &c, why));
    assert_int_equal(c.guard_bytes, 4);
    assert_non_null(strstr(why, "outside"));
    check_buffer_fill(f.fam, &f.s, f.buffer);
    f.buffer[CHECK_GUARD_BYTES - 1] ^= 1;
    check_compare(f.fam, &desc, &f.s, &f.in, f.buffer, 1, &c);
    assert_int_equal(c.guard_bytes, 1);
    assert_int_equal(c.unwritten, 99);
    drop(&f);
}

static void zeros_must_be_exact(void **state)
{
    (void)state;
    struct fixture f;
    struct comparison c;
    char why[CHECK_WHY];
    make(&f, 4, 4, 256, INPUT_RANDOM);
    memset(f.in.a, 0, f.in.a_bytes);
    for (int i = 0; i < 16; i++) f.y[i] = 0;
    assert_true(sound(&f, &c, why));
    f.y[3] = 1e-30f;
    assert_false(sound(&f, &c, why));
    drop(&f);
}

static void samples_hold_every_tile_edge(void **state)
{
    (void)state;
    struct shape s = {.m = 14336 - 5, .n = 519, .k = 4096};
    char *row_seen = calloc((size_t)s.m, 1), *token_seen = calloc((size_t)s.n, 1);
    int token, row, n = 0;
    for (; check_sample(&desc, &s, 9, n, &token, &row); n++) {
        assert_in_range(token, 0, s.n - 1);
        assert_in_range(row, 0, s.m - 1);
        row_seen[row] = token_seen[token] = 1;
    }
    assert_int_equal(n, CHECK_SAMPLES);
    for (int r = 0; r < s.m; r++)
        if (r % 64 == 0 || r % 64 == 63 || r == s.m - 1) assert_true(row_seen[r]);
    for (int t = 0; t < s.n; t++)
        if (t % 64 == 0 || t % 64 == 63 || t == s.n - 1) assert_true(token_seen[t]);
    free(row_seen);
    free(token_seen);
}

static void without_a_gpu_it_says_so(void **state)
{
    (void)state;
    struct check_job job = {0};
    static struct check_report report;
    setenv("SASSTOP_LIBCUDA", "libno-such-driver.so.1", 1);
    assert_int_equal(check_watch(&job, 20, &report), ERR_UNAVAILABLE);
    assert_non_null(strstr(err_msg(), "no NVIDIA driver"));
    unsetenv("SASSTOP_LIBCUDA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_passes_on_every_kind),
        cmocka_unit_test(one_small_slip_is_seen),
        cmocka_unit_test(unwritten_outputs_and_guards_are_seen),
        cmocka_unit_test(zeros_must_be_exact),
        cmocka_unit_test(samples_hold_every_tile_edge),
        cmocka_unit_test(without_a_gpu_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
