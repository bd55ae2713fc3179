/*
 * Activity over a paper CUPTI: graphs, records without times, buffers that come back while a window
 * is open, CUPTI's own overhead, what stays of one window in the next, fork.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cupti/counter.h"
#include "tests/lib/counter_found.h"
#include "tests/lib/fake_cupti.h"

static const char *const names[] = {"kernel_a", "kernel_b", "kernel_c"};
enum { NAMES = 3, SPANS = 300000 };
static struct found found;
static struct cupti_lib *lib;
static uint64_t nodes; /* sum of the graph nodes of delivered spans */
static uint32_t last_overheads;
static uint64_t last_overhead_ns;

static void on_span(void *user, const struct counter_span *s)
{
    nodes += s->graph_node;
    assert_true(s->start_ns && s->end_ns >= s->start_ns);
    found_sink(user).span(user, s);
}

static void on_window(void *user, const struct counter_window *w)
{
    last_overheads = w->overheads;
    last_overhead_ns = w->overhead_ns;
    found_sink(user).window(user, w);
}

static int setup(void **state)
{
    (void)state;
    unsetenv("FAKE_CUPTI");
    fake_cupti_reset();
    lib = fake_cupti_open();
    nodes = 0;
    return lib && found_init(&found, names, NAMES, SPANS, 1) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    found_free(&found);
    free(lib);
    unsetenv("FAKE_CUPTI");
    return 0;
}

static struct counter_source *open_armed(uint32_t spans_max)
{
    struct counter_env env = {.lib = lib, .ctx = &found, .sink = found_sink(&found)};
    struct counter_config cfg = {.spans_max = spans_max};
    struct counter_source *src;
    env.sink.span = on_span;
    env.sink.window = on_window;
    assert_int_equal(counter_open(COUNTER_ACTIVITY, false, &env, &src), OK);
    assert_int_equal(counter_configure(src, &cfg), OK);
    assert_int_equal(counter_arm(src), OK);
    return src;
}

static void close_source(struct counter_source *src)
{
    counter_close(src);
    assert_int_equal(fake_cupti.violations, 0);
    assert_false(fake_cupti.activity_on);
}

/* Announces one launch, or one node. */
static void announce(struct counter_source *src, uint64_t tag, const char *kernel)
{
    struct counter_launch l = {.tag = tag, .kernel = kernel};
    counter_launch_begin(src, &l);
}

static void launch(struct counter_source *src, uint64_t tag, bool invalid)
{
    const char *kernel = names[(tag - 1) % NAMES];
    struct counter_launch l = {.tag = tag, .kernel = kernel};
    counter_launch_begin(src, &l);
    fake_cupti_launch(kernel, invalid);
    counter_launch_end(src, &l);
}

/* All nodes of a graph share one correlation id and come in any order. */
static void graph_nodes_are_attributed(void **state)
{
    (void)state;
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    uint64_t tag = 0;
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < NAMES; k++) announce(src, ++tag, names[k]);
        fake_cupti_graph(names, NAMES, NAMES);
    }
    launch(src, ++tag, false); /* a plain launch after them */
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, 121);
    assert_int_equal(found.bad_tags, 0);
    assert_int_equal(nodes, 40 * (1 + 2 + 3));
    close_source(src);
}

/* A launch that is not announced can't be told from one that is: nothing is tagged. */
static void unannounced_graph_is_not_guessed(void **state)
{
    (void)state;
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    announce(src, 1, names[0]); /* one announcement for the whole graph */
    fake_cupti_graph(names, NAMES, NAMES);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, 3);
    assert_int_equal(found.bad_tags, 2); /* the two that nobody announced */
    assert_int_equal(found.foreign, 0);
    close_source(src);
}

static void timeless_records_are_counted_not_used(void **state)
{
    (void)state;
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    for (uint64_t tag = 1; tag <= 90; tag++) launch(src, tag, tag % 10 == 0);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, 81);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].items, 81);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].invalid, 9);
    assert_int_equal(found.bad_tags, 0); /* the others know their launch all the same */
    close_source(src);
}

/* All of them: what a session sees when CUPTI's device buffers have run out. */
static void a_window_of_timeless_records_gives_no_time(void **state)
{
    (void)state;
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    for (uint64_t tag = 1; tag <= 30; tag++) launch(src, tag, true);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, 0);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].invalid, 30);
    assert_int_equal(counter_start(src), OK); /* and the next one starts anew */
    for (uint64_t tag = 1; tag <= 30; tag++) launch(src, tag, false);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, 30);
    assert_int_equal(found.bad_tags, 0);
    close_source(src);
}

/* Inside a graph launch nothing but its start says which node a record is. */
static void a_timeless_node_leaves_its_graph_untagged(void **state)
{
    (void)state;
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    for (int k = 0; k < NAMES; k++) announce(src, (uint64_t)k + 1, names[k]);
    fake_cupti_graph(names, NAMES, 1);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, 2);
    assert_int_equal(found.bad_tags, 2);
    close_source(src);
}

