/*
 * Job: hold rules against a census, and say by how much one is off.
 *
 * Invariants: a figure that isn't known makes its rule unknown, never held. To add a figure: its
 * name in expect_figures, a case in figure().
 */
#include "sass_view/expect.h"
#include "sass_view/expect_priv.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const expect_figures[] = {"regs",     "smem",    "spill",  "stack",
                                      "barriers", "threads", "params", "total",
                                      "padding",  "unknown", "loops",  NULL};

static int64_t figure(const struct census *c, int64_t i)
{
    const int64_t v[] = {c->regs,
                         c->smem,
                         c->spill_bytes,
                         c->stack,
                         c->barriers,
                         c->max_threads,
                         c->param_bytes,
                         c->total,
                         c->padding,
                         c->unknown,
                         c->loops_known ? (int64_t)c->nloops : CUBIN_UNKNOWN};
    return v[i];
}

bool expect_evaluate(const struct expect_side *s, const struct census *c, enum census_scope scope,
                     int64_t *sum)
{
    *sum = 0;
    for (unsigned i = 0; i < s->n; i++) {
        const struct expect_term *t = &s->terms[i];
        int64_t v = t->number;
        bool counted = t->kind == TERM_OPCODE || t->kind == TERM_CLASS;
        if (t->kind == TERM_OPCODE) v = census_count(c, t->opcode, scope);
        if (t->kind == TERM_CLASS) v = c->classes[t->number][scope];
        if (t->kind == TERM_FIGURE && (v = figure(c, t->number)) == CUBIN_UNKNOWN) return false;
        if (counted && scope != CENSUS_ALL && !c->loops_known) return false;
        *sum += t->minus ? -v : v;
    }
    return true;
}

static bool holds(enum expect_op op, int64_t a, int64_t b)
{
    switch (op) {
    case OP_EQ:
        return a == b;
    case OP_NE:
        return a != b;
    case OP_LE:
        return a <= b;
    case OP_GE:
        return a >= b;
    case OP_LT:
        return a < b;
    case OP_GT:
    default:
        return a > b;
    }
}

static bool arch_listed(const struct expect_section *s, const char *arch)
{
    for (unsigned i = 0; i < s->narchs; i++)
        if (!strcmp(s->archs[i], arch)) return true;
    return s->narchs == 0;
}

bool expect_applies(const struct expect_set *s, unsigned section, const struct census *c)
{
    const struct expect_section *x = &s->sections[section];
    return arch_listed(x, c->arch) && !fnmatch(x->kernel, c->kernel, 0);
}

bool expect_code_changed(const struct expect_set *s, unsigned section, const struct census *c)
{
    const struct expect_section *x = &s->sections[section];
    for (unsigned i = 0; i < x->ncodes; i++)
        if (x->codes[i].hash == c->code_hash) return false;
    return x->ncodes > 0;
}

/* An exact rule is about the code that was counted, or about its toolkit's output. */
static bool same_toolkit(const struct expect_section *x, const struct census *c,
                         const char *toolkit)
{
    for (unsigned i = 0; i < x->ncodes; i++)
        if (x->codes[i].hash == c->code_hash || !strcmp(x->codes[i].toolkit, toolkit)) return true;
    return x->ncodes == 0;
}

static void say_off(const struct expect_rule *r, struct expect_result *out)
{
    int64_t by = out->left - out->right;
    snprintf(out->text, sizeof out->text, "%s: is %" PRId64 "%s", r->text, out->left,
             by == 0 ? "" : ", ");
    size_t n = strlen(out->text);
    if (by)
        snprintf(out->text + n, sizeof out->text - n, "%" PRId64 " %s than %" PRId64,
                 by < 0 ? -by : by, by > 0 ? "more" : "fewer", out->right);
}

void expect_hold(const struct expect_set *s, const struct expect_rule *r, const struct census *c,
                 const char *toolkit, struct expect_result *out)
{
    const struct expect_section *x = &s->sections[r->section];
    *out = (struct expect_result){.state = EXPECT_HELD};
    if (r->exact && !same_toolkit(x, c, toolkit)) {
        out->state = EXPECT_SKIPPED;
        snprintf(out->text, sizeof out->text, "%s: counted with CUDA %s, this is %s", r->text,
                 x->codes[0].toolkit, toolkit[0] ? toolkit : "not stated");
    } else if (!expect_evaluate(&r->left, c, r->scope, &out->left) ||
               !expect_evaluate(&r->right, c, r->scope, &out->right)) {
        out->state = EXPECT_UNKNOWN;
        snprintf(out->text, sizeof out->text, "%s: not known from this file", r->text);
    } else if (r->reopens[0]) {
        bool yes = holds(r->op, out->left, out->right);
        out->state = yes ? EXPECT_REOPENED : EXPECT_CLOSED;
        snprintf(out->text, sizeof out->text, "%s: is %" PRId64 "%s%s", r->text, out->left,
                 yes ? ": " : ", not met; once it is, ", r->reopens);
    } else if (holds(r->op, out->left, out->right)) {
        snprintf(out->text, sizeof out->text, "%s", r->text);
        if (r->op != OP_EQ)
            snprintf(out->text, sizeof out->text, "%s: is %" PRId64, r->text, out->left);
    } else {
        out->state = EXPECT_OFF;
        say_off(r, out);
    }
}

enum status expect_load(struct expect_set *out, const char *path)
{
    *out = (struct expect_set){0};
    FILE *f = fopen(path, "rb");
    if (!f) return err_set(ERR_IO, "%s: can't be opened", path);
    char *text = malloc(EXPECT_TEXT_MAX + 1);
    enum status st = text ? OK : err_set(ERR_NOMEM, "%s: out of memory", path);
    if (st == OK) {
        size_t n = fread(text, 1, EXPECT_TEXT_MAX + 1, f);
        st = ferror(f) ? err_set(ERR_IO, "%s: can't be read", path)
                       : expect_parse(out, text, n, path);
    }
    free(text);
    fclose(f);
    return st;
}

void expect_free(struct expect_set *s)
{
    free(s->sections);
    free(s->rules);
    *s = (struct expect_set){0};
}

const char *expect_state_name(enum expect_state st)
{
    static const char *const names[] = {"held", "off", "unknown", "skipped", "closed", "reopened"};
    return names[st];
}

bool expect_fails(enum expect_state st)
{
    return st == EXPECT_OFF || st == EXPECT_UNKNOWN;
}
