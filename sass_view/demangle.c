/*
 * Job: names out of mangled names. The grammar is that of the Itanium C++ ABI, chapter 5.1.
 *
 * Invariants: the text grows in one buffer of TEXT_MAX bytes and substitutions in one of ARENA_MAX;
 * what doesn't fit makes the whole name `bad`, so a name that doubles itself costs no more than
 * that. Nesting is bounded by DEPTH_MAX. To add a type: a case in type().
 */
#include "sass_view/demangle.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 2048, ARENA_MAX = 8192, SUBS_MAX = 96, DEPTH_MAX = 24 };

struct reader {
    const char *p;
    char text[TEXT_MAX];
    size_t n;
    char arena[ARENA_MAX];
    size_t used;
    uint16_t sub_at[SUBS_MAX], sub_len[SUBS_MAX];
    unsigned nsubs, depth;
    bool bad;
};

static void put(struct reader *r, const char *s, size_t n)
{
    if (n >= sizeof r->text - r->n) r->bad = true;
    if (r->bad) return;
    memcpy(r->text + r->n, s, n);
    r->n += n;
}

static void put_text(struct reader *r, const char *s)
{
    put(r, s, strlen(s));
}

/* What was written since `from` may be referred to from now on. */
static void remember(struct reader *r, size_t from)
{
    size_t n = r->n - from;
    if (r->bad || r->nsubs == SUBS_MAX || n > sizeof r->arena - r->used) {
        r->bad = true;
        return;
    }
    memcpy(r->arena + r->used, r->text + from, n);
    r->sub_at[r->nsubs] = (uint16_t)r->used;
    r->sub_len[r->nsubs++] = (uint16_t)n;
    r->used += n;
}

static bool take(struct reader *r, char c)
{
    if (*r->p != c) return false;
    r->p++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* 5scale */
static void source_name(struct reader *r)
{
    size_t n = 0;
    while (is_digit(*r->p) && n < TEXT_MAX) n = n * 10 + (size_t)(*r->p++ - '0');
    if (!n || strnlen(r->p, n) < n) {
        r->bad = true;
        return;
    }
    if (n > 11 && !strncmp(r->p, "_GLOBAL__N_", 11))
        put_text(r, "(anonymous)");
    else
        put(r, r->p, n);
    r->p += n;
}

/* After the S: _ is the first, 0_ the second, in base 36. */
static void substitution(struct reader *r)
{
    unsigned i = 0;
    bool first = *r->p == '_';
    for (; *r->p && *r->p != '_' && i < 1296; r->p++) {
        if (!is_digit(*r->p) && !(*r->p >= 'A' && *r->p <= 'Z')) r->bad = true;
        i = i * 36 + (unsigned)(is_digit(*r->p) ? *r->p - '0' : *r->p - 'A' + 10);
    }
    i = first ? 0 : i + 1;
    if (!take(r, '_') || i >= r->nsubs)
        r->bad = true;
    else
        put(r, r->arena + r->sub_at[i], r->sub_len[i]);
}

static void type(struct reader *r);

/* L i 4 E: integer, bool and enumeration constants. */
static void literal(struct reader *r)
{
    size_t at = r->n;
    bool is_bool = *r->p == 'b', plain = strchr("ijlmxyshtac", *r->p) != NULL;
    type(r);
    if (plain || is_bool) r->n = r->bad ? r->n : at;
    if (!plain && !is_bool) {
        /* An enumeration's value says nothing without its type. */
        if (r->n + 2 >= TEXT_MAX) r->bad = true;
        if (r->bad) return;
        memmove(r->text + at + 1, r->text + at, r->n - at);
        r->text[at] = '(';
        r->n++;
        put_text(r, ")");
    }
    if (is_bool && (*r->p == '0' || *r->p == '1') && r->p[1] == 'E') {
        put_text(r, *r->p == '1' ? "true" : "false");
        r->p++;
    } else {
        if (take(r, 'n')) put_text(r, "-");
        if (!is_digit(*r->p)) r->bad = true;
        while (is_digit(*r->p)) put(r, r->p++, 1);
    }
    if (!take(r, 'E')) r->bad = true;
}

/* I ... E, the I taken already. */
static void template_args(struct reader *r)
{
    put_text(r, "<");
    unsigned packs = 0;
    for (bool comma = false; !r->bad;) {
        if (take(r, 'E')) {
            if (!packs--) break;
            continue;
        }
        if (take(r, 'J')) {
            packs++;
            continue;
        }
        if (comma) put_text(r, ", ");
        comma = true;
        if (take(r, 'L'))
            literal(r);
        else
            type(r);
    }
    put_text(r, ">");
}

/* N ... E, the N taken already. */
static void nested(struct reader *r)
{
    size_t start = r->n;
    bool known = true; /* what stands there so far can be referred to already */
    while (*r->p == 'r' || *r->p == 'V' || *r->p == 'K') r->p++;
    while (!r->bad && !take(r, 'E')) {
        if (!known) remember(r, start);
        known = false;
        if (take(r, 'I')) {
            template_args(r);
            continue;
        }
        if (r->n > start) put_text(r, "::");
        if (*r->p == 'S' && r->p[1] == 't' && r->n == start) {
            r->p += 2;
            put_text(r, "std");
            known = true;
        } else if (r->n == start && take(r, 'S')) {
            substitution(r);
            known = true;
        } else {
            take(r, 'L'); /* internal linkage */
            source_name(r);
        }
    }
}

static const char *builtin(char c)
{
    static const struct {
        char code;
        const char *name;
    } types[] = {
        {'v', "void"},           {'b', "bool"},          {'c', "char"},
        {'a', "signed char"},    {'h', "unsigned char"}, {'s', "short"},
        {'t', "unsigned short"}, {'i', "int"},           {'j', "unsigned"},
        {'l', "long"},           {'m', "unsigned long"}, {'x', "long long"},
        {'f', "float"},          {'d', "double"},        {'y', "unsigned long long"},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].code == c) return types[i].name;
    return NULL;
}

