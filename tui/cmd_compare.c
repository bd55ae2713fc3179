/*
 * `sasstop compare S1 S2`: two recordings side by side, when they may be compared at all: the same
 * device, model and workload. What differs otherwise (driver, toolkit, commit, code) is named.
 */
#include "tui/commands.h"

#include "session/record.h"
#include "session/table.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status fold(const char *path, struct session *s)
{
    struct reader *r;
    struct frame f;
    enum status st = session_init(s);
    if (st == OK) st = reader_open(path, &r);
    if (st != OK) return st;
    while ((st = reader_next(r, &f)) == OK)
        if ((st = session_apply(s, &f)) != OK) break;
    if (reader_damage(r)) fprintf(stderr, "sasstop: %s: %s\n", path, reader_damage(r));
    reader_close(r);
    return st == ERR_END ? OK : st;
}

static const char *or_unknown(const char *text)
{
    return text[0] ? text : "unknown";
}

/* Reasons why figures of the two must not stand side by side. Returns how many. */
static unsigned refuse(const struct session *a, const struct session *b)
{
    const struct {
        const char *what, *a, *b;
    } must[] = {{"the device", a->hello.device, b->hello.device},
                {"the backend", a->hello.backend, b->hello.backend},
                {"the model", a->model.name, b->model.name},
                {"the workload", a->model.workload, b->model.workload}};
    unsigned n = 0;
    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        if (strcmp(must[i].a, must[i].b) != 0) {
            fprintf(stderr, "sasstop compare: %s differs: %s and %s\n", must[i].what,
                    or_unknown(must[i].a), or_unknown(must[i].b));
            n++;
        }
    if (a->model.hash != b->model.hash && !n) {
        fprintf(stderr,
                "sasstop compare: the models have one name and other bytes: %016llx and "
                "%016llx\n",
                (unsigned long long)a->model.hash, (unsigned long long)b->model.hash);
        n++;
    }
    if (!a->ngenerations || !b->ngenerations) {
        fprintf(stderr, "sasstop compare: %s has no generation: nothing was measured\n",
                a->ngenerations ? "the second" : "the first");
        n++;
    }
    return n;
}

static void name_difference(const char *what, const char *a, const char *b)
{
    if (strcmp(a, b) != 0)
        printf("note: %s differs: %s and %s\n", what, or_unknown(a), or_unknown(b));
}

static void print_value(const struct value *v)
{
    char text[32];
    value_format(v, 10, 2, 1, text, sizeof text);
    printf(" %10s", text);
}

/* The ratio, when it leaves the two spreads; else that it does not. */
static void print_ratio(const struct value *a, const struct value *b)
{
    if (a->state != VALUE_OK || b->state != VALUE_OK || !(a->v > 0)) {
        printf(" %9s\n", "-");
        return;
    }
    double r = b->v / a->v, noise = 0;
    if (a->spread >= 0 && b->spread >= 0 && b->v > 0)
        noise = 0.5 * (a->spread / a->v + b->spread / b->v);
    printf(" %9.3f%s\n", r, fabs(r - 1) <= noise ? "  within the spreads" : "");
}

static void print_rate(const char *name, struct value a, struct value b)
{
    printf("%-34s", name);
    print_value(&a);
    print_value(&b);
    print_ratio(&a, &b);
}

/* A row of `s` and one of `t` that do the same work. */
static bool same_work(const struct session *s, const struct row *r, const struct session *t,
                      const struct row *q)
{
    return q->def.m == r->def.m && q->def.n == r->def.n && q->def.k == r->def.k &&
           !strcmp(q->def.role, r->def.role) && !strcmp(q->def.phase, r->def.phase) &&
           !strcmp(t->kernels[q->def.kernel].def.family, s->kernels[r->def.kernel].def.family);
}

/* The row of t's newest generation that does the work of s's row `r`: by the kernel of that name
 * (`named`), else by any. */
static const struct row *find_row(const struct session *s, const struct row *r,
                                  const struct session *t, bool named)
{
    const struct generation *g = session_current(t);
    const char *name = s->kernels[r->def.kernel].def.name;
    for (uint32_t i = 0; i < t->nrows; i++) {
        const struct row *q = &t->rows[i];
        if (q->def.generation == g->def.generation && same_work(s, r, t, q) &&
            (!named || !strcmp(t->kernels[q->def.kernel].def.name, name)))
            return q;
    }
    return NULL;
}

/* Two kernels of one role (to_bf16 and quantize_q8) are never held against each other where one of
 * them has its own on the other side. */
static const struct row *partner(const struct session *s, const struct session *t,
                                 const struct row *r)
{
    const struct row *q = find_row(s, r, t, true);
    if (q || !(q = find_row(s, r, t, false))) return q;
    return find_row(t, q, s, true) ? NULL : q;
}

static void print_rows(const struct session *a, const struct session *b)
{
    const struct generation *g = session_current(a);
    for (uint32_t i = 0; i < a->nrows; i++) {
        const struct row *r = &a->rows[i], *q;
        char name[120];
        if (r->def.generation != g->def.generation || !(q = partner(a, b, r))) continue;
        const char *x = a->kernels[r->def.kernel].def.name, *y = b->kernels[q->def.kernel].def.name;
        bool same = !strcmp(x, y);
        snprintf(name, sizeof name, "%.20s%s%.20s %.16s us", x, same ? "" : "/", same ? "" : y,
                 r->def.role);
        print_rate(name, row_us(a, r), row_us(b, q));
    }
}

static int print_both(const struct session *a, const struct session *b, char **files)
{
    const struct generation *x = session_current(a), *y = session_current(b);
    char first[64], second[64];
    name_difference("the driver", a->hello.driver, b->hello.driver);
    name_difference("the toolkit", a->hello.toolkit, b->hello.toolkit);
    name_difference("the commit", a->hello.commit, b->hello.commit);
    name_difference("where rounds were timed", generation_timed_in(x), generation_timed_in(y));
    snprintf(first, sizeof first, "%s KD %u", x->def.variant, x->def.kd);
    snprintf(second, sizeof second, "%s KD %u", y->def.variant, y->def.kd);
    printf("first   %s: %s\nsecond  %s: %s\n", files[0], first, files[1], second);
    printf("%-34s %10s %10s %9s\n", "newest generation of each", "first", "second", "ratio");
    print_rate("prefill tokens/s", generation_prefill(a, x), generation_prefill(b, y));
    print_rate("decode tokens/s", generation_decode(a, x), generation_decode(b, y));
    print_rows(a, b);
    puts("\nTwo recordings were taken at two times: only `sasstop ab` holds a difference against "
         "noise.");
    return EXIT_OK;
}

int cmd_compare(int argc, char **argv)
{
    if (argc != 3 || argv[1][0] == '-' || argv[2][0] == '-') {
        fprintf(stderr,
                "sasstop compare: two recordings are needed; try: sasstop compare --help\n");
        return EXIT_USAGE;
    }
    struct session *s = calloc(2, sizeof *s);
    enum status st = s ? OK : err_set(ERR_NOMEM, "no memory for the sessions");
    int code = EXIT_OK;
    if (st == OK) st = fold(argv[1], &s[0]);
    if (st == OK) st = fold(argv[2], &s[1]);
    if (st != OK)
        code = command_fail(st);
    else
        code = refuse(&s[0], &s[1]) ? EXIT_FAILED : print_both(&s[0], &s[1], argv + 1);
    for (int i = 0; s && i < 2; i++) session_free(&s[i]);
    free(s);
    return code;
}
