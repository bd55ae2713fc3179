/* The queue of outgoing frames: order, short writes, what a stopped reader costs, a reader gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/emit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the writer writes: memory, behind a gate that a test can close. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t open_cond;
    bool closed, waiting;
    size_t most; /* bytes taken of one write; 0 = all */
    int error;   /* errno to fail with; 0 = none */
    unsigned interrupts;
    struct buf got;
} pipe_end = {.lock = PTHREAD_MUTEX_INITIALIZER, .open_cond = PTHREAD_COND_INITIALIZER};

static ssize_t fake_write(int fd, const void *p, size_t n)
{
    (void)fd;
    ssize_t r;
    pthread_mutex_lock(&pipe_end.lock);
    pipe_end.waiting = true;
    pthread_cond_broadcast(&pipe_end.open_cond);
    while (pipe_end.closed) pthread_cond_wait(&pipe_end.open_cond, &pipe_end.lock);
    pipe_end.waiting = false;
    if (pipe_end.error) {
        errno = pipe_end.error;
        r = -1;
    } else if (pipe_end.interrupts && pipe_end.interrupts--) {
        errno = EINTR;
        r = -1;
    } else {
        if (pipe_end.most && n > pipe_end.most) n = pipe_end.most;
        buf_put(&pipe_end.got, p, n);
        r = (ssize_t)n;
    }
    pthread_mutex_unlock(&pipe_end.lock);
    return r;
}

static void gate(bool closed)
{
    pthread_mutex_lock(&pipe_end.lock);
    pipe_end.closed = closed;
    pthread_cond_broadcast(&pipe_end.open_cond);
    pthread_mutex_unlock(&pipe_end.lock);
}

/* Returns when the writer stands at the closed gate. */
static void wait_for_writer(void)
{
    pthread_mutex_lock(&pipe_end.lock);
    while (!pipe_end.waiting) pthread_cond_wait(&pipe_end.open_cond, &pipe_end.lock);
    pthread_mutex_unlock(&pipe_end.lock);
}

static int setup(void **state)
{
    (void)state;
    buf_free(&pipe_end.got);
    pipe_end.most = 0;
    pipe_end.error = 0;
    pipe_end.interrupts = 0;
    pipe_end.closed = pipe_end.waiting = false;
    return 0;
}

static struct emit *open_emit(size_t samples, size_t control)
{
    struct emit_options o = {
        .fd = -1, .sample_limit = samples, .control_limit = control, .write = fake_write};
    struct emit *e = NULL;
    assert_int_equal(emit_open(&o, &e), OK);
    return e;
}

static void send_text(struct emit *e, uint32_t pos)
{
    struct msg_text t = {.pos = pos, .piece = "x"};
    emit_send(e, FRAME_TEXT, &t);
}

static void send_progress(struct emit *e, uint32_t done)
{
    struct msg_progress p = {.done = done, .phase = "decode"};
    emit_send(e, FRAME_PROGRESS, &p);
}

struct tally {
    uint32_t texts, progress, drops_frames;
    uint64_t dropped;
    bool ordered;
    uint64_t t;
};

static struct tally read_all(void)
{
    struct tally n = {.ordered = true};
    size_t at = 0, used;
    struct frame f;
    while (at < pipe_end.got.len) {
        assert_int_equal(proto_next(pipe_end.got.data + at, pipe_end.got.len - at, &f, &used), OK);
        at += used;
        if (f.type == FRAME_TEXT) {
            struct msg_text t;
            assert_int_equal(proto_decode(&f, &t, sizeof t), OK);
            n.ordered &= t.pos == n.texts++;
        } else if (f.type == FRAME_PROGRESS) {
            n.progress++;
        } else if (f.type == FRAME_DROPS) {
            struct msg_drops d;
            assert_int_equal(proto_decode(&f, &d, sizeof d), OK);
            assert_int_equal(d.type, FRAME_PROGRESS);
            assert_true(d.total > n.dropped);
            n.dropped = d.total;
            n.drops_frames++;
        }
    }
    return n;
}

static void frames_survive_short_writes(void **state)
{
    (void)state;
    struct emit *e = open_emit(0, 0);
    pipe_end.most = 7;
    pipe_end.interrupts = 3;
    for (uint32_t i = 0; i < 500; i++) send_text(e, i);
    emit_close(e);
    struct tally n = read_all();
    assert_int_equal(n.texts, 500);
    assert_true(n.ordered);
    assert_int_equal(n.drops_frames, 0);
}

