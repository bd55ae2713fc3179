/* No stream and no file can hurt the fold: garbled, hostile, endless, from tests/fuzz/session. */
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

#include <dirent.h>

#include "base/clock.h"
#include "session/record.h"
#include "session/report.h"
#include "tests/lib/session_lab.h"
#include "tests/lib/synth_session.h"

/* ---- hostile streams ---- */

static uint32_t noise = 1;
static uint32_t random_u32(void)
{
    noise ^= noise << 13;
    noise ^= noise >> 17;
    noise ^= noise << 5;
    return noise;
}

/* Every frame of the made-up session with bytes changed inside its payload: right CRC, wrong
 * content. Nothing may break, and the model stays usable. */
static void garbled_payloads_hurt_nothing(void **state)
{
    (void)state;
    struct buf b = {0};
    assert_int_equal(synth_session(&b, SYNTH_SEED), OK);
    for (int turn = 0; turn < 4; turn++) {
        struct session *s = calloc(1, sizeof *s);
        struct frame f;
        size_t used;
        assert_int_equal(session_init(s), OK);
        for (size_t at = 0; at < b.len; at += used) {
            assert_int_equal(proto_next(b.data + at, b.len - at, &f, &used), OK);
            uint8_t *copy = malloc(f.len ? f.len : 1);
            memcpy(copy, f.payload, f.len);
            for (uint32_t k = 0; f.len && k < (uint32_t)turn + 1; k++)
                if (random_u32() % 3 == 0) copy[random_u32() % f.len] ^= (uint8_t)random_u32();
            if (random_u32() % 20 == 0) f.len -= random_u32() % (f.len + 1);
            f.payload = copy;
            assert_int_equal(session_apply(s, &f), OK);
            free(copy);
        }
        for (uint32_t i = 0; i < s->nrows; i++) {
            char name[40];
            row_metric_best(s, &s->rows[i], "sm_pct");
            row_top_stall(s, &s->rows[i], name, sizeof name);
        }
        assert_true(s->garbled_frames > 0);
        lab_end(s);
    }
    buf_free(&b);
}

static bool is_utf8(const uint8_t *p, size_t n)
{
    for (size_t i = 0, more; i < n; i++) {
        more = p[i] < 0x80 ? 0 : (p[i] & 0xe0) == 0xc0 ? 1 : (p[i] & 0xf0) == 0xe0 ? 2 : 3;
        if (more == 3 && (p[i] & 0xf8) != 0xf0) return false;
        for (; more; more--)
            if (++i == n || (p[i] & 0xc0) != 0x80) return false;
    }
    return true;
}

/* Every report in every format can be made of it, and is text. */
static void reports_are_made(const struct session *s)
{
    static const char *const formats[] = {"md", "json", "html", "csv", "perfetto"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct buf b = {0};
        assert_int_equal(report_find(formats[i])->write(s, &b), OK);
        assert_true(b.len > 0);
        assert_true(is_utf8(b.data, b.len));
        buf_free(&b);
    }
}

static void a_metric_with_a_key_of_noise_is_reported(void **state)
{
    struct session *s = lab_new();
    (void)state;
    lab_kernel(s, 7, "nb_kd8");
    lab_row(s, 7, 7, 1);
    lab_metric(s, 9, "\xff\xfe\xc3", "range");
    struct msg_counter c = {.row = 7, .metric = 9, .source = "range", .state = VALUE_OK, .v = 1};
    lab_apply(s, FRAME_COUNTER, &c);
    reports_are_made(s);
    lab_end(s);
}

static void highest_numbers_are_reported(void **state)
{
    struct session *s = lab_new();
    struct buf b = {0};
    (void)state;
    lab_generation(s, INT32_MAX, "nb", UINT32_MAX);
    lab_kernel(s, UINT32_MAX, "nb_kd8");
    lab_row(s, UINT32_MAX, UINT32_MAX, INT32_MAX);
    lab_span_agg(s, UINT32_MAX, "activity", UINT32_MAX, 1);
    reports_are_made(s);
    assert_int_equal(report_find("perfetto")->write(s, &b), OK);
    buf_u8(&b, 0);
    assert_non_null(strstr((const char *)b.data, "\"tid\":2147483747"));
    buf_free(&b);
    lab_end(s);
}

