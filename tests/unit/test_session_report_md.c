/* The Markdown report: the summary first, contents whose links lead somewhere, no key named, and no
 * census of a kernel that never ran. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/record.h"
#include "session/report.h"
#include "session/report_contents.h"
#include "tests/lib/session_lab.h"

static const char *const fixtures[] = {"h200", "h200_walk", "executed", "synthetic",
                                       "lab/r29_2blk"};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

static struct session *fold(const char *name)
{
    struct session *s = calloc(1, sizeof *s);
    struct reader *r;
    struct frame f;
    char path[80];

    snprintf(path, sizeof path, "tests/fixtures/%s.sasstop", name);
    assert_int_equal(session_init(s), OK);
    assert_int_equal(reader_open(path, &r), OK);
    while (reader_next(r, &f) == OK) assert_int_equal(session_apply(s, &f), OK);
    reader_close(r);
    return s;
}

static char *report_of(const struct session *s)
{
    struct buf b = {0};
    assert_int_equal(report_find("md")->write(s, &b), OK);
    buf_u8(&b, 0);
    assert_false(b.failed);
    return (char *)b.data;
}

/* The anchor of a heading line, as GitHub makes it. */
static void anchor(const char *line, char *out)
{
    while (*line == '#') line++;
    for (line++; *line && *line != '\n'; line++) {
        if (!strncmp(line, "&lt;", 4))
            line += 3;
        else if (*line == ' ')
            *out++ = '-';
        else if (isalnum((unsigned char)*line) || *line == '_' || *line == '-')
            *out++ = (char)tolower((unsigned char)*line);
    }
    *out = 0;
}

/* How many headings of the report have this anchor ("-N" of later ones included). */
static unsigned headings(const char *report, const char *wanted)
{
    unsigned n = 0;
    for (const char *p = report; p; p = strchr(p, '\n')) {
        if (*p == '\n') p++;
        if (*p != '#') continue;
        char got[400];
        anchor(p, got);
        n += !strcmp(got, wanted);
    }
    return n;
}

static void every_link_leads_to_a_heading(void **state)
{
    (void)state;
    for (int i = 0; i < FIXTURES; i++) {
        struct session *s = fold(fixtures[i]);
        char *text = report_of(s), wanted[400];
        unsigned links = 0, details = 0;
        const char *contents = strstr(text, "\n## Contents\n");
        assert_non_null(contents);
        for (const char *p = contents; (p = strstr(p, "](#")) != NULL; links++) {
            p += 3;
            snprintf(wanted, sizeof wanted, "%.*s", (int)strcspn(p, ")"), p);
            unsigned later = 0;
            char *dash = strrchr(wanted, '-');
            if (!headings(text, wanted) && dash) {
                later = (unsigned)strtoul(dash + 1, NULL, 10);
                *dash = 0;
            }
            if (headings(text, wanted) <= later) fail_msg("no heading %s", wanted);
        }
        for (const char *p = contents + 1; (p = strstr(p, "\n##")) != NULL; p += 3) details++;
        assert_int_equal(links, details);
        assert_true(links > 3);
        free(text);
        lab_end(s);
    }
}

static void what_won_stands_first(void **state)
{
    (void)state;
    struct session *s = fold("h200_walk");
    char *text = report_of(s);
    const char *summary = strstr(text, "\n## Summary\n"),
               *contents = strstr(text, "\n## Contents\n");
    assert_non_null(summary);
    assert_true(contents > summary && contents - summary < 6000);
    const char *best = strstr(summary, "| hopper_n256 KD 8 |"),
               *limit = strstr(summary, "pipe bound");
    assert_true(best && best < contents && limit && limit < contents);
    free(text);
    lab_end(s);
}

static void no_key_is_named(void **state)
{
    static const char *const words[] = {"(c ", "c measures", "x counts", "E counts", "press "};
    (void)state;
    for (int i = 0; i < FIXTURES; i++) {
        struct session *s = fold(fixtures[i]);
        char *text = report_of(s);
        for (unsigned k = 0; k < sizeof words / sizeof *words; k++)
            if (strstr(text, words[k])) fail_msg("%s: the report says '%s'", fixtures[i], words[k]);
        free(text);
        lab_end(s);
    }
}

static void lab_census(struct session *s, uint32_t kernel)
{
    struct buf b = {0};
    pack_census_item(&b, "FFMA", "float", 10, 5);
    struct msg_census m = {.kernel = kernel, .total = 10, .items = {b.data, (uint32_t)b.len}};
    lab_apply(s, FRAME_CENSUS, &m);
    buf_free(&b);
}

/* Kernel 1 runs, kernel 2 has a row that was never launched. */
static void a_census_of_what_never_ran_is_left_out(void **state)
{
    (void)state;
    struct session *s = lab_new();
    lab_kernel(s, 2, "idle_kd8");
    lab_census(s, 1);
    lab_census(s, 2);
    char *text = report_of(s); /* nothing ran: all, marked */
    assert_non_null(strstr(text, "### idle_kd8: "));
    assert_non_null(strstr(text, "never launched in this session"));
    free(text);
    lab_row(s, 1, 1, 1);
    lab_row(s, 2, 2, 1);
    lab_span_agg(s, 1, "events", 4, 100);
    text = report_of(s);
    assert_null(strstr(text, "### idle_kd8: "));
    assert_null(strstr(text, "never launched in this session"));
    assert_non_null(strstr(text, "## machine code of each kernel"));
    free(text);
    struct buf json = {0};
    assert_int_equal(report_find("json")->write(s, &json), OK);
    buf_u8(&json, 0);
    assert_non_null(strstr((char *)json.data, "false"));
    buf_free(&json);
    lab_end(s);
}

static void equal_headings_are_told_apart(void **state)
{
    (void)state;
    static const char before[] = "# a\n\n## Run: it\n",
                      after[] = "\n## Run it\n\ntext\n### x[0]\n### x0\n";
    struct buf out = {0}, details = {0};
    buf_put(&out, before, strlen(before));
    buf_put(&details, after, strlen(after));
    assert_int_equal(report_contents(&out, &details), OK);
    buf_u8(&out, 0);
    assert_string_equal((char *)out.data + strlen(before),
                        "- [Run it](#run-it-1)\n  [x\\[0\\]](#x0) · [x0](#x0-1)\n");
    buf_free(&out);
    buf_free(&details);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_link_leads_to_a_heading),
        cmocka_unit_test(what_won_stands_first),
        cmocka_unit_test(no_key_is_named),
        cmocka_unit_test(a_census_of_what_never_ran_is_left_out),
        cmocka_unit_test(equal_headings_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
