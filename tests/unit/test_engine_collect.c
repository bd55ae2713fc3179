/* From counter sources to frames: a whole synthetic session, folded by the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/collect_priv.h"
#include "session/model.h"
#include "tests/lib/engine_child.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define WORDS(...) ((const char *const[]){"--backend", "cpu", "--threads", "2", __VA_ARGS__, NULL})

/* Runs it to its end; the caller frees the session. */
static void fold(const char *const *words, struct session *s, uint64_t hashes[2])
{
    struct engine_child c;
    struct frame f;
    struct msg_round r;
    assert_int_equal(session_init(s), OK);
    engine_child_start(&c, words);
    while (engine_child_next(&c, &f)) {
        assert_int_equal(session_apply(s, &f), OK);
        if (f.type != FRAME_ROUND) continue;
        assert_int_equal(proto_decode(&f, &r, sizeof r), OK);
        hashes[r.counted] = r.output_hash;
    }
    int status = engine_child_wait(&c);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_OK);
    assert_int_equal(s->garbled_frames, 0);
    assert_int_equal(s->unknown_frames, 0);
}

static const struct row *row_of(const struct session *s, const char *kernel, const char *role)
{
    for (uint32_t i = 0; i < s->nrows; i++)
        if (!strcmp(s->kernels[s->rows[i].def.kernel].def.name, kernel) &&
            !strcmp(s->rows[i].def.role, role))
            return &s->rows[i];
    return NULL;
}

static void synthetic_figures_reach_their_rows(void **state)
{
    (void)state;
    static struct session s;
    uint64_t hashes[2] = {1, 2};
    fold(WORDS("--sources", "synth", "--rounds", "24", "--bench", "pp64,tg4", "--schedule", "1:1"),
         &s, hashes);
    assert_true(hashes[0] == hashes[1]); /* counting changes no token */
    const struct row *row = row_of(&s, "tiles_kd8", "ffn_gate");
    assert_non_null(row);
    assert_true(row->calls > 0);
    assert_string_equal(row->time_source, "synth");
    /* Rows whose launches are longer than the sampling period have a steady SM%. */
    struct value sm = {.state = VALUE_UNAVAILABLE};
    for (uint32_t i = 0; i < s.nrows && sm.state != VALUE_OK; i++)
        sm = row_metric_steady(&s, &s.rows[i], "sm_pct");
    assert_int_equal(sm.state, VALUE_OK);
    assert_true(sm.v > 0 && sm.v <= 100);
    assert_string_equal(sm.source, "synth");
    struct value inst = row_metric_exact(&s, row, "inst");
    assert_int_equal(inst.state, VALUE_OK);
    assert_true(inst.v > 0);
    assert_true(s.nstalls > 0);
    assert_string_equal(s.stalls[0].source, "synth");
    assert_true(s.stalls[0].samples > 0);
    /* The same samples, by instruction. */
    const struct kernel_heat *heat = session_heat(&s, s.stalls[0].kernel, s.stalls[0].generation);
    assert_non_null(heat);
    assert_string_equal(heat->source, "synth");
    assert_true(heat->samples == s.stalls[0].samples);
    uint64_t sum = 0, top;
    uint32_t hot = 0;
    for (uint32_t i = 0; i < heat->ninsns; i++) {
        sum += heat->insns[i].samples;
        hot += heat->insns[i].samples > 0 && *heat_top(heat, i, &top);
        if (*heat_top(heat, i, &top)) assert_true(top <= heat->insns[i].samples);
    }
    assert_true(sum == heat->samples);
    assert_true(hot > 4);
    assert_true(session_current(&s)->timed_rounds > 0);
    assert_true(session_current(&s)->counted_rounds > 0);
    session_free(&s);
}

static const struct msg_tally *tally_of(const struct session *s, const char *name)
{
    for (uint32_t i = 0; i < s->ntallies; i++)
        if (!strcmp(s->tallies[i].name, name)) return &s->tallies[i];
    return NULL;
}

