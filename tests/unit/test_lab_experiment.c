/*
 * Experiments: the words of bars, the fold, the verdict as a function of frames, the sentence, the
 * ledger, and the reports made of them.
 */
#include "session/lab_ledger.h"
#include "session/report.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void put(struct session *s, enum frame_type type, uint64_t t, const void *msg)
{
    struct buf b = {0};
    struct frame f;
    size_t used;
    assert_int_equal(proto_encode(&b, type, t, msg), OK);
    assert_int_equal(proto_next(b.data, b.len, &f, &used), OK);
    assert_int_equal(session_apply(s, &f), OK);
    buf_free(&b);
}

static const struct msg_experiment def = {
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

static void put_pair(struct session *s, const char *kind, uint32_t i, double a, double b)
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
    put(s, FRAME_PAIR, i * 1000, &p);
}

/* B takes `share` of A's time; the jitter is 0.1 %. */
static void measured(struct session *s, double share)
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
    put(s, FRAME_HELLO, 0, &h);
    put(s, FRAME_EXPERIMENT, 1, &def);
    put(s, FRAME_GATE, 2, &g);
    for (uint32_t i = 1; i <= 12; i++) {
        double a = 100 + 0.1 * (i * 7 % 5), b = share * (100 + 0.1 * (i * 3 % 5));
        put_pair(s, "AB", 2 * i, a, b);
        put_pair(s, "AA", 2 * i + 1, 100 + 0.1 * (i % 3), 100 + 0.1 * ((i + 1) % 3));
    }
}

static void put_figure(struct session *s, const char *name, const char *unit, double a, double b)
{
    struct msg_mechanism m = {.experiment = 1, .a = a, .b = b, .source = "census"};
    snprintf(m.name, sizeof m.name, "%s", name);
    snprintf(m.unit, sizeof m.unit, "%s", unit);
    put(s, FRAME_MECHANISM, 90000, &m);
}

static void closed(struct session *s)
{
    const struct lab_experiment *x = session_experiment(s, 1);
    struct lab_result r;
    struct msg_verdict v;
    assert_int_equal(lab_evaluate(x, &r), OK);
    lab_fill_verdict(x, &r, &v);
    lab_sentence(x, &r, v.sentence, sizeof v.sentence);
    put(s, FRAME_VERDICT, 99000, &v);
}

static void bars_are_understood(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *metric;
        double gain;
    } good[] = {{">= +4% prefill", "prefill", 0.04},    {"1.5%", "kernel", 0.015},
                {">= -0.5 % decode", "decode", -0.005}, {"<= -20% time", "kernel", 0.25},
                {"  >=2%  ", "kernel", 0.02},           {"+4%", "kernel", 0.04}};
    static const char *const bad[] = {
        "",          "4",    "4% speed",      ">= x%",     "<= -3%", "4% a b",
        ">= 1e999%", "nan%", "<= -100% time", "4 percent", "-60%",   "4%%"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char metric[16] = "kernel";
        double gain = 0;
        assert_int_equal(lab_parse_bar(good[i].text, metric, &gain), OK);
        assert_string_equal(metric, good[i].metric);
        assert_true(fabs(gain - good[i].gain) < 1e-12);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char metric[16] = "kernel";
        double gain = 0;
        if (lab_parse_bar(bad[i], metric, &gain) != ERR_USAGE) fail_msg("'%s' was taken", bad[i]);
        assert_string_equal(metric, "kernel");
    }
}

