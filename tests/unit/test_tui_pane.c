/* Columns of a pane: at every width each is reached by Right, beside the first one, and the rule
 * tells how many stand further on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tui/app.h"
#include "tui/pane_layout.h"

static const struct run_options options = {.script = "test"};

static struct app *open_app(void)
{
    struct app *a = calloc(1, sizeof *a);
    assert_non_null(a);
    assert_int_equal(app_init(a, &options), OK);
    assert_int_equal(app_open_recording(a, "tests/fixtures/synthetic.sasstop"), OK);
    app_seek(a, replay_duration(a->recorded.src));
    return a;
}

static void close_app(struct app *a)
{
    app_free(a);
    free(a);
}

static void draw(struct app *a, struct pane *p)
{
    canvas_clear(&a->canvas);
    pane_draw(p, &a->canvas, (struct area){0, 0, a->canvas.w, a->canvas.h}, true);
}

/* From the first column to the last and back, through every page; how many there were. */
static unsigned walk(struct app *a, struct pane *p, int w)
{
    struct pane_layout l;
    bool seen[PANE_COLUMNS_MAX] = {false};
    unsigned pages = 0;

    draw(a, p);
    p->column = p->order[0];
    for (uint32_t i = 0; i < p->def->ncolumns; i++) {
        draw(a, p);
        pane_lay_out(p, w, &l);
        assert_true(l.shown[0] || !l.page);
        assert_true(l.shown[p->column]);
        assert_false(seen[p->column]);
        assert_true(l.page < l.pages && l.page >= pages);
        assert_true((l.left_out > 0) == (l.pages > 1));
        seen[p->column] = true;
        pages = l.page;
        pane_request(p, REQ_RIGHT);
    }
    assert_int_equal(pages + 1, l.pages);
    for (uint32_t i = 0; i < p->def->ncolumns; i++) assert_true(seen[i]);
    for (uint32_t i = 0; i + 1 < p->def->ncolumns; i++) pane_request(p, REQ_LEFT);
    assert_int_equal(p->column, l.order[0]);
    return pages + 1;
}

static void every_column_is_reached_at_every_width(void **state)
{
    (void)state;
    struct app *a = open_app();
    for (uint32_t t = 0; t < ntables; t++) {
        struct pane p;
        pane_init(&p, tables[t]->id);
        pane_update(&p, app_session(a));
        if (!p.table.nrows) continue;
        unsigned before = UINT32_MAX;
        for (int w = 40; w <= 400; w += 20) {
            assert_int_equal(canvas_resize(&a->canvas, w, 12), OK);
            unsigned pages = walk(a, &p, w);
            assert_true(pages <= before);
            before = pages;
        }
        pane_free(&p);
    }
    close_app(a);
}

static void the_rule_tells_of_more(void **state)
{
    (void)state;
    struct app *a = open_app();
    struct pane p;
    pane_init(&p, "kernels");
    pane_update(&p, app_session(a));
    assert_int_equal(canvas_resize(&a->canvas, 80, 20), OK);
    draw(a, &p);
    assert_true(canvas_holds(&a->canvas, "Right: "));
    assert_true(canvas_holds(&a->canvas, "DRAM%"));
    assert_false(canvas_holds(&a->canvas, "us/GMAC"));
    pane_column(&p, "us_per_gmac");
    draw(a, &p);
    assert_true(canvas_holds(&a->canvas, "columns 2/"));
    assert_true(canvas_holds(&a->canvas, "us/GMAC"));
    assert_true(canvas_holds(&a->canvas, "kernel"));
    assert_int_equal(canvas_resize(&a->canvas, 200, 20), OK);
    draw(a, &p);
    assert_false(canvas_holds(&a->canvas, "Right: "));
    assert_false(canvas_holds(&a->canvas, "columns 2/"));
    p.untitled = true;
    p.column = 0;
    assert_int_equal(canvas_resize(&a->canvas, 80, 20), OK);
    draw(a, &p);
    assert_true(canvas_holds(&a->canvas, "+9kernel"));
    pane_free(&p);
    close_app(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_is_reached_at_every_width),
        cmocka_unit_test(the_rule_tells_of_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
