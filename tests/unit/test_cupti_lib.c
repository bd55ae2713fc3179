/*
 * Finding libcupti: missing, too old, of no use, held by another profiler. The library is the paper
 * CUPTI compiled by the test into a shared object; without a C compiler those cases are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cupti/doctor.h"
#include "cupti/lib.h"

static char so[64], empty_so[64];

static int build(const char *source, const char *out)
{
    char cmd[512];
    snprintf(cmd, sizeof cmd,
             "${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -shared -fPIC -w -DFAKE_CUPTI_SO -o %s %s "
             "2>/dev/null",
             out, source);
    return system(cmd);
}

static int setup(void **state)
{
    (void)state;
    snprintf(so, sizeof so, "/tmp/sasstop-fake-cupti-%d.so", (int)getpid());
    snprintf(empty_so, sizeof empty_so, "/tmp/sasstop-empty-%d.so", (int)getpid());
    if (build("tests/lib/fake_cupti.c tests/lib/fake_samplers.c tests/lib/fake_sass.c", so) != 0)
        so[0] = '\0';
    if (so[0] && build("-x c /dev/null", empty_so) != 0) so[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(so);
    unlink(empty_so);
    unsetenv("SASSTOP_CUPTI");
    unsetenv("FAKE_CUPTI");
    return 0;
}

static void need_so(const char *script)
{
    if (!so[0]) {
        print_message("skipped: no C compiler to build the paper CUPTI\n");
        skip();
    }
    setenv("SASSTOP_CUPTI", so, 1);
    setenv("FAKE_CUPTI", script, 1);
}

static void missing_file(void **state)
{
    (void)state;
    struct cupti_lib *lib = (void *)1;
    setenv("SASSTOP_CUPTI", "/nowhere/libcupti.so.13", 1);
    assert_int_equal(cupti_open(&lib), ERR_UNAVAILABLE);
    assert_null(lib);
    assert_non_null(strstr(err_msg(), "/nowhere/libcupti.so.13"));
    cupti_close(NULL);
}

static void opens_and_attaches(void **state)
{
    (void)state;
    struct cupti_lib *lib;
    need_so("");
    assert_int_equal(cupti_open(&lib), OK);
    assert_int_equal(lib->version, 130001);
    assert_string_equal(lib->chip, "");
    assert_true(cupti_has(lib, "pm_") && cupti_has(lib, "pc_") && cupti_has(lib, "range_"));
    assert_int_equal(cupti_attach(lib, 0), OK);
    assert_string_equal(lib->chip, "GH100");
    assert_int_equal(cupti_attach(lib, 0), OK); /* once is enough */
    cupti_close(lib);
}

static void refused_libraries(void **state)
{
    (void)state;
    struct cupti_lib *lib;
    need_so("version=120080");
    assert_int_equal(cupti_open(&lib), ERR_UNAVAILABLE);
    assert_non_null(strstr(err_msg(), "120080"));
    setenv("SASSTOP_CUPTI", empty_so, 1);
    assert_int_equal(cupti_open(&lib), ERR_UNAVAILABLE);
    setenv("SASSTOP_CUPTI", "/etc/passwd", 1); /* not a library at all */
    assert_int_equal(cupti_open(&lib), ERR_UNAVAILABLE);
}

static void refused_attachments(void **state)
{
    (void)state;
    static const struct {
        const char *script, *says;
        enum status st;
    } cases[] = {
        {"cuptiSubscribe_v2=39", "Nsight Systems", ERR_UNAVAILABLE},
        {"cuptiProfilerInitialize=15", "older than this CUPTI", ERR_UNAVAILABLE},
        {"cuptiProfilerInitialize=999", "no driver", ERR_FAILED},
        {"cuptiProfilerInitialize=38", "old profiling interface", ERR_UNAVAILABLE},
        {"cuptiDeviceGetChipName=2", "device was refused", ERR_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cupti_lib *lib;
        need_so(cases[i].script);
        assert_int_equal(cupti_open(&lib), OK);
        assert_int_equal(cupti_attach(lib, 0), cases[i].st);
        assert_non_null(strstr(err_msg(), cases[i].says));
        cupti_close(lib);
    }
    struct cupti_lib *lib;
    need_so("cuptiSubscribe_v2=2"); /* a refusal that is no other profiler is not the end */
    assert_int_equal(cupti_open(&lib), OK);
    assert_int_equal(cupti_attach(lib, 0), OK);
    cupti_close(lib);
}

static const struct counter_state *state_of(const struct doctor *d, enum counter_role role)
{
    for (int i = 0; i < COUNTER_ROLES; i++)
        if (d->sources[i].role == role) return &d->sources[i];
    return NULL;
}

static void doctor_without_gpu(void **state)
{
    (void)state;
    struct doctor d;
    setenv("SASSTOP_CUPTI", "/nowhere/libcupti.so.13", 1);
    setenv("SASSTOP_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    doctor_run(&d, 0);
    unsetenv("SASSTOP_LIBCUDA");
    assert_int_equal(d.driver_version, 0);
    assert_true(d.driver_why[0] && d.cupti_why[0]);
    for (int r = 0; r < COUNTER_ROLES; r++) {
        const struct counter_state *s = state_of(&d, (enum counter_role)r);
        assert_non_null(s);
        assert_int_equal(s->health, COUNTER_UNAVAILABLE);
        assert_true(s->why[0]);
    }
    struct buf b = {0};
    doctor_text(&d, &b);
    buf_u8(&b, 0);
    assert_false(b.failed);
    const char *text = (const char *)b.data;
    assert_non_null(strstr(text, "driver"));
    assert_non_null(strstr(text, "/nowhere/libcupti.so.13"));
    assert_non_null(strstr(text, "activity"));
    buf_free(&b);
}

static void doctor_reads_params(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int admin_only;
    } cases[] = {
        {"ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nPreserve: 0\n", 1},
        {"RmProfilingAdminOnly: 0\n", 0},
        {"XRmProfilingAdminOnly: 1\n", -1},
        {"RmProfilingAdminOnly:\n", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(doctor_admin_only(cases[i].text), cases[i].admin_only);
    assert_true(doctor_has_cap("CapInh:\t0\nCapEff:\t000001ffffffffff\n", 38));
    assert_true(doctor_has_cap("CapEff:\t0000000000200000\n", 21));
    assert_false(doctor_has_cap("CapEff:\t0000000000200000\n", 38));
    assert_false(doctor_has_cap("CapPrm:\tffffffffffffffff\n", 21));
    assert_false(doctor_has_cap("", 21));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_file),       cmocka_unit_test(opens_and_attaches),
        cmocka_unit_test(refused_libraries),  cmocka_unit_test(refused_attachments),
        cmocka_unit_test(doctor_without_gpu), cmocka_unit_test(doctor_reads_params),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