/* What was found and lost is told as totals, and --exact chooses what is counted. */
/* Every row once, the sum equal to the range's count, the tokens those of a timed round. */
static void executed_counts_reach_their_rows(void **state)
{
    (void)state;
    static struct session s;
    uint64_t hashes[2] = {1, 2};
    fold(WORDS("--sources", "synth", "--rounds", "24", "--bench", "pp64,tg4", "--schedule", "1:1",
               "--executed", "all"),
         &s, hashes);
    assert_true(hashes[0] == hashes[1]);
    assert_int_equal(s.nexecuted, s.nrows);
    uint32_t never = 0;
    for (uint32_t i = 0; i < s.nexecuted; i++) {
        const struct executed *e = &s.executed[i];
        struct value check = executed_check(&s, e);
        assert_string_equal(e->def.source, "synth");
        assert_int_equal(e->def.launches, 1);
        assert_int_equal(e->all.counted, e->all.count);
        never += e->all.never;
        assert_int_equal(check.state, VALUE_OK);
        assert_true(check.v == 0);
    }
    assert_true(never > 0);
    session_free(&s);
}

static void executed_counts_of_one_kernel_on_request(void **state)
{
    (void)state;
    static const char *const asks[] = {"tiles_kd8 ffn_gate prefill", "no_such_kernel", "a b c 1",
                                       "tiles_kd8 ffn_gate nonsense"};
    struct engine_child c;
    struct msg_reply reply;
    struct msg_executed x;
    struct frame f;
    uint32_t counted = 0;
    engine_child_start(&c, WORDS("--sources", "synth", "--bench", "pp64,tg4"));
    while (engine_child_next(&c, &f) && f.type != FRAME_ROUND) continue;
    for (unsigned i = 0; i < 4; i++) {
        struct msg_command m = {.verb = "sassexec"};
        snprintf(m.arg, sizeof m.arg, "%s", asks[i]);
        engine_child_command(&c, &m);
        assert_true(engine_child_until(&c, FRAME_REPLY, &reply, sizeof reply));
        assert_int_equal(reply.ok, i == 0 || i == 3);
        if (i == 1) assert_non_null(strstr(reply.text, "no kernel called no_such_kernel"));
        if (i == 2) assert_non_null(strstr(reply.text, "sassexec takes all"));
        if (i == 0) {
            assert_true(engine_child_until(&c, FRAME_EXECUTED, &x, sizeof x));
            counted = x.kernel;
        }
    }
    struct msg_log log;
    do assert_true(engine_child_until(&c, FRAME_LOG, &log, sizeof log));
    while (!strstr(log.text, "no launch of tiles_kd8 as ffn_gate"));
    assert_true(counted > 0);
    struct msg_command quit = {.verb = "quit"};
    engine_child_command(&c, &quit);
    assert_true(WIFEXITED(engine_child_wait(&c)));
}

static void sources_tell_what_they_found_and_counted(void **state)
{
    (void)state;
    static struct session s;
    uint64_t hashes[2] = {1, 2};
    fold(WORDS("--sources", "synth", "--rounds", "24", "--bench", "pp64,tg4", "--schedule", "1:1",
               "--exact", "stalls,pipes"),
         &s, hashes);
    const struct msg_tally *act = tally_of(&s, "activity"), *range = tally_of(&s, "range");
    assert_non_null(act);
    assert_non_null(range);
    assert_non_null(tally_of(&s, "pm"));
    assert_non_null(tally_of(&s, "pc"));
    assert_true(act->windows >= 1 && act->items > act->windows);
    assert_int_equal(act->dropped + act->invalid, 0);
    assert_string_equal(range->sets, "live,stalls,pipes");
    assert_true(range->passes > 1);
    assert_true(range->metrics > 40);
    assert_int_equal(range->output, 1); /* the counted passes made what a timed round makes */
    assert_true(range->output_hash != 0);
    const struct row *row = row_of(&s, "tiles_kd8", "ffn_gate");
    assert_non_null(row);
    assert_int_equal(row_metric_exact(&s, row, "stall_wait").state, VALUE_OK);
    assert_int_equal(row_metric_exact(&s, row, "alu_inst").state, VALUE_OK);
    assert_int_not_equal(row_metric_exact(&s, row, "sm_launch_pct").state, VALUE_OK);
    session_free(&s);
}

