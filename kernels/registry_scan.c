/*
 * Finding cubins and reading their descriptors; see registry.h.
 *
 * Invariant: an entry is added only when its descriptor, its symbol, its file's name and its folder
 * agree and its kernel is in the cubin. Everything else becomes a note.
 */
#include "kernels/registry_priv.h"

#include "sass_view/cubin.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char SUFFIX[] = "_desc";

void registry_add_note(struct registry *r, const char *path, const char *message)
{
    char *text = NULL;
    if (r->n_notes < REGISTRY_NOTES_MAX && asprintf(&text, "%s: %s", path, message) >= 0)
        r->notes[r->n_notes++] = text;
}

static enum status read_file(const char *path, uint8_t **bytes, size_t *size)
{
    *bytes = NULL;
    struct stat sb;
    enum status st = OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &sb) < 0) {
        st = err_set(ERR_IO, "can't be read: %m");
        goto out;
    }
    if (!S_ISREG(sb.st_mode) || sb.st_size > REGISTRY_FILE_BYTES) {
        st = err_set(ERR_LIMIT, "not a regular file of at most %d MiB", REGISTRY_FILE_BYTES >> 20);
        goto out;
    }
    size_t want = (size_t)sb.st_size, have = 0;
    *bytes = malloc(want + 1);
    if (!*bytes) {
        st = err_set(ERR_NOMEM, "out of memory");
        goto out;
    }
    while (have < want) {
        ssize_t got = read(fd, *bytes + have, want - have);
        if (got <= 0) break;
        have += (size_t)got;
    }
    *size = have;
    if (have != want) st = err_set(ERR_IO, "ended early");
out:
    if (fd >= 0) close(fd);
    if (st != OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return st;
}

static bool terminated(const char *s, size_t size)
{
    return memchr(s, '\0', size) != NULL;
}

static bool texts_end(const struct variant_desc *d)
{
    bool ok = terminated(d->name, sizeof d->name) && terminated(d->family, sizeof d->family) &&
              terminated(d->note, sizeof d->note) && terminated(d->parent, sizeof d->parent) &&
              terminated(d->step, sizeof d->step) && terminated(d->numeric, sizeof d->numeric) &&
              terminated(d->layout_a, sizeof d->layout_a) &&
              terminated(d->layout_b, sizeof d->layout_b) &&
              terminated(d->expect, sizeof d->expect) && terminated(d->verdict, sizeof d->verdict);
    for (uint32_t i = 0; ok && i < VARIANT_BUFFERS; i++)
        ok = terminated(d->buffers[i].name, sizeof d->buffers[i].name);
    return ok;
}

/* Every figure that is added, multiplied or launched with later is held to a sane range here. */
static enum status check_numbers(const struct variant_desc *d)
{
    const uint32_t tile_max = 1 << 20, smem_max = 1 << 24;
    if (d->threads == 0 || d->threads > 1024)
        return err_set(ERR_FORMAT, "%s: %u threads a block", d->name, d->threads);
    if (d->tile_m > tile_max || d->tile_n > tile_max || d->tile_k > tile_max || d->kd > 4096)
        return err_set(ERR_FORMAT, "%s: a tile out of range", d->name);
    if (d->n_buffers > VARIANT_BUFFERS)
        return err_set(ERR_FORMAT, "%s: %u shared buffers, at most %d", d->name, d->n_buffers,
                       VARIANT_BUFFERS);
    for (uint32_t i = 0; i < d->n_buffers; i++)
        if (d->buffers[i].bytes > smem_max)
            return err_set(ERR_FORMAT, "%s: shared buffer %s of %u bytes", d->name,
                           d->buffers[i].name, d->buffers[i].bytes);
    return OK;
}

enum status registry_check_desc(const struct variant_desc *d, const char *symbol,
                                const char *file_stem, const char *family)
{
    if (d->abi != VARIANT_ABI || d->size != sizeof *d)
        return err_set(ERR_FORMAT, "descriptor of ABI %u, %u bytes; this program reads ABI %d, %zu",
                       d->abi, d->size, VARIANT_ABI, sizeof *d);
    if (!texts_end(d)) return err_set(ERR_FORMAT, "a text of the descriptor doesn't end");
    size_t n = strlen(d->name);
    if (n == 0 || strncmp(symbol, d->name, n) || strcmp(symbol + n, SUFFIX))
        return err_set(ERR_FORMAT, "descriptor %s says its kernel is \"%s\"", symbol, d->name);
    size_t stem = strlen(file_stem);
    if (strncmp(d->name, file_stem, stem) || (d->name[stem] && d->name[stem] != '_'))
        return err_set(ERR_FORMAT, "kernel %s in a file called %s", d->name, file_stem);
    if (strcmp(d->family, family))
        return err_set(ERR_FORMAT, "%s says it is of family %s, in the folder of %s", d->name,
                       d->family, family);
    char tail[16];
    snprintf(tail, sizeof tail, "_kd%u", d->kd);
    if (d->kd && strcmp(d->name + stem, tail))
        return err_set(ERR_FORMAT, "%s has KD %u: it should be called %s%s", d->name, d->kd,
                       file_stem, tail);
    return check_numbers(d);
}

