/* The canvas: clipping, wide and broken text, bars, dumps. Whatever is drawn stays inside. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tui/canvas.h"

static struct canvas make(int w, int h)
{
    struct canvas c = {0};
    assert_int_equal(canvas_resize(&c, w, h), OK);
    return c;
}

static void assert_screen(struct canvas *c, const char *want)
{
    struct buf b = {0};
    canvas_dump(c, &b);
    buf_u8(&b, 0);
    assert_string_equal((const char *)b.data, want);
    buf_free(&b);
}

static void test_text_is_cut_with_an_ellipsis(void **state)
{
    (void)state;
    struct canvas c = make(8, 3);
    assert_int_equal(canvas_text(&c, 0, 0, 8, 0, "12345678"), 8);
    assert_int_equal(canvas_text(&c, 0, 1, 8, 0, "123456789"), 8);
    assert_int_equal(canvas_text(&c, 6, 2, 8, 0, "abcdef"), 6);
    assert_screen(&c, "12345678\n1234567…\n      ab\n");
    canvas_free(&c);
}

static void test_outside_is_ignored(void **state)
{
    (void)state;
    struct canvas c = make(4, 2);
    canvas_text(&c, 0, -1, 4, 0, "no");
    canvas_text(&c, 0, 2, 4, 0, "no");
    canvas_text(&c, -2, 0, 4, 0, "abcd");
    canvas_fill(&c, (struct area){-5, 1, 100, 50}, '#', 0);
    canvas_restyle(&c, -3, 0, 100, ROLE_BAD, STYLE_BOLD);
    canvas_restyle(&c, 0, 9, 100, ROLE_BAD, STYLE_BOLD);
    assert_screen(&c, "cd\n####\n");
    canvas_free(&c);
}

static void test_wide_runes_keep_their_halves(void **state)
{
    (void)state;
    struct canvas c = make(6, 1);
    canvas_text(&c, 0, 0, 6, 0, "漢字x");
    assert_screen(&c, "漢字x\n");
    canvas_text(&c, 1, 0, 1, 0, "y"); /* hits a right half: the rune goes */
    assert_screen(&c, " y字x\n");
    canvas_text(&c, 2, 0, 1, 0, "z"); /* hits a left half */
    assert_screen(&c, " yz x\n");
    canvas_text(&c, 5, 0, 1, 0, "漢"); /* no room for two */
    assert_int_equal(text_columns("漢字x"), 5);
    canvas_free(&c);
}

static void test_hostile_bytes_become_marks(void **state)
{
    (void)state;
    struct canvas c = make(12, 1);
    canvas_text(&c, 0, 0, 12, 0, "a\x1b[2J\xff\xc0\x80\xe2\x82");
    assert_screen(&c, "a?[2J\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n");
    canvas_free(&c);
}

static void test_ascii_draws_no_unicode(void **state)
{
    (void)state;
    struct canvas c = make(20, 4);
    float v[] = {1, 2, 3, 4};
    c.ascii = true;
    canvas_rule(&c, 0, 0, 20, "a");
    canvas_bar(&c, 0, 1, 20, 0.5, 0);
    canvas_spark(&c, 0, 2, 20, v, 4, 0);
    canvas_text(&c, 0, 3, 9, 0, "±5 漢 µ longer");
    for (int i = 0; i < c.w * c.h; i++) assert_in_range(c.cells[i].rune, ' ', '~');
    canvas_free(&c);
}

static void test_bars_and_sparks_bear_any_number(void **state)
{
    (void)state;
    struct canvas c = make(4, 2);
    float v[] = {NAN, 1, INFINITY, 2, -1};
    canvas_bar(&c, 0, 0, 4, 0.5, 0);
    canvas_bar(&c, 0, 1, 4, NAN, 0);
    canvas_bar(&c, 0, 1, 4, -3, 0);
    assert_screen(&c, "██\n\n");
    canvas_bar(&c, 0, 0, 4, 7, 0);
    canvas_spark(&c, 0, 1, 3, v, 5, 0);
    canvas_spark(&c, 0, 1, 3, v, 0, 0);
    canvas_spark(&c, 0, 1, 0, v, 5, 0);
    assert_screen(&c, "████\n █▁\n");
    canvas_free(&c);
}

static void test_columns_tell_zero_from_nothing(void **state)
{
    (void)state;
    struct canvas c = make(5, 2);
    canvas_column(&c, 0, 1, 2, NAN, 0);
    canvas_column(&c, 1, 1, 2, 0, 0);
    canvas_column(&c, 2, 1, 2, 0.5, 0);
    canvas_column(&c, 3, 1, 2, 9, 0);
    canvas_column(&c, 4, 1, 2, 0.75, 0);
    assert_screen(&c, "   █▄\n ▁███\n");
    canvas_free(&c);
    c = make(5, 2);
    c.ascii = true;
    canvas_column(&c, 1, 1, 2, 0, 0);
    canvas_column(&c, 2, 1, 2, 0.5, 0);
    canvas_column(&c, 3, 1, 2, 1, 0);
    canvas_column(&c, 4, 1, 2, 0.75, 0);
    canvas_column(&c, 9, 9, 9, 1, 0); /* outside */
    assert_screen(&c, "   #-\n _###\n");
    canvas_free(&c);
}

static void test_wrap_breaks_at_spaces(void **state)
{
    (void)state;
    struct canvas c = make(10, 3);
    assert_int_equal(canvas_wrap(&c, (struct area){0, 0, 10, 3}, 0, "one two three\nfour"), 3);
    assert_screen(&c, "one two\nthree\nfour\n");
    canvas_clear(&c);
    canvas_wrap(&c, (struct area){0, 0, 10, 2}, 0, "one two three four five");
    assert_screen(&c, "one two\nthree fou…\n\n");
    canvas_clear(&c);
    canvas_tail(&c, (struct area){0, 0, 10, 1}, 0, "one two three four five");
    assert_screen(&c, "five\n\n\n");
    canvas_free(&c);
}

static void test_size_is_clamped(void **state)
{
    (void)state;
    struct canvas c = make(-5, 0);
    assert_int_equal(c.w, 1);
    assert_int_equal(c.h, 1);
    assert_int_equal(canvas_resize(&c, 1 << 30, 1 << 30), OK);
    assert_int_equal(c.w, CANVAS_MAX_W);
    assert_int_equal(c.h, CANVAS_MAX_H);
    canvas_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_cut_with_an_ellipsis),
        cmocka_unit_test(test_outside_is_ignored),
        cmocka_unit_test(test_wide_runes_keep_their_halves),
        cmocka_unit_test(test_hostile_bytes_become_marks),
        cmocka_unit_test(test_ascii_draws_no_unicode),
        cmocka_unit_test(test_bars_and_sparks_bear_any_number),
        cmocka_unit_test(test_columns_tell_zero_from_nothing),
        cmocka_unit_test(test_wrap_breaks_at_spaces),
        cmocka_unit_test(test_size_is_clamped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
