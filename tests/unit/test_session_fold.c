/* The fold: what frames do to the model. */
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

#include "tests/lib/session_lab.h"

static const struct event *last_event(const struct session *s)
{
    assert_true(s->nevents > 0);
    return &s->events[(s->first_event + s->nevents - 1) % MAX_EVENTS];
}

/* ---- rounds ---- */

static void only_timed_rounds_after_the_warm_up_count(void **state)
{
    (void)state;
    struct session *s = lab_new();
    const struct generation *g = session_current(s);
    assert_int_equal(generation_prefill(s, g).state, VALUE_PENDING);
    lab_round(s, 1, 0, 10); /* warms up */
    assert_int_equal(generation_prefill(s, g).state, VALUE_PENDING);
    lab_round(s, 1, 1, 50);
    lab_round(s, 1, 0, 100);
    lab_round(s, 1, 0, 102);
    lab_round(s, 1, 0, 104);
    struct value v = generation_prefill(s, g);
    assert_int_equal(v.state, VALUE_OK);
    assert_float_equal(v.v, 102, 1e-3);
    assert_float_equal(v.spread, 2, 1e-3);
    assert_int_equal(v.n, 3);
    assert_int_equal(g->timed_rounds, 4);
    assert_int_equal(g->counted_rounds, 1);
    assert_float_equal(stat_quantile(&g->decode_counted, 0.5), 50, 1e-3);
    assert_int_equal(s->nspark, 3);
    lab_end(s);
}

static void where_rounds_are_timed_is_the_generations(void **state)
{
    (void)state;
    struct session *s = lab_new();
    const struct generation *g = session_current(s);
    struct msg_round m = {.generation = 1, .prefill_tokens = 10, .prefill_ns = 1000};
    lab_round(s, 1, 1, 50); /* a counted one says nothing of it */
    assert_string_equal(generation_timed_in_words(g), "");
    strcpy(m.timed_in, "own");
    lab_apply(s, FRAME_ROUND, &m);
    lab_apply(s, FRAME_ROUND, &m);
    assert_string_equal(generation_timed_in(g), "own process");
    assert_non_null(strstr(generation_timed_in_words(g), "never opened CUPTI"));
    strcpy(m.timed_in, "here"); /* no engine does that; whoever reads it is warned */
    lab_apply(s, FRAME_ROUND, &m);
    assert_string_equal(generation_timed_in(g), "mixed");
    lab_generation(s, 2, "wide", 8);
    m.generation = 2;
    lab_apply(s, FRAME_ROUND, &m);
    assert_string_equal(generation_timed_in(session_current(s)), "with CUPTI");
    lab_generation(s, 3, "wide", 8);
    lab_round(s, 3, 0, 100); /* of a recording from before it was told */
    assert_string_equal(generation_timed_in(session_current(s)), "");
    lab_end(s);
}

static void generations_never_mix(void **state)
{
    (void)state;
    struct session *s = lab_new();
    lab_row(s, 1, 1, 1);
    lab_span_agg(s, 1, "activity", 10, 100);
    lab_generation(s, 2, "wide", 8);
    lab_row(s, 2, 1, 2);
    lab_span_agg(s, 2, "activity", 10, 50);
    lab_span_agg(s, 2, "activity", 10, 52);
    assert_float_equal(row_us(s, &s->rows[0]).v, 100, 1e-6);
    assert_float_equal(row_us(s, &s->rows[1]).v, 51, 1e-6);
    assert_float_equal(row_time_share(s, &s->rows[0]).v, 100, 1e-9);
    assert_int_equal(session_current(s)->def.generation, 2);
    assert_int_equal(session_previous(s)->def.generation, 1);
    const char *variant;
    uint32_t kd;
    assert_true(session_selected(s, "q4k_gemm", &variant, &kd));
    assert_string_equal(variant, "wide");
    assert_int_equal(kd, 8);
    assert_false(session_selected(s, "q6k_gemm", &variant, &kd));
    assert_string_equal(last_event(s)->kind, "flip");
    lab_end(s);
}

static void parity_that_comes_later_is_taken(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct msg_generation m = {.generation = 1,
                               .family = "q4k_gemm",
                               .variant = "narrow",
                               .kd = 4,
                               .reason = "start",
                               .parity = "failed"};
    lab_apply(s, FRAME_GENERATION, &m);
    assert_int_equal(s->ngenerations, 1);
    assert_string_equal(session_current(s)->def.parity, "failed");
    m.generation = 0;
    lab_apply(s, FRAME_GENERATION, &m);
    assert_int_equal(s->garbled_frames, 1);
    lab_end(s);
}

