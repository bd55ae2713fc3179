/*
 * Job: read a file of rules; its language is described in expect.h.
 *
 * Invariants: a line is read whole or refused with its number; nothing is guessed. To add a
 * statement: a case in parse_line().
 */
#include "sass_view/expect.h"
#include "sass_view/expect_priv.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 400 };

struct parser {
    struct expect_set *set;
    const char *label;
    unsigned line, cap_sections, cap_rules;
};

static const char *skip_blank(const char *s)
{
    return s + strspn(s, " \t\r");
}

/* A word of the characters that opcodes, classes and figures are made of. */
static size_t word_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.' || s[n] == '?') n++;
    return n;
}

static bool find_class(const char *word, size_t n, int64_t *out)
{
    for (int i = 0; i < INSN_CLASSES; i++) {
        const char *name = insn_class_name((enum insn_class)i);
        if (i == INSN_CLASS_UNKNOWN || strncmp(name, word, n) || name[n]) continue;
        *out = i;
        return true;
    }
    return false;
}

static bool find_figure(const char *word, size_t n, int64_t *out)
{
    for (int i = 0; expect_figures[i]; i++) {
        if (strncmp(expect_figures[i], word, n) || expect_figures[i][n]) continue;
        *out = i;
        return true;
    }
    return false;
}

static enum status parse_term(struct expect_term *t, const char **s)
{
    size_t n = word_length(*s);
    if (!n)
        return err_set(ERR_FORMAT, "a number, opcode, class or figure is missing at '%.20s'", *s);
    if (isdigit((unsigned char)**s)) {
        char *end;
        t->kind = TERM_NUMBER;
        t->number = n < 16 ? strtoll(*s, &end, 10) : 0;
        if (n >= 16 || end != *s + n) return err_set(ERR_FORMAT, "'%.*s' is no number", (int)n, *s);
    } else if (isupper((unsigned char)**s) || **s == '?') {
        t->kind = TERM_OPCODE;
        if (n >= sizeof t->opcode) return err_set(ERR_FORMAT, "'%.*s' is no opcode", (int)n, *s);
        memcpy(t->opcode, *s, n);
        t->opcode[n] = 0;
    } else if (find_class(*s, n, &t->number)) {
        t->kind = TERM_CLASS;
    } else if (find_figure(*s, n, &t->number)) {
        t->kind = TERM_FIGURE;
    } else {
        return err_set(ERR_FORMAT,
                       "'%.*s' is neither a class nor a figure (opcodes are upper case)", (int)n,
                       *s);
    }
    *s = skip_blank(*s + n);
    return OK;
}

static enum status parse_side(struct expect_side *side, const char **s)
{
    bool minus = false;
    for (;;) {
        if (side->n == EXPECT_TERMS_MAX)
            return err_set(ERR_FORMAT, "more than %d terms", EXPECT_TERMS_MAX);
        struct expect_term *t = &side->terms[side->n++];
        t->minus = minus;
        enum status st = parse_term(t, s);
        if (st) return st;
        if (**s != '+' && **s != '-') return OK;
        if (!strncmp(*s, "->", 2)) return OK;
        minus = **s == '-';
        *s = skip_blank(*s + 1);
    }
}