static void verdict_follows_from_frames(void **unused)
{
    (void)unused;
    struct session s;
    measured(&s, 0.96);
    struct lab_experiment *x = session_experiment(&s, 1);
    struct lab_result r;
    assert_int_equal(x->npairs, 24);
    assert_int_equal(lab_evaluate(x, &r), OK);
    assert_int_equal(r.verdict, LAB_LAND);
    assert_int_equal(r.ab.n, 12);
    assert_true(fabs(lab_gain(r.ab.est) - 1 / 0.96 + 1) < 0.002);
    closed(&s);
    assert_true(x->closed);
    assert_string_equal(x->verdict.verdict, "LAND");
    /* What comes after the verdict, twice, or of another experiment changes nothing. */
    uint64_t garbled = s.garbled_frames;
    put_pair(&s, "AB", 99, 1, 2);
    put(&s, FRAME_EXPERIMENT, 99, &def);
    struct msg_gate other = {.experiment = 9};
    put(&s, FRAME_GATE, 99, &other);
    assert_int_equal(s.garbled_frames, garbled + 3);
    assert_int_equal(x->npairs, 24);
    session_free(&s);
    measured(&s, 0.99);
    assert_int_equal(lab_evaluate(session_experiment(&s, 1), &r), OK);
    assert_int_equal(r.verdict, LAB_REVERT);
    session_free(&s);
}

static void bad_pairs_are_left_out(void **unused)
{
    (void)unused;
    struct session s;
    measured(&s, 0.96);
    struct msg_pair p = {.experiment = 1, .kind = "AB", .a_us = 1, .b_us = 9, .dropped = "clocks"};
    struct lab_result r;
    put(&s, FRAME_PAIR, 1, &p);
    p.dropped[0] = '\0';
    p.a_us = (double)NAN;
    put(&s, FRAME_PAIR, 1, &p);
    p.a_us = -1;
    put(&s, FRAME_PAIR, 1, &p);
    struct lab_experiment *x = session_experiment(&s, 1);
    assert_int_equal(lab_dropped(x), 1);
    assert_int_equal(lab_evaluate(x, &r), OK);
    assert_int_equal(r.ab.n, 12);
    /* A failed gate stands against any verdict; a forced one does not. */
    struct msg_gate g = {.experiment = 1, .gate = "parity B", .state = "forced"};
    put(&s, FRAME_GATE, 1, &g);
    assert_null(lab_failed_gate(x));
    snprintf(g.state, sizeof g.state, "failed");
    put(&s, FRAME_GATE, 1, &g);
    assert_int_equal(lab_evaluate(x, &r), OK);
    assert_int_equal(r.verdict, LAB_INVALID);
    session_free(&s);
}

static void pairs_are_bounded(void **unused)
{
    (void)unused;
    struct session s;
    measured(&s, 0.96);
    for (uint32_t i = 0; i < LAB_ALL_PAIRS + 50; i++) put_pair(&s, "AB", i, 100, 96);
    assert_int_equal(session_experiment(&s, 1)->npairs, LAB_ALL_PAIRS);
    assert_int_equal(s.overflowed, 74);
    struct lab_result r;
    assert_int_equal(lab_evaluate(session_experiment(&s, 1), &r), OK);
    assert_int_equal(r.ab.n, LAB_PAIRS_MAX);
    session_free(&s);
}