/* A source that is refused costs its figures and says why; the rest goes on. */
static void a_refused_source_says_why(void **state)
{
    (void)state;
    static struct session s;
    uint64_t hashes[2] = {1, 2};
    setenv("SASSTOP_SYNTH_SCRIPT", "no-privilege@pm", 1);
    fold(WORDS("--sources", "synth", "--rounds", "8", "--bench", "pp16,tg2", "--schedule", "1:1"),
         &s, hashes);
    unsetenv("SASSTOP_SYNTH_SCRIPT");
    const struct msg_source *pm = session_source(&s, "pm");
    assert_non_null(pm);
    assert_string_equal(pm->state, "unavailable");
    assert_true(strlen(pm->why) > 10);
    const struct row *row = row_of(&s, "tiles_kd8", "ffn_gate");
    assert_non_null(row);
    assert_true(row->calls > 0); /* spans still come */
    struct value sm = row_metric_steady(&s, row, "sm_pct");
    assert_int_not_equal(sm.state, VALUE_OK);
    session_free(&s);
}

static void an_overflowed_window_gives_no_figure(void **state)
{
    (void)state;
    static struct session s;
    uint64_t hashes[2] = {1, 2};
    setenv("SASSTOP_SYNTH_SCRIPT", "overflow@pm", 1);
    fold(WORDS("--sources", "synth", "--rounds", "4", "--bench", "pp16,tg2", "--schedule", "1:1"),
         &s, hashes);
    unsetenv("SASSTOP_SYNTH_SCRIPT");
    assert_true(s.last_window.window > 0);
    assert_true(s.last_window.overflow);
    const struct row *row = row_of(&s, "tiles_kd8", "ffn_gate");
    assert_non_null(row);
    assert_int_not_equal(row_metric_steady(&s, row, "sm_pct").state, VALUE_OK);
    session_free(&s);
}

static void without_sources_the_clock_times_operators(void **state)
{
    (void)state;
    static struct session s;
    uint64_t hashes[2] = {1, 2};
    fold(WORDS("--rounds", "4", "--bench", "pp16,tg2"), &s, hashes);
    const struct row *row = row_of(&s, "tiles_kd8", "ffn_gate");
    assert_non_null(row);
    assert_string_equal(row->time_source, "clock");
    assert_int_equal(row->calls, 2); /* two layers, one counted round */
    assert_true(row->def.macs == 512.0 * 256 * 16);
    assert_int_equal(row_us(&s, row).state, VALUE_OK);
    assert_int_not_equal(row_metric_best(&s, row, "sm_pct").state, VALUE_OK);
    const struct row *decode = row_of(&s, "q4k_gemv", "ffn_gate");
    assert_non_null(decode);
    assert_string_equal(decode->def.phase, "decode");
    assert_int_equal(decode->calls, 4);
    assert_string_equal(session_source(&s, "pm")->state, "unavailable");
    session_free(&s);
    fold(WORDS("--rounds", "4", "--bench", "pp16,tg2", "--sources", "none"), &s, hashes);
    assert_int_equal(session_current(&s)->counted_rounds, 0);
    assert_string_equal(session_source(&s, "pm")->state, "off");
    session_free(&s);
}

static void a_source_that_is_none_is_refused(void **state)
{
    (void)state;
    struct engine_child c;
    struct msg_bye bye;
    engine_child_start(&c, WORDS("--sources", "pm,moon"));
    assert_true(engine_child_until(&c, FRAME_BYE, &bye, sizeof bye));
    assert_non_null(strstr(bye.text, "moon"));
    int status = engine_child_wait(&c);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE);
}

enum { LAYERS = 12, PER_LAYER = 3 };

/* Layers of a norm, a product and attention; every third product has other weights, the last layer
 * alone a window. */
static void make_list(struct forward *f, const struct weight *w)
{
    *f = (struct forward){.n = 1, .ops = calloc(LAYERS * PER_LAYER + 2, sizeof *f->ops)};
    assert_non_null(f->ops);
    f->ops[f->nops++] = (struct op){.kind = OP_EMBED, .role = "token_embd", .layer = -1, .w = w};
    for (int l = 0; l < LAYERS; l++) {
        f->ops[f->nops++] = (struct op){.kind = OP_NORM, .role = "attn_norm", .layer = l, .w = w};
        f->ops[f->nops++] = (struct op){
            .kind = OP_MATMUL, .role = "attn_v", .layer = l, .w = &w[l % 3 == 2 ? 2 : 1]};
        f->ops[f->nops++] = (struct op){.kind = OP_ATTENTION,
                                        .role = "attention",
                                        .layer = l,
                                        .window = l == LAYERS - 1 ? 512 : 0};
    }
    f->ops[f->nops++] = (struct op){.kind = OP_ARGMAX, .role = "argmax", .layer = -1};
}