/* A class or enumeration by name, with its template arguments. */
static void named_type(struct reader *r, size_t start)
{
    if (take(r, 'N')) {
        nested(r);
        remember(r, start);
        return;
    }
    bool known = false;
    if (*r->p == 'S' && r->p[1] == 't') {
        r->p += 2;
        put_text(r, "std::");
        source_name(r);
    } else if (take(r, 'S')) {
        substitution(r);
        known = true;
    } else {
        source_name(r);
    }
    if (!known) remember(r, start);
    if (!take(r, 'I')) return;
    template_args(r);
    remember(r, start);
}

static void type(struct reader *r)
{
    size_t start = r->n;
    const char *name = builtin(*r->p);
    if (r->bad || ++r->depth > DEPTH_MAX) {
        r->bad = true;
        return;
    }
    if (name) {
        r->p++;
        put_text(r, name);
    } else if (*r->p && strchr("PRKV", *r->p)) {
        char c = *r->p++;
        if (c == 'K') put_text(r, "const ");
        if (c == 'V') put_text(r, "volatile ");
        type(r);
        if (c == 'P') put_text(r, "*");
        if (c == 'R') put_text(r, "&");
        remember(r, start);
    } else {
        named_type(r, start);
    }
    r->depth--;
}

static void function_name(struct reader *r)
{
    if (take(r, 'N')) {
        nested(r);
        return;
    }
    take(r, 'L');
    source_name(r);
    if (*r->p != 'I') return;
    remember(r, 0);
    r->p++;
    template_args(r);
}

char *demangle(const char *name, char *out, size_t size)
{
    struct reader r = {.bad = strncmp(name, "_Z", 2) != 0};
    if (!r.bad) {
        r.p = name + 2;
        function_name(&r);
    }
    if (!r.bad && r.n && r.n < size)
        snprintf(out, size, "%.*s", (int)r.n, r.text);
    else if (size)
        snprintf(out, size, "%s", name);
    return out;
}