static void sentence_says_what_moved(void **unused)
{
    (void)unused;
    struct session s;
    struct lab_result r;
    char text[400];
    measured(&s, 0.96);
    struct lab_experiment *x = session_experiment(&s, 1);
    assert_int_equal(lab_evaluate(x, &r), OK);
    lab_sentence(x, &r, text, sizeof text);
    assert_string_equal(text, ""); /* no figure, no words */
    put_figure(&s, "time a launch", "us", 100, 96);
    lab_sentence(x, &r, text, sizeof text);
    assert_non_null(strstr(text, "No figure beside the time was taken"));
    put_figure(&s, "registers", "", 128, 128);
    lab_sentence(x, &r, text, sizeof text);
    assert_non_null(strstr(text, "No figure beside the time differs"));
    put_figure(&s, "executed instructions", "", 1000, 942);
    put_figure(&s, "SM% of the launch", "%", 31.5, 29.75);
    put_figure(&s, "instructions", "", 100, 900);
    put_figure(&s, "spilled", "B", (double)NAN, 4);
    lab_sentence(x, &r, text, sizeof text);
    assert_non_null(strstr(text, "executed instructions 1000 -> 942 (-5.8 %)"));
    assert_non_null(strstr(text, "SM% of the launch 31.5 -> 29.75 %"));
    assert_null(strstr(text, "100 -> 900"));
    assert_null(strstr(text, "time a launch"));
    assert_null(strstr(text, "spilled"));
    /* Six at most: the work, then what moved farthest; cycles are the time again. */
    put_figure(&s, "elapsed cycles, counted", "cycles", 1000, 500);
    put_figure(&s, "bank conflicts", "", 1000, 500);
    put_figure(&s, "stall wait", "/issue", 0.02, 0.05);
    put_figure(&s, "stall barrier", "/issue", 0.8, 0.6);
    put_figure(&s, "L2 hits", "%", 90, 80);
    put_figure(&s, "DRAM read", "B", 100, 110);
    put_figure(&s, "registers", "", 128, 96);
    lab_sentence(x, &r, text, sizeof text);
    assert_non_null(strstr(text, "executed instructions 1000 -> 942"));
    assert_non_null(strstr(text, "bank conflicts 1000 -> 500"));
    assert_non_null(strstr(text, "stall barrier 0.8 -> 0.6"));
    assert_null(strstr(text, "elapsed cycles"));
    assert_null(strstr(text, "stall wait"));
    assert_null(strstr(text, "SM% of the launch")); /* the least of seven */
    session_free(&s);
}

static void ledger_keeps_the_last_state(void **unused)
{
    (void)unused;
    char path[] = "/tmp/test_lab_ledger_XXXXXX";
    struct session s;
    struct ledger l;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    measured(&s, 0.96);
    struct lab_experiment *x = session_experiment(&s, 1);
    assert_int_equal(ledger_append(path, "a.sasstop", &s.hello, x), OK);
    assert_int_equal(ledger_read(path, &l), OK);
    assert_int_equal(l.n, 1);
    assert_string_equal(l.entries[0].state, "open");
    assert_string_equal(l.entries[0].verdict.verdict, "");
    ledger_free(&l);
    closed(&s);
    assert_int_equal(ledger_append(path, "a.sasstop", &s.hello, x), OK);
    assert_int_equal(write(fd, "", 0), 0);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs("{\"session\":\"torn", f);
    fclose(f);
    assert_int_equal(ledger_read(path, &l), OK);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.damaged, 1);
    const struct ledger_entry *e = &l.entries[0];
    assert_string_equal(e->verdict.verdict, "LAND");
    assert_true(fabs(e->verdict.gain - x->verdict.gain) < 1e-12);
    assert_string_equal(e->def.b, def.b);
    assert_string_equal(e->def.hypothesis, def.hypothesis);
    assert_true(e->def.code_a == def.code_a && e->def.seed == 7 && e->def.gain == 0.02);
    assert_string_equal(e->gates, "parity A ok");
    ledger_free(&l);
    close(fd);
    unlink(path);
    assert_int_equal(ledger_read(path, &l), OK); /* none yet: empty */
    assert_int_equal(l.n, 0);
    session_free(&s);
}

static void retry_conditions_are_split(void **unused)
{
    (void)unused;
    char text[64];
    assert_true(ledger_retry(def.retry, 0, text, sizeof text));
    assert_string_equal(text, "LDS.32 > 16 in hot");
    assert_true(ledger_retry(def.retry, 1, text, sizeof text));
    assert_string_equal(text, "toolkit changes");
    assert_false(ledger_retry(def.retry, 2, text, sizeof text));
    assert_false(ledger_retry("", 0, text, sizeof text));
    assert_false(ledger_retry(" ; ", 0, text, sizeof text));
}

static void json_holds_every_sample(void **unused)
{
    (void)unused;
    struct session s;
    measured(&s, 0.96);
    put_figure(&s, "registers", "", 128, (double)NAN);
    closed(&s);
    char *text = ledger_json("x.sasstop", &s.hello, session_experiment(&s, 1), true, true);
    assert_non_null(text);
    cJSON *o = cJSON_Parse(text);
    assert_non_null(o);
    cJSON *samples = cJSON_GetObjectItem(o, "samples");
    assert_int_equal(cJSON_GetArraySize(samples), 24);
    assert_true(cJSON_IsNumber(cJSON_GetObjectItem(cJSON_GetArrayItem(samples, 0), "a_us")));
    assert_true(cJSON_IsNull(
        cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "mechanism"), 0), "b")));
    cJSON_Delete(o);
    cJSON_free(text);
    session_free(&s);
}

