/*
 * Timed rounds in a process of their own: the same tokens, all that is selected told to it, and
 * every way in which it can fail. This program is that process too, when it is started with
 * --timer-of: the engine under test runs in a fork of it and starts its own program again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "tests/lib/engine_child.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS(...)                                                                                 \
    ((const char *const[]){"--backend", "cpu", "--threads", "1", "--schedule", "1:1", "--bench",   \
                           "pp9,tg3", __VA_ARGS__, NULL})

static char self[512], script[64];

/* A program in place of the timing process. */
static void stand_in(const char *lines)
{
    snprintf(script, sizeof script, "/tmp/sasstop-timer-%d.sh", (int)getpid());
    FILE *f = fopen(script, "w");
    assert_non_null(f);
    assert_true(fprintf(f, "#!/bin/sh\n%s\n", lines) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(script, 0755), 0);
    setenv("SASSTOP_TIMER_ENGINE", script, 1);
}

static int no_stand_in(void **state)
{
    (void)state;
    if (script[0]) unlink(script);
    script[0] = '\0';
    unsetenv("SASSTOP_TIMER_ENGINE");
    unsetenv("SASSTOP_TIMER_PATIENCE_MS");
    return 0;
}

static void command(struct engine_child *c, const char *verb, const char *variant, const char *arg)
{
    struct msg_command m = {.origin = "script"};
    snprintf(m.verb, sizeof m.verb, "%s", verb);
    snprintf(m.variant, sizeof m.variant, "%s", variant);
    snprintf(m.arg, sizeof m.arg, "%s", arg);
    if (*variant) {
        snprintf(m.family, sizeof m.family, "q4k_gemm");
        m.kd = 8;
        m.force = 1;
    }
    engine_child_command(c, &m);
}

static void quit(struct engine_child *c)
{
    command(c, "quit", "", "");
    int status = engine_child_wait(c);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_OK);
}

/* The next timed round. */
static struct msg_round timed(struct engine_child *c)
{
    struct msg_round r;
    do assert_true(engine_child_until(c, FRAME_ROUND, &r, sizeof r));
    while (r.counted);
    return r;
}

/* The next SOURCE of the timer. */
static struct msg_source source(struct engine_child *c)
{
    struct msg_source s;
    do assert_true(engine_child_until(c, FRAME_SOURCE, &s, sizeof s));
    while (strcmp(s.name, "timer"));
    return s;
}

static void rounds_there_make_the_same_tokens(void **state)
{
    (void)state;
    struct engine_child c;
    struct frame f;
    struct msg_round r;
    struct msg_source s;
    uint64_t hash = 0;
    unsigned there = 0, counted = 0, texts = 0, said = 0;
    engine_child_start(&c, WORDS("--timer", "own", "--rounds", "8"));
    while (engine_child_next(&c, &f)) {
        texts += f.type == FRAME_TEXT;
        if (f.type == FRAME_SOURCE && proto_decode(&f, &s, sizeof s) == OK &&
            !strcmp(s.name, "timer")) {
            assert_string_equal(s.state, "ok");
            assert_non_null(strstr(s.why, "never opened CUPTI"));
            said++;
        }
        if (f.type != FRAME_ROUND) continue;
        assert_int_equal(proto_decode(&f, &r, sizeof r), OK);
        if (!hash) hash = r.output_hash;
        assert_true(r.output_hash == hash);
        assert_int_equal(r.prefill_tokens, 9);
        assert_int_equal(r.decode_tokens, 3);
        assert_true(r.prefill_ns > 0 && r.decode_ns > 0);
        assert_string_equal(r.timed_in, r.counted ? "" : "own");
        there += !r.counted;
        counted += r.counted;
    }
    assert_int_equal(said, 1);
    assert_int_equal(there, 4);
    assert_int_equal(counted, 4);
    assert_int_equal(texts, 8 * 4); /* also of the rounds there */
    assert_int_equal(engine_child_wait(&c), 0);
}

static void without_it_rounds_say_so(void **state)
{
    (void)state;
    static const char *const how[] = {"auto", "here"};
    for (int i = 0; i < 2; i++) {
        struct engine_child c;
        engine_child_start(&c, WORDS("--timer", how[i]));
        assert_string_equal(timed(&c).timed_in, "clean"); /* no CUPTI here, and no process */
        quit(&c);
    }
}