/* More records than the pool holds at once, in one window: buffers are read while it is open. */
static void long_windows_are_exact_in_a_bounded_pool(void **state)
{
    (void)state;
    enum { LAUNCHES = 200000 };
    setenv("FAKE_CUPTI", "records_per_buffer=400,flush_every=400", 1);
    struct counter_source *src = open_armed(1 << 18);
    assert_int_equal(counter_start(src), OK);
    for (uint64_t tag = 1; tag <= LAUNCHES; tag++) launch(src, tag, false);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, LAUNCHES);
    assert_int_equal(found.bad_tags, 0);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].dropped, 0);
    close_source(src);
}

/* One flush, or one long graph that the launching thread waits for, gives back more than the pool
 * holds: buffers are read as they come. */
static void buffers_are_read_while_the_launcher_waits(void **state)
{
    (void)state;
    enum { LAUNCHES = 510 };
    setenv("FAKE_CUPTI", "records_per_buffer=1", 1); /* 510 buffers in one go */
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    uint64_t tag = 0;
    for (int i = 0; i < LAUNCHES / NAMES; i++) {
        for (int k = 0; k < NAMES; k++) announce(src, ++tag, names[k]);
        fake_cupti_graph(names, NAMES, NAMES);
    }
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, LAUNCHES);
    assert_int_equal(found.bad_tags, 0);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].dropped, 0);
    close_source(src);
}

static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "records_per_buffer=400,flush_every=400", 1);
    struct counter_source *src = open_armed(1000);
    assert_int_equal(counter_start(src), OK);
    for (uint64_t tag = 1; tag <= 3000; tag++) launch(src, tag, false);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, 1000);
    assert_int_equal(found.sum[COUNTER_ACTIVITY].dropped, 2000);
    assert_int_equal(found.overflows[COUNTER_ACTIVITY], 1);
    assert_int_equal(found.bad_tags, 1000); /* which ones are missing can't be known */
    close_source(src);
}

static void overhead_is_told_apart(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "overheads=3,records_per_buffer=103", 1);
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    for (uint64_t tag = 1; tag <= 150; tag++) launch(src, tag, false);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(found.n_spans, 150);
    assert_int_equal(found.bad_tags, 0);
    assert_int_equal(last_overheads, 6);      /* two buffers */
    assert_int_equal(last_overhead_ns, 8000); /* one of each three has no times */
    assert_int_equal(counter_start(src), OK);
    assert_int_equal(counter_stop(src), OK); /* no record, no overhead left from before */
    assert_int_equal(last_overheads, 0);
    close_source(src);
}

/* A CUPTI that refuses overhead records still gives spans. */
static void overhead_may_be_refused(void **state)
{
    (void)state;
    setenv("FAKE_CUPTI", "nooverhead=1,overheads=3", 1);
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    launch(src, 1, false);
    assert_int_equal(counter_stop(src), OK);
    assert_int_equal(last_overheads, 0);
    assert_int_equal(found.n_spans, 1);
    close_source(src);
}

/* Sources come and go; records of one are none of the next one's. */
static void five_lives_in_a_row(void **state)
{
    (void)state;
    for (int life = 1; life <= 5; life++) {
        struct counter_source *src = open_armed(0);
        for (int w = 0; w < 3; w++) {
            assert_int_equal(counter_start(src), OK);
            for (uint64_t tag = 1; tag <= 50; tag++) launch(src, tag, false);
            assert_int_equal(counter_stop(src), OK);
        }
        close_source(src);
        assert_int_equal(found.n_spans, life * 150);
        assert_int_equal(found.bad_tags, 0);
        assert_int_equal(found.sum[COUNTER_ACTIVITY].invalid, 0);
    }
}

/* In a forked child CUPTI gets no buffer, and nothing waits for a lock. */
static void a_forked_child_gets_no_buffers(void **state)
{
    (void)state;
    struct counter_source *src = open_armed(0);
    assert_int_equal(counter_start(src), OK);
    launch(src, 1, false);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(20); /* a lock that nobody gives back would end here */
        lib->activity_flush(CUPTI_FLUSH_FORCED);
        size_t lost = 0;
        lib->activity_dropped(NULL, 0, &lost);
        _exit(lost == 1 ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(counter_stop(src), OK); /* the parent goes on */
    assert_int_equal(found.n_spans, 1);
    close_source(src);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(graph_nodes_are_attributed),
        T(unannounced_graph_is_not_guessed),
        T(timeless_records_are_counted_not_used),
        T(a_window_of_timeless_records_gives_no_time),
        T(a_timeless_node_leaves_its_graph_untagged),
        T(long_windows_are_exact_in_a_bounded_pool),
        T(buffers_are_read_while_the_launcher_waits),
        T(what_does_not_fit_is_counted),
        T(overhead_is_told_apart),
        T(overhead_may_be_refused),
        T(five_lives_in_a_row),
        T(a_forked_child_gets_no_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
