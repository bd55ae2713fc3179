/* The engine as a source, with a shell script in the engine's place: frames come through, deaths
 * become FAULT frames, restarts go back to the last good variant, three deaths in a row stop it.
 * Time is handed in, so that delays and hang limits pass at once. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tui/source.h"

static char dir[64];
static struct session *session;
static struct run_options options;

static void path_of(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", dir, name);
}

static void write_file(const char *name, const void *p, size_t n, int executable)
{
    char path[128];
    path_of(name, path, sizeof path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
    if (executable) {
        char command[160];
        snprintf(command, sizeof command, "chmod 755 %s", path);
        assert_int_equal(system(command), 0);
    }
}

/* A script that notes its arguments, sends the frames of `frames`, and does `then`. */
static void make_engine(const char *then)
{
    char text[600], path[128];
    snprintf(text, sizeof text, "#!/bin/sh\necho \"$*\" >>'%s/args'\ncat '%s/frames' >&3\n%s\n",
             dir, dir, then);
    write_file("engine", text, strlen(text), 1);
    path_of("engine", path, sizeof path);
    setenv("SASSTOP_ENGINE", path, 1);
    path_of("args", path, sizeof path);
    unlink(path);
}

static void put_generation(struct buf *b, uint32_t n, const char *variant)
{
    struct msg_generation g = {.generation = n, .kd = 8};
    strcpy(g.family, "q4k_gemm");
    strcpy(g.variant, variant);
    strcpy(g.reason, n == 1 ? "start" : "flip");
    assert_int_equal(proto_encode(b, FRAME_GENERATION, n * 1000, &g), OK);
}

static void put_progress(struct buf *b, const char *phase, uint32_t done)
{
    struct msg_progress p = {.done = done, .total = 1000};
    snprintf(p.phase, sizeof p.phase, "%s", phase);
    assert_int_equal(proto_encode(b, FRAME_PROGRESS, 4000 + done, &p), OK);
}

/* The start of a session in which `good` ran first and `bad` runs now. */
static void make_frames(void)
{
    struct buf b = {0};
    struct msg_hello hello = {.instance = 1};
    struct msg_progress progress = {.round = 1, .total = 8};
    strcpy(hello.backend, "cpu");
    strcpy(progress.phase, "prefill");
    assert_int_equal(proto_encode(&b, FRAME_HELLO, 1, &hello), OK);
    put_generation(&b, 1, "good");
    put_generation(&b, 2, "bad");
    assert_int_equal(proto_encode(&b, FRAME_PROGRESS, 3000, &progress), OK);
    write_file("frames", b.data, b.len, 0);
    buf_free(&b);
}

struct seen {
    unsigned hello, faults, frames;
    struct msg_fault fault; /* the last */
    uint64_t now;
};

/* Pulls until the source ends, or has made `faults` FAULT frames. Each turn lets `step` ns pass. */
static enum status pull(struct frame_source *src, struct seen *s, unsigned faults, uint64_t step)
{
    struct raw_frame raw;
    for (int i = 0; i < 4000; i++) {
        enum status st = src->ops->next(src, s->now, &raw);
        if (st == OK) {
            s->frames++;
            assert_true(raw.len >= FRAME_HEAD + FRAME_TAIL);
            assert_int_equal(session_apply(session, &raw.frame), OK);
            if (raw.frame.type == FRAME_HELLO) s->hello++;
            if (raw.frame.type != FRAME_FAULT) continue;
            assert_int_equal(proto_decode(&raw.frame, &s->fault, sizeof s->fault), OK);
            if (++s->faults >= faults) return OK;
            continue;
        }
        if (st != ERR_AGAIN) return st;
        struct pollfd p = {.fd = src->ops->fd(src), .events = POLLIN};
        poll(&p, 1, 10);
        s->now += step;
    }
    return ERR_FAILED;
}

static struct frame_source *open_source(struct seen *s)
{
    struct frame_source *src;
    *s = (struct seen){.now = clock_mono_ns()};
    assert_int_equal(engine_source_open(&options, session, s->now, "test", &src), OK);
    return src;
}

/* An engine that says these frames, then does `then`; takes b. */
static struct frame_source *open_saying(struct buf *b, const char *then, struct seen *s)
{
    write_file("frames", b->data, b->len, 0);
    buf_free(b);
    make_engine(then);
    return open_source(s);
}

static void read_args(char *out, size_t size)
{
    char path[128];
    path_of("args", path, sizeof path);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
}

