/* Headings to links; see report_contents.h. A heading is a line that begins with '#': nothing else
 * in a report does, since texts stand in cells or behind words.
 */
#include "session/report_contents.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SLUG_MAX = 256 };

/* Anchors so far, by hash; how many of each. */
struct anchors {
    struct anchor {
        uint64_t hash;
        uint32_t n;
    } * list;
    size_t n, cap;
    bool failed;
};

struct line {
    const char *text; /* after the marks */
    size_t len;
    int level; /* 0: not a heading */
};

/* The next line from *at; false at the end. */
static bool next_line(const struct buf *b, size_t *at, struct line *l)
{
    if (*at >= b->len) return false;
    const char *p = (const char *)b->data + *at;
    const char *end = memchr(p, '\n', b->len - *at);
    size_t n = end ? (size_t)(end - p) : b->len - *at;
    *at += n + 1;
    l->level = 0;
    while ((size_t)l->level < n && p[l->level] == '#') l->level++;
    if ((size_t)l->level >= n || p[l->level] != ' ') l->level = 0;
    l->text = l->level ? p + l->level + 1 : p;
    l->len = l->level ? n - (size_t)l->level - 1 : n;
    return true;
}

/* What a heading's text is once it is shown: escapes are gone. "&lt;" is a mark as '<' is. */
static void slug_of(const struct line *l, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < l->len && n + 1 < SLUG_MAX; i++) {
        unsigned char c = (unsigned char)l->text[i];
        if (c == '&' && l->len - i >= 4 && !memcmp(l->text + i, "&lt;", 4))
            i += 3;
        else if (isalnum(c) || c == '-' || c == '_' || c >= 0x80)
            out[n++] = (char)tolower(c);
        else if (c == ' ')
            out[n++] = '-';
    }
    out[n] = 0;
}

/* How often the slug was there before. */
static uint32_t seen(struct anchors *a, const char *slug)
{
    uint64_t hash = XXH64(slug, strlen(slug), 0);
    for (size_t i = 0; i < a->n; i++)
        if (a->list[i].hash == hash) return a->list[i].n++;
    if (a->n == a->cap) {
        size_t cap = a->cap ? a->cap * 2 : 64;
        struct anchor *list = realloc(a->list, cap * sizeof *list);
        if (!list) {
            a->failed = true;
            return 0;
        }
        a->list = list;
        a->cap = cap;
    }
    a->list[a->n++] = (struct anchor){hash, 1};
    return 0;
}

static void link_to(struct buf *out, struct anchors *a, const struct line *l, bool to_colon)
{
    char slug[SLUG_MAX];
    const char *colon = to_colon ? memchr(l->text, ':', l->len) : NULL;
    size_t n = colon && colon > l->text ? (size_t)(colon - l->text) : l->len;

    slug_of(l, slug);
    uint32_t before = seen(a, slug);
    buf_u8(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (l->text[i] == '[' || l->text[i] == ']') buf_u8(out, '\\');
        buf_u8(out, (uint8_t)l->text[i]);
    }
    buf_printf(out, before ? "](#%s-%u)" : "](#%s)", slug, before);
}

enum status report_contents(struct buf *out, const struct buf *details)
{
    struct anchors a = {0};
    struct line l;
    char slug[SLUG_MAX];
    bool below = false; /* the item has links below it */

    for (size_t at = 0; next_line(out, &at, &l);) {
        if (!l.level) continue;
        slug_of(&l, slug);
        seen(&a, slug);
    }
    for (size_t at = 0; next_line(details, &at, &l);) {
        if (l.level == 2) {
            buf_printf(out, "%s- ", out->len && out->data[out->len - 1] != '\n' ? "\n" : "");
            link_to(out, &a, &l, false);
            below = false;
        } else if (l.level == 3) {
            buf_printf(out, below ? " · " : "\n  ");
            link_to(out, &a, &l, true);
            below = true;
        }
    }
    buf_u8(out, '\n');
    free(a.list);
    return a.failed ? err_set(ERR_NOMEM, "out of memory for the table of contents") : OK;
}