static bool have_kernel(const struct registry *r, const char *kernel, const char *arch)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->v[i].kernel, kernel) && (!r->every_arch || !strcmp(r->v[i].arch, arch)))
            return true;
    return false;
}

/* `family` NULL: whatever the descriptor says. */
static enum status add_variant(struct registry *r, const struct cubin *c, const char *object,
                               const char *stem, const char *family, bool broken, const char *arch,
                               const struct registry_file *file)
{
    const void *bytes;
    size_t size;
    struct variant_desc d;
    enum status st = cubin_symbol(c, object, &bytes, &size);
    if (st != OK) return st;
    if (size != sizeof d)
        return err_set(ERR_FORMAT, "%s is %zu bytes, a descriptor is %zu", object, size, sizeof d);
    memcpy(&d, bytes, sizeof d);
    if (!family && terminated(d.family, sizeof d.family)) family = d.family;
    if ((st = registry_check_desc(&d, object, stem, family ? family : "")) != OK) return st;
    if (broken != !!(d.flags & VARIANT_BROKEN))
        return err_set(ERR_FORMAT, "%s: only what lies in broken/ may be, and must be, marked so",
                       d.name);
    const struct cubin_kernel *k = cubin_find_kernel(c, d.name);
    if (!k) return err_set(ERR_FORMAT, "descriptor %s without its kernel", object);
    if (have_kernel(r, d.name, arch)) return err_set(ERR_FORMAT, "a second kernel %s", d.name);
    if (r->n == REGISTRY_MAX) return err_set(ERR_LIMIT, "more than %d kernels", REGISTRY_MAX);
    struct variant *v = &r->v[r->n];
    *v = (struct variant){
        .desc = d,
        .kd = (int)d.kd,
        .broken = broken,
        .path = file->path,
        .bytes = file->bytes,
        .n_bytes = file->size,
        .cubin_hash = c->file_hash,
        .code_hash = k->code_hash,
        .regs = k->regs,
        .static_smem = k->smem,
        .spill_bytes =
            k->spill_store < 0 || k->spill_load < 0 ? -1 : k->spill_store + k->spill_load,
        .dyn_smem = variant_smem(&d),
        .index = r->n,
    };
    snprintf(v->name, sizeof v->name, "%s", stem);
    snprintf(v->kernel, sizeof v->kernel, "%s", d.name);
    snprintf(v->family, sizeof v->family, "%s", family);
    snprintf(v->arch, sizeof v->arch, "%s", arch);
    r->n++;
    return OK;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), e = strlen(end);
    return n > e && !strcmp(s + n - e, end);
}

/* True when an architecture that comes first has this file already. */
static bool have_file(const struct registry *r, const char *family, const char *stem)
{
    for (int i = 0; i < r->n && !r->every_arch; i++)
        if (!strcmp(r->v[i].family, family) && !strcmp(r->v[i].name, stem)) return true;
    return false;
}

static void add_file(struct registry *r, const char *path, const char *stem, const char *family,
                     bool broken, const char *arch)
{
    if (r->n_files == REGISTRY_FILES_MAX) {
        registry_add_note(r, path, "too many cubins, left out");
        return;
    }
    struct registry_file *f = &r->files[r->n_files];
    struct cubin c = {0};
    enum status st = read_file(path, &f->bytes, &f->size);
    if (st == OK) st = cubin_open_memory(&c, f->bytes, f->size, path);
    f->path = strdup(path);
    if (st != OK || !f->path) {
        registry_add_note(r, path, f->path ? err_msg() : "out of memory");
        free(f->bytes);
        free(f->path);
        *f = (struct registry_file){0};
        return;
    }
    r->n_files++;
    const char *object;
    int found = 0;
    for (size_t i = 0; (object = cubin_object_name(&c, i)); i++) {
        if (!ends_with(object, SUFFIX)) continue;
        found++;
        if (add_variant(r, &c, object, stem, family, broken, arch, f) != OK)
            registry_add_note(r, path, err_msg());
    }
    /* A file may hold nothing for this architecture; a kernel without a descriptor is a slip. */
    if (!found && c.nkernels) registry_add_note(r, path, "no descriptor inside");
    cubin_close(&c);
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void scan_family(struct registry *r, const char *dir, const char *family, bool broken,
                        const char *arch)
{
    struct dirent **list;
    int n = scandir(dir, &list, visible, alphasort);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX], stem[VARIANT_NAME];
        const char *name = list[i]->d_name;
        size_t len = strlen(name);
        bool fits = snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path;
        if (fits && ends_with(name, ".cubin") && len - 6 < sizeof stem) {
            snprintf(stem, sizeof stem, "%.*s", (int)(len - 6), name);
            if (!have_file(r, family, stem)) add_file(r, path, stem, family, broken, arch);
        }
        free(list[i]);
    }
    if (n >= 0) free(list);
}

