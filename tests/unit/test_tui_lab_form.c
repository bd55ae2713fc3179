/* The lab's form: what is typed replaces a text that stands there already, arrows and backspace
 * edit it, and nothing overflows a field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tui/app.h"

static const struct run_options options = {.script = "test"};

static struct app *open_form(void)
{
    struct app *a = calloc(1, sizeof *a);
    assert_non_null(a);
    assert_int_equal(app_init(a, &options), OK);
    app_show_view(a, VIEW_LAB);
    app_key(a, 'a');
    return a;
}

static void close_form(struct app *a)
{
    app_free(a);
    free(a);
}

static void type(struct app *a, const char *text)
{
    for (; *text; text++) app_key(a, (unsigned char)*text);
}

static bool shows(struct app *a, const char *text)
{
    app_draw(a);
    return canvas_holds(&a->canvas, text);
}

static void to_the_claim(struct app *a)
{
    for (int i = 0; i < 4; i++) app_key(a, KEY_TAB);
}

static void a_first_key_replaces(void **state)
{
    (void)state;
    struct app *a = open_form();
    to_the_claim(a);
    assert_true(shows(a, "claim       none_"));
    assert_true(shows(a, "Typing replaces"));
    type(a, "schedule only");
    assert_true(shows(a, "claim       schedule only_"));
    assert_false(shows(a, "Typing replaces"));
    app_key(a, KEY_BACK_TAB); /* left and entered again: whole again */
    app_key(a, KEY_TAB);
    type(a, "x");
    assert_true(shows(a, "claim       x_"));
    close_form(a);
}

static void arrows_and_backspace_edit(void **state)
{
    (void)state;
    struct app *a = open_form();
    to_the_claim(a);
    app_key(a, KEY_RUBOUT);
    assert_true(shows(a, "claim       non_"));
    app_key(a, KEY_ARROW_LEFT);
    app_key(a, KEY_ARROW_LEFT);
    type(a, "i");
    assert_true(shows(a, "claim       nion"));
    app_key(a, KEY_GO_HOME);
    app_key(a, KEY_RUBOUT); /* nothing stands before it */
    type(a, "u");
    app_key(a, KEY_GO_END);
    app_key(a, KEY_ARROW_RIGHT);
    type(a, "s");
    assert_true(shows(a, "claim       unions_"));
    app_key(a, KEY_BACK_TAB);
    app_key(a, KEY_TAB);
    app_key(a, KEY_ARROW_LEFT); /* an arrow first: the text stays */
    type(a, "e");
    assert_true(shows(a, "claim       uniones"));
    close_form(a);
}

static void a_field_has_an_end(void **state)
{
    (void)state;
    struct app *a = open_form();
    for (int i = 0; i < 400; i++) type(a, "b");
    type(a, "X");
    assert_true(shows(a, "bbbbb_"));
    assert_false(shows(a, "X"));
    for (int i = 0; i < 400; i++) app_key(a, KEY_RUBOUT);
    assert_true(shows(a, "bar         _"));
    close_form(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_key_replaces),
        cmocka_unit_test(arrows_and_backspace_edit),
        cmocka_unit_test(a_field_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
