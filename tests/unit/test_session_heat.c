/* PC samples by instruction: packed and back, damaged blobs, the fold's sums and limits, a cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/record.h"
#include "tests/lib/session_lab.h"

static const struct heat_item some[] = {{0, 3, 1, 2, "wait"},
                                        {7, 1000000, 400000, 900000, "long_scoreboard"},
                                        {HEAT_INSNS_MAX - 1, UINT64_MAX, 0, 0, ""}};
enum { SOME = sizeof some / sizeof some[0] };

static struct msg_pc_heat heat_of(uint32_t generation, uint64_t samples, const struct buf *b)
{
    return (struct msg_pc_heat){.kernel = 1,
                                .generation = generation,
                                .source = "pc",
                                .samples = samples,
                                .items = {b->data, (uint32_t)b->len}};
}

static void items_come_back(void **state)
{
    (void)state;
    struct buf b = {0};
    struct heat_item it;
    for (unsigned i = 0; i < SOME; i++) pack_heat(&b, &some[i]);
    struct rd r = rd_make(b.data, b.len);
    for (unsigned i = 0; i < SOME; i++) {
        assert_true(unpack_heat(&r, &it));
        assert_int_equal(it.index, some[i].index);
        assert_true(it.samples == some[i].samples && it.not_issued == some[i].not_issued);
        assert_true(it.top == some[i].top);
        assert_string_equal(it.reason, some[i].reason);
    }
    assert_false(unpack_heat(&r, &it));
    assert_false(r.bad);
    buf_free(&b);
}

/* A blob cut between items is whole; anywhere else it is garbled, and gives the items before. */
static void truncated_blobs_are_noticed(void **state)
{
    (void)state;
    struct buf b = {0};
    size_t ends[SOME + 1] = {0};
    for (unsigned i = 0; i < SOME; i++) {
        pack_heat(&b, &some[i]);
        ends[i + 1] = b.len;
    }
    for (size_t n = 0; n <= b.len; n++) {
        uint8_t *exact = malloc(n + 1); /* so that a read past the end is seen */
        struct session *s = lab_new();
        unsigned whole = 0;
        assert_non_null(exact);
        memcpy(exact, b.data, n);
        while (whole < SOME && ends[whole + 1] <= n) whole++;
        struct msg_pc_heat m = heat_of(1, 5, &b);
        m.items = (struct blob){exact, (uint32_t)n};
        lab_apply(s, FRAME_PC_HEAT, &m);
        assert_int_equal(s->garbled_frames, n != ends[whole]);
        const struct kernel_heat *h = session_heat(s, 0, 1);
        assert_non_null(h);
        assert_int_equal(h->ninsns, whole ? some[whole - 1].index + 1 : 0);
        lab_end(s);
        free(exact);
    }
    buf_free(&b);
}

static void far_instructions_and_unknown_kernels_are_garbled(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct buf b = {0};
    struct heat_item far = {.index = HEAT_INSNS_MAX, .samples = 1};
    pack_heat(&b, &far);
    struct msg_pc_heat m = heat_of(1, 5, &b);
    lab_apply(s, FRAME_PC_HEAT, &m);
    assert_int_equal(s->garbled_frames, 1);
    assert_int_equal(session_heat(s, 0, 1)->ninsns, 0);
    m.kernel = 77;
    lab_apply(s, FRAME_PC_HEAT, &m);
    assert_int_equal(s->garbled_frames, 2);
    assert_int_equal(s->nheats, 1);
    buf_free(&b);
    lab_end(s);
}

static void windows_add_up(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct buf b = {0};
    uint64_t n;
    assert_null(session_heat(s, 0, 1)); /* unknown isn't 0 */
    pack_heat(&b, &(struct heat_item){2, 10, 4, 6, "wait"});
    pack_heat(&b, &(struct heat_item){5, 30, 0, 20, "barrier"});
    struct msg_pc_heat m = heat_of(1, 50, &b);
    lab_apply(s, FRAME_PC_HEAT, &m);
    buf_reset(&b);
    pack_heat(&b, &(struct heat_item){2, 20, 5, 15, "long_scoreboard"});
    m = heat_of(1, 20, &b);
    lab_apply(s, FRAME_PC_HEAT, &m);
    m.generation = 2;
    lab_apply(s, FRAME_PC_HEAT, &m);
    const struct kernel_heat *h = session_heat(s, 0, 1);
    assert_non_null(h);
    assert_int_equal(h->samples, 70);
    assert_int_equal(h->ninsns, 6);
    assert_int_equal(h->insns[2].samples, 30);
    assert_int_equal(h->insns[2].not_issued, 9);
    assert_int_equal(h->insns[3].samples, 0);
    assert_string_equal(heat_top(h, 2, &n), "long_scoreboard");
    assert_int_equal(n, 15);
    assert_string_equal(heat_top(h, 5, &n), "barrier");
    assert_string_equal(heat_top(h, 3, &n), "");
    assert_string_equal(heat_top(h, 100000, &n), "");
    assert_int_equal(session_heat(s, 0, 2)->samples, 20);
    assert_int_equal(s->garbled_frames + s->overflowed, 0);
    buf_free(&b);
    lab_end(s);
}

