/*
 * Job: open a cubin, check it, list its kernels and data objects.
 *
 * Invariants: libelf reads the headers; the bytes of sections are taken from our own copy, and only
 * after their offset and size were held against the file, so nothing here depends on libelf's
 * conversions of hostile data. Names are NUL-terminated inside their string table or replaced by
 * "". To add a figure of a kernel: a field in cubin.h, an attribute in cubin_info.c.
 */
#include "sass_view/cubin.h"
#include "sass_view/cubin_priv.h"
#include <errno.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* for the size of the state */
#include <xxhash.h>

enum { STO_ENTRY = 0x10 }; /* st_other of a kernel */
enum { SHT_NV_NOBITS = 0x7000000a }; /* .nv_debug.shared: has a size and no bytes */
enum { EM_NVIDIA_CUDA = 190, SECTIONS_MAX = 65000, SYMBOLS_MAX = 1 << 20 };

static const char *table_string(const struct cubin_section *tab, uint64_t off)
{
    if (!tab || !tab->data || off >= tab->size) return "";
    const char *s = (const char *)tab->data + off;
    return memchr(s, 0, tab->size - off) ? s : "";
}

/* Compares `prefix` followed by `name` with a section's name. */
static int compare_name(const char *prefix, const char *name, const char *s)
{
    size_t n = strlen(prefix);
    int c = strncmp(prefix, s, n);
    return c ? c : strcmp(name, s + n);
}

const struct cubin_section *cubin_section_find(const struct cubin_priv *p, const char *prefix,
                                               const char *name)
{
    size_t lo = 0, hi = p->nsections; /* the first that isn't below: the file's first on a tie */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_name(prefix, name, p->by_name[mid]->name) > 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == p->nsections || compare_name(prefix, name, p->by_name[lo]->name)) return NULL;
    return p->by_name[lo];
}

/* The header's fixed part, by hand: libelf is only asked about files that pass. */
static enum status check_header(const uint8_t *b, size_t size, const char *label)
{
    if (size < sizeof(Elf64_Ehdr))
        return err_set(ERR_FORMAT, "%s: %zu bytes, too short for an ELF header", label, size);
    if (memcmp(b, ELFMAG, SELFMAG))
        return err_set(ERR_FORMAT, "%s: not an ELF file (cubins are; a fatbin or PTX isn't)",
                       label);
    if (b[EI_CLASS] != ELFCLASS64 || b[EI_DATA] != ELFDATA2LSB)
        return err_set(ERR_FORMAT, "%s: not a 64-bit little-endian ELF file", label);
    unsigned machine = b[18] | b[19] << 8;
    if (machine != EM_NVIDIA_CUDA)
        return err_set(ERR_FORMAT, "%s: ELF machine %u is not CUDA (190): not a cubin", label,
                       machine);
    return OK;
}

static enum status add_section(struct cubin *c, const Elf64_Shdr *h, const char *label, size_t i)
{
    struct cubin_section *s = &c->priv->sections[i];
    *s = (struct cubin_section){.name = "",
                                .size = h->sh_size,
                                .flags = h->sh_flags,
                                .type = h->sh_type,
                                .info = h->sh_info,
                                .link = h->sh_link};
    if (h->sh_type == SHT_NULL) {
        s->size = 0;
    } else if (h->sh_type != SHT_NOBITS && h->sh_type != SHT_NV_NOBITS) {
        if (h->sh_offset > c->size || h->sh_size > c->size - h->sh_offset)
            return err_set(ERR_FORMAT, "%s: section %zu lies outside the file", label, i);
        s->data = c->priv->bytes + h->sh_offset;
    }
    return OK;
}

static int by_section_name(const void *a, const void *b)
{
    const struct cubin_section *x = *(const struct cubin_section *const *)a,
                               *y = *(const struct cubin_section *const *)b;
    int c = strcmp(x->name, y->name);
    return c ? c : x < y ? -1 : 1;
}

static enum status index_sections(struct cubin_priv *p, const char *label)
{
    p->by_name = malloc(p->nsections * sizeof *p->by_name);
    if (!p->by_name) return err_set(ERR_NOMEM, "%s: out of memory", label);
    for (size_t i = 0; i < p->nsections; i++) p->by_name[i] = &p->sections[i];
    qsort(p->by_name, p->nsections, sizeof *p->by_name, by_section_name);
    return OK;
}

