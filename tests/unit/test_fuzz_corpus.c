/* The fuzzers' kept inputs, one after the other: tests/fuzz/TARGET/. Run it under ASan and UBSan
 * too. */
#include "base/clock.h"
#include "tests/lib/fuzz_targets.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { INPUT_MAX = 4 << 20 };

/* In a block of its own size, so that the sanitizer sees a step outside. */
static void run_file(const struct fuzz_target *t, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s can't be opened", path);
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    assert_in_range(n, 0, INPUT_MAX);
    uint8_t *data = malloc(n ? (size_t)n : 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)n, f), n);
    fclose(f);
    uint64_t t0 = clock_mono_ns();
    t->run(data, (size_t)n);
    if (clock_mono_ns() - t0 > UINT64_C(20000000000)) fail_msg("%s took over 20 s", path);
    free(data);
}

static unsigned run_folder(const struct fuzz_target *t, const char *folder)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        run_file(t, path);
        n++;
    }
    closedir(d);
    return n;
}

static void kept_inputs(void **state)
{
    (void)state;
    const struct fuzz_target *t;
    for (size_t i = 0; (t = fuzz_target_at(i)); i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "tests/fuzz/%s", t->name);
        unsigned n = run_folder(t, folder);
        if (!strcmp(t->name, "gguf")) n += run_folder(t, "tests/fixtures/gguf");
        print_message("%s: %u inputs\n", t->name, n);
        assert_true(n > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept_inputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
