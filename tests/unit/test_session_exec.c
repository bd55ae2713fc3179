/*
 * Executed counts: packed and back, damaged blobs, the fold's sums and limits, figures and words,
 * the check against the range pass, a cut.
 */
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
#include <unistd.h>

#include "session/executed.h"
#include "session/record.h"
#include "tests/lib/exec_lab.h"
#include "tests/lib/session_lab.h"

static void items_come_back(void **state)
{
    (void)state;
    struct buf b = {0};
    struct exec_item it;
    struct exec_key k;
    for (unsigned i = 0; i < EXEC_SOME; i++) pack_exec(&b, &exec_some[i]);
    struct rd r = rd_make(b.data, b.len);
    for (unsigned i = 0; i < EXEC_SOME; i++) {
        assert_true(unpack_exec(&r, &it));
        assert_int_equal(it.index, exec_some[i].index);
        assert_int_equal(it.key, exec_some[i].key);
        assert_int_equal(it.flags, exec_some[i].flags);
        assert_true(it.inst == exec_some[i].inst && it.threads == exec_some[i].threads);
        assert_true(it.pred_on == exec_some[i].pred_on);
    }
    assert_false(unpack_exec(&r, &it));
    assert_false(r.bad);
    buf_reset(&b);
    exec_put_keys(&b);
    r = rd_make(b.data, b.len);
    for (unsigned i = 0; i < EXEC_KEYS; i++) {
        assert_true(unpack_exec_key(&r, &k));
        assert_string_equal(k.opcode, exec_keys[i].opcode);
        assert_string_equal(k.cls, exec_keys[i].cls);
    }
    assert_false(unpack_exec_key(&r, &k));
    buf_free(&b);
}

static void sums_are_of_the_items(void **state)
{
    (void)state;
    struct session *s = exec_start();
    assert_null(session_executed(s, 0)); /* unknown isn't 0 */
    exec_tell(s, 1, 2, EXEC_HAS_THREADS | EXEC_HAS_PRED, exec_some, EXEC_SOME);
    const struct executed *e = session_executed(s, 0);
    assert_non_null(e);
    assert_int_equal(e->kernel, 1);
    assert_int_equal(e->nkeys, 3);
    assert_int_equal(e->nclasses, 2);
    assert_int_equal(e->of_key[0].inst, 40);
    assert_int_equal(e->of_key[0].count, 2);
    assert_int_equal(e->of_key[0].never, 1);
    assert_int_equal(e->of_key[0].in_hot, 40);
    assert_int_equal(e->of_key[1].guarded, 1);
    assert_int_equal(e->of_key[2].count, 1);
    assert_int_equal(e->of_key[2].counted, 0);
    assert_string_equal(e->classes[0], "float");
    assert_int_equal(e->of_class[0].count, 3);
    assert_int_equal(e->of_class[0].inst, 40);
    assert_int_equal(e->all.inst, 60);
    assert_int_equal(e->all.count, 4);
    assert_int_equal(e->all.counted, 3);
    assert_int_equal(e->all.in_loop, 60);
    assert_true(e->insns[4].there && !e->insns[3].there);
    /* Said anew: the newest holds, nothing adds up. */
    exec_tell(s, 1, 2, 0, exec_some, 1);
    e = session_executed(s, 0);
    assert_int_equal(s->nexecuted, 1);
    assert_int_equal(e->all.inst, 40);
    assert_int_equal(e->ninsns, 1);
    assert_int_equal(s->exec_insns, 1);
    assert_int_equal(s->garbled_frames + s->overflowed, 0);
    lab_end(s);
}

