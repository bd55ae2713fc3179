/*
 * Job: from FILE@ARCH:KERNEL to one decoded kernel.
 *
 * Invariants: a file whose name holds ':' or '@' is found when it exists as written. Names out of
 * the file reach messages only through sass_name().
 */
#include "tui/pick_kernel.h"
#include "tui/cmd_sass_print.h"
#include <regex.h>
#include <stdio.h>
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

/* The only kernel of `c` that fits, or NULL; *n counts those that fit. */
static const struct cubin_kernel *match(const struct cubin *c, const char *want, const regex_t *re,
                                        size_t *n, char *names, size_t size)
{
    const struct cubin_kernel *k = want ? cubin_find_kernel(c, want) : NULL, *found = NULL;
    if (k) {
        *n = 1;
        return k;
    }
    for (size_t i = 0; i < c->nkernels; i++) {
        k = &c->kernels[i];
        if (re && regexec(re, k->name, 0, NULL, 0) && regexec(re, sass_name(k->name), 0, NULL, 0))
            continue;
        found = k;
        size_t at = strlen(names);
        if ((*n)++ < 8) snprintf(names + at, size - at, " %s", sass_name(k->name));
    }
    return *n == 1 ? found : NULL;
}

static enum status finish(struct picked *out, const struct cubin_kernel *k)
{
    out->kernel = k;
    enum status st = flow_make(&out->flow, &out->cubin, k);
    return st ? st : census_make(&out->census, &out->cubin, k);
}

static enum status search(struct picked *out, const struct container *c, const struct spec *s,
                          const char *want, const regex_t *re)
{
    char names[600] = "";
    size_t n = 0;
    for (size_t i = 0; i < c->nparts; i++) {
        const struct part *p = &c->parts[i];
        if (p->kind != PART_CUBIN || (p->arch[0] && s->arch[0] && !arch_matches(p->arch, s->arch)))
            continue;
        enum status st = container_cubin(c, i, &out->cubin);
        if (st) return st;
        if (!s->arch[0] || arch_matches(out->cubin.arch, s->arch)) {
            const struct cubin_kernel *k = match(&out->cubin, want, re, &n, names, sizeof names);
            if (k) return finish(out, k);
        }
        cubin_close(&out->cubin);
        if (n) break;
    }
    if (n)
        return err_set(ERR_FAILED, "%s: %zu kernels fit, name one after ':':%s", s->file, n, names);
    return err_set(ERR_FAILED, "%s: no kernel%s%s%s%s", s->file, want ? " like " : "",
                   want ? sass_safe(want) : "", s->arch[0] ? " for " : "", s->arch);
}

enum status pick_kernel(struct picked *out, const char *text, const char *like)
{
    struct spec s;
    struct container c;
    regex_t re;
    *out = (struct picked){0};
    enum status st = split(&s, text);
    if (st) return st;
    bool have_re = false;
    const char *want = s.kernel[0] ? s.kernel : like;
    if ((st = container_open_file(&c, s.file))) return st;
    if (s.kernel[0]) {
        if (regcomp(&re, s.kernel, REG_EXTENDED | REG_NOSUB))
            st = err_set(ERR_USAGE, "'%s' is not a regular expression", sass_safe(s.kernel));
        else
            have_re = true;
    }
    if (st == OK) st = search(out, &c, &s, want, have_re ? &re : NULL);
    if (have_re) regfree(&re);
    container_close(&c);
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