/* ---- times ---- */

static void better_source_of_times_replaces_the_lesser(void **state)
{
    (void)state;
    struct session *s = lab_new();
    lab_row(s, 1, 1, 1);
    lab_row(s, 2, 1, 1);
    lab_span_agg(s, 1, "events", 10, 200);
    lab_span_agg(s, 2, "events", 10, 200);
    lab_span_agg(s, 1, "activity", 5, 100);
    lab_span_agg(s, 1, "events", 10, 900); /* no longer wanted */
    const struct row *r = &s->rows[0];
    assert_string_equal(r->time_source, "activity");
    assert_int_equal(r->calls, 5);
    assert_float_equal(row_us(s, r).v, 100, 1e-6);
    assert_int_equal(session_current(s)->rows_ns, 5 * 100000 + 10 * 200000);
    assert_float_equal(row_time_share(s, r).v, 20, 1e-9);
    assert_float_equal(row_us_per_gmac(s, r).v, 100 / (64.0 * 32 * 256 / 1e9), 1e-3);
    assert_int_equal(r->hist[hist_bin(100000)], 5);
    lab_end(s);
}

static void senseless_times_are_counted_not_used(void **state)
{
    (void)state;
    struct session *s = lab_new();
    lab_row(s, 1, 1, 1);
    struct msg_span_agg m = {.row = 1, .source = "activity", .calls = 0, .sum_ns = 5};
    lab_apply(s, FRAME_SPAN_AGG, &m);
    m = (struct msg_span_agg){.row = 1, .source = "activity", .calls = 1, .sum_ns = UINT64_MAX};
    lab_apply(s, FRAME_SPAN_AGG, &m);
    m = (struct msg_span_agg){.row = 77, .source = "activity", .calls = 1, .sum_ns = 5};
    lab_apply(s, FRAME_SPAN_AGG, &m);
    assert_int_equal(s->garbled_frames, 3);
    assert_int_equal(row_us(s, &s->rows[0]).state, VALUE_PENDING);
    for (int i = 0; i < 300; i++) { /* sums stop before they wrap */
        m = (struct msg_span_agg){
            .row = 1, .source = "activity", .calls = UINT32_MAX, .sum_ns = 1ull << 55};
        lab_apply(s, FRAME_SPAN_AGG, &m);
    }
    assert_true(s->overflowed > 0);
    assert_true(row_time_share(s, &s->rows[0]).v <= 100);
    lab_end(s);
}

/* ---- exact figures ---- */

static void exact_figure_goes_before_the_live_one(void **state)
{
    (void)state;
    struct session *s = lab_new();
    lab_row(s, 1, 1, 1);
    lab_metric(s, 9, "inst", "range");
    lab_source(s, "range", "ok", "");
    assert_int_equal(row_metric_best(s, &s->rows[0], "inst").state, VALUE_PENDING);
    assert_string_equal(row_metric_best(s, &s->rows[0], "inst").why,
                        "no exact pass has run on it yet");
    struct msg_counter c = {.row = 1,
                            .metric = 9,
                            .source = "range",
                            .state = VALUE_OK,
                            .v = 559249152,
                            .spread = 0,
                            .n = 3};
    lab_apply(s, FRAME_COUNTER, &c);
    struct value v = row_metric_best(s, &s->rows[0], "inst");
    assert_int_equal(v.state, VALUE_OK);
    assert_float_equal(v.v, 559249152, 0);
    assert_string_equal(v.source, "range");
    assert_int_equal(v.n, 3);
    /* What that pass did not count doesn't come by waiting. */
    lab_metric(s, 10, "dram_read_bytes", "range");
    v = row_metric_exact(s, &s->rows[0], "dram_read_bytes");
    assert_int_equal(v.state, VALUE_UNAVAILABLE);
    assert_string_equal(v.why, "not among what exact passes were asked to count");
    c.state = VALUE_FAULT;
    snprintf(c.why, sizeof c.why, "the kernel faulted under replay");
    lab_apply(s, FRAME_COUNTER, &c);
    v = row_metric_best(s, &s->rows[0], "inst");
    assert_int_equal(v.state, VALUE_FAULT);
    assert_string_equal(v.why, "the kernel faulted under replay");
    c.state = 200;
    lab_apply(s, FRAME_COUNTER, &c);
    c.state = VALUE_OK;
    c.metric = 1234;
    lab_apply(s, FRAME_COUNTER, &c);
    assert_int_equal(s->garbled_frames, 2);
    lab_end(s);
}