static void figures_and_words(void **state)
{
    (void)state;
    struct session *s = exec_start();
    char text[400];
    exec_tell(s, 1, 2, EXEC_HAS_THREADS | EXEC_HAS_PRED, exec_some, EXEC_SOME);
    const struct executed *e = session_executed(s, 0);
    const struct exec_sum *ffma = &e->of_key[0], *imma = &e->of_key[1], *fadd = &e->of_key[2];
    assert_true(exec_launch(e, ffma).v == 40);
    assert_true(exec_runs(s, e, ffma).v == 10); /* one of the two ran, in 4 warps */
    assert_true(exec_per_mac(s, e, ffma).v == 0.04);
    assert_true(exec_pred(e, imma).v == 50 && exec_threads(e, imma).v == 32);
    assert_true(fabs(exec_share(e, imma).v - 100.0 / 3) < 1e-9);
    assert_int_equal(exec_launch(e, fadd).state, VALUE_UNAVAILABLE);
    assert_int_equal(exec_pred(e, fadd).state, VALUE_UNAVAILABLE);
    exec_gap(s, e, ffma, text, sizeof text);
    assert_string_equal(text, "loops x10; 1 of 2 never run");
    exec_gap(s, e, imma, text, sizeof text);
    assert_string_equal(text, "loops x5; 50% of threads guarded off");
    exec_gap(s, e, fadd, text, sizeof text);
    assert_string_equal(text, "1 not counted");
    exec_words(s, e, true, text, sizeof text);
    assert_non_null(strstr(text, "sassexec: 60 instructions a launch; 60.000M/GMAC"));
    assert_non_null(strstr(text, "not held against a range pass"));
    assert_non_null(strstr(text, "1 of 3 never ran; 1 not counted"));
    exec_words(s, e, false, text, sizeof text);
    assert_non_null(strstr(text, "counted as attn_q 64 x 32 x 256"));
    /* What the chip didn't count is unknown, in the same words everywhere. */
    exec_tell(s, 1, 2, 0, exec_some, EXEC_SOME);
    e = session_executed(s, 0);
    assert_int_equal(exec_threads(e, &e->of_key[0]).state, VALUE_UNAVAILABLE);
    assert_int_equal(exec_pred(e, &e->of_key[0]).state, VALUE_UNAVAILABLE);
    lab_end(s);
}

static void the_sum_is_held_against_the_range(void **state)
{
    (void)state;
    struct session *s = exec_start();
    char text[400];
    struct msg_counter c = {.row = 1, .metric = 23, .source = "range", .state = VALUE_OK, .n = 2};
    lab_metric(s, 23, "inst", "range");
    exec_tell(s, 1, 2, 3, exec_some, EXEC_SOME);
    assert_int_equal(executed_check(s, session_executed(s, 0)).state, VALUE_UNAVAILABLE);
    c.v = 60;
    lab_apply(s, FRAME_COUNTER, &c);
    struct value v = executed_check(s, session_executed(s, 0));
    assert_true(v.state == VALUE_OK && v.v == 0);
    exec_words(s, session_executed(s, 0), true, text, sizeof text);
    assert_non_null(strstr(text, "equal to the range pass"));
    c.v = 50;
    lab_apply(s, FRAME_COUNTER, &c);
    v = executed_check(s, session_executed(s, 0));
    assert_true(fabs(v.v - 20) < 1e-9);
    exec_words(s, session_executed(s, 0), true, text, sizeof text);
    assert_non_null(strstr(text, "differs from the range pass by +20%"));
    lab_end(s);
}

/* Another row finds the counts of the same code, best on the same work. */
static void rows_of_the_same_code_share(void **state)
{
    (void)state;
    struct session *s = exec_start();
    exec_kernel(s, 3, "other_kd8", 99);
    exec_row(s, 2, 2, 1, 128, 2000); /* index 1: another shape */
    exec_row(s, 3, 3, 1, 64, 1000);  /* index 2: another kernel */
    exec_row(s, 4, 2, 2, 64, 1000);  /* index 3: the first row's work, a generation on */
    exec_tell(s, 2, 2, 3, exec_some, EXEC_SOME);
    assert_int_equal(session_executed_like(s, 0)->row, 1);
    assert_int_equal(session_executed_like(s, 1)->row, 1);
    assert_null(session_executed_like(s, 2));
    assert_null(session_executed_like(s, 1000));
    exec_tell(s, 1, 2, 3, exec_some, 1);
    assert_int_equal(session_executed_like(s, 3)->row, 0);
    lab_end(s);
}

