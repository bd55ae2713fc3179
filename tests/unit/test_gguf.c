/*
 * The GGUF reader on sound files: metadata of every type, tensors, arrays, strings for printing,
 * and what the getters say about missing and mistyped keys.
 */
#include "engine/gguf.h"
#include "engine/synth_priv.h"
#include "tests/lib/gguf_make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void put_scalar(struct gguf_maker *m, const char *key, enum gguf_type type, uint64_t bits,
                       int bytes)
{
    synth_put_str(&m->kv, key, strlen(key));
    buf_u32(&m->kv, type);
    for (int i = 0; i < bytes; i++) buf_u8(&m->kv, (uint8_t)(bits >> 8 * i));
    m->n_kv++;
}

static struct gguf *open_made(const struct gguf_maker *m, struct buf *b)
{
    struct gguf *g;
    gguf_maker_finish(m, b);
    assert_false(b->failed);
    if (gguf_open_memory(b->data, b->len, "made", NULL, &g)) fail_msg("%s", err_msg());
    return g;
}

static void test_integers(void **state)
{
    (void)state;
    struct gguf_maker m = {0};
    struct buf b = {0};
    uint32_t v;
    put_scalar(&m, "u8", GGUF_U8, 200, 1);
    put_scalar(&m, "u16", GGUF_U16, 60000, 2);
    put_scalar(&m, "u32", GGUF_U32, UINT32_MAX, 4);
    put_scalar(&m, "u64", GGUF_U64, 77, 8);
    put_scalar(&m, "i8", GGUF_I8, 100, 1);
    put_scalar(&m, "i16", GGUF_I16, 30000, 2);
    put_scalar(&m, "i32", GGUF_I32, 1u << 30, 4);
    put_scalar(&m, "i64", GGUF_I64, 5, 8);
    put_scalar(&m, "minus8", GGUF_I8, 0xff, 1);
    put_scalar(&m, "minus64", GGUF_I64, UINT64_MAX, 8);
    put_scalar(&m, "big", GGUF_U64, UINT64_MAX, 8);
    put_scalar(&m, "big33", GGUF_I64, 1ull << 32, 8);
    struct gguf *g = open_made(&m, &b);

    static const struct {
        const char *key;
        uint32_t want;
    } good[] = {{"u8", 200}, {"u16", 60000}, {"u32", UINT32_MAX}, {"u64", 77},
                {"i8", 100}, {"i16", 30000}, {"i32", 1u << 30},   {"i64", 5}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(gguf_get_u32(g, good[i].key, &v), OK);
        assert_int_equal(v, good[i].want);
    }
    static const char *const bad[] = {"minus8", "minus64", "big", "big33", "absent"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(gguf_get_u32(g, bad[i], &v), ERR_FORMAT);
        assert_non_null(strstr(err_msg(), bad[i]));
        assert_non_null(strstr(err_msg(), "made"));
    }
    assert_int_equal(gguf_get_u32_or(g, "absent", 9, &v), OK);
    assert_int_equal(v, 9);
    assert_int_equal(gguf_get_u32_or(g, "big", 9, &v), ERR_FORMAT);
    gguf_close(g);
    buf_free(&b);
    gguf_maker_free(&m);
}

