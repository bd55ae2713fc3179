/* Session files: what goes in comes out, and damage anywhere is met in words. */
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

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/record_file.h"
#include "session/report.h"
#include "tests/lib/synth_session.h"

static char folder[] = "/tmp/sasstop-record-XXXXXX";
static struct buf frames, file; /* the made-up session: on the wire, and as a file */

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void slurp(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (int c; (c = fgetc(f)) != EOF;) buf_u8(out, (uint8_t)c);
    fclose(f);
}

static int make_session(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    if (synth_session(&frames, SYNTH_SEED) != OK) return -1;
    if (synth_session_file(path_of("whole"), SYNTH_SEED) != OK) return -1;
    slurp(path_of("whole"), &file);
    return 0;
}

static int remove_session(void **state)
{
    (void)state;
    static const char *const names[] = {"whole", "old", "cut", "cut2", "tick", "noise"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
    buf_free(&frames);
    buf_free(&file);
    return rmdir(folder);
}

/* All frames of a reader as wire bytes. */
static void read_all(struct reader *r, struct buf *out)
{
    struct frame f;
    enum status st;
    while ((st = reader_next(r, &f)) == OK) assert_int_equal(proto_copy(out, &f), OK);
    assert_int_equal(st, ERR_END);
    assert_int_equal(reader_next(r, &f), ERR_END);
}

static void file_holds_the_same_bytes_as_the_socket(void **state)
{
    (void)state;
    struct reader *r;
    struct buf got = {0};
    assert_int_equal(reader_open(path_of("whole"), &r), OK);
    for (int turn = 0; turn < 2; turn++) {
        buf_reset(&got);
        read_all(r, &got);
        assert_null(reader_damage(r));
        assert_int_equal(got.len, frames.len);
        assert_memory_equal(got.data, frames.data, got.len);
        assert_int_equal(reader_rewind(r), OK);
        assert_int_equal(reader_frames_read(r), 0);
    }
    reader_close(r);
    buf_free(&got);
}

static void duration_leaves_the_place_alone(void **state)
{
    (void)state;
    struct reader *r;
    struct frame f;
    assert_int_equal(reader_open_memory(file.data, file.len, &r), OK);
    for (int i = 0; i < 5; i++) assert_int_equal(reader_next(r, &f), OK);
    uint64_t t = f.t_ns;
    assert_true(reader_duration_ns(r) > 15000000000ull);
    assert_int_equal(reader_frames_read(r), 5);
    assert_int_equal(reader_next(r, &f), OK);
    assert_true(f.t_ns >= t && f.t_ns < 1000000000);
    reader_close(r);
}

/* Opens bytes, folds what can be read, reports: nothing of that may fail but opening. Returns the
 * number of frames; all of them must be those of the whole recording. */
static uint64_t survive(const uint8_t *p, size_t n, bool *damaged)
{
    struct reader *r;
    struct buf got = {0};
    uint64_t count;

    *damaged = false;
    enum status st = reader_open_memory(p, n, &r);
    if (st != OK) {
        assert_int_equal(st, ERR_FORMAT);
        assert_true(strlen(err_msg()) > 10);
        return 0;
    }
    read_all(r, &got);
    *damaged = reader_damage(r) != NULL;
    if (*damaged) assert_true(strlen(reader_damage(r)) > 20);
    count = reader_frames_read(r);
    assert_true(got.len <= frames.len);
    assert_memory_equal(got.data, frames.data, got.len);
    reader_close(r);
    buf_free(&got);
    return count;
}

static void two_hundred_truncations(void **state)
{
    (void)state;
    uint64_t last = 0;
    bool damaged;
    for (size_t i = 0; i < 200; i++) {
        size_t n = file.len * i / 200;
        uint8_t *exact = malloc(n ? n : 1); /* so that reading past it is seen */
        memcpy(exact, file.data, n);
        uint64_t count = survive(exact, n, &damaged);
        assert_true(count >= last);
        last = count;
        free(exact);
    }
    assert_true(last > 1000);
}

static void every_cut_of_the_first_chunk(void **state)
{
    (void)state;
    bool damaged;
    for (size_t n = 0; n < 600; n++) {
        survive(file.data, n, &damaged);
        if (n > FILE_HEAD) assert_true(damaged);
    }
}

static void two_hundred_flips(void **state)
{
    (void)state;
    bool damaged;
    uint64_t whole = survive(file.data, file.len, &damaged);
    assert_false(damaged);
    srand(11);
    for (int i = 0; i < 200; i++) {
        size_t at = i < 40 ? (size_t)i : (size_t)rand() * 7919 % file.len;
        uint8_t old = file.data[at];
        file.data[at] ^= (uint8_t)(1 + rand() % 255);
        uint64_t count = survive(file.data, file.len, &damaged);
        /* Only the four bytes that mean nothing yet may change unseen. */
        assert_true(damaged || count == 0 || (at >= 12 && at < 16 && count == whole));
        file.data[at] = old;
    }
}

static void lengths_out_of_bounds_are_refused(void **state)
{
    (void)state;
    const uint32_t bad[] = {0, CHUNK_RAW_LIMIT + 1, UINT32_MAX, 0x80000000u};
    bool damaged;
    for (unsigned i = 0; i < 4; i++)
        for (size_t at = FILE_HEAD + 4; at <= FILE_HEAD + 8; at += 4) {
            uint8_t old[4];
            memcpy(old, file.data + at, 4);
            for (int k = 0; k < 4; k++) file.data[at + (size_t)k] = (uint8_t)(bad[i] >> 8 * k);
            assert_int_equal(survive(file.data, file.len, &damaged), 0);
            assert_true(damaged);
            memcpy(file.data + at, old, 4);
        }
}

static void other_files_are_refused_in_words(void **state)
{
    (void)state;
    struct reader *r;
    FILE *f = fopen(path_of("noise"), "wb");
    assert_non_null(f);
    fputs("GGUF and then some more bytes of it", f);
    fclose(f);
    assert_int_equal(reader_open(path_of("noise"), &r), ERR_FORMAT);
    assert_non_null(strstr(err_msg(), "not a session file"));
    assert_int_equal(reader_open(folder, &r), ERR_IO);
    assert_int_equal(reader_open("/nowhere/at/all", &r), ERR_IO);
    file.data[8] = 9;
    assert_int_equal(reader_open_memory(file.data, file.len, &r), ERR_FORMAT);
    assert_non_null(strstr(err_msg(), "format 9"));
    file.data[8] = FILE_VERSION;
}

static void nothing_is_overwritten(void **state)
{
    (void)state;
    struct recorder *r;
    FILE *f = fopen(path_of("old"), "wb");
    assert_non_null(f);
    fputs("precious", f);
    fclose(f);
    assert_int_equal(recorder_open(path_of("old"), &r), ERR_IO);
    assert_null(r);
    struct buf b = {0};
    slurp(path_of("old"), &b);
    assert_int_equal(b.len, 8);
    buf_free(&b);
    assert_int_equal(recorder_close(NULL), OK);
}

static void chunk_is_written_when_it_is_old_enough(void **state)
{
    (void)state;
    struct recorder *r;
    struct buf b = {0};
    struct msg_log m = {.text = "a line"};
    assert_int_equal(proto_encode(&b, FRAME_LOG, 1, &m), OK);
    assert_int_equal(recorder_open(path_of("tick"), &r), OK);
    assert_int_equal(recorder_bytes(r), FILE_HEAD);
    assert_int_equal(recorder_add(r, b.data, b.len, 1000), OK);
    assert_int_equal(recorder_tick(r, 1000 + CHUNK_AGE_NS - 1), OK);
    assert_int_equal(recorder_bytes(r), FILE_HEAD);
    assert_int_equal(recorder_tick(r, 1000 + CHUNK_AGE_NS), OK);
    assert_true(recorder_bytes(r) > FILE_HEAD);
    /* What a kill would leave: whole up to here. */
    struct reader *reader;
    struct frame f;
    assert_int_equal(reader_open(path_of("tick"), &reader), OK);
    assert_int_equal(reader_next(reader, &f), OK);
    assert_int_equal(f.type, FRAME_LOG);
    assert_int_equal(reader_next(reader, &f), ERR_END);
    assert_null(reader_damage(reader));
    reader_close(reader);
    assert_int_equal(recorder_add(r, b.data, 3, 5), ERR_USAGE);
    assert_int_equal(recorder_close(r), OK);
    buf_free(&b);
}

static void full_disk_is_said_and_ends_the_recording(void **state)
{
    (void)state;
    struct recorder *r;
    struct buf b = {0};
    struct msg_log m = {.text = "a line"};
    if (access("/dev/full", W_OK) != 0) skip();
    /* O_EXCL refuses /dev/full, so the descriptor of an open recorder is pointed at it. */
    assert_int_equal(recorder_open(path_of("cut2"), &r), OK);
    int full = open("/dev/full", 1);
    assert_true(full >= 0);
    for (int fd = 3; fd < 64; fd++) {
        struct stat a, c;
        if (fd == full || fstat(fd, &a) != 0 || stat(path_of("cut2"), &c) != 0) continue;
        if (a.st_ino == c.st_ino && a.st_dev == c.st_dev) dup2(full, fd);
    }
    close(full);
    assert_int_equal(proto_encode(&b, FRAME_LOG, 1, &m), OK);
    assert_int_equal(recorder_add(r, b.data, b.len, 0), OK);
    assert_int_equal(recorder_tick(r, CHUNK_AGE_NS), ERR_IO);
    assert_non_null(strstr(err_msg(), "whole up to here"));
    assert_int_equal(recorder_add(r, b.data, b.len, 0), ERR_IO);
    assert_int_equal(recorder_close(r), ERR_IO);
    unlink(path_of("cut2"));
    buf_free(&b);
}

/* ---- cut ---- */

static struct session *fold_file(const char *path)
{
    struct session *s = calloc(1, sizeof *s);
    struct reader *r;
    struct frame f;
    assert_non_null(s);
    assert_int_equal(session_init(s), OK);
    assert_int_equal(reader_open(path, &r), OK);
    uint64_t last = 0;
    while (reader_next(r, &f) == OK) {
        assert_int_equal(session_apply(s, &f), OK);
        assert_true(f.t_ns >= last);
        last = f.t_ns;
    }
    assert_null(reader_damage(r));
    reader_close(r);
    return s;
}

static void drop(struct session *s)
{
    session_free(s);
    free(s);
}

/* The event that says what a cut holds. */
static const struct event *cut_mark(const struct session *s)
{
    for (uint32_t i = 0; i < s->nevents; i++) {
        const struct event *e = &s->events[(s->first_event + i) % MAX_EVENTS];
        if (!strcmp(e->kind, "cut")) return e;
    }
    fail_msg("no mark");
    return NULL;
}

static void cut_replays_alone(void **state)
{
    (void)state;
    char in[128];
    snprintf(in, sizeof in, "%s", path_of("whole"));
    const uint64_t from = 6000000000ull, to = 12000000000ull;
    assert_int_equal(record_cut(in, path_of("cut"), from, to), OK);
    struct session *whole = fold_file(in), *cut = fold_file(path_of("cut"));
    assert_int_equal(cut->garbled_frames, 0);
    assert_int_equal(cut->unknown_frames, 0);
    assert_true(cut->frames < whole->frames);
    assert_true(cut->t_ns <= to);
    assert_string_equal(cut->hello.session, whole->hello.session);
    assert_int_equal(cut->nvariants, whole->nvariants);
    assert_true(cut->ngenerations >= 3 && cut->ngenerations < whole->ngenerations);
    assert_int_equal(cut->generations[0].def.generation, 1);
    assert_int_equal(cut->generations[0].timed_rounds, 0); /* before the cut */
    uint32_t rounds = 0;
    for (uint32_t i = 0; i < cut->ngenerations; i++) rounds += cut->generations[i].timed_rounds;
    assert_true(rounds > 3);
    assert_true(cut->windows >= 1 && cut->windows < whole->windows);
    assert_string_equal(cut_mark(cut)->text, "cut out of a longer session: 6.000 s to 12.000 s");
    drop(whole);
    drop(cut);
}

static void cut_of_everything_loses_nothing(void **state)
{
    (void)state;
    char in[128];
    snprintf(in, sizeof in, "%s", path_of("whole"));
    assert_int_equal(record_cut(in, path_of("cut2"), 0, UINT64_MAX), OK);
    struct session *whole = fold_file(in), *cut = fold_file(path_of("cut2"));
    assert_int_equal(cut->frames, whole->frames + 1); /* and the mark */
    assert_int_equal(cut->windows, whole->windows);
    assert_int_equal(cut->nrows, whole->nrows);
    char all[80];
    snprintf(all, sizeof all, "packed anew: %.3f s to %.3f s", (double)whole->events[0].t_ns / 1e9,
             (double)whole->t_ns / 1e9);
    assert_string_equal(cut_mark(cut)->text, all);
    drop(whole);
    drop(cut);
    assert_int_equal(record_cut(in, path_of("cut2"), 0, UINT64_MAX), ERR_IO); /* it exists */
    assert_int_equal(record_cut(in, path_of("other"), 2, 1), ERR_USAGE);
    assert_int_not_equal(access(path_of("other"), F_OK), 0);
}

static void a_cut_beside_everything_is_refused_in_words(void **state)
{
    (void)state;
    char in[128];
    snprintf(in, sizeof in, "%s", path_of("whole"));
    assert_int_equal(record_cut(in, path_of("none"), 900000000000ull, UINT64_MAX), ERR_USAGE);
    assert_non_null(strstr(err_msg(), "the recording runs from 0.000 s"));
    assert_int_not_equal(access(path_of("none"), F_OK), 0);
}

static void a_copy_that_does_not_fit_says_why(void **state)
{
    (void)state;
    char in[128];
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    few = before;
    few.rlim_cur = 4096;
    snprintf(in, sizeof in, "%s", path_of("whole"));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    enum status st = record_cut(in, path_of("large"), 0, UINT64_MAX);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, ERR_IO);
    assert_non_null(strstr(err_msg(), strerror(EFBIG)));
    assert_int_not_equal(access(path_of("large"), F_OK), 0);
}