static void what_is_selected_here_runs_there(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_fault f;
    struct msg_generation g;
    engine_child_start(&c, WORDS("--timer", "own", "--script-fault", "timer:fault@variant:rows"));
    assert_string_equal(timed(&c).timed_in, "own");
    command(&c, "flip", "tiles_t", "");
    assert_true(
        engine_child_until(&c, FRAME_REPLY, &(struct msg_reply){0}, sizeof(struct msg_reply)));
    assert_string_equal(timed(&c).timed_in, "own");
    command(&c, "flip", "rows", "");
    assert_true(engine_child_until(&c, FRAME_GENERATION, &g, sizeof g));
    assert_string_equal(g.variant, "rows");
    /* The process alone was told to fault at that variant: it runs it. */
    assert_true(engine_child_until(&c, FRAME_FAULT, &f, sizeof f));
    assert_string_equal(f.kind, "illegal access");
    assert_string_equal(f.family, "q4k_gemm");
    assert_string_equal(f.variant, "rows");
    assert_int_equal(f.kd, 8);
    assert_int_equal(f.blames, 1);
    assert_non_null(strstr(f.text, "restarts with the last good variant"));
    int status = engine_child_wait(&c);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_FAILED);
}

static void a_prompt_is_the_work_there_too(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_generation g;
    struct msg_round r, counted;
    engine_child_start(&c, WORDS("--timer", "own", "--tokens", "2"));
    timed(&c);
    command(&c, "prompt", "", "hello there");
    do assert_true(engine_child_until(&c, FRAME_GENERATION, &g, sizeof g));
    while (strcmp(g.reason, "prompt"));
    r = timed(&c);
    do assert_true(engine_child_until(&c, FRAME_ROUND, &counted, sizeof counted));
    while (!counted.counted);
    assert_string_equal(r.timed_in, "own");
    assert_int_equal(r.prefill_tokens, counted.prefill_tokens);
    assert_int_not_equal(r.prefill_tokens, 9);
    assert_true(r.output_hash == counted.output_hash);
    quit(&c);
}

static void a_command_ends_a_round_there(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_reply p;
    /* A round of so many tokens takes longer than this test may. */
    engine_child_start(&c, (const char *const[]){"--backend", "cpu", "--threads", "1", "--timer",
                                                 "own", "--bench", "pp9,tg60000", NULL});
    assert_string_equal(source(&c).state, "ok");
    for (int i = 0; i < 3; i++) {
        command(&c, i % 2 ? "resume" : "pause", "", "");
        assert_true(engine_child_until(&c, FRAME_REPLY, &p, sizeof p));
        assert_int_equal(p.ok, 1);
    }
    quit(&c);
}

static void a_killed_process_is_started_once_more(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_log l;
    engine_child_start(&c, WORDS("--timer", "own", "--script-fault", "timer:kill@prefill:2"));
    uint64_t hash = timed(&c).output_hash;
    do assert_true(engine_child_until(&c, FRAME_LOG, &l, sizeof l));
    while (!strstr(l.text, "started once more"));
    assert_non_null(strstr(l.text, "signal 9"));
    for (int i = 0; i < 3; i++) {
        struct msg_round r = timed(&c);
        assert_string_equal(r.timed_in, "own");
        assert_int_equal(r.generation, 1); /* the same place: the same generation */
        assert_true(r.output_hash == hash);
    }
    quit(&c);
}

static void one_that_dies_twice_is_given_up(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_generation g;
    struct msg_round r;
    char lines[700];
    snprintf(lines, sizeof lines, "exec '%s' \"$@\" --script-fault kill@prefill:2", self);
    stand_in(lines);
    engine_child_start(&c, WORDS("--timer", "own"));
    assert_string_equal(source(&c).state, "ok");
    r = timed(&c);
    assert_string_equal(r.timed_in, "own");
    do { /* its second life has a round too */
        assert_true(engine_child_until(&c, FRAME_GENERATION, &g, sizeof g));
    } while (g.generation < 2);
    assert_string_equal(g.reason, "timer");
    assert_non_null(strstr(g.parity_text, "signal 9"));
    r = timed(&c);
    assert_int_equal(r.generation, 2); /* another place: another generation */
    assert_string_equal(r.timed_in, "clean");
    quit(&c);
}

