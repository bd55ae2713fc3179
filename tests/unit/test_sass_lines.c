/* Source lines: the program's opcodes by hand, damage, and a kernel compiled with -lineinfo. */
#include "base/buf.h"
#include "sass_view/lines.h"
#include "tests/lib/sass_lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LINED "tests/fixtures/sass/lined_sm_90a.cubin"

/* A unit of version 2 with one folder, two files and the given program. */
static void put_unit(struct buf *b, const uint8_t *program, size_t n)
{
    static const uint8_t head[] = {1, 1,   0xfb, 14,  10,  0, 1, 1, 1, 1,   0,   0, 0, 1, 'd', 0,
                                   0, 'a', '.',  'c', 'u', 0, 1, 0, 0, '/', 'b', 0, 0, 0, 0,   0};
    buf_u32(b, (uint32_t)(6 + sizeof head + n));
    buf_u16(b, 2);
    buf_u32(b, sizeof head);
    buf_put(b, head, sizeof head);
    buf_put(b, program, n);
}

static const uint8_t program[] = {
    0,
    9,
    2,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0, /* set_address 0 */
    3,
    9,
    1, /* line 10, row 1 at 0 */
    4,
    2,
    2,
    16,
    3,
    0x7e,
    1, /* file 2, pc 16, line 8, row 2 */
    0,
    3,
    0x90,
    1,
    0,               /* inlined at row 1 */
    10 + 14 + 5 + 1, /* special: pc + 1, line + 1 */
    0,
    3,
    0x90,
    99,
    0, /* a context that isn't there */
    9,
    15,
    0,
    5,
    7,
    6,
    7,
    8,
    1, /* fixed pc + 15, column, flags, const pc + 17 */
    2,
    4,
    0,
    1,
    1, /* end of sequence */
};

static void opcodes(void **state)
{
    (void)state;
    static const struct line_row want[] = {
        {0, 0, 10, 0}, {16, 1, 8, 0}, {17, 1, 9, 1}, {17 + 15 + 17, 1, 9, 0}};
    struct buf b = {0};
    struct lines l;
    put_unit(&b, program, sizeof program);
    assert_int_equal(lines_parse(&l, b.data, b.len, NULL, 0), OK);
    assert_false(l.damaged);
    assert_int_equal(l.nfiles, 2);
    assert_string_equal(l.files[0], "d/a.cu");
    assert_string_equal(l.files[1], "/b");
    assert_int_equal(l.nrows, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(l.rows[i].offset, want[i].offset);
        assert_int_equal(l.rows[i].file, want[i].file);
        assert_int_equal(l.rows[i].line, want[i].line);
        assert_int_equal(l.rows[i].inlined_at, want[i].inlined_at);
    }
    assert_ptr_equal(lines_at(&l, 15), &l.rows[0]);
    assert_ptr_equal(lines_at(&l, 1000), &l.rows[3]);
    lines_free(&l);
    /* Only the sequence whose address is relocated to the kernel counts. */
    uint64_t place = 10 + 32 + 3, other = 4;
    assert_int_equal(lines_parse(&l, b.data, b.len, &place, 1), OK);
    assert_int_equal(l.nrows, 4);
    lines_free(&l);
    assert_int_equal(lines_parse(&l, b.data, b.len, &other, 1), OK);
    assert_int_equal(l.nrows, 0);
    lines_free(&l);
    buf_free(&b);
}

/* Any cut keeps the rows before it and never reads past the end. */
static void truncations(void **state)
{
    (void)state;
    struct buf b = {0};
    put_unit(&b, program, sizeof program);
    uint32_t most = 0;
    for (size_t n = 0; n < b.len; n++) {
        uint8_t *own = malloc(n ? n : 1);
        struct lines l;
        assert_non_null(own);
        memcpy(own, b.data, n);
        if (n >= 4) memcpy(own, (uint32_t[]){(uint32_t)(n - 4)}, 4);
        assert_int_equal(lines_parse(&l, own, n, NULL, 0), OK);
        assert_true(l.nrows >= most || n < 60);
        if (l.nrows > most) most = l.nrows;
        lines_free(&l);
        free(own);
    }
    assert_int_equal(most, 4);
    buf_free(&b);
}

static void compiled(void **state)
{
    (void)state;
    struct cubin c;
    struct lines l;
    if (cubin_open_file(&c, LINED)) fail_msg("%s", err_msg());
    const struct cubin_kernel *k = cubin_find_kernel(&c, "lined");
    assert_non_null(k);
    assert_int_equal(lines_read(&l, &c, k), OK);
    assert_false(l.ptx || l.damaged);
    assert_int_equal(l.nfiles, 1);
    assert_non_null(strstr(l.files[0], "lined.cu"));
    bool seen[32] = {0}, inlined = false;
    for (uint32_t off = 0; off < k->code_size; off += 16) {
        const struct line_row *r = lines_at(&l, off);
        assert_non_null(r);
        assert_in_range(r->line, 1, 31);
        seen[r->line] = true;
        if (!r->inlined_at) continue;
        /* sq() is called from twice(), twice() from the loop's body: every chain ends there. */
        const struct line_row *up = r;
        while (up->inlined_at) up = &l.rows[up->inlined_at - 1];
        assert_in_range(up->line, 14, 17);
        inlined = true;
    }
    assert_true(inlined && seen[5] && seen[16] && seen[17]);
    lines_free(&l);
    const struct cubin_kernel *other = cubin_find_kernel(&c, "other");
    assert_non_null(other);
    assert_int_equal(lines_read(&l, &c, other), OK);
    for (uint32_t i = 0; i < l.nrows; i++) assert_in_range(l.rows[i].line, 19, 23);
    lines_free(&l);
    cubin_close(&c);
    if (cubin_open_file(&c, "tests/fixtures/sass/tiny_sm_90a.cubin")) fail_msg("%s", err_msg());
    assert_int_equal(lines_read(&l, &c, &c.kernels[0]), OK);
    assert_int_equal(l.nrows, 0);
    cubin_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opcodes),
        cmocka_unit_test(truncations),
        cmocka_unit_test(compiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
