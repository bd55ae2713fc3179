/*
 * `auto` with no GPU: a stand-in for kcheck answers, and the file, the order of measuring and the
 * choice are held. Times and failures come from $FAKE_US and $FAKE_PARITY
 * (tests/e2e/lib_kcheck.sh).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/auto_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static const struct auto_candidate OF[] = {{"nb_kd8", "nb", 8, 0x11},
                                           {"nb_pad_kd8", "nb_pad", 8, 0x12},
                                           {"wide_kd4", "wide", 4, 0x13},
                                           {"slow_kd8", "slow", 8, 0x14}};

static struct auto_plan plan_of(uint32_t n)
{
    struct auto_plan p = {.family = "q4k_gemm", .of = OF, .n = 4};
    auto_plan_shape(&p, 64, n, 256);
    auto_plan_shape(&p, 4096, n, 14336);
    auto_plan_shape(&p, 4096, n, 4096);
    auto_plan_shape(&p, 64, n, 256);
    return p;
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/auto-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    setenv("SASSTOP_CACHE", dir, 1);
    setenv("SASSTOP_KCHECK", "tests/e2e/lib_kcheck.sh", 1);
    setenv("FAKE_DIR", dir, 1);
    setenv("FAKE_US", "nb_kd8=100 nb_pad_kd8=90 wide_kd4=120 wide_kd4@4096x32x4096=50 slow_kd8=200",
           1);
    unsetenv("FAKE_PARITY");
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static bool on(void *ctx, uint32_t done, uint32_t total)
{
    (void)ctx;
    return done <= total;
}

static bool off(void *ctx, uint32_t done, uint32_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return false;
}

static unsigned runs(void)
{
    char path[96];
    unsigned n = 0;
    snprintf(path, sizeof path, "%s/benches", dir);
    FILE *f = fopen(path, "r");
    for (int c; f && (c = getc(f)) != EOF;) n += c == '\n';
    if (f) fclose(f);
    return n;
}

static const char *best(const struct auto_file *f, const struct auto_plan *p, uint32_t s)
{
    const struct auto_row *row;
    const struct auto_candidate *c = auto_best(f, p, s, &row);
    return c ? c->kernel : "";
}

static void shapes_go_by_work(void **state)
{
    (void)state;
    struct auto_plan p = plan_of(32);
    assert_int_equal(p.n_shapes, 3);
    assert_int_equal(p.shapes[0][2], 14336);
    assert_int_equal(p.shapes[1][2], 4096);
    assert_int_equal(p.shapes[2][0], 64);
    for (uint32_t i = 0; i < 2 * AUTO_SHAPES; i++) auto_plan_shape(&p, 8 + i, 32, 256);
    assert_int_equal(p.n_shapes, AUTO_SHAPES);
}

static void the_fastest_of_each_shape_is_chosen_and_kept(void **state)
{
    (void)state;
    struct auto_plan p = plan_of(32);
    struct auto_file f, again;
    assert_int_equal(auto_file_open(&f, "NVIDIA H200", "580.1"), OK);
    assert_string_equal(f.note, "");
    assert_string_equal(strrchr(f.path, '/'), "/bench-NVIDIA_H200-580.1.json");
    assert_int_equal(auto_measure(&f, &p, on, NULL), OK);
    assert_string_equal(best(&f, &p, 0), "nb_pad_kd8");
    assert_string_equal(best(&f, &p, 1), "wide_kd4");
    /* Four on the largest shape, then all but slow_kd8 on the others: 7 children, 4 + 3 * 2 rows.
     */
    assert_int_equal(runs(), 7);
    assert_int_equal(f.n, 10);
    assert_int_equal(auto_file_open(&again, "NVIDIA H200", "580.1"), OK);
    assert_string_equal(again.note, "");
    assert_int_equal(auto_measure(&again, &p, on, NULL), OK);
    assert_int_equal(runs(), 7);
    assert_string_equal(best(&again, &p, 1), "wide_kd4");
    auto_file_free(&f);
    auto_file_free(&again);
}

