/* See cupti_lab.h. */
#include "tests/lib/cupti_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct cupti_lab lab;
const char *const cupti_lab_names[2] = {"kernel_a", "kernel_b"};

int cupti_lab_setup(void **state)
{
    (void)state;
    unsetenv("FAKE_CUPTI");
    fake_cupti_reset();
    lab.lib = fake_cupti_open();
    return lab.lib && found_init(&lab.found, cupti_lab_names, 2, 4096, 8192) ? 0 : -1;
}

int cupti_lab_teardown(void **state)
{
    (void)state;
    found_free(&lab.found);
    free(lab.lib);
    unsetenv("FAKE_CUPTI");
    return 0;
}

struct counter_env cupti_lab_env(void)
{
    return (struct counter_env){.lib = lab.lib, .ctx = &lab.found, .sink = found_sink(&lab.found)};
}

struct counter_source *cupti_lab_open(enum counter_role role)
{
    struct counter_env env = cupti_lab_env();
    struct counter_source *src;
    assert_int_equal(counter_open(role, false, &env, &src), OK);
    return src;
}

void cupti_lab_close(struct counter_source *src)
{
    counter_close(src);
    assert_int_equal(fake_cupti.hosts, 0);
    if (fake_cupti.violations) print_message("violation: %s\n", fake_cupti.last_violation);
    assert_int_equal(fake_cupti.violations, 0);
}