static void windows_are_never_halved(void **state)
{
    (void)state;
    char in[128];
    snprintf(in, sizeof in, "%s", path_of("whole"));
    struct reader *r;
    struct frame f;
    uint64_t begin = 0, end = 0;
    assert_int_equal(reader_open(in, &r), OK);
    while (reader_next(r, &f) == OK && !end) {
        if (f.type == FRAME_WINDOW_BEGIN) begin = f.t_ns;
        if (f.type == FRAME_WINDOW_END) end = f.t_ns;
    }
    reader_close(r);
    const uint64_t edges[][2] = {{begin + 1, UINT64_MAX}, {0, end - 1}, {begin, end}};
    for (int i = 0; i < 3; i++) {
        unlink(path_of("cut"));
        assert_int_equal(record_cut(in, path_of("cut"), edges[i][0], edges[i][1]), OK);
        struct session *s = fold_file(path_of("cut"));
        assert_int_equal(s->garbled_frames, 0);
        assert_int_equal(s->windows + s->windows_unused, i == 0 ? 6 : i == 1 ? 0 : 1);
        drop(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_holds_the_same_bytes_as_the_socket),
        cmocka_unit_test(duration_leaves_the_place_alone),
        cmocka_unit_test(two_hundred_truncations),
        cmocka_unit_test(every_cut_of_the_first_chunk),
        cmocka_unit_test(two_hundred_flips),
        cmocka_unit_test(lengths_out_of_bounds_are_refused),
        cmocka_unit_test(other_files_are_refused_in_words),
        cmocka_unit_test(nothing_is_overwritten),
        cmocka_unit_test(chunk_is_written_when_it_is_old_enough),
        cmocka_unit_test(full_disk_is_said_and_ends_the_recording),
        cmocka_unit_test(cut_replays_alone),
        cmocka_unit_test(cut_of_everything_loses_nothing),
        cmocka_unit_test(a_cut_beside_everything_is_refused_in_words),
        cmocka_unit_test(a_copy_that_does_not_fit_says_why),
        cmocka_unit_test(windows_are_never_halved),
    };
    return cmocka_run_group_tests(tests, make_session, remove_session);
}