/* Every tag that is opened is closed, in order; void elements and the doctype aside. */
static void assert_tags_match(const char *p)
{
    char stack[64][16];
    int n = 0;
    while ((p = strchr(p, '<'))) {
        char name[16] = "";
        bool end = p[1] == '/';
        sscanf(p + 1 + end, "%15[a-z0-9]", name);
        const char *close = strchr(p, '>');
        assert_non_null(close);
        bool empty = close[-1] == '/' || !name[0] || !strcmp(name, "meta");
        if (end) {
            assert_true(n > 0);
            assert_string_equal(stack[--n], name);
        } else if (!empty) {
            assert_true(n < 64);
            snprintf(stack[n++], sizeof stack[0], "%s", name);
        }
        p = close;
    }
    assert_int_equal(n, 0);
}

static void html_is_whole_and_escaped(void **unused)
{
    (void)unused;
    struct session s;
    struct buf b = {0};
    measured(&s, 0.96);
    put_figure(&s, "executed instructions", "", 1000, 942);
    closed(&s);
    assert_int_equal(report_find("html")->write(&s, &b), OK);
    buf_u8(&b, 0);
    const char *t = (const char *)b.data;
    assert_tags_match(t);
    assert_non_null(strstr(t, "nb:8 &lt;b&gt;&amp;&quot;"));
    assert_null(strstr(t, "nb:8 <b>"));
    assert_null(strstr(t, "<script"));
    assert_null(strstr(t, "http"));
    assert_null(strstr(t, "nan"));
    assert_non_null(strstr(t, "prefers-color-scheme:dark"));
    assert_non_null(strstr(t, "card LAND"));
    unsigned svgs = 0, dots = 0;
    for (const char *p = t; (p = strstr(p, "<svg")); p++) svgs++;
    for (const char *p = t; (p = strstr(p, "<circle")); p++) dots++;
    assert_int_equal(svgs, 3);
    assert_int_equal(dots, 24);
    buf_free(&b);
    session_free(&s);
}

static void csv_has_one_shape(void **unused)
{
    (void)unused;
    struct session s;
    struct buf b = {0};
    measured(&s, 0.96);
    closed(&s);
    assert_int_equal(report_find("csv")->write(&s, &b), OK);
    unsigned lines = 0, fields = 1;
    bool quoted = false;
    for (size_t i = 0; i < b.len; i++) {
        char c = (char)b.data[i];
        if (c == '"') quoted = !quoted;
        if (quoted) continue;
        fields += c == ',';
        if (c != '\n') continue;
        assert_int_equal(fields, 11);
        assert_true(i > 0 && b.data[i - 1] == '\r');
        fields = 1;
        lines++;
    }
    assert_true(lines > 24 * 10);
    buf_u8(&b, 0);
    assert_non_null(strstr((const char *)b.data, "\"nb:8 <b>&\"\"\""));
    buf_free(&b);
    session_free(&s);
}