static void metric_numbers_may_change_after_a_restart(void **state)
{
    (void)state;
    struct session *s = lab_new();
    lab_row(s, 1, 1, 1);
    lab_metric(s, 1, "sm_pct", "pm");
    lab_metric(s, 2, "inst", "range");
    lab_metric(s, 1, "inst", "range"); /* now 1 is inst, and nobody is 2 */
    assert_int_equal(s->nmetrics, 2);
    struct msg_counter c = {.row = 1, .metric = 1, .state = VALUE_OK, .v = 5, .source = "range"};
    lab_apply(s, FRAME_COUNTER, &c);
    assert_float_equal(row_metric_exact(s, &s->rows[0], "inst").v, 5, 0);
    c.metric = 2;
    lab_apply(s, FRAME_COUNTER, &c);
    assert_int_equal(s->garbled_frames, 1);
    lab_end(s);
}

static void stalls_add_up_and_selected_is_none(void **state)
{
    (void)state;
    struct session *s = lab_new();
    lab_row(s, 1, 1, 1);
    struct buf b = {0};
    char name[40];
    struct value v = row_top_stall(s, &s->rows[0], name, sizeof name);
    assert_int_equal(v.state, VALUE_UNAVAILABLE);
    assert_string_equal(name, "");
    pack_stall(&b, "selected", 600, 0);
    pack_stall(&b, "barrier", 100, 50);
    pack_stall(&b, "long_scoreboard", 300, 200);
    struct msg_stalls m = {.kernel = 1,
                           .generation = 1,
                           .source = "pc",
                           .samples = 1000,
                           .reasons = {b.data, (uint32_t)b.len}};
    lab_apply(s, FRAME_STALLS, &m);
    lab_apply(s, FRAME_STALLS, &m);
    v = row_top_stall(s, &s->rows[0], name, sizeof name);
    assert_string_equal(name, "long_scoreboard");
    assert_float_equal(v.v, 30, 1e-9);
    assert_int_equal(v.n, 2000);
    assert_int_equal(session_stalls(s, 0, 1)->samples, 2000);
    buf_free(&b);
    lab_end(s);
}

/* ---- faults and restarts ---- */

static void fault_marks_the_variant_and_restart_maps_numbers_anew(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct msg_variant_def v = {.family = "q4k_gemm", .variant = "wide", .kd = 8, .ok = 1};
    struct msg_kernel_def k = {.kernel = 5,
                               .name = "wide_kd8",
                               .family = "q4k_gemm",
                               .variant = "wide",
                               .kd = 8,
                               .arch = 90,
                               .code_hash = 99};
    struct msg_fault fault = {.kind = "hang",
                              .family = "q4k_gemm",
                              .variant = "wide",
                              .kd = 8,
                              .blames = 1,
                              .text = "no progress for 5 s"};
    struct msg_hello hello = {.instance = 2, .backend = "cuda", .device = "lab"};
    struct msg_drops drops = {.type = FRAME_SPANS, .total = 4};
    lab_apply(s, FRAME_VARIANT_DEF, &v);
    lab_apply(s, FRAME_KERNEL_DEF, &k);
    lab_generation(s, 2, "wide", 8);
    lab_row(s, 1, 5, 2);
    lab_apply(s, FRAME_DROPS, &drops);
    lab_apply(s, FRAME_FAULT, &fault);
    assert_true(s->ended);
    assert_true(s->variant_faulted[0]);
    assert_true(s->kernels[1].faulted);
    assert_true(session_current(s)->faulted);
    assert_int_equal(generation_prefill(s, session_current(s)).state, VALUE_FAULT);
    assert_int_equal(last_event(s)->level, 2);

    lab_apply(s, FRAME_HELLO, &hello);
    assert_false(s->ended);
    lab_row(s, 1, 5, 3); /* kernel 5 isn't defined yet in this instance */
    assert_int_equal(s->garbled_frames, 1);
    k.kernel = 0;
    lab_apply(s, FRAME_KERNEL_DEF, &k);
    assert_int_equal(s->nkernels, 2); /* the same kernel under another number */
    assert_true(s->kernels[1].faulted);
    lab_generation(s, 3, "narrow", 4);
    lab_row(s, 1, 0, 3);
    assert_int_equal(s->nrows, 2); /* rows are always new */
    assert_int_equal(s->rows[1].def.kernel, 1);
    lab_apply(s, FRAME_DROPS, &drops);
    assert_int_equal(s->drops[FRAME_SPANS], 8); /* each instance counts from 0 */
    hello.instance = 1;
    lab_apply(s, FRAME_HELLO, &hello);
    assert_int_equal(s->hello.instance, 2);
    lab_end(s);
}

