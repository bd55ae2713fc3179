/* The checker's own judgement, on outputs made by the CPU: what passes, and what must not. */
#include "base/median.h"
#include "kernels/kcheck/bench.h"
#include "kernels/kcheck/kcheck.h"
#include "kernels/q4k_gemm/ref.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* ---- children that behave as a kernel might make them ---- */

static const struct shape three[] = {{64, 64, 256}, {65, 65, 256}, {66, 66, 256}};

static void tell(int fd, uint32_t type, int a, int b, const char *text)
{
    struct check_record r = {.type = type, .a = a, .b = b, .n = b == CHECK_OK};
    snprintf(r.text, sizeof r.text, "%s", text);
    if (write(fd, &r, sizeof r) != (ssize_t)sizeof r) _exit(9);
}

static void one_good_then_begin_second(int fd)
{
    tell(fd, RECORD_DEVICE, 90, 0, "a GPU");
    tell(fd, RECORD_BEGIN, 0, 0, "");
    tell(fd, RECORD_SHAPE, 0, CHECK_OK, "");
    tell(fd, RECORD_BEGIN, 1, 0, "");
}

static int child_killed(const struct check_job *job, int fd)
{
    (void)job;
    one_good_then_begin_second(fd);
    raise(SIGKILL);
    return 0;
}

static int child_leaves(const struct check_job *job, int fd)
{
    (void)job;
    one_good_then_begin_second(fd);
    return 7;
}

static int child_stuck(const struct check_job *job, int fd)
{
    (void)job;
    one_good_then_begin_second(fd);
    for (;;) pause();
    return 0;
}

static int child_sound(const struct check_job *job, int fd)
{
    one_good_then_begin_second(fd);
    for (int i = 1; i < job->n_shapes; i++) tell(fd, RECORD_SHAPE, i, CHECK_OK, "");
    tell(fd, RECORD_END, 0, 0, "");
    return 0;
}

static int child_times(const struct check_job *job, int fd)
{
    struct check_record r = {.type = RECORD_BENCH, .a = 0};
    one_good_then_begin_second(fd);
    r.bench = (struct bench_figures){.us = 12.5, .n = 9, .ratio = 1.25};
    memset(r.bench.throttle, 'x', sizeof r.bench.throttle); /* no end: the parent has to make one */
    if (write(fd, &r, sizeof r) != (ssize_t)sizeof r) return 9;
    for (int i = 1; i < job->n_shapes; i++) tell(fd, RECORD_SHAPE, i, CHECK_OK, "");
    tell(fd, RECORD_BENCH, 1, 0, "not timed: no clock");
    tell(fd, RECORD_END, 0, 0, "");
    return 0;
}

static int child_wrong(const struct check_job *job, int fd)
{
    (void)job;
    one_good_then_begin_second(fd);
    tell(fd, RECORD_SHAPE, 1, CHECK_FAILED, "3 outputs wrong");
    tell(fd, RECORD_SHAPE, 2, CHECK_OK, "");
    tell(fd, RECORD_SYMPTOM, 0, 0, "mixed");
    tell(fd, RECORD_END, 0, 0, "");
    return 0;
}

static int child_babbles(const struct check_job *job, int fd)
{
    (void)job;
    tell(fd, RECORD_SHAPE, 99, CHECK_OK, "out of range");
    tell(fd, RECORD_BEGIN, -5, 0, "");
    tell(fd, 4711, 0, 0, "unknown type");
    if (write(fd, "half", 4) != 4) return 1;
    return 0;
}

static struct check_report *watch(int (*child)(const struct check_job *, int), const char *expect)
{
    static struct check_report report;
    static struct variant v;
    v = (struct variant){.kernel = "x_kd8", .family = "q4k_gemm", .broken = expect != NULL};
    if (expect) snprintf(v.desc.expect, sizeof v.desc.expect, "%s", expect);
    struct check_job job = {.variant = &v, .shapes = three, .n_shapes = 3, .child = child};
    assert_int_equal(check_watch(&job, 1, &report), OK);
    return &report;
}

