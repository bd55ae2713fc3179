/*
 * Job: two censuses as one table, and claims about how they differ.
 *
 * Invariants: every key of either census is one row. A claim is held against A alone first: what A
 * has already can't be gained.
 */
#include "sass_view/diff.h"
#include "sass_view/expect_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_key(const void *p, const void *q)
{
    return strcmp(((const struct diff_row *)p)->key, ((const struct diff_row *)q)->key);
}

static long change(const struct diff_row *r)
{
    long most = 0;
    for (int s = 0; s < CENSUS_SCOPES; s++) {
        long d = labs((long)r->a[s] - (long)r->b[s]);
        if (d > most) most = d;
    }
    return most;
}

static int by_change(const void *p, const void *q)
{
    const struct diff_row *x = p, *y = q;
    long a = change(x), b = change(y);
    if (a != b) return a < b ? 1 : -1;
    if (x->a[0] != y->a[0]) return x->a[0] < y->a[0] ? 1 : -1;
    return strcmp(x->key, y->key);
}

enum status diff_census(const struct census *a, const struct census *b, struct diff_row **rows,
                        size_t *n)
{
    struct diff_row *all = calloc(a->nrows + b->nrows + 1, sizeof *all);
    size_t m = 0, out = 0;
    *rows = NULL;
    *n = 0;
    if (!all) return err_set(ERR_NOMEM, "out of memory for the diff");
    for (int side = 0; side < 2; side++) {
        const struct census *c = side ? b : a;
        for (size_t i = 0; i < c->nrows; i++, m++) {
            memcpy(all[m].key, c->rows[i].key, sizeof all[m].key);
            all[m].cls = c->rows[i].cls;
            memcpy(side ? all[m].b : all[m].a, c->rows[i].n, sizeof c->rows[i].n);
        }
    }
    qsort(all, m, sizeof *all, by_key);
    for (size_t i = 0; i < m; i++) {
        if (out && !strcmp(all[out - 1].key, all[i].key)) {
            for (int s = 0; s < CENSUS_SCOPES; s++) {
                all[out - 1].a[s] += all[i].a[s];
                all[out - 1].b[s] += all[i].b[s];
            }
            continue;
        }
        all[out++] = all[i];
    }
    qsort(all, out, sizeof *all, by_change);
    *rows = all;
    *n = out;
    return OK;
}

enum status claim_parse(struct claim *out, const char *text)
{
    char what[160], *arrow, *at;
    struct expect_rule r = {0};
    *out = (struct claim){0};
    if (!strcmp(text, "schedule only")) {
        out->schedule_only = true;
        return OK;
    }
    snprintf(what, sizeof what, "%s", text);
    arrow = strstr(what, "->");
    if (!arrow || strlen(text) >= sizeof what)
        return err_set(ERR_FORMAT, "a claim is 'LDS.32 in loop 32 -> 16' or 'schedule only'");
    *arrow = 0;
    at = arrow;
    while (at > what && (at[-1] == ' ' || at[-1] == '\t')) *--at = 0;
    while (at > what && at[-1] >= '0' && at[-1] <= '9') at--;
    char *end = NULL, rule[200];
    out->from = strtoll(at, &end, 10);
    if (end == at) return err_set(ERR_FORMAT, "no number stands before '->'");
    char *to = arrow + 2 + strspn(arrow + 2, " \t");
    out->to = strtoll(to, &end, 10);
    if (end == to || end[strspn(end, " \t")]) return err_set(ERR_FORMAT, "one number follows '->'");
    *at = 0;
    /* Reuse the rules' language: "LDS.32 in loop" is the rule "LDS.32 == 0 in loop". */
    char *scope = strstr(what, " in ");
    snprintf(rule, sizeof rule, "%.*s == 0%s",
             (int)(scope ? scope - what : (ptrdiff_t)strlen(what)), what, scope ? scope : "");
    enum status st = expect_parse_rule(&r, rule);
    out->what = r.left;
    out->scope = r.scope;
    return st;
}

static void hold_counts(const struct claim *c, const struct census *a, const struct census *b,
                        struct claim_result *out)
{
    if (!expect_evaluate(&c->what, a, c->scope, &out->a) ||
        !expect_evaluate(&c->what, b, c->scope, &out->b)) {
        out->state = CLAIM_UNKNOWN;
        snprintf(out->text, sizeof out->text, "not known from these files");
    } else if (out->a != c->from) {
        out->state = CLAIM_INCUMBENT;
        snprintf(out->text, sizeof out->text,
                 "A holds %" PRId64 ", not %" PRId64 "%s: predicted NOISE", out->a, c->from,
                 out->a == c->to ? ": what is claimed is there already" : "");
    } else if (out->b != c->to) {
        out->state = CLAIM_UNMET;
        snprintf(out->text, sizeof out->text,
                 "A holds %" PRId64 ", but B holds %" PRId64 ", not %" PRId64 ": predicted NOISE",
                 out->a, out->b, c->to);
    } else {
        snprintf(out->text, sizeof out->text, "met: A holds %" PRId64 ", B %" PRId64, out->a,
                 out->b);
    }
}

void claim_hold(const struct claim *c, const struct diff *d, const struct census *a,
                const struct census *b, struct claim_result *out)
{
    *out = (struct claim_result){.state = CLAIM_MET};
    if (!c->schedule_only) {
        hold_counts(c, a, b, out);
    } else if (d->verdict == DIFF_SCHEDULE) {
        snprintf(out->text, sizeof out->text, "met: %s", diff_verdict_name(d->verdict));
    } else {
        out->state = CLAIM_UNMET;
        snprintf(out->text, sizeof out->text, "%s: predicted NOISE", diff_verdict_name(d->verdict));
        if (d->verdict > DIFF_SCHEDULE)
            snprintf(out->text, sizeof out->text, "not only the schedule: %s",
                     diff_verdict_name(d->verdict));
    }
}