static void test_three_deaths_stop_it(void **state)
{
    struct seen s;
    char args[2000];
    (void)state;
    make_engine("kill -SEGV $$");
    struct frame_source *src = open_source(&s);
    assert_int_equal(pull(src, &s, 99, 100000000), ERR_END);
    assert_int_equal(s.hello, 3);
    assert_int_equal(s.faults, 3);
    assert_string_equal(s.fault.kind, "killed");
    assert_int_equal(s.fault.signal, 11);
    assert_int_equal(s.fault.blames, 1);
    assert_string_equal(s.fault.variant, "bad");
    assert_non_null(strstr(s.fault.text, "not started again"));
    read_args(args, sizeof args);
    assert_non_null(strstr(args, "--instance 1 --generation-base 0"));
    assert_non_null(strstr(args, "--instance 2 --generation-base 2"));
    assert_non_null(strstr(args, "--variant good --kd 8"));
    char words[320];
    assert_int_equal(engine_source_status(src, words, sizeof words), EXIT_FAILED);
    struct msg_command c = {.verb = "pause"};
    assert_int_equal(src->ops->command(src, &c), ERR_UNAVAILABLE);
    src->ops->close(src);
}

static void test_death_amid_a_flip_blames_the_new_one(void **state)
{
    struct seen s;
    struct buf b = {0};
    char args[2000];
    struct msg_command c = {.verb = "flip", .family = "q4k_gemm", .variant = "bad", .kd = 4};
    (void)state;
    put_generation(&b, 1, "other");
    put_generation(&b, 2, "good");
    assert_int_equal(proto_encode(&b, FRAME_COMMAND, 3000, &c), OK);
    put_progress(&b, "prefill", 1);
    struct frame_source *src = open_saying(&b, "kill -SEGV $$", &s);
    assert_int_equal(pull(src, &s, 2, 100000000), OK);
    assert_string_equal(s.fault.variant, "bad");
    assert_int_equal(s.fault.kd, 4);
    read_args(args, sizeof args);
    assert_non_null(strstr(args, "--variant good --kd 8"));
    src->ops->close(src);
}

/* The new variant's generation has begun, its answer hasn't come: what ran before is good. */
static void test_death_in_the_new_generation_goes_back(void **state)
{
    struct seen s;
    struct buf b = {0};
    char args[2000];
    struct msg_command c = {.verb = "flip", .family = "q4k_gemm", .variant = "bad", .kd = 8};
    (void)state;
    put_generation(&b, 1, "good");
    assert_int_equal(proto_encode(&b, FRAME_COMMAND, 1500, &c), OK);
    put_generation(&b, 2, "bad");
    put_progress(&b, "prefill", 1);
    struct frame_source *src = open_saying(&b, "kill -SEGV $$", &s);
    assert_int_equal(pull(src, &s, 2, 100000000), OK);
    assert_string_equal(s.fault.variant, "bad");
    read_args(args, sizeof args);
    assert_non_null(strstr(args, "--variant good --kd 8"));
    assert_null(strstr(args, "--variant bad"));
    src->ops->close(src);
}

static void test_silence_is_a_hang(void **state)
{
    struct seen s;
    (void)state;
    make_engine("exec sleep 600");
    struct frame_source *src = open_source(&s);
    uint64_t from = s.now;
    assert_int_equal(pull(src, &s, 1, 200000000), OK);
    assert_string_equal(s.fault.kind, "hang");
    assert_true(s.now - from >= 60000000000ull); /* no round has shown how long one takes */
    assert_int_equal(engine_source_pid(src), 0); /* the child was reaped */
    src->ops->close(src);
}

enum { SIGNS = 90 }; /* more than the seconds that loading may be silent */

/* Frames that come a second apart: one turn of the clock each, none while there is nothing. */
static void take_slowly(struct frame_source *src, struct seen *s, unsigned frames)
{
    struct raw_frame raw;
    for (int i = 0; i < 4000 && frames; i++) {
        struct pollfd p = {.fd = src->ops->fd(src), .events = POLLIN};
        if (src->ops->next(src, s->now, &raw) == OK) {
            assert_int_not_equal(raw.frame.type, FRAME_FAULT);
            assert_int_not_equal(raw.frame.type, FRAME_LOG);
            s->now += 1000000000u;
            frames--;
        } else {
            poll(&p, 1, 10);
        }
    }
    assert_int_equal(frames, 0);
}

static struct frame_source *open_loading(struct seen *s, bool moves)
{
    struct buf b = {0};
    for (uint32_t i = 0; i < SIGNS; i++) put_progress(&b, "load", moves ? i + 1 : 7);
    return open_saying(&b, "exec sleep 600", s);
}

static void test_progress_that_stays_is_a_hang(void **state)
{
    struct seen s;
    (void)state;
    struct frame_source *src = open_loading(&s, false);
    take_slowly(src, &s, SIGNS);
    uint64_t from = s.now;
    assert_int_equal(pull(src, &s, 1, 0), OK); /* its time is over already */
    assert_string_equal(s.fault.kind, "hang");
    assert_int_equal(s.now, from);
    src->ops->close(src);
}