static enum status read_sections(struct cubin *c, Elf *elf, const char *label)
{
    struct cubin_priv *p = c->priv;
    const Elf64_Ehdr *eh = elf64_getehdr(elf);
    size_t n = 0, strndx = 0;
    if (!eh || elf_getshdrnum(elf, &n) || elf_getshdrstrndx(elf, &strndx))
        return err_set(ERR_FORMAT, "%s: broken ELF header: %s", label, elf_errmsg(-1));
    if (n == 0) return err_set(ERR_FORMAT, "%s: no section headers", label);
    if (n > SECTIONS_MAX)
        return err_set(ERR_LIMIT, "%s: %zu sections, the limit is %d", label, n, SECTIONS_MAX);
    if (eh->e_shoff > c->size || n > (c->size - eh->e_shoff) / sizeof(Elf64_Shdr))
        return err_set(ERR_FORMAT, "%s: section headers lie outside the file", label);
    p->e_flags = eh->e_flags;
    p->sections = calloc(n, sizeof *p->sections);
    uint32_t *names = calloc(n, sizeof *names);
    enum status st = p->sections && names ? OK : err_set(ERR_NOMEM, "%s: out of memory", label);
    for (size_t i = 0; st == OK && i < n; i++) {
        Elf_Scn *scn = elf_getscn(elf, i);
        const Elf64_Shdr *at = scn ? elf64_getshdr(scn) : NULL;
        Elf64_Shdr h; /* libelf may hand out a misaligned pointer into our bytes */
        if (!at) {
            st = err_set(ERR_FORMAT, "%s: section header %zu can't be read", label, i);
            break;
        }
        memcpy(&h, at, sizeof h);
        names[i] = h.sh_name;
        st = add_section(c, &h, label, i);
    }
    if (st == OK) {
        p->nsections = n;
        const struct cubin_section *tab = strndx < n ? &p->sections[strndx] : NULL;
        for (size_t i = 0; i < n; i++) p->sections[i].name = table_string(tab, names[i]);
        st = index_sections(p, label);
    }
    free(names);
    return st;
}

/* A data object of the program, not one of the assembler's own. */
static bool is_object(const struct cubin_sym *s)
{
    return ELF64_ST_TYPE(s->info) == STT_OBJECT && s->name[0] && strncmp(s->name, ".nv.", 4);
}

/* The function symbols by section, and the objects in the file's order: two lists, so that no
 * kernel and no caller has to walk all symbols. */
static enum status index_symbols(struct cubin_priv *p, const char *label)
{
    size_t n = p->nsyms ? p->nsyms : 1;
    p->func_at = calloc(p->nsections + 1, sizeof *p->func_at);
    p->funcs = calloc(n, sizeof *p->funcs);
    p->objects = calloc(n, sizeof *p->objects);
    if (!p->func_at || !p->funcs || !p->objects)
        return err_set(ERR_NOMEM, "%s: out of memory", label);
    for (size_t i = 0; i < p->nsyms; i++) {
        const struct cubin_sym *s = &p->syms[i];
        if (is_object(s)) p->objects[p->nobjects++] = (uint32_t)i;
        if (ELF64_ST_TYPE(s->info) == STT_FUNC && s->section < p->nsections)
            p->func_at[s->section + 1]++;
    }
    for (size_t i = 1; i <= p->nsections; i++) p->func_at[i] += p->func_at[i - 1];
    for (size_t i = p->nsyms; i-- > 0;) {
        const struct cubin_sym *s = &p->syms[i];
        if (ELF64_ST_TYPE(s->info) == STT_FUNC && s->section < p->nsections)
            p->funcs[--p->func_at[s->section + 1]] = (uint32_t)i;
    }
    /* The second walk moved each end to its start: shift back. */
    size_t all = 0;
    for (size_t i = 0; i < p->nsyms; i++)
        all += ELF64_ST_TYPE(p->syms[i].info) == STT_FUNC && p->syms[i].section < p->nsections;
    memmove(p->func_at, p->func_at + 1, p->nsections * sizeof *p->func_at);
    p->func_at[p->nsections] = (uint32_t)all;
    return OK;
}

static enum status read_symbols(struct cubin *c, const char *label)
{
    struct cubin_priv *p = c->priv;
    const struct cubin_section *tab = NULL;
    for (size_t i = 0; i < p->nsections && !tab; i++)
        if (p->sections[i].type == SHT_SYMTAB) tab = &p->sections[i];
    if (!tab) return OK;
    if (tab->link >= p->nsections)
        return err_set(ERR_FORMAT, "%s: the symbol table names no string table", label);
    size_t n = tab->size / sizeof(Elf64_Sym);
    if (n > SYMBOLS_MAX)
        return err_set(ERR_LIMIT, "%s: %zu symbols, the limit is %d", label, n, SYMBOLS_MAX);
    p->syms = calloc(n ? n : 1, sizeof *p->syms);
    if (!p->syms) return err_set(ERR_NOMEM, "%s: out of memory", label);
    for (size_t i = 0; i < n; i++) {
        Elf64_Sym s; /* the table may be misaligned in a hostile file */
        memcpy(&s, tab->data + i * sizeof s, sizeof s);
        p->syms[i] = (struct cubin_sym){.name = table_string(&p->sections[tab->link], s.st_name),
                                        .value = s.st_value,
                                        .size = s.st_size,
                                        .section = s.st_shndx,
                                        .info = s.st_info,
                                        .other = s.st_other};
    }
    p->nsyms = n;
    return index_symbols(p, label);
}

