/* Reports and tables: one source of truth, equal live and from a recording, for any session. */
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

#include <cjson/cJSON.h>
#include <unistd.h>

#include "session/record.h"
#include "session/report.h"
#include "tests/lib/session_lab.h"
#include "tests/lib/synth_session.h"

static struct session *live; /* the made-up session, folded as from a socket */

static int fold_live(void **state)
{
    (void)state;
    struct buf b = {0};
    live = calloc(1, sizeof *live);
    if (!live || session_init(live) != OK) return -1;
    if (synth_session(&b, SYNTH_SEED) != OK || synth_fold(live, b.data, b.len) != OK) return -1;
    buf_free(&b);
    return 0;
}

static int drop_live(void **state)
{
    (void)state;
    session_free(live);
    free(live);
    return 0;
}

static char *report_text(const struct session *s, const char *ext)
{
    struct buf b = {0};
    enum status st = ext ? report_find(ext)->write(s, &b) : report_summary(s, &b);
    assert_int_equal(st, OK);
    buf_u8(&b, 0);
    assert_false(b.failed);
    return (char *)b.data;
}

static void same_reports(const struct session *a, const struct session *b)
{
    static const char *const exts[] = {"md", "json", NULL};
    for (int i = 0; i < 3; i++) {
        char *x = report_text(a, exts[i]), *y = report_text(b, exts[i]);
        assert_string_equal(x, y);
        free(x);
        free(y);
    }
}

static void live_report_equals_that_of_the_recording(void **state)
{
    (void)state;
    struct session *replayed = calloc(1, sizeof *replayed);
    struct reader *r;
    struct frame f;
    assert_int_equal(session_init(replayed), OK);
    assert_int_equal(reader_open("tests/fixtures/synthetic.sasstop", &r), OK);
    while (reader_next(r, &f) == OK) assert_int_equal(session_apply(replayed, &f), OK);
    reader_close(r);
    same_reports(live, replayed);
    session_free(replayed);
    free(replayed);
}

/* The same up to any frame, as an export in the middle names it. */
static void reports_agree_at_every_tenth_of_the_way(void **state)
{
    (void)state;
    struct buf b = {0};
    struct session *a = calloc(1, sizeof *a), *c = calloc(1, sizeof *c);
    assert_int_equal(synth_session(&b, SYNTH_SEED), OK);
    assert_int_equal(session_init(a), OK);
    for (int part = 1; part <= 10; part++) {
        size_t upto = b.len * (size_t)part / 10, at = 0, used;
        struct frame f;
        assert_int_equal(session_init(c), OK);
        /* `a` goes on from where it was, `c` starts at the beginning. */
        uint64_t done = a->frames;
        while (proto_next(b.data + at, upto - at, &f, &used) == OK) {
            assert_int_equal(session_apply(c, &f), OK);
            if (c->frames > done) assert_int_equal(session_apply(a, &f), OK);
            at += used;
        }
        same_reports(a, c);
        session_free(c);
    }
    session_free(a);
    free(a);
    free(c);
    buf_free(&b);
}

/* ---- JSON ---- */

static cJSON *json_of(const struct session *s)
{
    char *text = report_text(s, "json");
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    free(text);
    return root;
}

static void is_figure(const cJSON *o, const char *key)
{
    const cJSON *f = cJSON_GetObjectItemCaseSensitive(o, key);
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(f, "v");
    const cJSON *st = cJSON_GetObjectItemCaseSensitive(f, "state");
    if (!f || !v || !st || !cJSON_GetObjectItemCaseSensitive(f, "source"))
        fail_msg("%s is no figure", key);
    bool ok = strcmp(st->valuestring, "ok") == 0 || strcmp(st->valuestring, "stale") == 0 ||
              strcmp(st->valuestring, "estimate") == 0;
    assert_int_equal(ok, cJSON_IsNumber(v));
    if (!ok) {
        assert_true(cJSON_IsNull(v)); /* never 0 for what was not measured */
        assert_true(strlen(cJSON_GetObjectItemCaseSensitive(f, "why")->valuestring) > 3);
    }
}

static void has_all(const cJSON *o, const char *const *keys)
{
    for (; *keys; keys++)
        if (!cJSON_GetObjectItemCaseSensitive(o, *keys)) fail_msg("%s is missing", *keys);
}

