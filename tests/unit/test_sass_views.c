/* The views of machine code on sessions made of files: every size, long random walks of keys, and
 * what `sass --save` puts into a session. */
#include "session/record.h"
#include "tui/app.h"
#include "tui/code_session.h"
#include "tui/source_text.h"
#include "tui/view.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const fixtures[] = {"tests/fixtures/code.sasstop",
                                       "tests/fixtures/code_lines.sasstop"};
static const enum view_id code_views[] = {VIEW_LISTING, VIEW_DIFF, VIEW_RULES, VIEW_CENSUS};
static const struct run_options options = {.script = "test"};

static struct app *open_app(const char *path)
{
    struct app *a = calloc(1, sizeof *a);
    assert_non_null(a);
    assert_int_equal(app_init(a, &options), OK);
    if (app_open_recording(a, path)) fail_msg("%s", err_msg());
    app_seek(a, replay_duration(a->recorded.src));
    app_draw(a);
    return a;
}

static void close_app(struct app *a)
{
    app_free(a);
    free(a);
}

static void every_size(void **state)
{
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        struct app *a = open_app(fixtures[f]);
        for (size_t v = 0; v < 4; v++) {
            app_show_view(a, code_views[v]);
            for (int h = 10; h <= 70; h += 3)
                for (int w = 40; w <= 240; w += 7) {
                    assert_int_equal(canvas_resize(&a->canvas, w, h), OK);
                    app_draw(a);
                    assert_true(canvas_holds(&a->canvas, "q quit"));
                }
        }
        close_app(a);
    }
}

/* A fixed seed; keys that write files or leave are left out. */
static void random_keys(void **state)
{
    static const char *const keys[] = {"l",    "d",   "X",    "j",     "H",     "n",    "N",
                                       "s",    "o",   "m",    "Up",    "Down",  "PgUp", "PgDn",
                                       "Home", "End", "Left", "Enter", "Right", "/",    "L",
                                       "0",    "x",   "2",    "A",     "Esc",   "Tab",  "v"};
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        unsigned seed = 5;
        struct app *a = open_app(fixtures[f]);
        for (int i = 0; i < 6000; i++) {
            seed = seed * 1103515245u + 12345u;
            unsigned r = seed >> 16;
            if (r % 16 == 0) app_show_view(a, code_views[r / 16 % 4]);
            app_key(a, key_parse(keys[r % (sizeof keys / sizeof keys[0])]));
            if (r % 64 == 1) canvas_resize(&a->canvas, 40 + (int)(r % 150), 10 + (int)(r % 50));
            if (i % 3 == 0) app_draw(a);
            assert_false(a->quit);
        }
        close_app(a);
    }
}

static void a_session_of_files(void **state)
{
    (void)state;
    char dir[] = "/tmp/code_session_XXXXXX", path[64];
    char *files[] = {(char *)"tests/fixtures/sass/tiny_sm_80.cubin",
                     (char *)"tests/fixtures/sass/tiny_sm_90a.cubin"};
    struct session s;
    struct reader *r;
    struct frame f;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/c.sasstop", dir);
    assert_int_equal(code_session_write(path, files, 2, "75"), ERR_FAILED);
    unlink(path);
    if (code_session_write(path, files, 2, NULL)) fail_msg("%s", err_msg());
    assert_int_equal(code_session_write(path, files, 2, NULL), ERR_IO); /* nothing is overwritten */
    assert_int_equal(session_init(&s), OK);
    assert_int_equal(reader_open(path, &r), OK);
    while (reader_next(r, &f) == OK) assert_int_equal(session_apply(&s, &f), OK);
    reader_close(r);
    assert_int_equal(s.nkernels, 4);
    assert_int_equal(s.nrows, 4);
    assert_int_equal(s.ngenerations, 2);
    assert_true(s.ended);
    for (uint32_t i = 0; i < 4; i++) {
        const struct kernel *k = &s.kernels[i];
        assert_true(k->has_census && k->nitems > 0);
        assert_non_null(session_module(&s, k->def.cubin_hash));
        assert_string_equal(k->def.family, "sass");
    }
    session_free(&s);
    unlink(path);
    rmdir(dir);
}

static void source_files(void **state)
{
    (void)state;
    struct source_text s = {0};
    assert_string_equal(source_text_line(&s, "tests/fixtures/sass/lined.cu", 5),
                        "    return x * x;");
    assert_null(source_text_line(&s, "tests/fixtures/sass/lined.cu", 0));
    assert_null(source_text_line(&s, "tests/fixtures/sass/lined.cu", 10000));
    assert_null(source_text_line(&s, "/dev/zero", 1));
    assert_null(source_text_line(&s, "tests/fixtures/sass", 1));
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "absent%d.cu", i);
        assert_null(source_text_line(&s, name, 1));
    }
    assert_non_null(source_text_line(&s, "tests/fixtures/sass/lined.cu", 3));
    source_text_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size),
        cmocka_unit_test(random_keys),
        cmocka_unit_test(a_session_of_files),
        cmocka_unit_test(source_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