enum status registry_scan(struct registry *r, const char (*archs)[REGISTRY_ARCH], const int *order,
                          int n, bool include_broken)
{
    for (int a = 0; a < n; a++) {
        const char *arch = archs[order[a]];
        char dir[PATH_MAX], sub[PATH_MAX];
        struct dirent **list;
        if (snprintf(dir, sizeof dir, "%s/sm_%s", r->dir, arch) >= (int)sizeof dir) continue;
        int m = scandir(dir, &list, visible, alphasort);
        for (int i = 0; i < m; i++) {
            const char *family = list[i]->d_name;
            bool fits = strlen(family) < sizeof r->v[0].family;
            if (fits && snprintf(sub, sizeof sub, "%s/%s", dir, family) < (int)sizeof sub)
                scan_family(r, sub, family, false, arch);
            if (fits && include_broken &&
                snprintf(sub, sizeof sub, "%s/%s/broken", dir, family) < (int)sizeof sub)
                scan_family(r, sub, family, true, arch);
            free(list[i]);
        }
        if (m >= 0) free(list);
    }
    return OK;
}

static bool runs_here(const char *arch, const char (*archs)[REGISTRY_ARCH], const int *order, int n,
                      int sm)
{
    int unused;
    if (sm) return registry_load_order(&arch, 1, sm, &unused) == 1;
    for (int i = 0; i < n; i++)
        if (!strcmp(archs[order[i]], arch)) return true;
    return false;
}

static void add_own(struct registry *r, const char *path, const char *stem,
                    const char (*archs)[REGISTRY_ARCH], const int *order, int n, int sm)
{
    struct cubin c;
    if (cubin_open_file(&c, path) != OK) {
        registry_add_note(r, path, err_msg());
        return;
    }
    char arch[REGISTRY_ARCH], why[120];
    snprintf(arch, sizeof arch, "%.11s", !strncmp(c.arch, "sm_", 3) ? c.arch + 3 : c.arch);
    cubin_close(&c);
    if (sm || n == 0)
        snprintf(why, sizeof why, "it is for sm_%s, which doesn't run here", arch);
    else /* no device says what runs; a list of one architecture was read */
        snprintf(why, sizeof why, "it is for sm_%s, not for sm_%s, which was read; try --arch %s",
                 arch, archs[order[0]], arch);
    if (r->every_arch || runs_here(arch, archs, order, n, sm))
        add_file(r, path, stem, NULL, false, arch);
    else
        registry_add_note(r, path, why);
}

enum status registry_scan_flat(struct registry *r, const char *dir,
                               const char (*archs)[REGISTRY_ARCH], const int *order, int n, int sm)
{
    struct dirent **list;
    int m = scandir(dir, &list, visible, alphasort);
    if (m < 0) return err_set(ERR_USAGE, "no folder of variants %s: %m", dir);
    for (int i = 0; i < m; i++) {
        char path[PATH_MAX], stem[VARIANT_NAME];
        size_t len = strlen(list[i]->d_name);
        bool fits = snprintf(path, sizeof path, "%s/%s", dir, list[i]->d_name) < (int)sizeof path;
        if (fits && ends_with(list[i]->d_name, ".cubin") && len - 6 < sizeof stem) {
            snprintf(stem, sizeof stem, "%.*s", (int)(len - 6), list[i]->d_name);
            add_own(r, path, stem, archs, order, n, sm);
        }
        free(list[i]);
    }
    free(list);
    return OK;
}

int registry_list_archs(const char *dir, char (*archs)[REGISTRY_ARCH], int max)
{
    struct dirent **list;
    int n = scandir(dir, &list, visible, alphasort), found = 0;
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        if (found < max && !strncmp(name, "sm_", 3) && strlen(name + 3) < REGISTRY_ARCH)
            strcpy(archs[found++], name + 3);
        free(list[i]);
    }
    if (n >= 0) free(list);
    return n < 0 ? -1 : found;
}