static bool is_text(const struct cubin_section *s)
{
    return s->type == SHT_PROGBITS && !strncmp(s->name, ".text.", 6) && s->name[6];
}

static int by_offset(const void *a, const void *b)
{
    const struct cubin_func *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->size < y->size ? 1 : x->size > y->size ? -1 : strcmp(x->name, y->name);
}

/* Functions of one .text section; the kernel's own symbol spans them all, so it sorts first. */
static enum status read_funcs(const struct cubin_priv *p, struct cubin_kernel *k, size_t text)
{
    size_t first = p->nsyms ? p->func_at[text] : 0, end = p->nsyms ? p->func_at[text + 1] : 0;
    k->funcs = calloc(end > first ? end - first : 1, sizeof *k->funcs);
    if (!k->funcs) return err_set(ERR_NOMEM, "out of memory");
    for (size_t i = first; i < end; i++) {
        const struct cubin_sym *s = &p->syms[p->funcs[i]];
        if (s->value >= k->code_size || s->size > k->code_size - s->value || s->value % 16)
            continue;
        if (s->other & STO_ENTRY) k->entry = true;
        k->funcs[k->nfuncs++] = (struct cubin_func){s->name, (uint32_t)s->value, (uint32_t)s->size};
    }
    qsort(k->funcs, k->nfuncs, sizeof *k->funcs, by_offset);
    return OK;
}

static uint64_t code_hash(const struct cubin_section *text, const struct cubin_section *info)
{
    XXH64_state_t st;
    XXH64_reset(&st, 0);
    XXH64_update(&st, text->data, text->size);
    if (info && info->data) XXH64_update(&st, info->data, info->size);
    return XXH64_digest(&st);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cubin_kernel *)a)->name, ((const struct cubin_kernel *)b)->name);
}

static enum status read_kernels(struct cubin *c, const char *label)
{
    struct cubin_priv *p = c->priv;
    size_t n = 0;
    for (size_t i = 0; i < p->nsections; i++) n += is_text(&p->sections[i]);
    if (n > CUBIN_KERNELS_MAX)
        return err_set(ERR_LIMIT, "%s: %zu kernels, the limit is %d", label, n, CUBIN_KERNELS_MAX);
    c->kernels = calloc(n ? n : 1, sizeof *c->kernels);
    if (!c->kernels) return err_set(ERR_NOMEM, "%s: out of memory", label);
    for (size_t i = 0; i < p->nsections; i++) {
        const struct cubin_section *s = &p->sections[i];
        if (!is_text(s)) continue;
        if (s->size % 16 || s->size > UINT32_MAX)
            return err_set(ERR_FORMAT, "%s: %s is %llu bytes, not whole instructions", label,
                           s->name, (unsigned long long)s->size);
        struct cubin_kernel *k = &c->kernels[c->nkernels];
        *k = (struct cubin_kernel){
            .name = s->name + 6, .code = s->data, .code_size = (uint32_t)s->size};
        k->code_hash = code_hash(s, cubin_section_find(p, ".nv.info.", k->name));
        c->nkernels++;
        enum status st = read_funcs(p, k, i);
        if (st) return err_prefix(st, "%s", label);
        cubin_read_info(c, k, i);
    }
    qsort(c->kernels, c->nkernels, sizeof *c->kernels, by_name);
    return OK;
}

static enum status read_elf(struct cubin *c, const char *label)
{
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)c->priv->bytes, c->size);
    if (!elf) return err_set(ERR_FORMAT, "%s: %s", label, elf_errmsg(-1));
    enum status st = read_sections(c, elf, label);
    elf_end(elf);
    if (st == OK) st = read_symbols(c, label);
    if (st == OK) st = cubin_read_arch(c, label);
    if (st == OK) st = cubin_read_module(c->priv, label);
    if (st == OK) st = read_kernels(c, label);
    return st;
}