static void test_other_scalars(void **state)
{
    (void)state;
    struct gguf_maker m = {0};
    struct buf b = {0};
    float f;
    bool flag;
    uint32_t u;
    struct gguf_str s;
    m.n_kv += synth_put_kv_f32(&m.kv, "f32", 1.5f);
    put_scalar(&m, "f64", GGUF_F64, 0xc004000000000000u, 8); /* -2.5 */
    m.n_kv += synth_put_kv_bool(&m.kv, "yes", true);
    m.n_kv += synth_put_kv_str(&m.kv, "text", "two\nlines");
    struct gguf *g = open_made(&m, &b);

    assert_int_equal(gguf_get_f32(g, "f32", &f), OK);
    assert_float_equal(f, 1.5, 0);
    assert_int_equal(gguf_get_f32(g, "f64", &f), OK);
    assert_float_equal(f, -2.5, 0);
    assert_int_equal(gguf_get_f32(g, "yes", &f), ERR_FORMAT);
    assert_int_equal(gguf_get_f32(g, "absent", &f), ERR_FORMAT);
    assert_int_equal(gguf_get_f32_or(g, "absent", 7, &f), OK);
    assert_float_equal(f, 7, 0);
    assert_int_equal(gguf_get_bool_or(g, "yes", false, &flag), OK);
    assert_true(flag);
    assert_int_equal(gguf_get_bool_or(g, "absent", true, &flag), OK);
    assert_true(flag);
    assert_int_equal(gguf_get_bool_or(g, "f32", true, &flag), ERR_FORMAT);
    assert_int_equal(gguf_get_u32(g, "f32", &u), ERR_FORMAT);
    assert_int_equal(gguf_get_str(g, "text", &s), OK);
    assert_true(gguf_str_is(s, "two\nlines"));
    assert_int_equal(gguf_get_str(g, "yes", &s), ERR_FORMAT);
    assert_int_equal(gguf_get_str_or(g, "absent", "def", &s), OK);
    assert_true(gguf_str_is(s, "def"));
    gguf_close(g);
    buf_free(&b);
    gguf_maker_free(&m);
}

static void put_nested_array(struct gguf_maker *m, const char *key, int depth)
{
    m->n_kv += synth_put_kv_array(&m->kv, key, depth ? GGUF_ARRAY : GGUF_U8, 2);
    for (int i = 0; depth && i < 2; i++) {
        /* Two inner arrays of depth - 1 levels of one element each. */
        for (int d = depth - 1; d > 0; d--) {
            buf_u32(&m->kv, GGUF_ARRAY);
            buf_u64(&m->kv, 1);
        }
        buf_u32(&m->kv, GGUF_U8);
        buf_u64(&m->kv, 1);
        buf_u8(&m->kv, 42);
    }
}

static void test_arrays(void **state)
{
    (void)state;
    struct gguf_maker m = {0};
    struct buf b = {0};
    struct gguf_array a;
    m.n_kv += synth_put_kv_array(&m.kv, "numbers", GGUF_I32, 3);
    for (uint32_t i = 0; i < 3; i++) buf_u32(&m.kv, 10 * i);
    m.n_kv += synth_put_kv_array(&m.kv, "texts", GGUF_STR, 2);
    synth_put_str(&m.kv, "a", 1);
    synth_put_str(&m.kv, "", 0);
    m.n_kv += synth_put_kv_array(&m.kv, "none", GGUF_F32, 0);
    put_nested_array(&m, "nested", 3);
    m.n_kv += synth_put_kv_u32(&m.kv, "after", 5);
    struct gguf *g = open_made(&m, &b);

    assert_int_equal(gguf_get_array(g, "numbers", GGUF_I32, &a), OK);
    assert_int_equal(a.n, 3);
    assert_int_equal(a.data[8], 20);
    assert_int_equal(gguf_get_array(g, "numbers", GGUF_U32, &a), ERR_FORMAT);
    assert_int_equal(gguf_get_array(g, "texts", GGUF_STR, &a), OK);
    assert_int_equal(a.n, 2);
    assert_true(gguf_str_is(a.strs[0], "a"));
    assert_int_equal(a.strs[1].len, 0);
    assert_int_equal(gguf_get_array(g, "none", GGUF_F32, &a), OK);
    assert_int_equal(a.n, 0);
    assert_int_equal(gguf_get_array(g, "nested", GGUF_ARRAY, &a), ERR_FORMAT);
    assert_int_equal(gguf_get_array(g, "after", GGUF_U32, &a), ERR_FORMAT);
    assert_int_equal(gguf_get_array(g, "absent", GGUF_U32, &a), ERR_FORMAT);
    uint32_t v;
    assert_int_equal(gguf_get_u32(g, "after", &v), OK);
    assert_int_equal(v, 5);
    gguf_close(g);
    buf_free(&b);
    gguf_maker_free(&m);
}