static void damaged_frames_leave_what_was_there(void **state)
{
    (void)state;
    struct session *s = exec_start();
    struct buf k = {0}, b = {0};
    size_t ends[EXEC_SOME + 1] = {0};
    exec_put_keys(&k);
    exec_tell(s, 1, 2, 3, exec_some, 1);
    for (unsigned i = 0; i < EXEC_SOME; i++) {
        pack_exec(&b, &exec_some[i]);
        ends[i + 1] = b.len;
    }
    for (size_t n = 1; n < b.len; n++) {
        uint8_t *exact = malloc(n); /* so that a read past the end is seen */
        struct msg_executed m = {.row = 1, .kernel = 2, .launches = 1};
        unsigned whole = 0;
        assert_non_null(exact);
        memcpy(exact, b.data, n);
        while (whole < EXEC_SOME && ends[whole + 1] <= n) whole++;
        uint64_t before = s->garbled_frames;
        m.keys = (struct blob){k.data, (uint32_t)k.len};
        m.items = (struct blob){exact, (uint32_t)n};
        lab_apply(s, FRAME_EXECUTED, &m);
        bool good = ends[whole] == n;
        assert_int_equal(s->garbled_frames - before, !good);
        assert_true(good || session_executed(s, 0)->all.inst >= 40);
        free(exact);
    }
    uint64_t before = s->garbled_frames;
    struct exec_item far = {.index = EXEC_INSNS_MAX}, key = {.key = EXEC_KEYS},
                     twice[2] = {{.index = 1}, {.index = 1}};
    exec_tell(s, 1, 2, 3, &far, 1);
    exec_tell(s, 1, 2, 3, &key, 1);
    exec_tell(s, 1, 2, 3, twice, 2);
    exec_tell(s, 50, 2, 3, exec_some, 1); /* no such row */
    exec_tell(s, 1, 1, 3, exec_some, 1);  /* not the row's kernel */
    assert_int_equal(s->garbled_frames - before, 5);
    assert_int_equal(s->nexecuted, 1);
    buf_free(&k);
    buf_free(&b);
    lab_end(s);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    struct session *s = exec_start();
    struct exec_item wide = {.index = EXEC_INSNS_MAX - 1,
                             .inst = UINT64_MAX,
                             .threads = UINT64_MAX,
                             .pred_on = UINT64_MAX};
    for (uint32_t i = 2; i < MAX_EXECUTED + 20; i++) {
        exec_row(s, i, 2, 1, i, 1);
        exec_tell(s, i, 2, 3, &wide, 1);
    }
    assert_true(s->nexecuted <= MAX_EXECUTED);
    assert_true(s->exec_insns <= MAX_EXEC_INSNS);
    assert_int_equal(s->nexecuted, MAX_EXEC_INSNS / EXEC_INSNS_MAX);
    assert_true(s->overflowed > 0);
    uint64_t before = s->overflowed;
    exec_tell(s, 2, 2, 3, &wide, 1); /* in place of its own: there is room */
    assert_true(s->overflowed == before);
    assert_true(session_executed(s, 1)->all.inst == UINT64_MAX);
    lab_end(s);
}

static void a_cut_keeps_it(void **state)
{
    (void)state;
    const uint64_t second = 1000000000;
    struct buf k = {0}, b = {0};
    exec_put_keys(&k);
    pack_exec(&b, &exec_some[0]);
    struct msg_hello hello = {.instance = 1, .backend = "cuda"};
    struct msg_kernel_def def = {.kernel = 1, .name = "k"};
    struct msg_row_def of = {.row = 1, .kernel = 1, .generation = 1};
    struct msg_executed m = {.row = 1, .kernel = 1, .launches = 1};
    struct msg_log log = {.text = "later"};
    m.keys = (struct blob){k.data, (uint32_t)k.len};
    m.items = (struct blob){b.data, (uint32_t)b.len};
    const struct lab_frame frames[] = {
        {FRAME_HELLO, 0, &hello},      {FRAME_KERNEL_DEF, second, &def},
        {FRAME_ROW_DEF, second, &of},  {FRAME_EXECUTED, 2 * second, &m},
        {FRAME_LOG, 9 * second, &log},
    };
    struct session *s =
        lab_after_cut(frames, sizeof frames / sizeof *frames, 5 * second, 20 * second);
    assert_non_null(session_executed(s, 0));
    assert_int_equal(session_executed(s, 0)->all.inst, 40);
    lab_end(s);
    buf_free(&k);
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_back),
        cmocka_unit_test(sums_are_of_the_items),
        cmocka_unit_test(figures_and_words),
        cmocka_unit_test(the_sum_is_held_against_the_range),
        cmocka_unit_test(rows_of_the_same_code_share),
        cmocka_unit_test(damaged_frames_leave_what_was_there),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(a_cut_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
