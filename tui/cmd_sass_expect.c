/*
 * Job: `sasstop sass --expect F`: hold a file's rules against every kernel that they are about.
 *
 * Invariants: one line a rule; the last line has the counts; a rule whose kernel is missing on an
 * arch that was read is off, so that a renamed kernel can't pass unseen; where the user asked for
 * some kernels only, rules about others are skipped.
 */
#include "sass_view/expect.h"
#include "tui/cmd_sass_print.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARCHS_MAX = 64, STATES = EXPECT_REOPENED + 1 };

struct sass_expect {
    struct expect_set set;
    const char *path;
    bool *met; /* by section */
    char archs[ARCHS_MAX][16];
    unsigned narchs;
    unsigned n[STATES];
};

static enum status expect_begin(struct sass_job *j)
{
    struct sass_expect *x = calloc(1, sizeof *x);
    if (!x) return err_set(ERR_NOMEM, "out of memory");
    j->expect = x;
    x->path = j->expect_path;
    enum status st = expect_load(&x->set, x->path);
    if (st) return st;
    x->met = calloc(x->set.nsections, sizeof *x->met);
    return x->met ? OK : err_set(ERR_NOMEM, "out of memory");
}

static enum status expect_cubin(struct sass_job *j)
{
    struct sass_expect *x = j->expect;
    for (unsigned i = 0; i < x->narchs; i++)
        if (!strcmp(x->archs[i], j->cubin->arch)) return OK;
    if (x->narchs < ARCHS_MAX)
        snprintf(x->archs[x->narchs++], sizeof x->archs[0], "%s", j->cubin->arch);
    return OK;
}

static void print_result(struct sass_expect *x, const struct expect_result *r)
{
    x->n[r->state]++;
    printf("  %-8s  %s\n", expect_state_name(r->state), sass_safe(r->text));
}

static enum status expect_kernel(struct sass_job *j, const struct cubin_kernel *k)
{
    struct sass_expect *x = j->expect;
    struct census s;
    enum status st = census_make(&s, j->cubin, k);
    if (st) return st;
    for (unsigned i = 0; i < x->set.nsections; i++) {
        if (!expect_applies(&x->set, i, &s)) continue;
        x->met[i] = true;
        printf("%s  %s  code %016" PRIx64 "%s\n", sass_name(k->name), s.arch, s.code_hash,
               expect_code_changed(&x->set, i, &s) ? ", not the code that the rules name" : "");
        for (unsigned r = 0; r < x->set.nrules; r++) {
            struct expect_result res;
            if (x->set.rules[r].section != i) continue;
            expect_hold(&x->set, &x->set.rules[r], &s, j->cubin->toolkit, &res);
            print_result(x, &res);
        }
    }
    census_free(&s);
    return OK;
}

/* Whether one of the section's archs was read; a section without archs is about all. */
static bool was_read(const struct sass_expect *x, const struct expect_section *s)
{
    for (unsigned i = 0; i < s->narchs; i++)
        for (unsigned k = 0; k < x->narchs; k++)
            if (!strcmp(s->archs[i], x->archs[k])) return true;
    return s->narchs == 0;
}

static void print_missing(struct sass_expect *x, bool narrowed)
{
    for (unsigned i = 0; i < x->set.nsections; i++) {
        const struct expect_section *s = &x->set.sections[i];
        bool off = !narrowed && was_read(x, s);
        struct expect_result r = {.state = off ? EXPECT_OFF : EXPECT_SKIPPED};
        if (x->met[i]) continue;
        printf("%s\n", sass_safe(s->kernel));
        snprintf(r.text, sizeof r.text, "line %u: %s", s->line,
                 off        ? "no kernel of that name in these files"
                 : narrowed ? "not among the kernels asked for"
                            : "none of its archs in these files");
        print_result(x, &r);
    }
}

static enum status expect_end(struct sass_job *j)
{
    struct sass_expect *x = j->expect;
    print_missing(x, j->narrowed);
    printf(
        "%s: %u held, %u off, %u unknown, %u skipped; retry conditions: %u reopened, %u closed\n",
        sass_safe(x->path), x->n[EXPECT_HELD], x->n[EXPECT_OFF], x->n[EXPECT_UNKNOWN],
        x->n[EXPECT_SKIPPED], x->n[EXPECT_REOPENED], x->n[EXPECT_CLOSED]);
    unsigned bad = x->n[EXPECT_OFF] + x->n[EXPECT_UNKNOWN];
    return bad ? err_set(ERR_FAILED, "%s: %u rules don't hold", x->path, bad) : OK;
}

void sass_expect_free(struct sass_expect *x)
{
    if (!x) return;
    expect_free(&x->set);
    free(x->met);
    free(x);
}

const struct sass_format sass_expect_format = {
    .name = "expect",
    .begin = expect_begin,
    .cubin = expect_cubin,
    .kernel = expect_kernel,
    .end = expect_end,
};
