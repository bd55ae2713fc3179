/* The engine as its screen meets it: the order of the stream, rounds, commands, and how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/lib/engine_child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define WORDS(...) ((const char *const[]){"--backend", "cpu", "--threads", "2", __VA_ARGS__, NULL})

static void assert_exit(struct engine_child *c, int code)
{
    int status = engine_child_wait(c);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void quit(struct engine_child *c)
{
    struct msg_command m = {.verb = "quit", .origin = "script"};
    engine_child_command(c, &m);
    assert_exit(c, EXIT_OK);
}

static void the_stream_introduces_itself_in_order(void **state)
{
    static const enum frame_type order[] = {FRAME_HELLO,      FRAME_MODEL,      FRAME_METRIC_DEF,
                                            FRAME_SOURCE,     FRAME_KERNEL_DEF, FRAME_VARIANT_DEF,
                                            FRAME_GENERATION, FRAME_ROUND};
    (void)state;
    struct engine_child c;
    struct frame f;
    size_t at = 0;
    uint16_t last = 0;
    unsigned seen[FRAME_TYPE_END] = {0};
    engine_child_start(&c, WORDS("--rounds", "1"));
    for (bool first = true; engine_child_next(&c, &f); first = false) {
        assert_true(!first || f.type == FRAME_HELLO);
        if (at < sizeof order / sizeof order[0] && f.type == order[at]) at++;
        for (size_t i = at + 1; i < sizeof order / sizeof order[0]; i++)
            assert_int_not_equal(f.type, order[i]);
        seen[f.type]++;
        last = f.type;
    }
    assert_int_equal(at, sizeof order / sizeof order[0]);
    assert_int_equal(last, FRAME_BYE);
    assert_int_equal(seen[FRAME_BYE], 1);
    assert_int_equal(seen[FRAME_VARIANT_DEF], 4);
    assert_int_equal(seen[FRAME_TEXT], 17); /* one of the prefill, 16 decoded */
    assert_exit(&c, EXIT_OK);
}

static void one_variant_is_where_sessions_start(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_variant_def v;
    unsigned starts = 0, fallbacks = 0;
    engine_child_start(&c, WORDS("--variant", "rows", "--kd", "4"));
    for (int i = 0; i < 4; i++) {
        assert_true(engine_child_until(&c, FRAME_VARIANT_DEF, &v, sizeof v));
        assert_int_equal(v.standing & 4, 0);
        fallbacks += (v.standing & 2) != 0;
        if (!(v.standing & 1)) continue;
        starts++;
        assert_string_equal(v.variant, "tiles"); /* whatever was asked for */
        assert_int_equal(v.kd, 8);
    }
    assert_int_equal(starts, 1);
    assert_int_equal(fallbacks, 1);
    quit(&c);
}

static void timed_and_counted_rounds_never_mix(void **state)
{
    (void)state;
    struct engine_child c;
    struct frame f;
    struct msg_round r;
    struct msg_span_agg a;
    uint32_t rounds = 0, aggregates = 0;
    uint64_t hash = 0;
    engine_child_start(&c, WORDS("--rounds", "8", "--bench", "pp20,tg3", "--schedule", "3:1"));
    while (engine_child_next(&c, &f)) {
        if (f.type == FRAME_SPAN_AGG) {
            assert_int_equal(proto_decode(&f, &a, sizeof a), OK);
            assert_int_equal(a.round % 4, 2); /* of counted rounds only */
            assert_string_equal(a.source, "clock");
            assert_true(a.calls > 0 && a.min_ns <= a.max_ns && a.max_ns <= a.sum_ns);
            aggregates++;
        }
        if (f.type != FRAME_ROUND) continue;
        assert_int_equal(proto_decode(&f, &r, sizeof r), OK);
        assert_int_equal(r.round, ++rounds);
        assert_int_equal(r.counted, rounds % 4 == 2); /* the first figures come early */
        assert_string_equal(r.source, r.counted ? "clock" : "");
        assert_int_equal(r.prefill_tokens, 20);
        assert_int_equal(r.decode_tokens, 3);
        assert_true(r.prefill_ns > 0 && r.decode_ns > 0);
        if (!hash) hash = r.output_hash;
        assert_true(r.output_hash == hash);
    }
    assert_int_equal(rounds, 8);
    assert_true(aggregates > 40);
    assert_exit(&c, EXIT_OK);
}