/* A number of a field becomes one at the rim of its kind. */
static void set_wild(uint8_t *at, const struct proto_field *f)
{
    static const uint64_t whole[] = {0,          1,         INT32_MAX, 1ull << 31,
                                     UINT32_MAX, INT64_MAX, UINT64_MAX};
    const double real[] = {0, -1, 1e308, -1e308, 5e-324, 1e19, (double)NAN, (double)INFINITY};
    static const uint8_t bytes[] = {[FIELD_U8] = 1,  [FIELD_U16] = 2, [FIELD_U32] = 4,
                                    [FIELD_U64] = 8, [FIELD_I32] = 4, [FIELD_I64] = 8};
    uint64_t v = whole[random_u32() % (sizeof whole / sizeof whole[0])];
    double d = real[random_u32() % (sizeof real / sizeof real[0])];
    if (f->kind == FIELD_F64)
        memcpy(at, &d, sizeof d);
    else if (f->kind == FIELD_STR)
        memset(at, random_u32() % 2 ? 'W' : 0xff, f->size - 1u);
    else if (f->kind != FIELD_BLOB)
        memcpy(at, &v, bytes[f->kind]);
}

/* Folds a recording; of one frame in `rate` one field is set wild. */
static void fold_wild(const char *path, uint32_t rate)
{
    struct session *s = calloc(1, sizeof *s);
    struct reader *r;
    struct frame f, g;
    struct buf b = {0};
    union msg_any m;
    size_t used;
    assert_int_equal(session_init(s), OK);
    assert_int_equal(reader_open(path, &r), OK);
    while (reader_next(r, &f) == OK) {
        unsigned n = 0;
        const struct proto_field *fields = proto_fields(f.type, &n);
        if (n && random_u32() % rate == 0 && proto_decode(&f, &m, sizeof m) == OK) {
            const struct proto_field *field = &fields[random_u32() % n];
            set_wild((uint8_t *)&m + field->offset, field);
            buf_reset(&b);
            assert_int_equal(proto_encode(&b, f.type, f.t_ns, &m), OK);
            assert_int_equal(proto_next(b.data, b.len, &g, &used), OK);
            f = g;
        }
        session_apply(s, &f);
    }
    reports_are_made(s);
    reader_close(r);
    buf_free(&b);
    lab_end(s);
}

static void fields_at_their_rims_hurt_nothing(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 12; turn++) {
        fold_wild("tests/fixtures/synthetic.sasstop", 2 + 10 * turn);
        fold_wild("tests/fixtures/executed.sasstop", 2 + 10 * turn);
    }
}

/* As many ids as can be named: memory and counts stay in their limits. */
static void most_hostile_ids_are_bounded(void **state)
{
    (void)state;
    struct session *s = lab_new();
    for (uint32_t i = 0; i < 600; i++) {
        char name[32];
        snprintf(name, sizeof name, "k%u", i);
        lab_kernel(s, i, name);
        lab_metric(s, (uint16_t)i, name, "pm");
        lab_generation(s, i + 1, name, i);
        lab_source(s, name, "ok", "");
        struct msg_variant_def v = {.kd = i};
        struct msg_parity p = {.kd = i, .state = "ok"};
        struct msg_stalls st = {.kernel = i % 512, .generation = i};
        lab_apply(s, FRAME_VARIANT_DEF, &v);
        lab_apply(s, FRAME_STALLS, &st);
        for (uint32_t k = 0; k < 3; k++) {
            p.m = k;
            lab_apply(s, FRAME_PARITY, &p);
        }
    }
    for (uint32_t i = 0; i < MAX_ROWS + 100; i++) lab_row(s, i, i % 500, 1);
    lab_row(s, UINT32_MAX, 1, 1);
    lab_kernel(s, UINT32_MAX, "far");
    for (uint32_t i = 1; i < 3000; i++)
        for (uint16_t m = 0; m < 64; m++) {
            struct msg_counter c = {.row = i, .metric = m, .state = VALUE_OK, .v = 1};
            lab_apply(s, FRAME_COUNTER, &c);
        }
    assert_int_equal(s->nkernels, MAX_KERNELS);
    assert_int_equal(s->nmetrics, MAX_METRICS);
    assert_int_equal(s->ngenerations, MAX_GENERATIONS);
    assert_int_equal(s->nsources, MAX_SOURCES);
    assert_int_equal(s->nvariants, MAX_VARIANTS);
    assert_int_equal(s->nparities, MAX_PARITIES);
    assert_true(s->nrows < MAX_ROWS);
    assert_true(s->row_metrics_total <= MAX_ROW_METRICS);
    assert_true(s->overflowed > 100);
    lab_end(s);
}