static void test_progress_that_moves_is_none(void **state)
{
    struct seen s;
    struct raw_frame raw;
    (void)state;
    struct frame_source *src = open_loading(&s, true);
    take_slowly(src, &s, SIGNS);
    s.now += 58000000000ull; /* 59 s of silence */
    assert_int_equal(src->ops->next(src, s.now, &raw), ERR_AGAIN);
    s.now += 2000000000ull;
    assert_int_equal(pull(src, &s, 1, 0), OK);
    assert_string_equal(s.fault.kind, "hang");
    src->ops->close(src);
}

static void test_after_a_round_silence_is_short(void **state)
{
    struct seen s;
    struct raw_frame raw;
    struct buf b = {0};
    struct msg_round round = {.round = 1, .prefill_ns = 1000000, .decode_ns = 1000000};
    (void)state;
    put_progress(&b, "prefill", 1);
    assert_int_equal(proto_encode(&b, FRAME_ROUND, 9000, &round), OK);
    struct frame_source *src = open_saying(&b, "exec sleep 600", &s);
    take_slowly(src, &s, 2);
    s.now += 3000000000ull;
    assert_int_equal(src->ops->next(src, s.now, &raw), ERR_AGAIN);
    s.now += 2000000000ull;
    assert_int_equal(pull(src, &s, 1, 0), OK);
    assert_string_equal(s.fault.kind, "hang");
    src->ops->close(src);
}

/* A new variant that hangs while stalls are sampled for it: that work takes no longer than rounds.
 */
static void test_silence_of_a_new_generation_is_short(void **state)
{
    struct seen s;
    struct buf b = {0};
    struct msg_round round = {.round = 1, .prefill_ns = 1000000, .decode_ns = 1000000};
    (void)state;
    put_generation(&b, 1, "good");
    assert_int_equal(proto_encode(&b, FRAME_ROUND, 1500, &round), OK);
    put_progress(&b, "exact", 1);
    put_generation(&b, 2, "bad");
    struct frame_source *src = open_saying(&b, "exec sleep 600", &s);
    take_slowly(src, &s, 4);
    s.now += 5000000000ull;
    assert_int_equal(pull(src, &s, 1, 0), OK);
    assert_string_equal(s.fault.kind, "hang");
    src->ops->close(src);
}

static void test_an_orderly_end_is_no_fault(void **state)
{
    struct seen s;
    char words[320];
    (void)state;
    make_engine("echo 'no such device' >&2; exit 3");
    struct frame_source *src = open_source(&s);
    assert_int_equal(pull(src, &s, 1, 100000000), ERR_END);
    assert_int_equal(s.faults, 0);
    assert_int_equal(engine_source_status(src, words, sizeof words), EXIT_UNAVAILABLE);
    assert_string_equal(words, "no such device");
    src->ops->close(src);
}

static void test_garbage_on_the_socket_is_skipped(void **state)
{
    struct seen s;
    (void)state;
    make_engine("printf 'garbage garbage garbage garbage' >&3; exit 0");
    struct frame_source *src = open_source(&s);
    assert_int_equal(pull(src, &s, 1, 100000000), ERR_END);
    assert_int_equal(s.hello, 1);
    assert_int_equal(s.frames, 4);
    src->ops->close(src);
}

static void test_close_ends_the_child(void **state)
{
    struct seen s;
    (void)state;
    make_engine("exec sleep 600");
    struct frame_source *src = open_source(&s);
    int pid = engine_source_pid(src);
    assert_true(pid > 1);
    src->ops->close(src);
    assert_int_not_equal(kill(pid, 0), 0);
}

static void test_a_missing_program(void **state)
{
    struct frame_source *src;
    (void)state;
    setenv("SASSTOP_ENGINE", "/nonexistent/engine", 1);
    assert_int_equal(engine_source_open(&options, session, 1, "test", &src), ERR_FAILED);
    assert_null(src);
}

static int setup(void **state)
{
    (void)state;
    session = calloc(1, sizeof *session);
    return !session || session_init(session) != OK;
}

static int teardown(void **state)
{
    (void)state;
    session_free(session);
    free(session);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_three_deaths_stop_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silence_is_a_hang, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_orderly_end_is_no_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage_on_the_socket_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_ends_the_child, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_missing_program, setup, teardown),
        cmocka_unit_test_setup_teardown(test_progress_that_stays_is_a_hang, setup, teardown),
        cmocka_unit_test_setup_teardown(test_progress_that_moves_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_death_amid_a_flip_blames_the_new_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_death_in_the_new_generation_goes_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_silence_of_a_new_generation_is_short, setup, teardown),
        cmocka_unit_test_setup_teardown(test_after_a_round_silence_is_short, setup, teardown),
    };
    static const char *const left[] = {"engine", "frames", "args"};
    char path[128];

    snprintf(dir, sizeof dir, "/tmp/sasstop-test-XXXXXX");
    if (!mkdtemp(dir)) return 1;
    make_frames();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        path_of(left[i], path, sizeof path);
        unlink(path);
    }
    rmdir(dir);
    return failed;
}