static void a_model_that_is_none_ends_in_words(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_bye bye;
    engine_child_start(&c, WORDS("--model", "synth:nothing"));
    assert_true(engine_child_until(&c, FRAME_BYE, &bye, sizeof bye));
    assert_int_equal(bye.status, EXIT_USAGE);
    assert_non_null(strstr(bye.text, "nothing"));
    assert_exit(&c, EXIT_USAGE);
}

static struct msg_command flip_to(const char *variant, uint32_t kd, bool force)
{
    struct msg_command m = {
        .verb = "flip", .family = "q4k_gemm", .kd = kd, .force = force, .origin = "script"};
    snprintf(m.variant, sizeof m.variant, "%s", variant);
    return m;
}

static void a_flip_is_checked_and_starts_a_generation(void **state)
{
    (void)state;
    struct engine_child c;
    struct frame f;
    struct msg_round r;
    struct msg_generation g;
    struct msg_reply reply;
    struct msg_command m = flip_to("rows", 4, false), echo;
    struct msg_parity p;
    struct msg_row_def row;
    unsigned parities = 0;
    engine_child_start(&c, WORDS("--bench", "pp33,tg2"));
    assert_true(engine_child_until(&c, FRAME_GENERATION, &g, sizeof g));
    assert_int_equal(g.generation, 1);
    assert_string_equal(g.variant, "tiles");
    assert_int_equal(g.kd, 8);
    assert_string_equal(g.reason, "start");
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    uint64_t hash = r.output_hash;
    engine_child_command(&c, &m);
    assert_true(engine_child_until(&c, FRAME_COMMAND, &echo, sizeof echo));
    assert_string_equal(echo.variant, "rows");
    while (engine_child_next(&c, &f) && f.type != FRAME_GENERATION) {
        if (f.type != FRAME_PARITY) continue;
        assert_int_equal(proto_decode(&f, &p, sizeof p), OK);
        assert_string_equal(p.state, "ok");
        assert_int_equal(p.n, 33);
        assert_true(p.nmse < 1e-10);
        parities++;
    }
    assert_true(parities >= 3); /* 256x256, 512x256, 256x512 */
    assert_int_equal(proto_decode(&f, &g, sizeof g), OK);
    assert_int_equal(g.generation, 2);
    assert_string_equal(g.variant, "rows");
    assert_int_equal(g.kd, 4);
    assert_string_equal(g.reason, "flip");
    assert_string_equal(g.parity, "ok");
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_true(reply.ok);
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    assert_int_equal(r.generation, 2);
    assert_true(r.output_hash == hash); /* one numeric class: the same tokens */
    assert_true(engine_child_until(&c, FRAME_ROW_DEF, &row, sizeof row));
    assert_int_equal(row.generation, 2);
    quit(&c);
}