static void exact_lists_hold_every_row_twice(void **state)
{
    (void)state;
    const struct weight w[] = {{.type = 0, .m = 64, .k = 64},
                               {.type = 12, .m = 64, .k = 64},
                               {.type = 14, .m = 64, .k = 64}};
    struct forward f, s;
    int layers[LAYERS] = {0}, n = 0;
    make_list(&f, w);
    assert_int_equal(collect_shorten(&f, &s), OK);
    for (uint32_t i = 0; i < s.nops; i++)
        if (s.ops[i].layer >= 0) layers[s.ops[i].layer]++;
    for (int l = 0; l < LAYERS; l++) {
        assert_true(layers[l] == 0 || layers[l] == PER_LAYER); /* whole layers */
        n += layers[l] > 0;
    }
    /* 0 and 1 hold all but the third layers' product (2 and 5) and the window (11). */
    assert_int_equal(n, 5);
    assert_true(layers[0] && layers[1] && layers[2] && layers[5] && layers[11]);
    assert_int_equal(s.ops[0].kind, OP_EMBED);
    assert_int_equal(s.ops[s.nops - 1].kind, OP_ARGMAX);
    forward_free(&f);
    forward_free(&s);
}

/* Of five layers: a norm, a product with its conversion, attention with its merge; embedding; the
 * two of a token's choice. */
static void there_is_room_for_what_may_launch(void **state)
{
    (void)state;
    const struct weight w[] = {{.type = 0, .m = 64, .k = 64},
                               {.type = 12, .m = 64, .k = 64},
                               {.type = 14, .m = 64, .k = 64}};
    struct engine e = {.max_step = 16, .work = {.n = 16}};
    make_list(&e.chunk, w);
    const uint32_t one = 5 * (1 + 2 + 2) + 1 + 2;
    assert_int_equal(collect_room(&e, false), one); /* no decode */
    make_list(&e.decode, w);
    assert_int_equal(collect_room(&e, false), 2 * one);
    assert_int_equal(collect_room(&e, true), 2);
    forward_free(&e.chunk);
    forward_free(&e.decode);
}

/* Seven products of three kinds of weights, reading four buffers: as many conversions as there are
 * pairs of type and k, and every product once. */
static void products_share_their_activations(void **state)
{
    (void)state;
    const struct weight w[] = {{.type = 12, .m = 64, .k = 64},
                               {.type = 14, .m = 64, .k = 64},
                               {.type = 12, .m = 64, .k = 256}};
    static const struct {
        const char *role;
        int weight;
        uint64_t x;
    } made[] = {{"attn_q", 0, 1},   {"attn_k", 0, 1}, {"attn_v", 1, 1},  {"attn_output", 0, 2},
                {"ffn_gate", 0, 3}, {"ffn_up", 0, 3}, {"ffn_down", 2, 4}};
    static const char *const order[] = {"attn_q", "attn_k", "attn_output", "ffn_gate",
                                        "ffn_up", "attn_v", "ffn_down"};
    enum { PRODUCTS = sizeof made / sizeof *made };
    struct op ops[PRODUCTS] = {0};
    for (int i = 0; i < PRODUCTS; i++)
        ops[i] = (struct op){.kind = OP_MATMUL,
                             .role = made[i].role,
                             .w = &w[made[i].weight],
                             .x = {.addr = made[i].x},
                             .y = {.addr = 100 + (uint64_t)i}};
    const struct forward f = {.n = 8, .nops = PRODUCTS, .ops = ops};
    struct forward p;
    assert_int_equal(collect_products(&f, &p), OK);
    assert_int_equal(p.nops, PRODUCTS);
    for (int i = 0; i < PRODUCTS; i++) assert_string_equal(p.ops[i].role, order[i]);
    for (int i = 0; i < 5; i++) assert_int_equal(p.ops[i].x.addr, 1);
    assert_int_equal(p.ops[5].x.addr, 1);
    assert_int_equal(p.ops[6].x.addr, 4);
    assert_int_equal(p.ops[2].y.addr, 103); /* attn_output writes where it did */
    forward_free(&p);
    /* One token's are fused with their neighbours: those have to be the model's own. */
    for (int i = 0; i < PRODUCTS; i++) ops[i].n = 1;
    const struct forward one = {.n = 1, .nops = PRODUCTS, .ops = ops};
    assert_int_equal(collect_products(&one, &p), OK);
    for (int i = 0; i < PRODUCTS; i++) {
        assert_string_equal(p.ops[i].role, made[i].role);
        assert_int_equal(p.ops[i].x.addr, made[i].x);
    }
    forward_free(&p);
}

