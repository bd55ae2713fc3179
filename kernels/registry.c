/*
 * What the registry holds and how it is looked up; see registry.h. Files are read in
 * registry_scan.c. Entries are sorted by family, name, KD once and never move after that.
 */
#include "kernels/registry_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int parse_arch(const char *s, bool *suffix)
{
    char *end;
    if (*s < '0' || *s > '9') return -1;
    long v = strtol(s, &end, 10);
    *suffix = *end != '\0';
    if (v < 50 || v > 999 || (*suffix && end[1])) return -1;
    return (int)v;
}

/* Higher is better; -1: can't run there. */
static int arch_rank(const char *arch, int sm)
{
    bool suffix;
    int v = parse_arch(arch, &suffix);
    if (v < 0) return -1;
    if (v == sm) return suffix ? 1001 : 1000;
    /* A suffixed target runs on exactly its own chip. */
    if (suffix || v / 10 != sm / 10 || v > sm) return -1;
    return v % 10;
}

int registry_load_order(const char *const *archs, int n, int sm, int *order)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        int rank = arch_rank(archs[i], sm), at = found;
        if (rank < 0) continue;
        while (at > 0 && arch_rank(archs[order[at - 1]], sm) < rank) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
        found++;
    }
    return found;
}

static int by_name(const void *pa, const void *pb)
{
    const struct variant *a = pa, *b = pb;
    int c = strcmp(a->family, b->family);
    if (!c) c = strcmp(a->name, b->name);
    if (!c) c = (a->kd > b->kd) - (a->kd < b->kd);
    if (!c) c = strcmp(a->kernel, b->kernel);
    return c ? c : strcmp(a->arch, b->arch);
}

/* "cubin" beside the running program, or beside its folder: programs of build/gpu use build/cubin.
 */
static enum status beside_program(char *out, size_t size)
{
    char own[4096];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    size_t len[2] = {0}; /* of the folder, and of the one above */
    for (ssize_t i = 0; i < n; i++)
        if (own[i] == '/') {
            len[1] = len[0];
            len[0] = (size_t)i;
        }
    if (n <= 0 || *own != '/' || len[0] + sizeof "/cubin" > size)
        return err_set(ERR_IO, "can't tell where this program lies; set SASSTOP_CUBINS");
    static const int order[] = {0, 1, 0}; /* when neither is there, the message names the first */
    for (int i = 0; i < 3; i++) {
        memcpy(out, own, len[order[i]]);
        strcpy(out + len[order[i]], "/cubin");
        if (access(out, R_OK) == 0) break;
    }
    return OK;
}

static enum status find_dir(const char *asked, char *out, size_t size)
{
    const char *env = getenv("SASSTOP_CUBINS");
    if (!asked && env && *env) asked = env;
    if (!asked) return beside_program(out, size);
    if (snprintf(out, size, "%s", asked) >= (int)size)
        return err_set(ERR_LIMIT, "the path of the cubins is too long");
    return OK;
}

static void name_archs(char (*archs)[REGISTRY_ARCH], int n, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%ssm_%s", i ? ", " : "", archs[i]);
}

static int highest_arch(char (*archs)[REGISTRY_ARCH], int n)
{
    int best = -1, best_sm = -1;
    for (int i = 0; i < n; i++) {
        bool suffix;
        int sm = parse_arch(archs[i], &suffix);
        if (sm >= best_sm && sm > 0) best = i, best_sm = sm;
    }
    return best;
}

static enum status choose_archs(const struct registry_options *opt, const char *dir,
                                char (*archs)[REGISTRY_ARCH], int *order, int *n_order)
{
    int n = registry_list_archs(dir, archs, REGISTRY_ARCHS_MAX);
    char names[256];
    name_archs(archs, n, names, sizeof names);
    if (n <= 0)
        return err_set(ERR_UNAVAILABLE,
                       "no kernels in %s; build them with `make cubins` (needs nvcc), or set "
                       "SASSTOP_CUBINS",
                       dir);
    *n_order = 0;
    if (opt->every_arch) {
        for (int i = 0; i < n; i++) order[(*n_order)++] = i;
        return OK;
    }
    if (opt->arch) {
        for (int i = 0; i < n; i++)
            if (!strcmp(archs[i], opt->arch)) order[(*n_order)++] = i;
        if (*n_order == 0)
            return err_set(ERR_UNAVAILABLE, "no kernels for sm_%s in %s (there are: %s)", opt->arch,
                           dir, names);
        return OK;
    }
    if (opt->sm == 0) {
        int best = highest_arch(archs, n);
        if (best >= 0) order[(*n_order)++] = best;
    } else {
        const char *list[REGISTRY_ARCHS_MAX];
        for (int i = 0; i < n; i++) list[i] = archs[i];
        *n_order = registry_load_order(list, n, opt->sm, order);
    }
    if (*n_order == 0)
        return err_set(ERR_UNAVAILABLE,
                       "no kernels in %s run on sm_%d (there are: %s); build them with "
                       "`make cubins ARCHS=%d`",
                       dir, opt->sm, names, opt->sm);
    return OK;
}

