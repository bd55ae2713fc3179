/* docs/FRAMES.md and the made-up session are what the code says. ACCEPT=1 writes them again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "session/record.h"
#include "tests/lib/synth_session.h"

#define FIXTURE "tests/fixtures/synthetic.sasstop"

static bool accepting(void)
{
    const char *accept = getenv("ACCEPT");
    return accept && strcmp(accept, "1") == 0;
}

static void slurp(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing: run this test with ACCEPT=1", path);
    for (int c; (c = fgetc(f)) != EOF;) buf_u8(out, (uint8_t)c);
    fclose(f);
}

static void frames_page_agrees_with_the_code(void **state)
{
    (void)state;
    struct buf wanted = {0}, there = {0};
    proto_docs(&wanted);
    assert_false(wanted.failed);
    if (accepting()) {
        FILE *f = fopen("docs/FRAMES.md", "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(wanted.data, 1, wanted.len, f), wanted.len);
        assert_int_equal(fclose(f), 0);
    }
    slurp("docs/FRAMES.md", &there);
    if (there.len != wanted.len || memcmp(there.data, wanted.data, wanted.len) != 0)
        fail_msg("docs/FRAMES.md is not what session/proto.def says: run with ACCEPT=1");
    buf_free(&wanted);
    buf_free(&there);
}

/* The frames, not the packed bytes: those depend on the version of zstd. */
static void fixture_is_what_the_generator_makes(void **state)
{
    (void)state;
    struct buf wanted = {0}, there = {0};
    struct reader *r;
    struct frame f;
    if (accepting()) {
        unlink(FIXTURE);
        assert_int_equal(synth_session_file(FIXTURE, SYNTH_SEED), OK);
    }
    assert_int_equal(synth_session(&wanted, SYNTH_SEED), OK);
    assert_int_equal(reader_open(FIXTURE, &r), OK);
    while (reader_next(r, &f) == OK) assert_int_equal(proto_copy(&there, &f), OK);
    assert_null(reader_damage(r));
    reader_close(r);
    if (there.len != wanted.len || memcmp(there.data, wanted.data, wanted.len) != 0)
        fail_msg(FIXTURE " is not what tests/lib/synth_session.c makes: run with ACCEPT=1");
    buf_free(&wanted);
    buf_free(&there);
}

static void seeds_differ_and_repeat(void **state)
{
    (void)state;
    struct buf a = {0}, b = {0}, c = {0};
    assert_int_equal(synth_session(&a, 1), OK);
    assert_int_equal(synth_session(&b, 1), OK);
    assert_int_equal(synth_session(&c, 2), OK);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    assert_true(a.len != c.len || memcmp(a.data, c.data, a.len) != 0);
    buf_free(&a);
    buf_free(&b);
    buf_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_page_agrees_with_the_code),
        cmocka_unit_test(fixture_is_what_the_generator_makes),
        cmocka_unit_test(seeds_differ_and_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