static void new_code_is_measured_anew_alone(void **state)
{
    (void)state;
    struct auto_candidate of[4];
    struct auto_plan p = plan_of(32);
    struct auto_file f;
    memcpy(of, OF, sizeof of);
    assert_int_equal(auto_file_open(&f, "d", "v"), OK);
    assert_int_equal(auto_measure(&f, &p, on, NULL), OK);
    unsigned before = runs();
    of[1].code_hash++;
    p.of = of;
    setenv("FAKE_US", "nb_pad_kd8=110", 1);
    assert_string_equal(best(&f, &p, 0), "nb_kd8"); /* the old row is another code's */
    assert_int_equal(auto_measure(&f, &p, on, NULL), OK);
    assert_int_equal(runs(), before + 2);
    assert_string_equal(best(&f, &p, 0), "nb_kd8");
    assert_int_equal(f.n, 10);
    auto_file_free(&f);
}

static void an_unsound_kernel_is_never_chosen(void **state)
{
    (void)state;
    struct auto_plan p = plan_of(64);
    struct auto_file f;
    setenv("FAKE_PARITY", "nb_pad_kd8", 1);
    assert_int_equal(auto_file_open(&f, "d", "v"), OK);
    assert_int_equal(auto_measure(&f, &p, on, NULL), OK);
    assert_string_equal(best(&f, &p, 0), "nb_kd8");
    const struct auto_row *r = auto_file_find(&f, "q4k_gemm", "nb_pad_kd8", 0x12, p.shapes[0]);
    assert_non_null(r);
    assert_string_equal(r->state, "failed");
    auto_file_free(&f);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void a_damaged_or_foreign_file_is_made_anew_in_words(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", "no JSON"},
        {"{\"format\":1,\"device\":\"d\",\"driver\":", "no JSON"},
        {"[]", "another format"},
        {"{\"format\":2}", "another format"},
        {"{\"format\":1,\"device\":\"d\"}", "a part is missing"},
        {"{\"format\":1,\"device\":\"x\",\"driver\":\"v\",\"rows\":[]}", "another device"},
        {"{\"format\":1,\"device\":\"d\",\"driver\":\"v\",\"rows\":[7]}", "a row of it is damaged"},
        {"{\"format\":1,\"device\":\"d\",\"driver\":\"v\",\"rows\":[{\"family\":\"q4k_gemm\","
         "\"kernel\":\"nb_kd8\",\"code_hash\":\"11\",\"m\":64,\"n\":32,\"k\":256,\"state\":\"ok\","
         "\"us\":-1}]}",
         "a row of it is damaged"},
    };
    struct auto_plan p = plan_of(32);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct auto_file f, again;
        assert_int_equal(auto_file_open(&f, "d", "v"), OK);
        write_file(f.path, texts[i][0]);
        auto_file_free(&f);
        assert_int_equal(auto_file_open(&f, "d", "v"), OK);
        if (!strstr(f.note, texts[i][1]) || !strstr(f.note, "made anew"))
            fail_msg("text %zu: %s", i, f.note);
        assert_int_equal(f.n, 0);
        assert_int_equal(auto_measure(&f, &p, on, NULL), OK);
        assert_int_equal(auto_file_open(&again, "d", "v"), OK);
        assert_string_equal(again.note, "");
        assert_int_equal(again.n, 10);
        auto_file_free(&f);
        auto_file_free(&again);
    }
}

static void a_command_ends_it_and_what_is_done_is_kept(void **state)
{
    (void)state;
    struct auto_plan p = plan_of(32);
    struct auto_file f;
    setenv("FAKE_SLOW", "nb_pad_kd8", 1);
    assert_int_equal(auto_file_open(&f, "d", "v"), OK);
    assert_int_equal(auto_measure(&f, &p, off, NULL), ERR_AGAIN);
    unsetenv("FAKE_SLOW");
    auto_file_free(&f);
    assert_int_equal(auto_file_open(&f, "d", "v"), OK);
    assert_int_equal(f.n, 1); /* nb_kd8 on the largest shape */
    assert_int_equal(auto_measure(&f, &p, on, NULL), OK);
    assert_int_equal(f.n, 10);
    auto_file_free(&f);
}