static void refused_flips_say_why_and_forced_ones_are_marked(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_generation g;
    struct msg_reply reply;
    struct msg_command unknown = flip_to("fantasy", 8, false), bad_kd = flip_to("rows", 5, true),
                       forced = flip_to("", 4, true), gemv = flip_to("dot", 0, false);
    engine_child_start(&c, WORDS("--bench", "pp9,tg1"));
    assert_true(engine_child_until(&c, FRAME_GENERATION, &g, sizeof g));
    engine_child_command(&c, &unknown);
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_false(reply.ok);
    assert_non_null(strstr(reply.text, "fantasy"));
    engine_child_command(&c, &bad_kd);
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_false(reply.ok);
    struct msg_command check = {.verb = "parity", .variant = "rows", .kd = 8};
    engine_child_command(&c, &check); /* a check alone flips nothing */
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_true(reply.ok);
    snprintf(check.variant, sizeof check.variant, "fantasy");
    engine_child_command(&c, &check);
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_false(reply.ok);
    struct msg_command blocks = {.verb = "blocks", .kd = 2};
    engine_child_command(&c, &blocks); /* nothing to force without a GPU, and no generation */
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_false(reply.ok);
    assert_string_equal(reply.verb, "blocks");
    assert_non_null(strstr(reply.text, "GPU"));
    snprintf(gemv.family, sizeof gemv.family, "q4k_gemv");
    engine_child_command(&c, &gemv);
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_false(reply.ok);
    engine_child_command(&c, &forced); /* no name: the variant stays, KD changes */
    assert_true(engine_child_until(&c, FRAME_GENERATION, &g, sizeof g));
    assert_int_equal(g.generation, 2);
    assert_string_equal(g.variant, "tiles");
    assert_int_equal(g.kd, 4);
    assert_string_equal(g.parity, "forced");
    quit(&c);
}

static void a_restart_goes_on_where_it_was(void **state)
{
    (void)state;
    struct engine_child c;
    struct frame f;
    struct msg_hello h;
    struct msg_generation g;
    char epoch[24];
    const uint64_t ago = 5000000000u;
    snprintf(epoch, sizeof epoch, "%llu", (unsigned long long)(clock_mono_ns() - ago));
    engine_child_start(&c, WORDS("--rounds", "1", "--bench", "pp4,tg1", "--instance", "3",
                                 "--generation-base", "7", "--epoch-ns", epoch, "--session", "abc",
                                 "--variant", "rows", "--kd", "4", "--command", "sasstop run"));
    assert_true(engine_child_next(&c, &f));
    assert_int_equal(f.type, FRAME_HELLO);
    assert_true(f.t_ns >= ago);
    assert_int_equal(proto_decode(&f, &h, sizeof h), OK);
    assert_int_equal(h.instance, 3);
    assert_string_equal(h.session, "abc");
    assert_string_equal(h.command, "sasstop run");
    assert_string_equal(h.backend, "cpu");
    assert_int_equal(h.sms, 2);
    assert_true(engine_child_until(&c, FRAME_GENERATION, &g, sizeof g));
    assert_int_equal(g.generation, 8);
    assert_string_equal(g.reason, "restart");
    assert_string_equal(g.variant, "rows");
    assert_exit(&c, EXIT_OK);
}

