/*
 * Job: from FILE@ARCH:KERNEL to one decoded kernel.
 *
 * Invariants: a file whose name holds ':' or '@' is found when it exists as written. Names out of
 * the file reach messages only through sass_name().
 */
#include "tui/pick_kernel.h"
#include "session/model.h"
#include "session/record.h"
#include "tui/cmd_sass_print.h"
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct spec {
    char file[256], arch[16], kernel[512];
};

static enum status split(struct spec *s, const char *text)
{
    const char *colon, *at;
    *s = (struct spec){0};
    if (strlen(text) >= sizeof s->file) return err_set(ERR_USAGE, "'%.40s...' is too long", text);
    snprintf(s->file, sizeof s->file, "%s", text);
    if (access(text, F_OK) && (colon = strrchr(text, ':')) && colon[1]) {
        snprintf(s->kernel, sizeof s->kernel, "%s", colon + 1);
        s->file[colon - text] = 0;
    }
    if (access(s->file, F_OK) && (at = strrchr(s->file, '@'))) {
        if (strlen(at + 1) >= sizeof s->arch)
            return err_set(ERR_USAGE, "'%.20s' is no arch", at + 1);
        snprintf(s->arch, sizeof s->arch, "%s", at + 1);
        s->file[at - s->file] = 0;
    }
    return OK;
}

enum { NAMES_MAX = 8 };

/* What is looked for, and what was found on the way. */
struct search {
    const struct spec *spec;
    const char *want;
    const regex_t *re;
    size_t n;        /* kernels that fit, of the first part that has any of each container */
    char names[600]; /* of the first NAMES_MAX */
};

/* The only kernel of all that were looked at that fits, or the one of exactly that name; else NULL.
 * *n counts those of `c`. */
static const struct cubin_kernel *match(const struct cubin *c, struct search *x, size_t *n)
{
    const struct cubin_kernel *k = x->want ? cubin_find_kernel(c, x->want) : NULL, *found = NULL;
    if (k) return k;
    for (size_t i = 0; i < c->nkernels; i++) {
        k = &c->kernels[i];
        if (x->re && regexec(x->re, k->name, 0, NULL, 0) &&
            regexec(x->re, sass_name(k->name), 0, NULL, 0))
            continue;
        found = k;
        size_t at = strlen(x->names);
        if (x->n + (*n)++ < NAMES_MAX)
            snprintf(x->names + at, sizeof x->names - at, " %s", sass_name(k->name));
    }
    return x->n + *n == 1 ? found : NULL;
}

static enum status finish(struct picked *out, const struct cubin_kernel *k)
{
    out->kernel = k;
    enum status st = flow_make(&out->flow, &out->cubin, k);
    return st ? st : census_make(&out->census, &out->cubin, k);
}

/* Looks through the cubins of `c`: OK with out->kernel set when one kernel fits, OK without when
 * none or several do. */
static enum status search(struct picked *out, const struct container *c, struct search *x)
{
    const char *arch = x->spec->arch[0] ? x->spec->arch : NULL;
    size_t n = 0;
    for (size_t i = 0; i < c->nparts && !n; i++) {
        const struct part *p = &c->parts[i];
        if (p->kind != PART_CUBIN || (p->arch[0] && !arch_matches(p->arch, arch))) continue;
        enum status st = container_cubin(c, i, &out->cubin);
        if (st) return st;
        if (arch_matches(out->cubin.arch, arch)) {
            const struct cubin_kernel *k = match(&out->cubin, x, &n);
            if (k) return finish(out, k);
        }
        cubin_close(&out->cubin);
    }
    x->n += n;
    return OK;
}

static enum status search_file(struct picked *out, struct search *x)
{
    struct container c;
    enum status st = container_open_file(&c, x->spec->file);
    if (st == OK) {
        st = c.vendor ? sass_sealed(x->spec->file) : search(out, &c, x);
        container_close(&c);
    }
    return st;
}

/* The cubins that a recording holds. */
static enum status search_session(struct picked *out, struct search *x)
{
    struct session *s = malloc(sizeof *s);
    struct reader *r = NULL;
    struct frame f;
    enum status st = s ? session_init(s) : err_set(ERR_NOMEM, "out of memory");
    if (st) {
        free(s);
        return st;
    }
    st = reader_open(x->spec->file, &r);
    while (st == OK && (st = reader_next(r, &f)) == OK) st = session_apply(s, &f);
    if (st == ERR_END) st = OK;
    for (uint32_t i = 0; st == OK && !out->kernel && i < s->nmodules; i++) {
        struct container c;
        const struct module *m = &s->modules[i];
        if (!m->whole) continue;
        st = container_open_memory(&c, m->bytes.data, m->bytes.len, x->spec->file);
        if (st) break;
        st = search(out, &c, x);
        container_close(&c);
    }
    if (r) reader_close(r);
    session_free(s);
    free(s);
    return st;
}

static bool is_session(const char *path)
{
    char head[8] = "";
    FILE *f = fopen(path, "rb");
    bool yes = f && fread(head, 1, 8, f) == 8 && !memcmp(head, "SASSTOP\n", 8);
    if (f) fclose(f);
    return yes;
}

static enum status none_found(const struct search *x)
{
    const struct spec *s = x->spec;
    char more[40] = "";
    if (x->n > NAMES_MAX) snprintf(more, sizeof more, " and %zu more", x->n - NAMES_MAX);
    if (x->n)
        return err_set(ERR_FAILED, "%s: %zu kernels fit, name one after ':' (FILE:KERNEL):%s%s",
                       s->file, x->n, x->names, more);
    return err_set(ERR_FAILED, "%s: no kernel%s%s%s%s", s->file, x->want ? " like " : "",
                   x->want ? sass_safe(x->want) : "", s->arch[0] ? " for " : "", s->arch);
}

enum status pick_kernel(struct picked *out, const char *text, const char *like)
{
    struct spec s;
    regex_t re;
    *out = (struct picked){0};
    enum status st = split(&s, text);
    if (st) return st;
    struct search x = {.spec = &s, .want = s.kernel[0] ? s.kernel : like};
    if (s.kernel[0]) {
        if (regcomp(&re, s.kernel, REG_EXTENDED | REG_NOSUB))
            return err_set(ERR_USAGE, "'%s' is not a regular expression", sass_safe(s.kernel));
        x.re = &re;
    }
    st = is_session(s.file) ? search_session(out, &x) : search_file(out, &x);
    if (st == OK && !out->kernel) st = none_found(&x);
    if (x.re) regfree(&re);
    snprintf(out->file, sizeof out->file, "%s", s.file);
    if (st) pick_free(out);
    return st;
}

void pick_free(struct picked *p)
{
    census_free(&p->census);
    flow_free(&p->flow);
    cubin_close(&p->cubin);
    *p = (struct picked){0};
}