/* The second answer comes after a quarter of a second: a command. */
static bool twice(void *ctx, uint32_t done, uint32_t total)
{
    unsigned *asked = ctx;
    return done <= total && ++*asked < 3;
}

static void a_child_that_talks_or_stays_without_end_can_be_given_up(void **state)
{
    static const char *const how[] = {"FAKE_ENDLESS", "FAKE_STAYS"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct auto_plan p = plan_of(32);
        struct auto_file f;
        unsigned asked = 0;
        setenv(how[i], "nb_kd8", 1);
        assert_int_equal(auto_file_open(&f, "GPU", "1.0"), OK);
        alarm(60); /* instead of a test that never ends */
        assert_int_equal(auto_measure(&f, &p, twice, &asked), ERR_AGAIN);
        alarm(0);
        assert_int_equal(f.n, 0);
        auto_file_free(&f);
        unsetenv(how[i]);
    }
}

static void a_time_that_no_launch_takes_is_not_kept(void **state)
{
    struct auto_plan p = plan_of(32);
    struct auto_file f;
    (void)state;
    setenv("FAKE_US", "nb_kd8=1e300 nb_pad_kd8=-1 wide_kd4=1e999 slow_kd8=200", 1);
    assert_int_equal(auto_file_open(&f, "GPU", "1.0"), OK);
    assert_int_equal(auto_measure(&f, &p, on, NULL), OK);
    assert_string_equal(best(&f, &p, 0), "slow_kd8");
    assert_int_equal(f.n, 3);
    auto_file_free(&f);
    assert_int_equal(auto_file_open(&f, "GPU", "1.0"), OK); /* it reads what it has written */
    assert_string_equal(f.note, "");
    assert_int_equal(f.n, 3);
    auto_file_free(&f);
}

static void what_cannot_be_kept_is_said(void **state)
{
    (void)state;
    struct auto_plan p = plan_of(32);
    struct auto_file f;
    char path[96];
    snprintf(path, sizeof path, "%s/file", dir);
    write_file(path, "in the way of a folder");
    setenv("SASSTOP_CACHE", path, 1);
    assert_int_equal(auto_file_open(&f, "d", "v"), OK);
    assert_int_equal(auto_measure(&f, &p, on, NULL), OK);
    assert_non_null(strstr(f.note, "can't be written"));
    assert_string_equal(best(&f, &p, 0), "nb_pad_kd8");
    auto_file_free(&f);
}

static void no_kcheck_is_said(void **state)
{
    (void)state;
    struct auto_plan p = plan_of(32);
    struct auto_file f;
    setenv("SASSTOP_KCHECK", "/no/such/kcheck", 1);
    assert_int_equal(auto_file_open(&f, "d", "v"), OK);
    assert_int_equal(auto_measure(&f, &p, on, NULL), ERR_UNAVAILABLE);
    assert_non_null(strstr(err_msg(), "run make"));
    auto_file_free(&f);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(shapes_go_by_work),
        TEST(the_fastest_of_each_shape_is_chosen_and_kept),
        TEST(new_code_is_measured_anew_alone),
        TEST(an_unsound_kernel_is_never_chosen),
        TEST(a_damaged_or_foreign_file_is_made_anew_in_words),
        TEST(a_command_ends_it_and_what_is_done_is_kept),
        TEST(what_cannot_be_kept_is_said),
        TEST(no_kcheck_is_said),
        TEST(a_child_that_talks_or_stays_without_end_can_be_given_up),
        TEST(a_time_that_no_launch_takes_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
