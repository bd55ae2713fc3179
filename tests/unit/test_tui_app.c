/* The application on the synthetic recording: every view at every size, every key in a long
 * random walk, seeks that end in the same state however they were made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/report.h"
#include "tui/app.h"
#include "tui/view.h"

static const char fixture[] = "tests/fixtures/synthetic.sasstop";
static const struct run_options options = {.script = "test"};

static struct app *open_app(void)
{
    struct app *a = calloc(1, sizeof *a);
    assert_non_null(a);
    assert_int_equal(app_init(a, &options), OK);
    assert_int_equal(app_open_recording(a, fixture), OK);
    return a;
}

static void close_app(struct app *a)
{
    app_free(a);
    free(a);
}

static void test_every_view_at_every_size(void **state)
{
    (void)state;
    struct app *a = open_app();
    app_seek(a, replay_duration(a->recorded.src));
    for (int v = 0; v < VIEWS; v++) {
        app_show_view(a, (enum view_id)v);
        for (int h = 1; h <= 60; h += h < 26 ? 1 : 9)
            for (int w = 1; w <= 210; w += w < 46 ? 1 : 13) {
                assert_int_equal(canvas_resize(&a->canvas, w, h), OK);
                app_draw(a);
                if (w < 40 || h < 10) continue;
                assert_true(canvas_holds(&a->canvas, "REPLAY"));
                assert_true(canvas_holds(&a->canvas, "q quit"));
            }
    }
    close_app(a);
}

/* A fixed seed; export and record are left out, since they write files. */
static void test_random_keys(void **state)
{
    unsigned seed = 1;
    (void)state;
    struct app *a = open_app();
    for (int i = 0; i < 4000; i++) {
        seed = seed * 1103515245u + 12345u;
        const struct key_row *k = &key_rows[(seed >> 16) % nkey_rows];
        if (k->request == REQ_EXPORT || k->request == REQ_QUIT) continue;
        char name[40];
        snprintf(name, sizeof name, "%s", k->keys);
        name[strcspn(name, " ")] = 0;
        app_key(a, key_parse(name));
        if (i % 16 == 0) {
            seed = seed * 1103515245u + 12345u;
            canvas_resize(&a->canvas, 1 + (int)(seed >> 16) % 200, 1 + (int)(seed >> 8) % 60);
        }
        app_draw(a);
        assert_false(a->quit);
    }
    close_app(a);
}

static void report(struct app *a, struct buf *b)
{
    assert_int_equal(report_find("json")->write(app_session(a), b), OK);
}

static void test_seeks_end_in_the_same_state(void **state)
{
    struct buf straight = {0}, around = {0};
    (void)state;
    struct app *a = open_app(), *b = open_app();
    uint64_t at = replay_duration(a->recorded.src) / 2;
    app_seek(a, at);
    app_seek(b, replay_duration(b->recorded.src));
    app_seek(b, 0);
    for (int i = 1; i <= 10; i++) app_seek(b, at * (unsigned)i / 10);
    report(a, &straight);
    report(b, &around);
    assert_int_equal(straight.len, around.len);
    assert_memory_equal(straight.data, around.data, straight.len);
    buf_free(&straight);
    buf_free(&around);
    close_app(a);
    close_app(b);
}

static void test_virtual_clock(void **state)
{
    (void)state;
    struct app *a = open_app();
    struct frame_source *src = a->recorded.src;
    app_seek(a, 0);
    replay_pass(src, 1000000000); /* stopped: nothing moves */
    assert_int_equal(replay_position(src), 0);
    replay_play(src, true);
    replay_pass(src, 1000000000);
    assert_int_equal(replay_position(src), 1000000000);
    replay_set_speed(src, 4);
    replay_pass(src, 500000000);
    assert_int_equal(replay_position(src), 3000000000);
    replay_set_speed(src, 1000); /* out of range: kept */
    assert_true(replay_speed(src) == 4);
    replay_pass(src, UINT64_MAX / 1024);
    assert_int_equal(replay_position(src), replay_duration(src));
    assert_false(replay_playing(src));
    uint64_t last = replay_flip(src, -1);
    assert_true(last > 0 && last < replay_duration(src));
    app_seek(a, last);
    assert_int_equal(replay_flip(src, 1), replay_duration(src));
    /* Words of long before are not said again; those of a moment ago are. */
    app_seek(a, replay_duration(src));
    assert_string_equal(a->message, "");
    app_seek(a, last + 1000000000);
    assert_non_null(strstr(a->message, "generation"));
    app_seek(a, last);
    /* By generations: where figures are, not at the flip itself. */
    uint64_t there = replay_generation(src, -1);
    assert_true(there < last);
    app_seek(a, there);
    assert_true(replay_round(src, 1) > last); /* it ends with that round */
    uint64_t next = replay_generation(src, 1);
    assert_true(next > last && next < replay_duration(src));
    app_seek(a, next);
    assert_int_equal(replay_generation(src, -1), there);
    assert_int_equal(replay_generation(src, 1), replay_duration(src));
    close_app(a);
}