static void pausing_stops_rounds(void **state)
{
    (void)state;
    struct engine_child c;
    struct frame f;
    struct msg_round r;
    struct msg_reply reply;
    struct msg_progress p = {.phase = ""};
    struct msg_command pause = {.verb = "pause"}, resume = {.verb = "resume"},
                       odd = {.verb = "dance"};
    engine_child_start(&c, WORDS("--bench", "pp4,tg1"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    engine_child_command(&c, &pause);
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_true(reply.ok);
    while (strcmp(p.phase, "paused")) {
        assert_true(engine_child_next(&c, &f));
        assert_int_not_equal(f.type, FRAME_ROUND);
        if (f.type == FRAME_PROGRESS) assert_int_equal(proto_decode(&f, &p, sizeof p), OK);
    }
    engine_child_command(&c, &odd); /* commands are answered meanwhile */
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_false(reply.ok);
    engine_child_command(&c, &resume);
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    quit(&c);
}

static void another_prompt_is_another_generation(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_round r;
    struct msg_generation g;
    struct msg_model model;
    struct msg_text t;
    struct msg_reply reply;
    struct msg_command m = {.verb = "prompt", .arg = "hello there"};
    engine_child_start(&c, WORDS("--bench", "pp4,tg1", "--tokens", "5"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    engine_child_command(&c, &m);
    assert_true(engine_child_until(&c, FRAME_MODEL, &model, sizeof model));
    assert_string_equal(model.workload, "prompt");
    assert_true(engine_child_until(&c, FRAME_GENERATION, &g, sizeof g));
    assert_int_equal(g.generation, 2);
    assert_string_equal(g.reason, "prompt");
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_true(reply.ok);
    assert_true(engine_child_until(&c, FRAME_TEXT, &t, sizeof t));
    assert_true(t.gap < 0); /* the prompt's own tokens come first */
    assert_int_equal(t.pos, 0);
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    assert_int_equal(r.generation, 2);
    assert_true(r.decode_tokens <= 5);
    memset(m.arg, 'y', sizeof m.arg - 1); /* still fits the context */
    engine_child_command(&c, &m);
    assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
    assert_true(reply.ok);
    quit(&c);
}

static void a_screen_that_leaves_ends_the_engine(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_round r;
    engine_child_start(&c, WORDS("--bench", "pp64,tg16"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    engine_child_hang_up(&c);
    assert_exit(&c, EXIT_OK);
    /* also when the launching thread hangs */
    engine_child_start(&c, WORDS("--script-fault", "hang@round:2"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    engine_child_hang_up(&c);
    assert_exit(&c, EXIT_OK);
}

static void term_says_bye(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_round r;
    struct msg_bye bye;
    engine_child_start(&c, WORDS("--bench", "pp64,tg16"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    kill(c.pid, SIGTERM);
    assert_true(engine_child_until(&c, FRAME_BYE, &bye, sizeof bye));
    assert_int_equal(bye.status, EXIT_OK);
    assert_exit(&c, EXIT_OK);
    engine_child_start(&c, WORDS("--script-fault", "hang@round:2"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    kill(c.pid, SIGTERM);
    assert_true(engine_child_until(&c, FRAME_BYE, &bye, sizeof bye));
    assert_exit(&c, EXIT_OK);
}

static void scripted_deaths(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_round r;
    struct msg_bye bye;
    engine_child_start(&c, WORDS("--script-fault", "exit@round:3"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    assert_false(engine_child_until(&c, FRAME_BYE, &bye, sizeof bye));
    assert_exit(&c, EXIT_FAILED);
    engine_child_start(&c, WORDS("--script-fault", "kill@prefill:2"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    assert_false(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    int status = engine_child_wait(&c);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void a_faulting_variant_is_blamed(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_round r;
    struct msg_fault fault;
    struct msg_bye bye;
    struct msg_command m = flip_to("rows", 8, false);
    engine_child_start(&c, WORDS("--script-fault", "fault@variant:rows"));
    assert_true(engine_child_until(&c, FRAME_ROUND, &r, sizeof r));
    engine_child_command(&c, &m);
    assert_true(engine_child_until(&c, FRAME_FAULT, &fault, sizeof fault));
    assert_string_equal(fault.kind, "illegal access");
    assert_string_equal(fault.variant, "rows");
    assert_int_equal(fault.kd, 8);
    assert_int_equal(fault.blames, 1);
    assert_true(engine_child_until(&c, FRAME_BYE, &bye, sizeof bye));
    assert_int_equal(bye.status, EXIT_FAILED);
    assert_exit(&c, EXIT_FAILED);
}

static int allow_faults(void **state)
{
    (void)state;
    return setenv("SASSTOP_TEST", "1", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_introduces_itself_in_order),
        cmocka_unit_test(one_variant_is_where_sessions_start),
        cmocka_unit_test(timed_and_counted_rounds_never_mix),
        cmocka_unit_test(a_model_that_is_none_ends_in_words),
        cmocka_unit_test(a_flip_is_checked_and_starts_a_generation),
        cmocka_unit_test(refused_flips_say_why_and_forced_ones_are_marked),
        cmocka_unit_test(a_restart_goes_on_where_it_was),
        cmocka_unit_test(pausing_stops_rounds),
        cmocka_unit_test(another_prompt_is_another_generation),
        cmocka_unit_test(a_screen_that_leaves_ends_the_engine),
        cmocka_unit_test(term_says_bye),
        cmocka_unit_test(scripted_deaths),
        cmocka_unit_test(a_faulting_variant_is_blamed),
    };
    return cmocka_run_group_tests(tests, allow_faults, NULL);
}