static void a_stopped_reader_costs_samples_only(void **state)
{
    (void)state;
    struct emit *e = open_emit(4096, 0);
    struct emit_stats s;
    gate(true);
    send_progress(e, 0);
    wait_for_writer(); /* one frame is in the writer's hands */
    for (uint32_t i = 0; i < 1000; i++) {
        send_progress(e, i);
        if (i % 10 == 0) send_text(e, i / 10);
    }
    emit_stats(e, &s);
    assert_true(s.dropped > 0);
    assert_true(s.queued < 4096 + 100 * 128);
    gate(false);
    emit_close(e);
    struct tally n = read_all();
    assert_int_equal(n.texts, 100); /* control frames: all, in order */
    assert_true(n.ordered);
    assert_int_equal(n.dropped, s.dropped);
    assert_int_equal(n.progress + n.dropped, 1001); /* every sample came or was counted */
}

static void the_oldest_samples_leave_first(void **state)
{
    (void)state;
    struct emit *e = open_emit(1024, 0);
    size_t at = 0, used;
    struct frame f;
    uint32_t last = 0, first = UINT32_MAX;
    gate(true);
    send_text(e, 0);
    wait_for_writer();
    for (uint32_t i = 1; i <= 200; i++) send_progress(e, i);
    gate(false);
    emit_close(e);
    while (at < pipe_end.got.len) {
        struct msg_progress p;
        assert_int_equal(proto_next(pipe_end.got.data + at, pipe_end.got.len - at, &f, &used), OK);
        at += used;
        if (f.type != FRAME_PROGRESS) continue;
        assert_int_equal(proto_decode(&f, &p, sizeof p), OK);
        if (first == UINT32_MAX) first = p.done;
        assert_true(p.done == last + 1 || last == 0);
        last = p.done;
    }
    assert_int_equal(last, 200);
    assert_true(first > 150);
}

static void a_reader_that_left_breaks_the_stream(void **state)
{
    (void)state;
    struct emit *e = open_emit(0, 0);
    pipe_end.error = EPIPE;
    send_text(e, 0);
    assert_false(emit_flush(e, 5000000000u));
    assert_true(emit_broken(e));
    send_text(e, 1); /* swallowed */
    struct emit_stats s;
    emit_stats(e, &s);
    assert_int_equal(s.queued, 0);
    emit_close(e);
    assert_int_equal(pipe_end.got.len, 0);
}

static void too_much_control_breaks_the_stream(void **state)
{
    (void)state;
    struct emit *e = open_emit(0, 2048);
    gate(true);
    send_text(e, 0);
    wait_for_writer();
    for (uint32_t i = 1; i < 200; i++) send_text(e, i);
    assert_true(emit_broken(e));
    gate(false);
    emit_close(e);
}

static void times_never_fall(void **state)
{
    (void)state;
    struct emit *e = open_emit(0, 0);
    size_t at = 0, used;
    struct frame f;
    uint64_t t = 0;
    unsigned n = 0;
    for (uint32_t i = 0; i < 100; i++) send_text(e, i);
    emit_log(e, 2, "%s %d", "a line", 7);
    emit_close(e);
    for (; at < pipe_end.got.len; n++) {
        assert_int_equal(proto_next(pipe_end.got.data + at, pipe_end.got.len - at, &f, &used), OK);
        at += used;
        assert_true(f.t_ns >= t);
        t = f.t_ns;
    }
    assert_int_equal(n, 101);
    struct msg_log log;
    assert_int_equal(f.type, FRAME_LOG);
    assert_int_equal(proto_decode(&f, &log, sizeof log), OK);
    assert_string_equal(log.text, "a line 7");
    assert_int_equal(log.level, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(frames_survive_short_writes, setup),
        cmocka_unit_test_setup(a_stopped_reader_costs_samples_only, setup),
        cmocka_unit_test_setup(the_oldest_samples_leave_first, setup),
        cmocka_unit_test_setup(a_reader_that_left_breaks_the_stream, setup),
        cmocka_unit_test_setup(too_much_control_breaks_the_stream, setup),
        cmocka_unit_test_setup(times_never_fall, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