static void test_a_recording_is_no_engine(void **state)
{
    (void)state;
    struct app *a = open_app();
    app_key(a, 'v');
    assert_non_null(strstr(a->message, "can't be flipped"));
    app_key(a, 'r');
    assert_null(a->recorder);
    app_key(a, 'x');
    assert_non_null(strstr(a->message, "can't be measured"));
    app_key(a, 'y');
    assert_non_null(strstr(a->message, "can't be measured"));
    app_show_view(a, VIEW_DETAIL);
    app_seek(a, replay_duration(a->recorded.src));
    app_seek(a, replay_duration(a->recorded.src) - 1000000);
    app_draw(a); /* no key is named that would refuse */
    assert_true(canvas_holds(&a->canvas, "in this session"));
    assert_false(canvas_holds(&a->canvas, "counts them)"));
    assert_false(canvas_holds(&a->canvas, "c measures it"));
    assert_int_equal(app_command(a, "flip", "q4k_gemm", "nb", 8, false), ERR_UNAVAILABLE);
    app_key(a, 'q');
    assert_true(a->quit);
    close_app(a);
}

/* A view with several tables: every row of each is reached with Down alone, and Up leads back. */
static void test_the_cursor_runs_through_all_tables(void **state)
{
    static const enum view_id several[] = {VIEW_DETAIL, VIEW_SOURCES};
    (void)state;
    struct app *a = open_app();
    app_seek(a, replay_duration(a->recorded.src));
    assert_int_equal(canvas_resize(&a->canvas, 80, 24), OK);
    for (size_t i = 0; i < 2; i++) {
        const struct view_ops *v = views[several[i]];
        app_show_view(a, several[i]);
        app_draw(a);
        struct pane *first = v->pane(a->view_data[several[i]]);
        for (int k = 0; k < 60; k++, app_draw(a)) app_request(a, REQ_DOWN);
        struct pane *last = v->pane(a->view_data[several[i]]);
        assert_ptr_not_equal(first, last);
        assert_true(last->table.nrows > 1);
        assert_int_equal(last->position, last->table.nrows - 1);
        for (int k = 0; k < 60; k++, app_draw(a)) app_request(a, REQ_UP);
        assert_ptr_equal(v->pane(a->view_data[several[i]]), first);
        assert_int_equal(first->position, 0);
    }
    close_app(a);
}

static void test_enter_opens_what_the_cursor_is_on(void **state)
{
    (void)state;
    struct app *a = open_app();
    const struct session *s = app_session(a);
    app_seek(a, replay_duration(a->recorded.src));
    app_show_view(a, VIEW_GENERATIONS);
    app_draw(a);
    app_key(a, key_parse("Home"));
    app_key(a, KEY_RETURN);
    app_draw(a);
    assert_int_equal(a->view, VIEW_DETAIL);
    assert_int_equal(app_row(a)->def.generation, 1); /* it stays, though others came later */
    assert_string_equal(app_kernel(a)->def.family, s->generations[0].def.family);
    app_show_view(a, VIEW_TEXT);
    app_key(a, KEY_RETURN);
    assert_int_equal(a->view, VIEW_TEXT);
    app_show_view(a, VIEW_LAB);
    app_key(a, KEY_RETURN);
    assert_int_equal(a->view, VIEW_LAB);
    app_show_view(a, VIEW_LOG);
    app_draw(a);
    for (int i = 0; i < 16; i++) app_key(a, key_parse("Up"));
    const struct pane *p = a->view_data[VIEW_LOG];
    uint64_t t = s->events[(s->first_event + p->selected) % MAX_EVENTS].t_ns;
    app_key(a, KEY_RETURN);
    assert_int_equal(a->view, VIEW_LOG);
    assert_int_equal(replay_position(a->recorded.src), replay_place(a->recorded.src, t));
    close_app(a);
}

static void test_bad_files_are_refused(void **state)
{
    struct frame_source *src;
    (void)state;
    assert_int_not_equal(replay_source_open("tests/fixtures/none.sasstop", &src), OK);
    assert_null(src);
    assert_int_not_equal(replay_source_open("Makefile", &src), OK);
    assert_null(src);
}

int main(void)
{
    if (access(fixture, R_OK)) {
        printf("skipped: no %s\n", fixture);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_view_at_every_size),
        cmocka_unit_test(test_random_keys),
        cmocka_unit_test(test_seeks_end_in_the_same_state),
        cmocka_unit_test(test_virtual_clock),
        cmocka_unit_test(test_a_recording_is_no_engine),
        cmocka_unit_test(test_the_cursor_runs_through_all_tables),
        cmocka_unit_test(test_enter_opens_what_the_cursor_is_on),
        cmocka_unit_test(test_bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