static void commands_pause_and_resume(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct msg_command c = {.verb = "pause", .origin = "key"};
    struct msg_reply r = {.verb = "flip", .ok = 0, .text = "it faulted before; F forces it"};
    struct msg_bye bye = {.status = 0, .text = "asked to"};
    lab_apply(s, FRAME_COMMAND, &c);
    assert_true(s->paused);
    snprintf(c.verb, sizeof c.verb, "resume");
    lab_apply(s, FRAME_COMMAND, &c);
    assert_false(s->paused);
    lab_apply(s, FRAME_REPLY, &r);
    assert_string_equal(last_event(s)->text, "flip: it faulted before; F forces it");
    assert_int_equal(last_event(s)->level, 1);
    lab_apply(s, FRAME_BYE, &bye);
    assert_true(s->ended);
    assert_string_equal(s->end_text, "asked to");
    lab_end(s);
}

static void sources_say_a_change_once(void **state)
{
    (void)state;
    struct session *s = lab_new();
    uint32_t n = s->nevents;
    lab_source(s, "pm", "unavailable", "no privilege");
    lab_source(s, "pm", "unavailable", "no privilege");
    assert_int_equal(s->nevents, n + 1);
    lab_source(s, "pm", "ok", "");
    assert_int_equal(s->nevents, n + 2);
    assert_int_equal(s->nsources, 1);
    assert_string_equal(session_source(s, "pm")->state, "ok");
    assert_null(session_source(s, "pc"));
    lab_end(s);
}

/* ---- text, modules, events ---- */

static void text_keeps_its_newest_part(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct msg_text m = {.piece = "na\xc3\xafve and long enough to fill it "};
    for (uint32_t i = 0; i < 3000; i++) {
        m.pos = i;
        lab_apply(s, FRAME_TEXT, &m);
        assert_true(s->text_len <= MAX_TEXT);
        assert_int_equal(strlen(s->text), s->text_len);
        assert_int_not_equal((uint8_t)s->text[0] & 0xc0, 0x80);
    }
    m.pos = 0;
    lab_apply(s, FRAME_TEXT, &m);
    assert_non_null(strstr(s->text, "\nna\xc3\xafve")); /* another sequence, another line */
    lab_end(s);
}

static void cubin_is_pieced_together(void **state)
{
    (void)state;
    struct session *s = lab_new();
    uint8_t bytes[101]; /* one more than the cubin has */
    for (int i = 0; i < 101; i++) bytes[i] = (uint8_t)i;
    struct msg_module m = {.cubin_hash = 7, .total = 100, .offset = 0, .bytes = {bytes, 60}};
    lab_apply(s, FRAME_MODULE, &m);
    assert_null(session_module(s, 7));
    m.offset = 70; /* a piece is missing */
    m.bytes = (struct blob){bytes + 70, 30};
    lab_apply(s, FRAME_MODULE, &m);
    assert_int_equal(s->garbled_frames, 1);
    m.offset = 60;
    m.bytes = (struct blob){bytes + 60, 41}; /* past the end */
    lab_apply(s, FRAME_MODULE, &m);
    assert_int_equal(s->garbled_frames, 2);
    m.bytes = (struct blob){bytes + 60, 40};
    lab_apply(s, FRAME_MODULE, &m);
    assert_non_null(session_module(s, 7));
    assert_memory_equal(session_module(s, 7)->bytes.data, bytes, 100);
    m = (struct msg_module){.cubin_hash = 8, .total = UINT32_MAX, .bytes = {bytes, 60}};
    lab_apply(s, FRAME_MODULE, &m);
    assert_int_equal(s->overflowed, 1);
    lab_end(s);
}