enum status cubin_adopt(struct cubin *out, uint8_t *data, size_t size, const char *label,
                        bool sealed)
{
    *out = (struct cubin){.sealed = sealed};
    enum status st = size > CUBIN_SIZE_MAX
                         ? err_set(ERR_LIMIT, "%s: %zu bytes, the limit for a cubin is %d", label,
                                   size, CUBIN_SIZE_MAX)
                         : check_header(data, size, label);
    if (st == OK && !(out->priv = calloc(1, sizeof *out->priv)))
        st = err_set(ERR_NOMEM, "%s: out of memory", label);
    if (st) {
        free(data);
        *out = (struct cubin){0};
        return st;
    }
    out->priv->bytes = data;
    out->size = size;
    out->file_hash = XXH64(data, size, 0);
    out->abi = data[EI_ABIVERSION];
    st = read_elf(out, label);
    if (st) cubin_close(out);
    return st;
}

enum status cubin_open_memory(struct cubin *out, const void *data, size_t size, const char *label)
{
    *out = (struct cubin){0};
    enum status st = size > CUBIN_SIZE_MAX
                         ? err_set(ERR_LIMIT, "%s: %zu bytes, the limit for a cubin is %d", label,
                                   size, CUBIN_SIZE_MAX)
                         : check_header(data, size, label);
    if (st) return st;
    uint8_t *copy = malloc(size);
    if (!copy) return err_set(ERR_NOMEM, "%s: out of memory", label);
    memcpy(copy, data, size);
    return cubin_adopt(out, copy, size, label, false);
}

static enum status read_whole(FILE *f, const char *path, uint8_t **data, size_t *size)
{
    long n = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
    if (n < 0 || fseek(f, 0, SEEK_SET)) return err_set(ERR_IO, "%s: %s", path, strerror(errno));
    if (n > CUBIN_SIZE_MAX)
        return err_set(ERR_LIMIT, "%s: %ld bytes, the limit for a cubin is %d", path, n,
                       CUBIN_SIZE_MAX);
    if (!(*data = malloc(n ? (size_t)n : 1))) return err_set(ERR_NOMEM, "%s: out of memory", path);
    errno = 0;
    *size = fread(*data, 1, (size_t)n, f);
    if (*size != (size_t)n)
        return err_set(ERR_IO, "%s: %s", path, errno ? strerror(errno) : "shrank while being read");
    return OK;
}

enum status cubin_open_file(struct cubin *out, const char *path)
{
    *out = (struct cubin){0};
    FILE *f = fopen(path, "rb");
    if (!f) return err_set(ERR_IO, "%s: %s", path, strerror(errno));
    uint8_t *data = NULL;
    size_t size = 0;
    enum status st = read_whole(f, path, &data, &size);
    fclose(f);
    if (st == OK) return cubin_adopt(out, data, size, path, false);
    free(data);
    return st;
}

void cubin_close(struct cubin *c)
{
    for (size_t i = 0; i < c->nkernels; i++) free(c->kernels[i].funcs);
    free(c->kernels);
    if (c->priv) {
        free(c->priv->sections);
        free(c->priv->by_name);
        free(c->priv->syms);
        free(c->priv->func_at);
        free(c->priv->funcs);
        free(c->priv->objects);
        free(c->priv->module_regs);
        free(c->priv->module_stack);
        free(c->priv->bytes);
        free(c->priv);
    }
    *c = (struct cubin){0};
}

const uint8_t *cubin_bytes(const struct cubin *c)
{
    return c->priv->bytes;
}

const struct cubin_kernel *cubin_find_kernel(const struct cubin *c, const char *name)
{
    const struct cubin_kernel key = {.name = name};
    return c->nkernels ? bsearch(&key, c->kernels, c->nkernels, sizeof key, by_name) : NULL;
}

enum status cubin_symbol(const struct cubin *c, const char *name, const void **ptr, size_t *size)
{
    const struct cubin_priv *p = c->priv;
    for (size_t i = 0; i < p->nobjects; i++) {
        const struct cubin_sym *s = &p->syms[p->objects[i]];
        if (strcmp(s->name, name)) continue;
        const struct cubin_section *sec =
            s->section < p->nsections ? &p->sections[s->section] : NULL;
        if (!sec || !sec->data)
            return err_set(ERR_FAILED, "object %s has no bytes in the file", name);
        if (s->value > sec->size || s->size > sec->size - s->value)
            return err_set(ERR_FORMAT, "object %s lies outside its section", name);
        *ptr = sec->data + s->value;
        *size = s->size;
        return OK;
    }
    return err_set(ERR_FAILED, "no object %s in the cubin", name);
}

const char *cubin_object_name(const struct cubin *c, size_t n)
{
    const struct cubin_priv *p = c->priv;
    return n < p->nobjects ? p->syms[p->objects[n]].name : NULL;
}