/* With `lines` in place of the process: given up for a reason that has `word`, in generation 1. */
static void assert_given_up(const char *lines, const char *word)
{
    struct engine_child c;
    struct msg_round r;
    stand_in(lines);
    engine_child_start(&c, WORDS("--timer", "own"));
    struct msg_source s = source(&c);
    if (!strcmp(s.state, "ok")) s = source(&c); /* it came up at first */
    assert_string_equal(s.state, "unavailable");
    if (!strstr(s.why, word)) fail_msg("\"%s\" is not in \"%s\"", word, s.why);
    assert_non_null(strstr(s.why, "timed in this process"));
    for (int i = 0; i < 2; i++) {
        r = timed(&c);
        assert_string_equal(r.timed_in, "clean");
        assert_int_equal(r.generation, 1);
    }
    quit(&c);
}

static void what_comes_up_as_something_else_is_given_up(void **state)
{
    (void)state;
    assert_given_up("exit 7", "left with status 7");
    assert_given_up("echo 'this is no frame, whatever it may be good for' >&3; exec cat <&3",
                    "does not speak in frames");
    setenv("SASSTOP_TIMER_PATIENCE_MS", "50", 1);
    assert_given_up("exec cat <&3", "did not go on loading");
}

static void one_that_leaves_in_words_is_quoted(void **state)
{
    (void)state;
    char lines[700];
    snprintf(lines, sizeof lines, "exec '%s' \"$@\" --model synth:nothing", self);
    assert_given_up(lines, "status 2: there is no synthetic model");
    snprintf(lines, sizeof lines, "exec '%s' \"$@\" --bench pp10", self);
    assert_given_up(lines, "ran other work");
}

/* The engine's child; 0: it has none. */
static pid_t child_of(pid_t engine)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)engine, (int)engine);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%d", &pid) != 1) pid = 0;
    if (f) fclose(f);
    return pid;
}

/* Gone, or a zombie that its new parent has not reaped. */
static bool runs(pid_t pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
    if (f) fclose(f);
    return state != 'Z' && state != 'X';
}

static void assert_ends(pid_t pid)
{
    uint64_t end = clock_mono_ns() + 10000000000u;
    while (runs(pid) && clock_mono_ns() < end) poll(NULL, 0, 2);
    assert_false(runs(pid));
}

static void nothing_outlives_the_engine(void **state)
{
    (void)state;
    struct engine_child c;
    engine_child_start(&c, WORDS("--timer", "own"));
    timed(&c);
    pid_t timer = child_of(c.pid);
    if (!timer) { /* a kernel without the list of children */
        quit(&c);
        skip();
    }
    assert_true(runs(timer));
    assert_int_equal(getpgid(timer), getpgid(c.pid));
    kill(c.pid, SIGKILL);
    assert_ends(timer);
    assert_true(WIFSIGNALED(engine_child_wait(&c)));
}

static void a_hang_there_is_silence_here(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_progress p;
    struct pollfd fd;
    engine_child_start(&c, WORDS("--timer", "own", "--script-fault", "timer:hang@prefill:2"));
    assert_string_equal(timed(&c).timed_in, "own");
    do /* the counted round, then the prefill there that never ends */
        assert_true(engine_child_until(&c, FRAME_PROGRESS, &p, sizeof p));
    while (p.round < 3);
    pid_t timer = child_of(c.pid);
    fd = (struct pollfd){.fd = c.fd, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 400), 0); /* what a hang watch waits for: no sign of life */
    kill(c.pid, SIGTERM);
    int status = engine_child_wait(&c);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_OK);
    if (timer) assert_ends(timer);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_there_make_the_same_tokens),
        cmocka_unit_test(without_it_rounds_say_so),
        cmocka_unit_test(what_is_selected_here_runs_there),
        cmocka_unit_test(a_prompt_is_the_work_there_too),
        cmocka_unit_test(a_command_ends_a_round_there),
        cmocka_unit_test(a_killed_process_is_started_once_more),
        cmocka_unit_test_teardown(one_that_dies_twice_is_given_up, no_stand_in),
        cmocka_unit_test_teardown(what_comes_up_as_something_else_is_given_up, no_stand_in),
        cmocka_unit_test_teardown(one_that_leaves_in_words_is_quoted, no_stand_in),
        cmocka_unit_test(nothing_outlives_the_engine),
        cmocka_unit_test(a_hang_there_is_silence_here),
    };
    setenv("SASSTOP_TEST", "1", 1);
    if (argc > 1 && !strcmp(argv[1], "--timer-of")) {
        struct options opt;
        commands_block_signals();
        enum status st = options_parse(argc, argv, &opt);
        return st == OK ? engine_run(&opt) : err_exit_code(st);
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) self[n] = '\0';
    return cmocka_run_group_tests(tests, NULL, NULL);
}