static void events_are_a_ring(void **state)
{
    (void)state;
    struct session *s = lab_new();
    uint32_t before = s->nevents;
    struct msg_log m = {.level = 9};
    for (int i = 0; i < MAX_EVENTS + 10; i++) {
        snprintf(m.text, sizeof m.text, "line %d", i);
        lab_apply(s, FRAME_LOG, &m);
    }
    assert_int_equal(s->nevents, MAX_EVENTS);
    assert_int_equal(s->lost_events, 10 + before);
    assert_string_equal(last_event(s)->text, "line 1033");
    assert_string_equal(s->events[s->first_event].text, "line 10");
    assert_int_equal(last_event(s)->level, 2);
    lab_end(s);
}

static void control_round(struct session *s, uint32_t generation, double prefill, double decode)
{
    struct msg_round r = {.generation = generation,
                          .prefill_tokens = 1000,
                          .decode_tokens = 1000,
                          .prefill_ns = (uint64_t)(1e12 / prefill),
                          .decode_ns = (uint64_t)(1e12 / decode)};
    lab_apply(s, FRAME_ROUND, &r);
}

/* Two generations whose prefill differs by 10 % with hardly any spread, and whose decode, which the
 * flipped kernel has no part in, differs by `drift`. */
static struct value ratio_beside_a_control(const char *reason, const char *family, double drift)
{
    struct session *s = calloc(1, sizeof *s);
    struct msg_generation g = {.generation = 2, .family = "q4k_gemm", .variant = "wide", .kd = 8};
    struct msg_kernel_def k = {.kernel = 1, .name = "gemv"};
    struct msg_row_def row = {.row = 1, .kernel = 1, .generation = 1, .phase = "decode"};
    assert_non_null(s);
    lab_start(s);
    strcpy(k.family, family);
    lab_apply(s, FRAME_KERNEL_DEF, &k);
    lab_apply(s, FRAME_ROW_DEF, &row);
    lab_span_agg(s, 1, "events", 3, 10);
    for (int i = 0; i < 4; i++) control_round(s, 1, 1000, 500);
    snprintf(g.reason, sizeof g.reason, "%s", reason);
    lab_apply(s, FRAME_GENERATION, &g);
    for (int i = 0; i < 4; i++) control_round(s, 2, 1100, 500 * (1 + drift));
    struct value v = generation_prefill_ratio(s, session_current(s), session_previous(s));
    session_free(s);
    free(s);
    return v;
}

static void a_control_that_drifts_widens_the_noise(void **state)
{
    (void)state;
    struct value v = ratio_beside_a_control("flip", "q4k_gemv", 0.05);
    assert_int_equal(v.state, VALUE_OK);
    assert_float_equal(v.v, 1.1, 1e-5);
    assert_float_equal(v.spread, 1.1 * 0.05, 1e-5);
    assert_float_equal(ratio_beside_a_control("flip", "q4k_gemv", -0.05).spread, 0.055, 1e-5);
    assert_float_equal(ratio_beside_a_control("flip", "q4k_gemv", 0).spread, 0, 1e-5);
    /* No control: the family decodes too, or the work is another one. */
    assert_float_equal(ratio_beside_a_control("flip", "q4k_gemm", 0.05).spread, 0, 1e-5);
    assert_float_equal(ratio_beside_a_control("prompt", "q4k_gemv", 0.05).spread, 0, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_timed_rounds_after_the_warm_up_count),
        cmocka_unit_test(generations_never_mix),
        cmocka_unit_test(parity_that_comes_later_is_taken),
        cmocka_unit_test(better_source_of_times_replaces_the_lesser),
        cmocka_unit_test(senseless_times_are_counted_not_used),
        cmocka_unit_test(exact_figure_goes_before_the_live_one),
        cmocka_unit_test(metric_numbers_may_change_after_a_restart),
        cmocka_unit_test(stalls_add_up_and_selected_is_none),
        cmocka_unit_test(fault_marks_the_variant_and_restart_maps_numbers_anew),
        cmocka_unit_test(commands_pause_and_resume),
        cmocka_unit_test(sources_say_a_change_once),
        cmocka_unit_test(text_keeps_its_newest_part),
        cmocka_unit_test(where_rounds_are_timed_is_the_generations),
        cmocka_unit_test(cubin_is_pieced_together),
        cmocka_unit_test(events_are_a_ring),
        cmocka_unit_test(a_control_that_drifts_widens_the_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