enum status registry_open(const struct registry_options *opt, struct registry **out)
{
    *out = NULL;
    struct registry *r = calloc(1, sizeof *r);
    if (!r) return err_set(ERR_NOMEM, "out of memory");
    char archs[REGISTRY_ARCHS_MAX][REGISTRY_ARCH];
    int order[REGISTRY_ARCHS_MAX], n = 0;
    const char *allow = getenv("SASSTOP_ALLOW_BROKEN");
    bool broken = opt->include_broken || (allow && !strcmp(allow, "1"));
    enum status st = find_dir(opt->dir, r->dir, sizeof r->dir);
    r->every_arch = opt->every_arch;
    if (st == OK) st = choose_archs(opt, r->dir, archs, order, &n);
    if (st == OK) st = registry_scan(r, (const char(*)[REGISTRY_ARCH])archs, order, n, broken);
    const char *extra = opt->extra ? opt->extra : getenv("SASSTOP_VARIANTS");
    if (st == OK && extra && *extra)
        st = registry_scan_flat(r, extra, (const char(*)[REGISTRY_ARCH])archs, order, n, opt->sm);
    if (st == OK && r->n == 0)
        st = err_set(ERR_UNAVAILABLE, "no kernel in %s could be read%s%s", r->dir,
                     r->n_notes ? ": " : "", r->n_notes ? r->notes[0] : "");
    if (st != OK) {
        registry_close(r);
        return st;
    }
    qsort(r->v, (size_t)r->n, sizeof r->v[0], by_name);
    for (int i = 0; i < r->n; i++) r->v[i].index = i;
    *out = r;
    return OK;
}

void registry_close(struct registry *r)
{
    if (!r) return;
    for (int i = 0; i < r->n_files; i++) {
        free(r->files[i].bytes);
        free(r->files[i].path);
    }
    for (int i = 0; i < r->n_notes; i++) free(r->notes[i]);
    free(r);
}

int registry_count(const struct registry *r)
{
    return r->n;
}

const struct variant *registry_get(const struct registry *r, int i)
{
    return i >= 0 && i < r->n ? &r->v[i] : NULL;
}

const struct variant *registry_find(const struct registry *r, const char *kernel)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->v[i].kernel, kernel)) return &r->v[i];
    return NULL;
}

const struct variant *registry_find_kd(const struct registry *r, const char *family,
                                       const char *name, int kd)
{
    for (int i = 0; i < r->n; i++) {
        const struct variant *v = &r->v[i];
        if (!strcmp(v->family, family) && !strcmp(v->name, name) && v->kd == kd) return v;
    }
    return NULL;
}

const struct variant *registry_fallback(const struct registry *r, const char *family, int kd)
{
    for (int i = 0; i < r->n; i++) {
        const struct variant *v = &r->v[i];
        if (!strcmp(v->family, family) && v->kd == kd && v->desc.flags & VARIANT_FALLBACK) return v;
    }
    return NULL;
}

/* The entries are sorted, so a cycle is a walk over the array. */
static const struct variant *walk(const struct registry *r, const struct variant *v, int step,
                                  bool same_kd)
{
    int dir = step < 0 ? -1 : 1;
    for (int i = 1; i < r->n; i++) {
        const struct variant *o = &r->v[((v->index + dir * i) % r->n + r->n) % r->n];
        if (strcmp(o->family, v->family)) continue;
        if (same_kd ? o->kd == v->kd && strcmp(o->name, v->name)
                    : o->kd != v->kd && !strcmp(o->name, v->name))
            return o;
    }
    return v;
}

const struct variant *registry_cycle(const struct registry *r, const struct variant *v, int step)
{
    return walk(r, v, step, true);
}

const struct variant *registry_cycle_kd(const struct registry *r, const struct variant *v, int step)
{
    return walk(r, v, step, false);
}

const char *registry_dir(const struct registry *r)
{
    return r->dir;
}

int registry_notes(const struct registry *r)
{
    return r->n_notes;
}

const char *registry_note(const struct registry *r, int i)
{
    return i >= 0 && i < r->n_notes ? r->notes[i] : NULL;
}
