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
enum { EM_NVIDIA_CUDA = 190, SECTIONS_MAX = 65000, SYMBOLS_MAX = 1 << 20 };

static const char *table_string(const struct cubin_section *tab, uint64_t off)
{
    if (!tab || !tab->data || off >= tab->size) return "";
    const char *s = (const char *)tab->data + off;
    return memchr(s, 0, tab->size - off) ? s : "";
}

const struct cubin_section *cubin_section_find(const struct cubin_priv *p, const char *prefix,
                                               const char *name)
{
    size_t n = strlen(prefix);
    for (size_t i = 0; i < p->nsections; i++) {
        const char *s = p->sections[i].name;
        if (!strncmp(s, prefix, n) && !strcmp(s + n, name)) return &p->sections[i];
    }
    return NULL;
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
    } else if (h->sh_type != SHT_NOBITS) {
        if (h->sh_offset > c->size || h->sh_size > c->size - h->sh_offset)
            return err_set(ERR_FORMAT, "%s: section %zu lies outside the file", label, i);
        s->data = c->priv->bytes + h->sh_offset;
    }
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
    }
    free(names);
    return st;
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
    return OK;
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
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        n = 0;
        for (size_t i = 0; i < p->nsyms; i++) {
            const struct cubin_sym *s = &p->syms[i];
            if (s->section != text || ELF64_ST_TYPE(s->info) != STT_FUNC) continue;
            if (s->value >= k->code_size || s->size > k->code_size - s->value || s->value % 16)
                continue;
            if (s->other & STO_ENTRY) k->entry = true;
            if (pass)
                k->funcs[n] = (struct cubin_func){s->name, (uint32_t)s->value, (uint32_t)s->size};
            n++;
        }
        if (!pass && !(k->funcs = calloc(n ? n : 1, sizeof *k->funcs)))
            return err_set(ERR_NOMEM, "out of memory");
    }
    k->nfuncs = n;
    qsort(k->funcs, n, sizeof *k->funcs, by_offset);
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
    if (st == OK) st = read_kernels(c, label);
    return st;
}

enum status cubin_open_memory(struct cubin *out, const void *data, size_t size, const char *label)
{
    *out = (struct cubin){0};
    if (size > CUBIN_SIZE_MAX)
        return err_set(ERR_LIMIT, "%s: %zu bytes, the limit for a cubin is %d", label, size,
                       CUBIN_SIZE_MAX);
    enum status st = check_header(data, size, label);
    if (st) return st;
    struct cubin_priv *p = out->priv = calloc(1, sizeof *p);
    if (p) p->bytes = malloc(size);
    if (!p || !p->bytes) {
        cubin_close(out);
        return err_set(ERR_NOMEM, "%s: out of memory", label);
    }
    memcpy(p->bytes, data, size);
    out->size = size;
    out->file_hash = XXH64(data, size, 0);
    out->abi = p->bytes[EI_ABIVERSION];
    st = read_elf(out, label);
    if (st) cubin_close(out);
    return st;
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
    if (st == OK) st = cubin_open_memory(out, data, size, path);
    free(data);
    return st;
}

void cubin_close(struct cubin *c)
{
    for (size_t i = 0; i < c->nkernels; i++) free(c->kernels[i].funcs);
    free(c->kernels);
    if (c->priv) {
        free(c->priv->sections);
        free(c->priv->syms);
        free(c->priv->bytes);
        free(c->priv);
    }
    *c = (struct cubin){0};
}

const struct cubin_kernel *cubin_find_kernel(const struct cubin *c, const char *name)
{
    for (size_t i = 0; i < c->nkernels; i++)
        if (!strcmp(c->kernels[i].name, name)) return &c->kernels[i];
    return NULL;
}

/* A data object of the program, not one of the assembler's own. */
static bool is_object(const struct cubin_sym *s)
{
    return ELF64_ST_TYPE(s->info) == STT_OBJECT && s->name[0] && strncmp(s->name, ".nv.", 4);
}

enum status cubin_symbol(const struct cubin *c, const char *name, const void **ptr, size_t *size)
{
    const struct cubin_priv *p = c->priv;
    for (size_t i = 0; i < p->nsyms; i++) {
        const struct cubin_sym *s = &p->syms[i];
        if (!is_object(s) || strcmp(s->name, name)) continue;
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
    for (size_t i = 0; i < c->priv->nsyms; i++)
        if (is_object(&c->priv->syms[i]) && !n--) return c->priv->syms[i].name;
    return NULL;
}