static void json_has_the_keys_that_others_depend_on(void **state)
{
    (void)state;
    static const char *const top[] = {"session", "generations", "kernels", "census",
                                      "events",  "drops",       NULL};
    static const char *const session[] = {"id",    "started", "device",  "toolkit",
                                          "model", "command", "sources", NULL};
    static const char *const device[] = {"name", "sm", "sms", "driver", NULL};
    static const char *const source[] = {"name", "state", "why", NULL};
    static const char *const gen[] = {"id", "family", "variant", "kd", "parity", NULL};
    static const char *const kernel[] = {"name", "family", "variant", "kd",     "generation",
                                         "role", "shape",  "gmac",    "stalls", NULL};
    static const char *const figures[] = {"calls", "time_us",    "us_per_gmac", "sm_pct",
                                          "ipc",   "tensor_pct", "dram_pct",    "inst"};
    static const char *const shape[] = {"m", "n", "k", NULL};
    static const char *const census[] = {"kernel", "arch",        "cubin_hash", "code_hash",
                                         "total",  "opcodes",     "classes",    "regs",
                                         "smem",   "spill_bytes", NULL};
    static const char *const event[] = {"t_ns", "kind", "text", NULL};
    cJSON *root = json_of(live), *it;

    has_all(root, top);
    const cJSON *s = cJSON_GetObjectItem(root, "session");
    has_all(s, session);
    has_all(cJSON_GetObjectItem(s, "device"), device);
    cJSON_ArrayForEach(it, cJSON_GetObjectItem(s, "sources")) has_all(it, source);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "generations")), 8);
    cJSON_ArrayForEach(it, cJSON_GetObjectItem(root, "generations"))
    {
        has_all(it, gen);
        is_figure(it, "prefill_tok_s");
        is_figure(it, "decode_tok_s");
    }
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "kernels")), live->nrows);
    cJSON_ArrayForEach(it, cJSON_GetObjectItem(root, "kernels"))
    {
        has_all(it, kernel);
        has_all(cJSON_GetObjectItem(it, "shape"), shape);
        for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++) is_figure(it, figures[i]);
    }
    cJSON_ArrayForEach(it, cJSON_GetObjectItem(root, "census"))
    {
        has_all(it, census);
        assert_true(cJSON_IsString(cJSON_GetObjectItem(it, "code_hash")));
        double sum = 0, by_class = 0, total = cJSON_GetObjectItem(it, "total")->valuedouble;
        const cJSON *n;
        cJSON_ArrayForEach(n, cJSON_GetObjectItem(it, "opcodes")) sum += n->valuedouble;
        cJSON_ArrayForEach(n, cJSON_GetObjectItem(it, "classes")) by_class += n->valuedouble;
        assert_float_equal(sum, total, 0);
        assert_float_equal(by_class, total, 0);
    }
    cJSON_ArrayForEach(it, cJSON_GetObjectItem(root, "events")) has_all(it, event);
    cJSON_Delete(root);
}

/* Bytes that are no UTF-8, quotes, braces and not-a-number may stand in a stream. */
static void hostile_text_is_still_json_and_markdown(void **state)
{
    (void)state;
    struct session *s = calloc(1, sizeof *s);
    struct buf b = {0};
    lab_start(s);
    lab_kernel(s, 3, "k\xff\"{}|`<b>\xc3");
    lab_row(s, 1, 3, 1);
    lab_metric(s, 1, "inst", "range\xfe");
    lab_source(s, "range", "ok", "\xf0\x9f\x98");
    struct msg_counter c = {.row = 1,
                            .metric = 1,
                            .source = "r\x80",
                            .state = VALUE_OK,
                            .v = NAN,
                            .spread = INFINITY,
                            .n = 3};
    lab_apply(s, FRAME_COUNTER, &c);
    pack_census_item(&b, "OP\xff", "cl\xfe", 3, 1);
    pack_census_item(&b, "OP2", "cl\xfe", 4, 1);
    struct msg_census census = {.kernel = 3, .total = 7, .items = {b.data, (uint32_t)b.len}};
    lab_apply(s, FRAME_CENSUS, &census);
    buf_reset(&b);
    pack_stall(&b, "\xff\xff", 1, 1);
    struct msg_stalls st = {.kernel = 3, .generation = 1, .reasons = {b.data, (uint32_t)b.len}};
    lab_apply(s, FRAME_STALLS, &st);
    cJSON *root = json_of(s);
    char *json = cJSON_Print(root), *md = report_text(s, "md");
    for (char *p = json; *p; p++) assert_true((signed char)*p > 0);
    for (char *p = md; *p; p++) assert_true((signed char)*p > 0);
    assert_null(strstr(md, "<b>"));
    cJSON_free(json);
    free(md);
    cJSON_Delete(root);
    buf_free(&b);
    session_free(s);
    free(s);
}

static void empty_session_reports_in_words(void **state)
{
    (void)state;
    struct session *s = calloc(1, sizeof *s);
    assert_int_equal(session_init(s), OK);
    char *md = report_text(s, "md"), *sum = report_text(s, NULL);
    assert_non_null(strstr(md, "no generation has begun yet"));
    assert_non_null(strstr(sum, "nothing was measured"));
    cJSON_Delete(json_of(s));
    free(md);
    free(sum);
    session_free(s);
    free(s);
}