static void unknown_types_are_counted(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct frame f = {.type = 1000, .version = 3};
    uint64_t frames = s->frames;
    assert_int_equal(session_apply(s, &f), OK);
    f.type = 0;
    assert_int_equal(session_apply(s, &f), OK);
    assert_int_equal(s->unknown_frames, 2);
    assert_int_equal(s->frames, frames + 2);
    lab_end(s);
}

/* The made-up session again and again: a million frames, in bounded memory and little time. */
static void a_million_frames_fold_quickly(void **state)
{
    (void)state;
    struct buf b = {0};
    struct session *s = calloc(1, sizeof *s);
    assert_int_equal(session_init(s), OK);
    assert_int_equal(synth_session(&b, SYNTH_SEED), OK);
    uint64_t t0 = clock_mono_ns();
    while (s->frames < 1000000) assert_int_equal(synth_fold(s, b.data, b.len), OK);
    double seconds = (double)(clock_mono_ns() - t0) / 1e9;
    printf("folded %llu frames in %.2f s\n", (unsigned long long)s->frames, seconds);
    assert_int_equal(s->ngenerations, 8);
    assert_true(seconds < 60); /* far above what it takes, also with sanitisers on a busy machine */
    buf_free(&b);
    lab_end(s);
}

/* ---- files ---- */

/* Opens a file, folds what can be read, writes every report: refused in words, or done. */
static bool file_is_survived(const char *path)
{
    struct session *s = calloc(1, sizeof *s);
    struct reader *r;
    struct frame f;
    enum status st = reader_open(path, &r);

    assert_non_null(s);
    if (st != OK) {
        assert_true(st == ERR_FORMAT || st == ERR_IO);
        assert_true(strlen(err_msg()) > 10);
        free(s);
        return false;
    }
    assert_int_equal(session_init(s), OK);
    while ((st = reader_next(r, &f)) == OK) assert_int_equal(session_apply(s, &f), OK);
    assert_int_equal(st, ERR_END);
    reader_duration_ns(r);
    reader_close(r);
    for (unsigned i = 0; i < nreports; i++) {
        struct buf b = {0};
        assert_int_equal(reports[i]->write(s, &b), OK);
        buf_free(&b);
    }
    lab_end(s);
    return true;
}

static void corpus_is_refused_or_opened_in_words(void **state)
{
    (void)state;
    DIR *d = opendir("tests/fuzz/session");
    unsigned files = 0, opened = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[320];
        if (!strstr(e->d_name, ".bin")) continue;
        snprintf(path, sizeof path, "tests/fuzz/session/%s", e->d_name);
        opened += file_is_survived(path);
        files++;
    }
    closedir(d);
    assert_true(files >= 20);
    assert_true(opened >= 12 && opened < files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbled_payloads_hurt_nothing),
        cmocka_unit_test(a_metric_with_a_key_of_noise_is_reported),
        cmocka_unit_test(highest_numbers_are_reported),
        cmocka_unit_test(fields_at_their_rims_hurt_nothing),
        cmocka_unit_test(most_hostile_ids_are_bounded),
        cmocka_unit_test(unknown_types_are_counted),
        cmocka_unit_test(a_million_frames_fold_quickly),
        cmocka_unit_test(corpus_is_refused_or_opened_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
