/* Where programs are looked for: in the variable, else beside the running one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/program.h"

#define ENV "SASSTOP_TEST_PROGRAM"

static void the_variable_comes_first(void **state)
{
    (void)state;
    char path[300];
    setenv(ENV, "/bin/sh", 1);
    assert_true(program_find(ENV, "nowhere", path, sizeof path));
    assert_string_equal(path, "/bin/sh");
    setenv(ENV, "/nowhere/at-all", 1);
    assert_false(program_find(ENV, NULL, path, sizeof path));
    assert_string_equal(path, "/nowhere/at-all"); /* what was looked for */
    unsetenv(ENV);
}

static void others_lie_beside_this_one(void **state)
{
    (void)state;
    char own[300], path[300];
    setenv(ENV, "", 1); /* as if unset */
    assert_true(program_find(ENV, NULL, own, sizeof own));
    assert_string_equal(strrchr(own, '/'), "/test_base_program");
    assert_true(program_find(ENV, "test_base_program", path, sizeof path));
    assert_string_equal(path, own);
    assert_false(program_find(ENV, "not-built", path, sizeof path));
    assert_string_equal(strrchr(path, '/'), "/not-built");
    unsetenv(ENV);
}

static void what_does_not_fit_is_not_found(void **state)
{
    (void)state;
    char path[300], name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(program_find(ENV, name, path, sizeof path));
    assert_string_equal(path, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_variable_comes_first),
        cmocka_unit_test(others_lie_beside_this_one),
        cmocka_unit_test(what_does_not_fit_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