static void test_tensors(void **state)
{
    (void)state;
    struct gguf_maker m = {.alignment = 64};
    struct buf b = {0};
    m.n_kv += synth_put_kv_u32(&m.kv, "general.alignment", 64);
    gguf_maker_tensor(&m, "zeta", QUANT_F32, 3, 0, 1, 0);
    gguf_maker_tensor(&m, "alpha", QUANT_Q8_0, 64, 5, 1, 0);
    struct gguf *g = open_made(&m, &b);

    assert_int_equal(gguf_tensor_count(g), 2);
    const struct gguf_tensor *t = gguf_tensor_find(g, "alpha");
    assert_ptr_equal(t, gguf_tensor_at(g, 1));
    assert_int_equal(t->ne[0], 64);
    assert_int_equal(t->ne[1], 5);
    assert_int_equal(t->ne[3], 1);
    assert_int_equal(t->bytes, 5 * 2 * 34);
    assert_int_equal((size_t)((const uint8_t *)t->data - b.data) % 64, 0);
    assert_memory_equal(t->data, m.data.data + 64, t->bytes);
    assert_int_equal(gguf_tensor_find(g, "zeta")->n_dims, 1);
    assert_null(gguf_tensor_find(g, "alph"));
    assert_null(gguf_tensor_at(g, 2));
    assert_string_equal(gguf_name(g), "made");
    gguf_close(g);
    buf_free(&b);
    gguf_maker_free(&m);
}

static int released;

static void count_release(void *data, size_t len)
{
    (void)len;
    free(data);
    released++;
}

/* Bytes given with a release function go back once, whether the file opens or not. */
static void test_ownership(void **state)
{
    (void)state;
    struct gguf *g;
    for (int bad = 0; bad < 2; bad++) {
        struct gguf_maker m = {0};
        struct buf b = {0};
        gguf_maker_tensor(&m, "x", QUANT_F32, 8, 0, 1, 0);
        gguf_maker_finish(&m, &b);
        if (bad) b.data[0] = 'X';
        released = 0;
        assert_int_equal(gguf_open_memory(b.data, b.len, "made", count_release, &g),
                         bad ? ERR_FORMAT : OK);
        assert_int_equal(released, bad);
        gguf_close(g);
        assert_int_equal(released, 1);
        gguf_maker_free(&m);
    }
}

static void test_printing(void **state)
{
    (void)state;
    char out[8];
    struct gguf_str s = {"a\x1b[b\xc3\xa9\xff z", 9};
    assert_string_equal(gguf_str_copy(s, out, sizeof out), "a?[b\xc3\xa9?");
    char wide[32];
    assert_string_equal(gguf_str_copy(s, wide, sizeof wide), "a?[b\xc3\xa9? z");
    /* A character that doesn't fit is left out whole. */
    assert_string_equal(gguf_str_copy((struct gguf_str){"abcdef\xc3\xa9", 8}, out, sizeof out),
                        "abcdef");
    assert_string_equal(gguf_str_copy((struct gguf_str){NULL, 0}, out, sizeof out), "");
    /* C1 controls are two bytes in UTF-8 and must not reach a terminal either. */
    assert_string_equal(gguf_str_copy((struct gguf_str){"x\xc2\x9by", 4}, out, sizeof out), "x??y");
    assert_string_equal(gguf_str_copy((struct gguf_str){"\xc2\xb5s", 3}, out, sizeof out),
                        "\xc2\xb5s");
}

static void test_files(void **state)
{
    (void)state;
    struct gguf *g;
    assert_int_equal(gguf_open("tests/fixtures/gguf/absent.gguf", &g), ERR_IO);
    assert_null(g);
    assert_int_equal(gguf_open("tests/fixtures/gguf", &g), ERR_IO);
    assert_int_equal(gguf_open("/dev/null", &g), ERR_IO);
    assert_int_equal(gguf_open("Makefile", &g), ERR_FORMAT);
    assert_non_null(strstr(err_msg(), "not a GGUF"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),  cmocka_unit_test(test_other_scalars),
        cmocka_unit_test(test_arrays),    cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_ownership), cmocka_unit_test(test_printing),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
