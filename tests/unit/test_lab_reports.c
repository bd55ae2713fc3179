/* The reports made of an experiment: JSON, HTML, CSV, trace and database. */
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

#include "tests/lib/lab_made.h"

static void json_holds_every_sample(void **unused)
{
    (void)unused;
    struct session s;
    lab_made(&s, 0.96);
    lab_made_figure(&s, "registers", "", 128, (double)NAN);
    lab_made_verdict(&s);
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
    lab_made(&s, 0.96);
    lab_made_figure(&s, "executed instructions", "", 1000, 942);
    lab_made_verdict(&s);
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
    lab_made(&s, 0.96);
    lab_made_verdict(&s);
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
    lab_made(&s, 0.96);
    lab_made_verdict(&s);
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
    lab_made(&s, 0.96);
    lab_made_figure(&s, "registers", "", 128, (double)NAN);
    lab_made_verdict(&s);
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
        lab_made_put(&s, FRAME_EXPERIMENT, 1, &lab_made_def);
    }
    session_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_holds_every_sample), cmocka_unit_test(html_is_whole_and_escaped),
        cmocka_unit_test(csv_has_one_shape),       cmocka_unit_test(database_answers),
        cmocka_unit_test(trace_is_a_trace),        cmocka_unit_test(reports_end_without_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