/* The widest kernels, many generations, many reasons, sums at their end. */
static void memory_is_bounded(void **state)
{
    (void)state;
    struct session *s = lab_new();
    struct buf b = {0};
    struct heat_item wide = {.index = HEAT_INSNS_MAX - 1, .samples = UINT64_MAX, .top = UINT64_MAX};
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(wide.reason, sizeof wide.reason, "reason%u", i);
        buf_reset(&b);
        pack_heat(&b, &wide);
        struct msg_pc_heat m = heat_of(1, UINT64_MAX, &b);
        lab_apply(s, FRAME_PC_HEAT, &m);
    }
    const struct kernel_heat *h = session_heat(s, 0, 1);
    assert_int_equal(h->insns[HEAT_INSNS_MAX - 1].nreasons, HEAT_REASONS);
    assert_true(h->insns[HEAT_INSNS_MAX - 1].samples == UINT64_MAX && h->samples == UINT64_MAX);
    assert_true(h->nreasons <= MAX_REASONS);
    uint64_t before = s->overflowed;
    assert_true(before > 0);
    for (uint32_t g = 2; g < MAX_HEATS + 10; g++) {
        struct msg_pc_heat m = heat_of(g, 1, &b);
        lab_apply(s, FRAME_PC_HEAT, &m);
    }
    assert_true(s->nheats > 0 && s->nheats <= MAX_HEATS);
    assert_true(s->heat_insns <= MAX_HEAT_INSNS);
    assert_int_equal(s->overflowed, before);
    /* The newest are there, the oldest made room and say so. */
    assert_non_null(session_heat(s, 0, MAX_HEATS + 9));
    assert_int_equal(session_heat(s, 0, MAX_HEATS + 9)->insns[HEAT_INSNS_MAX - 1].nreasons, 1);
    assert_null(session_heat(s, 0, 1));
    assert_true(s->heats_gone >= 1 && s->heats_gone < MAX_HEATS + 9);
    /* One that is older than all that is there finds no room. */
    while (s->nheats < MAX_HEATS) {
        struct msg_pc_heat m = heat_of(MAX_HEATS + 10 + s->nheats, 1, &(struct buf){0});
        lab_apply(s, FRAME_PC_HEAT, &m);
    }
    struct msg_pc_heat old = heat_of(1, 1, &b);
    lab_apply(s, FRAME_PC_HEAT, &old);
    assert_int_equal(s->overflowed, before + 1);
    buf_free(&b);
    lab_end(s);
}

static void a_cut_keeps_it(void **state)
{
    (void)state;
    const uint64_t second = 1000000000;
    struct buf b = {0};
    pack_heat(&b, &some[1]);
    struct msg_hello hello = {.instance = 1, .backend = "cuda"};
    struct msg_kernel_def def = {.kernel = 1, .name = "k"};
    struct msg_pc_heat m = heat_of(1, 2000000, &b);
    struct msg_log log = {.text = "later"};
    const struct lab_frame frames[] = {
        {FRAME_HELLO, 0, &hello},
        {FRAME_KERNEL_DEF, second, &def},
        {FRAME_PC_HEAT, 2 * second, &m},
        {FRAME_LOG, 9 * second, &log},
    };
    struct session *s =
        lab_after_cut(frames, sizeof frames / sizeof *frames, 5 * second, 20 * second);
    const struct kernel_heat *h = session_heat(s, 0, 1);
    assert_non_null(h);
    assert_int_equal(h->samples, 2000000);
    assert_int_equal(h->insns[7].samples, 1000000);
    lab_end(s);
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_back),
        cmocka_unit_test(truncated_blobs_are_noticed),
        cmocka_unit_test(far_instructions_and_unknown_kernels_are_garbled),
        cmocka_unit_test(windows_add_up),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(a_cut_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