/* ---- the summary ---- */

static void summary_fits_eighty_columns(void **state)
{
    (void)state;
    char *text = report_text(live, NULL);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int n = 0;
        for (char *p = line; *p; p++) n += ((unsigned char)*p & 0xc0) != 0x80;
        if (n > 80) fail_msg("%d columns: %s", n, line);
    }
    free(text);
}

static void summary_says_the_whole_reason(void **state)
{
    (void)state;
    struct session *s = calloc(1, sizeof *s);
    assert_non_null(s);
    lab_start(s);
    lab_source(s, "pc", "unavailable",
               "the driver keeps counters for administrators; set the module option that frees "
               "them, or run as root, or use /a/path/that/is/longer/than/what/is/left/of/the/line");
    char *text = report_text(s, NULL);
    static const char wanted[] =
        "  pc        unavailable the driver keeps counters for administrators; set the\n"
        "                        module option that frees them, or run as root, or use\n"
        "                        /a/path/that/is/longer/than/what/is/left/of/the/line\n";
    assert_non_null(strstr(text, wanted));
    free(text);
    session_free(s);
    free(s);
}

/* ---- saving ---- */

static void report_is_saved_once(void **state)
{
    (void)state;
    char folder[] = "/tmp/sasstop-report-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/r.md", folder);
    assert_int_equal(report_save(live, "md", path), OK);
    assert_int_equal(report_save(live, "md", path), ERR_IO);
    assert_non_null(strstr(err_msg(), "left alone"));
    assert_int_equal(report_save(live, "pdf", path), ERR_USAGE);
    FILE *f = fopen(path, "rb");
    char *wanted = report_text(live, "md");
    for (char *p = wanted; *p; p++) assert_int_equal(fgetc(f), (unsigned char)*p);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    free(wanted);
    unlink(path);
    rmdir(folder);
}

/* ---- goldens ---- */

static void golden(const char *path, const char *ext)
{
    char *text = report_text(live, ext);
    const char *accept = getenv("ACCEPT");
    if (accept && strcmp(accept, "1") == 0) {
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        fputs(text, out);
        fclose(out);
    }
    struct buf there = {0};
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing: run this test with ACCEPT=1", path);
    for (int c; (c = fgetc(f)) != EOF;) buf_u8(&there, (uint8_t)c);
    fclose(f);
    buf_u8(&there, 0);
    if (strcmp((char *)there.data, text) != 0)
        fail_msg("%s differs: look, then run with ACCEPT=1", path);
    buf_free(&there);
    free(text);
}

static void reports_are_as_reviewed(void **state)
{
    (void)state;
    golden("tests/fixtures/synthetic.md", "md");
    golden("tests/fixtures/synthetic.txt", NULL);
}

/* ---- tables ---- */

static void every_table_builds_for_every_focus(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ntables; i++) {
        struct table t = {0};
        assert_ptr_equal(table_find(tables[i]->id), tables[i]);
        for (uint32_t focus = 0; focus < 20; focus++) {
            uint32_t id = focus == 19 ? TABLE_NONE : focus == 18 ? UINT32_MAX - 1 : focus * 7;
            struct table_query q = {
                .kernel = id, .row = focus % 2 ? id : TABLE_NONE, .other = (focus * 5) % 17};
            assert_int_equal(table_build(&t, live, tables[i], &q), OK);
            for (uint32_t r = 0; r < t.nrows; r++)
                for (uint32_t c = 0; c < tables[i]->ncolumns; c++) {
                    struct cell cell;
                    char text[CELL_TEXT_MAX];
                    table_cell(&t, r, c, &cell);
                    for (int width = 1; width < 30; width += 7) {
                        cell_format(&tables[i]->columns[c], &cell, width, text, sizeof text);
                        int n = 0;
                        for (char *p = text; *p; p++) n += ((unsigned char)*p & 0xc0) != 0x80;
                        assert_true(n <= width);
                    }
                    if (!cell.is_text && cell.value.state != VALUE_OK)
                        assert_non_null(cell.value.why);
                }
        }
        table_free(&t);
    }
    assert_null(table_find("nothing"));
}

static void column_ids_and_names_are_whole(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ntables; i++)
        for (uint32_t c = 0; c < tables[i]->ncolumns; c++) {
            const struct column *col = &tables[i]->columns[c];
            assert_true(col->id[0] && col->title[0] && col->get && col->width && col->priority);
            for (uint32_t k = 0; k < c; k++)
                assert_string_not_equal(col->id, tables[i]->columns[k].id);
        }
}

