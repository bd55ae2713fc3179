/* See lab_made.h. */
#include "tests/lib/lab_made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session/lab_experiment.h"

void lab_made_put(struct session *s, enum frame_type type, uint64_t t, const void *msg)
{
    struct buf b = {0};
    struct frame f;
    size_t used;
    assert_int_equal(proto_encode(&b, type, t, msg), OK);
    assert_int_equal(proto_next(b.data, b.len, &f, &used), OK);
    assert_int_equal(session_apply(s, &f), OK);
    buf_free(&b);
}

const struct msg_experiment lab_made_def = {
    .experiment = 1,
    .a = "nb_rolled:8",
    .b = "nb:8 <b>&\"",
    .family = "q4k_gemm",
    .code_a = 0x1234567890abcdefull,
    .code_b = 2,
    .workload = "kernel",
    .shape = "4096,512,4096",
    .hypothesis = "one, \"quoted\" sentence",
    .claim = "none",
    .bar = ">= +2%",
    .metric = "kernel",
    .gain = 0.02,
    .pairs = 20,
    .seed = 7,
    .wall_ns = 1700000000000000000ull,
    .retry = "LDS.32 > 16 in hot; toolkit changes",
};

void lab_made_pair(struct session *s, const char *kind, uint32_t i, double a, double b)
{
    struct msg_pair p = {.experiment = 1,
                         .pair = i,
                         .swapped = (uint8_t)(i % 2),
                         .a_us = a,
                         .b_us = b,
                         .a_cold_us = 1.1 * a,
                         .b_cold_us = 1.1 * b,
                         .a_cycles = 1700 * a,
                         .b_cycles = 1700 * b,
                         .a_mhz = 1700,
                         .b_mhz = 1700};
    snprintf(p.kind, sizeof p.kind, "%s", kind);
    lab_made_put(s, FRAME_PAIR, i * 1000, &p);
}

/* B takes `share` of A's time; the jitter is 0.1 %. */
void lab_made(struct session *s, double share)
{
    struct msg_hello h = {.instance = 1,
                          .wall_ns = 1700000000000000000ull,
                          .session = "s1",
                          .backend = "cuda",
                          .device = "a device",
                          .sm = 90,
                          .command = "sasstop ab a b"};
    struct msg_gate g = {.experiment = 1, .gate = "parity A", .state = "ok", .text = "fine"};
    assert_int_equal(session_init(s), OK);
    lab_made_put(s, FRAME_HELLO, 0, &h);
    lab_made_put(s, FRAME_EXPERIMENT, 1, &lab_made_def);
    lab_made_put(s, FRAME_GATE, 2, &g);
    for (uint32_t i = 1; i <= 12; i++) {
        double a = 100 + 0.1 * (i * 7 % 5), b = share * (100 + 0.1 * (i * 3 % 5));
        lab_made_pair(s, "AB", 2 * i, a, b);
        lab_made_pair(s, "AA", 2 * i + 1, 100 + 0.1 * (i % 3), 100 + 0.1 * ((i + 1) % 3));
    }
}

void lab_made_figure(struct session *s, const char *name, const char *unit, double a, double b)
{
    struct msg_mechanism m = {.experiment = 1, .a = a, .b = b, .source = "census"};
    snprintf(m.name, sizeof m.name, "%s", name);
    snprintf(m.unit, sizeof m.unit, "%s", unit);
    lab_made_put(s, FRAME_MECHANISM, 90000, &m);
}

void lab_made_verdict(struct session *s)
{
    const struct lab_experiment *x = session_experiment(s, 1);
    struct lab_result r;
    struct msg_verdict v;
    assert_int_equal(lab_evaluate(x, &r), OK);
    lab_fill_verdict(x, &r, &v);
    lab_sentence(x, &r, v.sentence, sizeof v.sentence);
    lab_made_put(s, FRAME_VERDICT, 99000, &v);
}
