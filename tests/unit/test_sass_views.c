/* The views of machine code on sessions made of files: every size, long random walks of keys, what
 * `sass --save` puts into a session, and PC samples on the listing. ACCEPT=1 writes the fixture of
 * the last again. */
#include "session/record.h"
#include "tui/app.h"
#include "tui/code_session.h"
#include "tui/listing_heat.h"
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

#define HEAT_FIXTURE "tests/fixtures/code_heat.sasstop"

static const char *const fixtures[] = {"tests/fixtures/code.sasstop",
                                       "tests/fixtures/code_lines.sasstop", HEAT_FIXTURE};
enum { FIXTURES = 3 };
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
    for (size_t f = 0; f < FIXTURES; f++) {
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
    for (size_t f = 0; f < FIXTURES; f++) {
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

/* ---- PC samples ---- */

/* Made-up samples of kernel `frame`: its loop is hot, one load and what waits for it most. */
static void add_heat(struct buf *out, uint64_t t_ns, const struct msg_row_def *row, uint32_t window)
{
    static const char *const reasons[] = {"long_scoreboard", "wait", "short_scoreboard",
                                          "math_pipe_throttle", "not_selected"};
    struct buf b = {0};
    struct msg_pc_heat m = {
        .kernel = row->kernel, .generation = row->generation, .round = window, .source = "pc"};
    for (uint32_t i = 1; i < 90; i += 1 + (i < 0x29 || i > 0x4b)) {
        bool loop = i >= 0x29 && i <= 0x4b;
        struct heat_item it = {.index = i, .samples = loop ? 40 + i * 37 % 60 : 1};
        if (i == 0x34) it.samples = 700;
        if (i == 0x30) it.samples = 330;
        it.top = it.samples * 2 / 3;
        it.not_issued = it.samples / 3;
        if (it.top) snprintf(it.reason, sizeof it.reason, "%s", reasons[i == 0x34 ? 0 : i % 5]);
        m.samples += it.samples;
        pack_heat(&b, &it);
    }
    m.items = (struct blob){b.data, (uint32_t)b.len};
    assert_false(b.failed);
    assert_int_equal(proto_encode(out, FRAME_PC_HEAT, t_ns, &m), OK);
    buf_free(&b);
}

/* code.sasstop's frames with two windows of samples before the last frame. */
static void heat_frames(struct buf *out)
{
    struct reader *r;
    struct frame f;
    struct msg_kernel_def def;
    struct msg_row_def row, at = {0};
    uint32_t kernel = 0;
    assert_int_equal(reader_open(fixtures[0], &r), OK);
    while (reader_next(r, &f) == OK) {
        if (f.type == FRAME_KERNEL_DEF) {
            assert_int_equal(proto_decode(&f, &def, sizeof def), OK);
            if (!strcmp(def.name, "frame")) kernel = def.kernel;
        }
        if (f.type == FRAME_ROW_DEF) {
            assert_int_equal(proto_decode(&f, &row, sizeof row), OK);
            if (row.kernel == kernel) at = row;
        }
        if (f.type == FRAME_BYE)
            for (uint32_t w = 1; w <= 2; w++) add_heat(out, f.t_ns, &at, w);
        assert_int_equal(proto_copy(out, &f), OK);
    }
    assert_true(at.kernel > 0);
    reader_close(r);
}

static void write_frames(const char *path, const struct buf *b)
{
    struct recorder *rec;
    struct frame f;
    size_t used;
    unlink(path);
    assert_int_equal(recorder_open(path, &rec), OK);
    for (size_t at = 0; at < b->len; at += used) {
        assert_int_equal(proto_next(b->data + at, b->len - at, &f, &used), OK);
        assert_int_equal(recorder_add(rec, b->data + at, used, f.t_ns), OK);
    }
    assert_int_equal(recorder_close(rec), OK);
}

/* The frames, not the packed bytes: those depend on the version of zstd. */
static void heat_fixture_is_what_is_made_here(void **state)
{
    (void)state;
    struct buf wanted = {0}, there = {0};
    struct reader *r;
    struct frame f;
    heat_frames(&wanted);
    if (getenv("ACCEPT")) write_frames(HEAT_FIXTURE, &wanted);
    assert_int_equal(reader_open(HEAT_FIXTURE, &r), OK);
    while (reader_next(r, &f) == OK) assert_int_equal(proto_copy(&there, &f), OK);
    reader_close(r);
    assert_int_equal(there.len, wanted.len);
    assert_memory_equal(there.data, wanted.data, wanted.len);
    buf_free(&wanted);
    buf_free(&there);
}

static void listing_shows_samples(void **state)
{
    (void)state;
    struct app *a = open_app(HEAT_FIXTURE);
    app_show_view(a, VIEW_LISTING);
    app_draw(a);
    app_key(a, key_parse("H"));
    app_draw(a);
    assert_true(canvas_holds(&a->canvas, "by pc sampling, "));
    assert_non_null(strstr(a->message, "the hottest instruction: "));
    assert_true(canvas_holds(&a->canvas, " % in the hot loop"));
    assert_true(canvas_holds(&a->canvas, " heat "));
    assert_true(canvas_holds(&a->canvas, "L long_scoreboard"));
    close_app(a);
    a = open_app(fixtures[0]);
    app_show_view(a, VIEW_LISTING);
    app_draw(a);
    assert_true(canvas_holds(&a->canvas, "no samples: PC sampling has not seen this kernel"));
    assert_false(canvas_holds(&a->canvas, " heat "));
    close_app(a);
}

/* Two loops, one inside the other, and another; structure says the first, samples the last. */
static void the_hot_loop_is_the_one_with_most_samples(void **state)
{
    (void)state;
    static struct insn insns[6];
    int32_t loop_of[6] = {-1, 0, 1, 1, 2, 2};
    struct flow_loop loops[3] = {{.parent = -1}, {.parent = 0}, {.parent = -1}};
    struct flow f = {
        .insns = insns, .ninsns = 6, .insn_loop = loop_of, .loops = loops, .nloops = 3, .hot = 1};
    struct heat_insn at[9] = {
        {.samples = 100}, {.samples = 5},  {.samples = 10},       {.samples = 20},
        {.samples = 19},  {.samples = 16}, [8] = {.samples = 999}};
    struct kernel_heat of = {.generation = 3, .samples = 1169, .insns = at, .ninsns = 9};
    struct session s = {.heats = &of, .nheats = 1};
    struct row r = {.def.generation = 3};
    char text[100];
    struct listing_heat h = heat_find(&s, &r, &f);
    assert_int_equal(h.hot, 2);
    assert_true(h.hot_by_samples);
    assert_float_equal(h.hot_pct, 100 * 35.0 / 1169, 1e-9);
    assert_int_equal(h.hottest, 0); /* what lies past the code isn't counted */
    assert_float_equal(heat_pct(&h, 0), 100 * 100.0 / 1169, 1e-9);
    heat_words(&h, 1, text, sizeof text);
    assert_string_equal(text, "0.4 % of samples");
    of.ninsns = 1; /* samples, but none in a loop */
    h = heat_find(&s, &r, &f);
    assert_int_equal(h.hot, 1);
    assert_false(h.hot_by_samples);
    r.def.generation = 4; /* not seen there */
    h = heat_find(&s, &r, &f);
    assert_null(h.of);
    assert_int_equal(h.hottest, -1);
    assert_true(heat_pct(&h, 0) != heat_pct(&h, 0));
    heat_line(&h, text, sizeof text);
    assert_string_equal(text,
                        "no samples: PC sampling has not seen this kernel in this generation");
    assert_null(heat_find(&s, NULL, &f).of);
    assert_false(h.kernel_only);
    struct kernel_stalls sums = {.generation = 4, .samples = 10}; /* an older recording's */
    s.stalls = &sums;
    s.nstalls = 1;
    h = heat_find(&s, &r, &f);
    assert_true(h.kernel_only && !h.of);
    heat_line(&h, text, sizeof text);
    assert_string_equal(text, "no samples by instruction: the session has the kernel's sums alone");
    assert_int_equal(heat_letter("barrier"), 'B');
    assert_int_equal(heat_letter("of tomorrow"), '?');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heat_fixture_is_what_is_made_here),
        cmocka_unit_test(listing_shows_samples),
        cmocka_unit_test(the_hot_loop_is_the_one_with_most_samples),
        cmocka_unit_test(every_size),
        cmocka_unit_test(random_keys),
        cmocka_unit_test(a_session_of_files),
        cmocka_unit_test(source_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
