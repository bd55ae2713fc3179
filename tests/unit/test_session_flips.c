/* "flips": the costliest kernel of the flipped family, compared with the same work before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/record.h"
#include "session/table.h"

static struct session *s;
static struct table t;

static int open_recording(void **state)
{
    struct reader *r;
    struct frame f;
    (void)state;

    s = calloc(1, sizeof *s);
    if (!s || session_init(s) != OK) return -1;
    if (reader_open("tests/fixtures/h200.sasstop", &r) != OK) return -1;
    while (reader_next(r, &f) == OK)
        if (session_apply(s, &f) != OK) return -1;
    reader_close(r);
    return table_build(&t, s, table_find("flips"), NULL) == OK ? 0 : -1;
}

static int close_recording(void **state)
{
    (void)state;
    table_free(&t);
    session_free(s);
    free(s);
    return 0;
}

static void cell_of(uint32_t row, const char *id, struct cell *c)
{
    for (uint32_t i = 0; i < t.def->ncolumns; i++)
        if (!strcmp(t.def->columns[i].id, id)) {
            table_cell(&t, row, i, c);
            return;
        }
    fail_msg("no column %s", id);
}

static void a_line_each_generation(void **state)
{
    static const char *const names[] = {
        "narrow_kd8",    "narrow_prefold_kd8", "nb_kd8",   "nb_pad_kd8", "nb_qmajor_kd8",
        "nb_rolled_kd8", "nb_swar_kd8",        "wide_kd8", "wide_kd4",   "wide_32x64_kd4"};
    struct cell c;
    (void)state;
    assert_int_equal(t.nrows, 10);
    for (uint32_t i = 0; i < 10; i++) {
        cell_of(i, "kernel", &c);
        assert_string_equal(c.text, names[i]);
        cell_of(i, "shape", &c);
        assert_string_equal(c.text, "14336x512x4096");
    }
}

static void no_kernel_of_the_family_is_costlier(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < t.nrows; i++) {
        struct cell us;
        cell_of(i, "us", &us);
        for (uint32_t k = 0; k < s->nrows; k++) {
            const struct row *r = &s->rows[k];
            if (r->def.generation != i + 1 ||
                strcmp(s->kernels[r->def.kernel].def.family, "q4k_gemm"))
                continue;
            /* 32 calls of it: in all no other work takes longer. */
            assert_true((double)r->total_ns <= 32.5 * 1e3 * us.value.v);
        }
    }
}

static void the_ratio_is_of_the_same_work(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < t.nrows; i++) {
        struct cell x, now, role;
        double then = 0;
        cell_of(i, "ratio", &x);
        cell_of(i, "us", &now);
        cell_of(i, "role", &role);
        if (i == 0) {
            assert_int_equal(x.value.state, VALUE_UNAVAILABLE);
            assert_non_null(x.value.why);
            continue;
        }
        for (uint32_t k = 0; k < s->nrows; k++)
            if (s->rows[k].def.generation == i && s->rows[k].def.m == 14336 &&
                s->rows[k].def.n == 512 && !strcmp(s->rows[k].def.role, role.text))
                then = row_us(s, &s->rows[k]).v;
        assert_int_equal(x.value.state, VALUE_OK);
        assert_true(fabs(x.value.v - then / now.value.v) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_each_generation),
        cmocka_unit_test(no_kernel_of_the_family_is_costlier),
        cmocka_unit_test(the_ratio_is_of_the_same_work),
    };
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