static double number_at(const struct table *t, uint32_t row, const char *id)
{
    struct cell c;
    for (uint32_t k = 0; k < t->def->ncolumns; k++)
        if (strcmp(t->def->columns[k].id, id) == 0) {
            table_cell(t, row, k, &c);
            return value_known(&c.value) ? c.value.v : (double)NAN;
        }
    fail_msg("no column %s", id);
    return 0;
}

static void sorting_puts_what_is_missing_last(void **state)
{
    (void)state;
    struct table t = {0};
    for (int ascending = 0; ascending < 2; ascending++) {
        struct table_query q = {TABLE_NONE, TABLE_NONE, TABLE_NONE, "sm_pct", ascending, NULL};
        assert_int_equal(table_build(&t, live, table_find("rows"), &q), OK);
        bool missing = false;
        double last = ascending ? -1 : 1e9;
        for (uint32_t i = 0; i < t.nrows; i++) {
            double v = number_at(&t, i, "sm_pct");
            if (isnan(v)) {
                missing = true;
                continue;
            }
            assert_false(missing);
            assert_true(ascending ? v >= last : v <= last);
            last = v;
        }
        assert_true(missing);
    }
    table_free(&t);
}

static void filter_looks_into_text_cells(void **state)
{
    (void)state;
    struct table t = {0};
    struct table_query q = {TABLE_NONE, TABLE_NONE, TABLE_NONE, NULL, false, "FFN_"};
    assert_int_equal(table_build(&t, live, table_find("kernels"), &q), OK);
    assert_int_equal(t.nrows, 4);
    q.filter = "no such thing";
    assert_int_equal(table_build(&t, live, table_find("kernels"), &q), OK);
    assert_int_equal(t.nrows, 0);
    q.filter = "";
    assert_int_equal(table_build(&t, live, table_find("kernels"), &q), OK);
    assert_int_equal(t.nrows, 12);
    table_free(&t);
}

static void census_beside_another_adds_up(void **state)
{
    (void)state;
    struct table t = {0};
    struct table_query q = {.kernel = 5, .row = TABLE_NONE, .other = 0}; /* nb_kd8, narrow_kd4 */
    double own = 0, other = 0, delta = 0;
    assert_int_equal(table_build(&t, live, table_find("census"), &q), OK);
    for (uint32_t i = 0; i < t.nrows; i++) {
        own += number_at(&t, i, "count");
        other += number_at(&t, i, "other");
        delta += number_at(&t, i, "delta");
    }
    assert_float_equal(own, live->kernels[5].census.total, 0);
    assert_float_equal(other, live->kernels[0].census.total, 0);
    assert_float_equal(delta, own - other, 0);
    table_free(&t);
}

static void detail_shows_live_and_exact_side_by_side(void **state)
{
    (void)state;
    struct table t = {0};
    const struct generation *g = session_current(live);
    uint32_t row = 0;
    while (live->rows[row].def.generation != g->def.generation) row++;
    struct table_query q = {.kernel = TABLE_NONE, .row = row, .other = TABLE_NONE};
    assert_int_equal(table_build(&t, live, table_find("detail"), &q), OK);
    bool saw_live = false, saw_exact = false;
    for (uint32_t i = 0; i < t.nrows; i++) {
        struct cell c;
        table_cell(&t, i, 0, &c);
        if (strcmp(c.text, "SM%") == 0) {
            saw_live = true;
            assert_float_equal(number_at(&t, i, "steady"), number_at(&t, i, "value"), 0);
            assert_true(number_at(&t, i, "whole") > 50);
        }
        if (strcmp(c.text, "inst") == 0) {
            saw_exact = true;
            assert_float_equal(number_at(&t, i, "exact"), number_at(&t, i, "value"), 0);
        }
    }
    assert_true(saw_live && saw_exact);
    table_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_report_equals_that_of_the_recording),
        cmocka_unit_test(reports_agree_at_every_tenth_of_the_way),
        cmocka_unit_test(json_has_the_keys_that_others_depend_on),
        cmocka_unit_test(hostile_text_is_still_json_and_markdown),
        cmocka_unit_test(empty_session_reports_in_words),
        cmocka_unit_test(summary_fits_eighty_columns),
        cmocka_unit_test(summary_says_the_whole_reason),
        cmocka_unit_test(report_is_saved_once),
        cmocka_unit_test(reports_are_as_reviewed),
        cmocka_unit_test(every_table_builds_for_every_focus),
        cmocka_unit_test(column_ids_and_names_are_whole),
        cmocka_unit_test(sorting_puts_what_is_missing_last),
        cmocka_unit_test(filter_looks_into_text_cells),
        cmocka_unit_test(census_beside_another_adds_up),
        cmocka_unit_test(detail_shows_live_and_exact_side_by_side),
    };
    return cmocka_run_group_tests(tests, fold_live, drop_live);
}