static void a_dead_child_is_a_fault_where_it_was(void **state)
{
    (void)state;
    struct check_report *r = watch(child_killed, NULL);
    assert_false(r->ok);
    assert_int_equal(r->results[0].disposition, CHECK_OK);
    assert_int_equal(r->results[1].disposition, CHECK_FAULT);
    assert_int_equal(r->results[2].disposition, CHECK_SKIPPED);
    assert_non_null(strstr(r->results[1].why, "signal 9"));
    assert_string_equal(r->device, "a GPU");
    r = watch(child_leaves, NULL);
    assert_int_equal(r->results[1].disposition, CHECK_FAULT);
    assert_non_null(strstr(r->results[1].why, "status 7"));
    assert_true(watch(child_killed, "fault")->ok);
}

static void a_silent_child_is_a_hang_and_is_ended(void **state)
{
    (void)state;
    struct check_report *r = watch(child_stuck, NULL);
    assert_false(r->ok);
    assert_int_equal(r->results[1].disposition, CHECK_HANG);
    assert_int_equal(r->results[2].disposition, CHECK_SKIPPED);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing left behind */
    assert_true(watch(child_stuck, "hang")->ok);
}

static void a_broken_kernel_must_be_caught_for_its_own_reason(void **state)
{
    (void)state;
    assert_true(watch(child_sound, NULL)->ok);
    assert_false(watch(child_wrong, NULL)->ok);
    assert_true(watch(child_wrong, "mixed")->ok);
    assert_false(watch(child_wrong, "race")->ok);
    assert_false(watch(child_sound, "mixed")->ok); /* went unnoticed */
    assert_false(watch(child_stuck, "mixed")->ok);
}

static void nonsense_from_a_child_is_contained(void **state)
{
    (void)state;
    struct check_report *r = watch(child_babbles, NULL);
    assert_false(r->ok);
    assert_int_equal(r->results[0].disposition, CHECK_FAULT);
}

/* ---- the bench's rules and the fragments ---- */

static void a_series_settles_when_it_is_long_and_even(void **state)
{
    (void)state;
    double even[12], odd[12], median, iqr;
    for (int i = 0; i < 12; i++) {
        even[i] = 100 + (i % 3) * 0.1;
        odd[i] = 100 + (i % 3) * 5;
    }
    assert_false(bench_settled(even, 8));
    assert_true(bench_settled(even, 9));
    assert_false(bench_settled(odd, 12));
    odd[11] = 1000; /* one outlier moves neither */
    median = median_iqr(odd, 12, &iqr);
    assert_true(median == 105 && iqr == 10);
}

static void bench_figures_come_through_the_pipe(void **state)
{
    (void)state;
    struct check_report *r = watch(child_times, NULL);
    assert_true(r->ok);
    assert_int_equal(r->results[0].bench.n, 9);
    assert_true(r->results[0].bench.us == 12.5 && r->results[0].bench.ratio == 1.25);
    assert_int_equal(r->results[1].bench.n, 0);
    assert_string_equal(r->results[1].why, "not timed: no clock");
}

static void fragments_agree_with_ldmatrix(void **state)
{
    (void)state;
    assert_int_equal(check_fragments(false), 0);
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
        cmocka_unit_test(a_dead_child_is_a_fault_where_it_was),
        cmocka_unit_test(a_silent_child_is_a_hang_and_is_ended),
        cmocka_unit_test(a_broken_kernel_must_be_caught_for_its_own_reason),
        cmocka_unit_test(nonsense_from_a_child_is_contained),
        cmocka_unit_test(a_series_settles_when_it_is_long_and_even),
        cmocka_unit_test(bench_figures_come_through_the_pipe),
        cmocka_unit_test(fragments_agree_with_ldmatrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
