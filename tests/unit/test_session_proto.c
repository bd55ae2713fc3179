/* Frames: every type goes out and comes back, and damaged bytes are refused in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/crc.h"
#include "session/pack.h"

static const uint8_t some_bytes[5] = {1, 2, 3, 4, 250};

/* Fills every field of a message with something that is not zero. */
static void fill(unsigned type, union msg_any *msg)
{
    unsigned n = 0;
    const struct proto_field *f = proto_fields(type, &n);
    memset(msg, 0, sizeof *msg);
    for (unsigned i = 0; i < n; i++) {
        uint8_t *p = (uint8_t *)msg + f[i].offset;
        double d = 0.25 + i;
        struct blob b = {some_bytes, sizeof some_bytes};
        if (f[i].kind == FIELD_STR) {
            memset(p, 'a' + (int)(i % 26), f[i].size - 1u);
        } else if (f[i].kind == FIELD_F64) {
            memcpy(p, &d, sizeof d);
        } else if (f[i].kind == FIELD_BLOB) {
            memcpy(p, &b, sizeof b);
        } else {
            for (unsigned k = 0; k < f[i].size; k++) p[k] = (uint8_t)(0xf0 + i + k);
        }
    }
}

static void assert_same(unsigned type, const union msg_any *a, const union msg_any *b)
{
    unsigned n = 0;
    const struct proto_field *f = proto_fields(type, &n);
    for (unsigned i = 0; i < n; i++) {
        const uint8_t *p = (const uint8_t *)a + f[i].offset, *q = (const uint8_t *)b + f[i].offset;
        if (f[i].kind == FIELD_BLOB) {
            struct blob x, y;
            memcpy(&x, p, sizeof x);
            memcpy(&y, q, sizeof y);
            assert_int_equal(x.len, y.len);
            assert_memory_equal(x.data, y.data, x.len);
        } else {
            assert_memory_equal(p, q, f[i].size);
        }
    }
}

static void every_type_round_trips(void **state)
{
    (void)state;
    unsigned seen = 0;
    for (unsigned type = 0; type < FRAME_TYPE_END; type++) {
        if (!proto_size(type)) continue;
        struct buf b = {0};
        union msg_any in, out;
        struct frame f;
        size_t used;
        fill(type, &in);
        assert_int_equal(proto_encode(&b, (enum frame_type)type, 77, &in), OK);
        assert_int_equal(proto_next(b.data, b.len, &f, &used), OK);
        assert_int_equal(used, b.len);
        assert_int_equal(f.t_ns, 77);
        assert_int_equal(f.type, type);
        assert_int_equal(proto_decode(&f, &out, sizeof out), OK);
        assert_same(type, &in, &out);
        buf_free(&b);
        seen++;
    }
    assert_int_equal(seen, 39);
}

static void every_truncation_asks_for_more(void **state)
{
    (void)state;
    struct buf b = {0};
    struct msg_log m = {.level = 1, .text = "something happened"};
    struct frame f;
    size_t used;
    assert_int_equal(proto_encode(&b, FRAME_LOG, 5, &m), OK);
    for (size_t n = 0; n < b.len; n++) {
        assert_int_equal(proto_next(b.data, n, &f, &used), ERR_AGAIN);
        assert_int_equal(used, 0);
    }
    buf_free(&b);
}

static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    struct buf b = {0};
    struct msg_round m = {.round = 3, .generation = 1, .prefill_tokens = 512, .prefill_ns = 9};
    struct frame f;
    size_t used;
    assert_int_equal(proto_encode(&b, FRAME_ROUND, 5, &m), OK);
    for (size_t bit = 0; bit < b.len * 8; bit++) {
        b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        enum status st = proto_next(b.data, b.len, &f, &used);
        assert_true(st == ERR_FORMAT || st == ERR_AGAIN);
        if (st == ERR_FORMAT) assert_true(used >= 1 && strlen(err_msg()) > 10);
        b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buf_free(&b);
}