static void products_of_one_layer_alone(void **state)
{
    (void)state;
    const struct weight w[] = {{.type = 0, .m = 64, .k = 64},
                               {.type = 12, .m = 64, .k = 64},
                               {.type = 14, .m = 64, .k = 64}};
    struct forward f, p;
    make_list(&f, w);
    assert_int_equal(collect_products(&f, &p), OK);
    assert_int_equal(p.nops, 1);
    assert_int_equal(p.n, f.n);
    assert_int_equal(p.ops[0].kind, OP_MATMUL);
    assert_int_equal(p.ops[0].layer, 0);
    forward_free(&p);
    f.nops = 1; /* no layer at all */
    assert_int_equal(collect_products(&f, &p), OK);
    assert_int_equal(p.nops, 0);
    forward_free(&p);
    forward_free(&f);
}

static enum status does_it(struct counter_source *src)
{
    (void)src;
    return OK;
}

/* Two passes. */
static enum status has_another_pass(struct counter_source *src)
{
    static unsigned passes;
    (void)src;
    return passes++ % 2 ? OK : ERR_AGAIN;
}

/* A round of exact counters that a command broke into comes again, a key's as a key's. */
static void a_broken_exact_round_is_still_owed(void **state)
{
    (void)state;
    static const struct counter_source_ops ops = {.role = COUNTER_RANGE,
                                                  .arm = does_it,
                                                  .start = does_it,
                                                  .stop = has_another_pass,
                                                  .disarm = does_it};
    static const struct turns_config cfg = {.timed_rounds = 1};
    static uint32_t slots[2 * COLLECT_EXACTS];
    for (int quick = 0; quick < 2; quick++) {
        struct engine e = {0};
        struct counter_source range = {.ops = &ops,
                                       .state = {.role = COUNTER_RANGE, .health = COUNTER_READY}};
        struct collect c = {
            .e = &e, .src = {[COUNTER_RANGE] = &range}, .exact_slots = slots, .quick = quick};
        pthread_mutex_init(&c.lock, NULL);
        assert_int_equal(rows_open(NULL, &e.rows), OK);
        assert_int_equal(turns_open(c.src, &cfg, &c.turns), OK);
        turns_request(c.turns, quick ? TURNS_WANT_NOW : TURNS_WANT_RANGE);
        for (int times = 0; times < 2; times++) {
            for (int i = 0; i < 3 && c.now.kind != TURNS_RANGE; i++) turns_begin(c.turns, &c.now);
            assert_int_equal(c.now.kind, TURNS_RANGE);
            collect_end(&c, false);
            assert_int_equal(c.quick, quick);
            c.now = (struct turns_round){0};
        }
        turns_close(c.turns);
        rows_close(e.rows);
        pthread_mutex_destroy(&c.lock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_exact_round_is_still_owed),
        cmocka_unit_test(products_of_one_layer_alone),
        cmocka_unit_test(products_share_their_activations),
        cmocka_unit_test(there_is_room_for_what_may_launch),
        cmocka_unit_test(exact_lists_hold_every_row_twice),
        cmocka_unit_test(synthetic_figures_reach_their_rows),
        cmocka_unit_test(executed_counts_reach_their_rows),
        cmocka_unit_test(executed_counts_of_one_kernel_on_request),
        cmocka_unit_test(sources_tell_what_they_found_and_counted),
        cmocka_unit_test(a_refused_source_says_why),
        cmocka_unit_test(an_overflowed_window_gives_no_figure),
        cmocka_unit_test(without_sources_the_clock_times_operators),
        cmocka_unit_test(a_source_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
