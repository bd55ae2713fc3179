/* The `sass` subcommand as its user meets it: text, JSON, exit status. */
#include "base/status.h"
#include "tests/lib/capture.h"
#include "tui/cmd_sass.h"
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

struct result {
    int status;
    char out[65536], err[4096];
};

/* Runs the command with both streams caught. */
static void run(struct result *r, const char *const *args)
{
    char *argv[8] = {"sass"};
    int argc = 1;
    for (; args[argc - 1] && argc < 7; argc++) argv[argc] = (char *)args[argc - 1];
    r->status = capture_streams(cmd_sass, argc, argv, r->out, sizeof r->out, r->err, sizeof r->err);
}

#define RUN(r, ...) run(r, (const char *const[]){__VA_ARGS__, NULL})

static int sum_of(const cJSON *o)
{
    int sum = 0;
    const cJSON *e;
    cJSON_ArrayForEach(e, o) sum += e->valueint;
    return sum;
}

static int number(const cJSON *o, const char *key)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!cJSON_IsNumber(n)) fail_msg("no number %s", key);
    return n->valueint;
}

static void json(void **state)
{
    (void)state;
    static struct result r;
    RUN(&r, TINY, "-k", "tiny", "--json");
    assert_int_equal(r.status, EXIT_OK);
    assert_string_equal(r.err, "");
    cJSON *all = cJSON_Parse(r.out), *o = cJSON_GetArrayItem(all, 0);
    assert_int_equal(cJSON_GetArraySize(all), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "kernel")), "tiny_kd4");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "arch")), "sm_90a");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "cubin_hash")),
                        "603f03a2506a0214");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "code_hash")),
                        "ee209bbab7b9d115");
    assert_int_equal(number(o, "total"), 59);
    assert_int_equal(number(o, "padding"), 13);
    assert_int_equal(number(o, "regs"), 32);
    assert_int_equal(number(o, "smem"), 6144);
    assert_int_equal(number(o, "spill_bytes"), 0);
    assert_int_equal(number(o, "blocks_per_sm"), 16);
    const cJSON *ops = cJSON_GetObjectItem(o, "opcodes"), *hot = cJSON_GetObjectItem(o, "hot_loop");
    assert_int_equal(sum_of(ops), 59);
    assert_int_equal(sum_of(cJSON_GetObjectItem(o, "classes")), 59);
    assert_int_equal(number(ops, "LDSM.x4"), 1);
    assert_int_equal(number(hot, "total"), 22);
    assert_int_equal(sum_of(cJSON_GetObjectItem(hot, "opcodes")), 22);
    assert_int_equal(sum_of(cJSON_GetObjectItem(hot, "classes")), 22);
    cJSON_Delete(all);
}

static void unknown_figures_are_null(void **state)
{
    (void)state;
    static struct result r;
    RUN(&r, TINY, "-k", "frame", "--json");
    cJSON *all = cJSON_Parse(r.out), *o = cJSON_GetArrayItem(all, 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(o, "max_threads")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(o, "blocks_per_sm")));
    cJSON_Delete(all);
}

static void text(void **state)
{
    (void)state;
    static struct result r;
    RUN(&r, TINY, "-k", "tiny");
    assert_int_equal(r.status, EXIT_OK);
    assert_non_null(strstr(r.out, "tiny_kd4  sm_90a\n"));
    assert_non_null(strstr(r.out, "instructions 59, and 13 of padding left out"));
    assert_non_null(strstr(r.out, "hot loop 0x1e0-0x330, depth 1, 22 instructions"));
    assert_non_null(strstr(
        r.out, "  LDSM.x4                             1    1.7%        1        1  shared\n"));
    assert_non_null(
        strstr(r.out, "  sum                                59  100.0%       22       22\n"));
    assert_null(strstr(r.out, "frame"));
    RUN(&r, TINY, "--list", "--arch", "90a");
    assert_int_equal(r.status, EXIT_OK);
    assert_non_null(strstr(r.out, "sm_90a, ABI 8, CUDA 13.0, 2 kernels"));
    assert_non_null(
        strstr(r.out, "      59    32    6144       0      0    1     128        16  tiny_kd4\n"));
    RUN(&r, TINY, "-k", "^tiny", "--code");
    assert_int_equal(r.status, EXIT_OK);
    assert_non_null(strstr(r.out, "\n  offset  loops  st  w  r  wait"));
    assert_non_null(strstr(r.out, "IMMA.16832.S8.S8 R"));
    assert_non_null(strstr(r.out, "BRA 0x1e0\n"));
    RUN(&r, "--help");
    assert_int_equal(r.status, EXIT_OK);
    assert_non_null(strstr(r.out, "usage: sasstop sass FILE"));
}

static void failures(void **state)
{
    (void)state;
    static struct result r;
    static const struct {
        const char *args[4];
        int status;
        const char *says;
    } rows[] = {
        {{NULL}, EXIT_USAGE, "no file"},
        {{TINY, "--frob"}, EXIT_USAGE, "--help"},
        {{TINY, "-k", "("}, EXIT_USAGE, "not a regular expression"},
        {{TINY, "-k", "zzz"}, EXIT_FAILED, "no kernel in"},
        {{TINY, "--arch", "sm_80"}, EXIT_FAILED, "is for sm_90a, not for sm_80"},
        {{"tests/fixtures/sass/absent.cubin"}, EXIT_FAILED, "No such file"},
        {{TINY, "absent.cubin"}, EXIT_FAILED, "matches 'absent.cubin'"},
        {{"Makefile"}, EXIT_FAILED, "neither an ELF file nor"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run(&r, rows[i].args);
        assert_int_equal(r.status, rows[i].status);
        if (!strstr(r.err, rows[i].says)) fail_msg("row %zu: %s", i, r.err);
        assert_string_equal(r.out, "");
    }
}

/* A file that can't be read doesn't stop the others, but the status tells. */
static void several_files(void **state)
{
    (void)state;
    static struct result r;
    RUN(&r, TINY, "tiny", "--list");
    assert_int_equal(r.status, EXIT_OK);
    assert_null(strstr(r.out, "frame"));
    RUN(&r, "Makefile", TINY, "-k", "tiny", "--list");
    assert_int_equal(r.status, EXIT_FAILED);
    assert_non_null(strstr(r.err, "Makefile: neither"));
    assert_non_null(strstr(r.out, "tiny_kd4"));
}

/* A kernel's name with escape codes must not reach the terminal as they are. */
static void names_are_tame(void **state)
{
    (void)state;
    static struct result r;
    static char bytes[65536];
    char path[] = "/tmp/sass_cmd_XXXXXX";
    FILE *f = fopen(TINY, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (size_t i = 0; i + 9 < n; i++)
        if (!memcmp(bytes + i, "tiny_kd4", 9)) memcpy(bytes + i, "\x1b[2J\x07\xff!", 7);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
    RUN(&r, path, "--list");
    assert_null(strchr(r.out, 0x1b));
    assert_non_null(strstr(r.out, "?[2J?"));
    RUN(&r, path, "zz\x1b\xc2\x9b");
    assert_int_equal(r.status, EXIT_FAILED);
    assert_null(strchr(r.err, 0x1b));
    assert_null(strchr(r.err, 0x9b));
    RUN(&r, path, "--json");
    assert_null(strchr(r.out, 0x1b));
    assert_null(strchr(r.out, (char)0xff));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json),           cmocka_unit_test(unknown_figures_are_null),
        cmocka_unit_test(text),           cmocka_unit_test(failures),
        cmocka_unit_test(names_are_tame), cmocka_unit_test(several_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