static void reader_finds_its_way_after_noise(void **state)
{
    (void)state;
    struct buf b = {0};
    struct msg_log m = {.text = "after the noise"};
    struct frame f = {0};
    size_t used, at = 0;
    for (int i = 0; i < 50; i++) buf_u8(&b, (uint8_t)(i * 37 + 255));
    assert_int_equal(proto_encode(&b, FRAME_LOG, 9, &m), OK);
    while (proto_next(b.data + at, b.len - at, &f, &used) == ERR_FORMAT) at += used;
    assert_int_equal(f.type, FRAME_LOG);
    assert_int_equal(at, 50);
    buf_free(&b);
}

static void payload_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    for (unsigned type = 0; type < FRAME_TYPE_END; type++) {
        if (!proto_size(type)) continue;
        struct buf b = {0};
        union msg_any in, out;
        struct frame f;
        size_t used;
        fill(type, &in);
        assert_int_equal(proto_encode(&b, (enum frame_type)type, 1, &in), OK);
        assert_int_equal(proto_next(b.data, b.len, &f, &used), OK);
        uint32_t whole = f.len;
        for (f.len = 0; f.len < whole; f.len++)
            assert_int_equal(proto_decode(&f, &out, sizeof out), ERR_FORMAT);
        buf_free(&b);
    }
}

static void newer_tail_is_left_and_older_tail_is_zero(void **state)
{
    (void)state;
    struct buf b = {0};
    struct msg_bye m = {.status = 3, .text = "done"}, got;
    struct frame f;
    size_t used;
    assert_int_equal(proto_encode(&b, FRAME_BYE, 1, &m), OK);
    assert_int_equal(proto_next(b.data, b.len, &f, &used), OK);
    struct buf longer = {0};
    buf_put(&longer, f.payload, f.len);
    buf_u64(&longer, 12345);
    f.payload = longer.data;
    f.len = (uint32_t)longer.len;
    f.version = 2;
    assert_int_equal(proto_decode(&f, &got, sizeof got), OK);
    assert_string_equal(got.text, "done");
    /* A version before this one (0 can't be on the wire) that had only the first field. */
    f.version = 0;
    f.len = 4;
    assert_int_equal(proto_decode(&f, &got, sizeof got), OK);
    assert_int_equal(got.status, 3);
    assert_string_equal(got.text, "");
    buf_free(&longer);
    buf_free(&b);
}

static void over_long_frame_is_refused_and_leaves_the_buffer(void **state)
{
    (void)state;
    struct buf b = {0};
    uint8_t *big = calloc(1, FRAME_MAX);
    struct msg_module m = {.bytes = {big, FRAME_MAX}};
    buf_u8(&b, 42);
    assert_int_equal(proto_encode(&b, FRAME_MODULE, 1, &m), ERR_LIMIT);
    assert_int_equal(b.len, 1);
    assert_false(b.failed);
    m.bytes.len = FRAME_MAX - 64;
    assert_int_equal(proto_encode(&b, FRAME_MODULE, 1, &m), OK);
    free(big);
    buf_free(&b);
}

static void unknown_type_is_a_whole_frame(void **state)
{
    (void)state;
    struct buf b = {0}, text = {0};
    struct frame f = {
        .type = 900, .version = 1, .t_ns = 1500000000, .payload = some_bytes, .len = 5};
    struct frame got;
    union msg_any m;
    size_t used;
    assert_int_equal(proto_copy(&b, &f), OK);
    assert_int_equal(proto_next(b.data, b.len, &got, &used), OK);
    assert_int_equal(proto_decode(&got, &m, sizeof m), ERR_UNAVAILABLE);
    proto_print(&got, &text);
    buf_u8(&text, 0);
    assert_string_equal((char *)text.data, "? t=1.500000000 type=900 version=1 <5 bytes>\n");
    buf_free(&text);
    buf_free(&b);
}