/* The trace event format: an object with traceEvents, each with ph, pid, tid; X with ts and dur. */
static void trace_is_a_trace(void **unused)
{
    (void)unused;
    struct session s;
    struct buf b = {0};
    measured(&s, 0.96);
    closed(&s);
    s.trace = calloc(1, sizeof *s.trace);
    s.ntrace = 1;
    struct trace_span *kept = s.trace[0].spans = calloc(3, sizeof *kept);
    for (uint64_t i = 0; i < 3; i++)
        kept[i] = (struct trace_span){.t_ns = 1000 * i + 1, .dur_ns = 500};
    s.trace[0].nspans = s.trace_spans = 3;
    assert_int_equal(report_find("perfetto")->write(&s, &b), OK);
    buf_u8(&b, 0);
    cJSON *o = cJSON_Parse((const char *)b.data);
    assert_non_null(o);
    const cJSON *e, *list = cJSON_GetObjectItem(o, "traceEvents");
    unsigned spans = 0, instants = 0;
    assert_true(cJSON_IsArray(list));
    cJSON_ArrayForEach(e, list)
    {
        const char *ph = cJSON_GetStringValue(cJSON_GetObjectItem(e, "ph"));
        assert_non_null(ph);
        assert_true(strlen(ph) == 1 && strchr("XiM", *ph));
        assert_true(cJSON_IsNumber(cJSON_GetObjectItem(e, "pid")));
        assert_true(cJSON_IsNumber(cJSON_GetObjectItem(e, "tid")));
        assert_true(cJSON_IsString(cJSON_GetObjectItem(e, "name")));
        if (*ph != 'M') assert_true(cJSON_IsNumber(cJSON_GetObjectItem(e, "ts")));
        if (*ph == 'X') assert_true(cJSON_GetObjectItem(e, "dur")->valuedouble == 0.5);
        spans += *ph == 'X';
        instants += *ph == 'i';
    }
    assert_int_equal(spans, 3);
    assert_true(instants >= 3); /* experiment, gate, verdict */
    cJSON_Delete(o);
    buf_free(&b);
    session_free(&s);
}

static double asked(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *q = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    double v = sqlite3_column_type(q, 0) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, 0);
    sqlite3_finalize(q);
    return v;
}

static void database_answers(void **unused)
{
    (void)unused;
    struct session s;
    struct buf b = {0};
    sqlite3 *db;
    measured(&s, 0.96);
    put_figure(&s, "registers", "", 128, (double)NAN);
    closed(&s);
    assert_int_equal(report_find("sqlite")->write(&s, &b), OK);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_deserialize(db, "main", b.data, (sqlite3_int64)b.len,
                                         (sqlite3_int64)b.len, SQLITE_DESERIALIZE_READONLY),
                     SQLITE_OK);
    assert_true(asked(db, "SELECT count(*) FROM pairs WHERE kind = 'AB'") == 12);
    assert_true(fabs(asked(db, "SELECT avg(a_us / b_us) FROM pairs WHERE kind = 'AB'") - 1 / 0.96) <
                0.001);
    assert_true(asked(db, "SELECT gain FROM experiments WHERE verdict = 'LAND'") ==
                session_experiment(&s, 1)->verdict.gain);
    assert_true(asked(db, "SELECT a FROM mechanism WHERE name = 'registers'") == 128);
    assert_true(isnan(asked(db, "SELECT b FROM mechanism WHERE name = 'registers'")));
    assert_true(asked(db, "SELECT count(*) FROM about WHERE value = 'a device'") == 1);
    sqlite3_close(db);
    buf_free(&b);
    session_free(&s);
}

static void reports_end_without_pairs(void **unused)
{
    (void)unused;
    struct session s;
    assert_int_equal(session_init(&s), OK);
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < nreports; i++) {
            struct buf b = {0};
            assert_int_equal(reports[i]->write(&s, &b), OK);
            assert_true(b.len > 0);
            buf_free(&b);
        }
        put(&s, FRAME_EXPERIMENT, 1, &def);
    }
    session_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_are_understood),        cmocka_unit_test(verdict_follows_from_frames),
        cmocka_unit_test(bad_pairs_are_left_out),     cmocka_unit_test(pairs_are_bounded),
        cmocka_unit_test(sentence_says_what_moved),   cmocka_unit_test(ledger_keeps_the_last_state),
        cmocka_unit_test(retry_conditions_are_split), cmocka_unit_test(json_holds_every_sample),
        cmocka_unit_test(html_is_whole_and_escaped),  cmocka_unit_test(csv_has_one_shape),
        cmocka_unit_test(database_answers),           cmocka_unit_test(trace_is_a_trace),
        cmocka_unit_test(reports_end_without_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