static enum status parse_op(enum expect_op *op, const char **s)
{
    static const char *const names[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (int i = 0; i < 6; i++) {
        if (strncmp(*s, names[i], strlen(names[i]))) continue;
        *op = (enum expect_op)i;
        *s = skip_blank(*s + strlen(names[i]));
        return OK;
    }
    return err_set(ERR_FORMAT, "a comparison (== != <= >= < >) is missing at '%.20s'", *s);
}

static enum status parse_scope(enum census_scope *scope, const char **s)
{
    static const char *const names[] = {"kernel", "loop", "hot"};
    *scope = CENSUS_ALL;
    if (strncmp(*s, "in", 2) || !isblank((unsigned char)(*s)[2])) return OK;
    *s = skip_blank(*s + 2);
    size_t n = word_length(*s);
    for (int i = 0; i < 3; i++) {
        if (strncmp(*s, names[i], n) || names[i][n]) continue;
        *scope = (enum census_scope)i;
        *s = skip_blank(*s + n);
        return OK;
    }
    return err_set(ERR_FORMAT, "'in' is followed by kernel, loop or hot, not by '%.*s'", (int)n,
                   *s);
}

static void trim(char *s)
{
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = 0;
}

static void copy_trimmed(char *out, size_t size, const char *s)
{
    snprintf(out, size, "%s", s);
    trim(out);
}

enum status expect_parse_rule(struct expect_rule *out, const char *text)
{
    const char *s = skip_blank(text);
    char whole[LINE_MAX_BYTES];
    copy_trimmed(whole, sizeof whole, s);
    copy_trimmed(out->text, sizeof out->text, s);
    if (strlen(whole) >= sizeof out->text) return err_set(ERR_FORMAT, "the rule is too long");
    enum status st = parse_side(&out->left, &s);
    if (st == OK) st = parse_op(&out->op, &s);
    if (st == OK) st = parse_side(&out->right, &s);
    if (st == OK) st = parse_scope(&out->scope, &s);
    if (st) return st;
    if (!strncmp(s, "->", 2)) {
        copy_trimmed(out->reopens, sizeof out->reopens, skip_blank(s + 2));
        if (!out->reopens[0]) return err_set(ERR_FORMAT, "nothing follows '->'");
        *strstr(out->text, "->") = 0;
        trim(out->text);
    } else if (*s) {
        return err_set(ERR_FORMAT, "'%.20s' is left over", s);
    }
    return OK;
}

static bool grow(void **p, unsigned n, unsigned *cap, size_t each)
{
    if (n < *cap) return true;
    unsigned more = *cap ? *cap * 2 : 8;
    void *q = realloc(*p, more * each);
    if (!q) return false;
    *p = q;
    *cap = more;
    return true;
}

static enum status add_section(struct parser *p, const char *kernel)
{
    struct expect_set *s = p->set;
    void *mem = s->sections;
    if (s->nsections == EXPECT_RULES_MAX)
        return err_set(ERR_LIMIT, "more than %d sections", EXPECT_RULES_MAX);
    if (!grow(&mem, s->nsections, &p->cap_sections, sizeof *s->sections))
        return err_set(ERR_NOMEM, "out of memory");
    s->sections = mem;
    struct expect_section *x = &s->sections[s->nsections++];
    *x = (struct expect_section){.line = p->line};
    snprintf(x->kernel, sizeof x->kernel, "%s", kernel);
    return OK;
}

/* kernel GLOB [ARCH...] */
static enum status parse_kernel(struct parser *p, char *rest)
{
    char *save = NULL, *word = strtok_r(rest, " \t\r", &save);
    if (!word) return err_set(ERR_FORMAT, "'kernel' needs a name");
    if (strlen(word) >= sizeof p->set->sections->kernel)
        return err_set(ERR_FORMAT, "the kernel's name is too long");
    enum status st = add_section(p, word);
    if (st) return st;
    struct expect_section *x = &p->set->sections[p->set->nsections - 1];
    while ((word = strtok_r(NULL, " \t\r", &save))) {
        if (x->narchs == 8) return err_set(ERR_FORMAT, "more than 8 archs");
        if (strncmp(word, "sm_", 3) || strlen(word) >= sizeof x->archs[0])
            return err_set(ERR_FORMAT, "'%.20s' is no arch (sm_90a)", word);
        snprintf(x->archs[x->narchs++], sizeof x->archs[0], "%s", word);
    }
    return OK;
}

/* code HASH CUDA 13.0 */
static enum status parse_code(struct parser *p, const char *rest)
{
    char hash[20] = "", cuda[8] = "", toolkit[16] = "", more[4] = "";
    if (!p->set->nsections) return err_set(ERR_FORMAT, "'code' stands before the first 'kernel'");
    struct expect_section *x = &p->set->sections[p->set->nsections - 1];
    int n = sscanf(rest, "%19s %7s %15s %3s", hash, cuda, toolkit, more);
    if (n != 3 || strlen(hash) != 16 || strspn(hash, "0123456789abcdef") != 16 ||
        strcmp(cuda, "CUDA"))
        return err_set(ERR_FORMAT, "write: code 0123456789abcdef CUDA 13.0");
    if (x->ncodes == 8) return err_set(ERR_FORMAT, "more than 8 'code' lines for a kernel");
    struct expect_code *c = &x->codes[x->ncodes++];
    c->hash = strtoull(hash, NULL, 16);
    memcpy(c->toolkit, toolkit, sizeof c->toolkit);
    return OK;
}

static enum status parse_one_rule(struct parser *p, const char *text, bool exact)
{
    struct expect_set *s = p->set;
    void *mem = s->rules;
    enum status st = s->nsections ? OK : add_section(p, "*");
    if (st) return st;
    if (s->nrules == EXPECT_RULES_MAX)
        return err_set(ERR_LIMIT, "more than %d rules", EXPECT_RULES_MAX);
    if (!grow(&mem, s->nrules, &p->cap_rules, sizeof *s->rules))
        return err_set(ERR_NOMEM, "out of memory");
    s->rules = mem;
    struct expect_rule *r = &s->rules[s->nrules];
    *r = (struct expect_rule){.line = p->line, .section = s->nsections - 1, .exact = exact};
    st = expect_parse_rule(r, text);
    if (st == OK) s->nrules++;
    return st;
}

static enum status parse_line(struct parser *p, char *line)
{
    char *hash = strchr(line, '#');
    if (hash) *hash = 0;
    char *s = line + strspn(line, " \t\r");
    if (!*s) return OK;
    size_t n = word_length(s);
    if (n == 6 && !strncmp(s, "kernel", 6)) return parse_kernel(p, s + 6);
    if (n == 4 && !strncmp(s, "code", 4)) return parse_code(p, s + 4);
    if (n == 5 && !strncmp(s, "exact", 5)) return parse_one_rule(p, s + 5, true);
    return parse_one_rule(p, s, false);
}

enum status expect_parse(struct expect_set *out, const char *text, size_t size, const char *label)
{
    struct parser p = {.set = out, .label = label};
    *out = (struct expect_set){0};
    if (size > EXPECT_TEXT_MAX)
        return err_set(ERR_LIMIT, "%s: over %d bytes", label, EXPECT_TEXT_MAX);
    enum status st = OK;
    for (size_t at = 0; st == OK && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end ? (size_t)(end - text) - at : size - at;
        char line[LINE_MAX_BYTES];
        p.line++;
        if (n >= sizeof line || memchr(text + at, 0, n)) {
            st = err_set(ERR_FORMAT, "too long, or not text");
        } else {
            memcpy(line, text + at, n);
            line[n] = 0;
            st = parse_line(&p, line);
        }
        at += n + 1;
    }
    if (st == OK && !out->nrules) st = err_set(ERR_FORMAT, "no rules in it");
    if (st) {
        err_prefix(st, "%s, line %u", label, p.line);
        expect_free(out);
    }
    return st;
}