static void crc_is_zlibs(void **state)
{
    (void)state;
    assert_int_equal(crc32_of("123456789", 9), 0xcbf43926u); /* the check value of CRC-32 */
    assert_int_equal(crc32_of("", 0), 0);
    assert_int_equal(crc32_of("a", 1), 0xe8b7be43u);
}

static void blobs_round_trip(void **state)
{
    (void)state;
    struct buf b = {0};
    uint64_t prev = 0;
    struct span_item s[3] = {{7, 10, 5}, {300000, 1u << 20, 1}, {0, 1u << 21, 0}}, sp;
    for (int i = 0; i < 3; i++) pack_span(&b, &prev, &s[i]);
    struct rd r = rd_make(b.data, b.len);
    prev = 0;
    for (int i = 0; i < 3; i++) {
        assert_true(unpack_span(&r, &prev, &sp));
        assert_int_equal(sp.row, s[i].row);
        assert_int_equal(sp.start, s[i].start);
        assert_int_equal(sp.dur, s[i].dur);
    }
    assert_false(unpack_span(&r, &prev, &sp));
    assert_false(r.bad);

    buf_reset(&b);
    prev = 0;
    struct pm_item pm = {.start = 9, .dur = 20000, .v = {65.05, NAN, 0, 700}}, got;
    pack_pm(&b, &prev, &pm, 4);
    r = rd_make(b.data, b.len);
    prev = 0;
    assert_true(unpack_pm(&r, &prev, &got, 4));
    assert_float_equal(got.v[0], 65.05, 1e-9);
    assert_true(isnan(got.v[1]));
    assert_float_equal(got.v[2], 0, 0);
    assert_float_equal(got.v[3], 655.34, 1e-9); /* clamped, never wrapped */

    buf_reset(&b);
    pack_stall(&b, "long_scoreboard", 1ull << 40, 5);
    r = rd_make(b.data, b.len);
    struct stall_item st;
    assert_true(unpack_stall(&r, &st));
    assert_string_equal(st.reason, "long_scoreboard");
    assert_int_equal(st.samples, 1ull << 40);
    buf_free(&b);
}

static void times_that_wrap_are_garbled(void **state)
{
    (void)state;
    struct buf b = {0};
    struct span_item s;
    uint64_t prev = 0;
    for (int i = 0; i < 2; i++) {
        buf_varint(&b, 1);
        buf_varint(&b, INT64_MAX);
        buf_varint(&b, 0);
    }
    struct rd r = rd_make(b.data, b.len);
    assert_true(unpack_span(&r, &prev, &s));
    assert_false(unpack_span(&r, &prev, &s));
    assert_true(r.bad);
    buf_free(&b);
}

static void histogram_bins_are_quarter_octaves(void **state)
{
    (void)state;
    for (int e = 0; e < 62; e++) assert_int_equal(hist_bin(1ull << e), 4 * e);
    for (uint64_t ns = 1; ns < 100000; ns += 7)
        assert_int_equal(hist_bin(ns), (unsigned)floor(4 * log2((double)ns)));
    assert_int_equal(hist_bin(0), 0);
    assert_int_equal(hist_bin(UINT64_MAX), 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_round_trips),
        cmocka_unit_test(every_truncation_asks_for_more),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(reader_finds_its_way_after_noise),
        cmocka_unit_test(payload_cut_anywhere_is_an_error),
        cmocka_unit_test(newer_tail_is_left_and_older_tail_is_zero),
        cmocka_unit_test(over_long_frame_is_refused_and_leaves_the_buffer),
        cmocka_unit_test(unknown_type_is_a_whole_frame),
        cmocka_unit_test(crc_is_zlibs),
        cmocka_unit_test(blobs_round_trip),
        cmocka_unit_test(times_that_wrap_are_garbled),
        cmocka_unit_test(histogram_bins_are_quarter_octaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
