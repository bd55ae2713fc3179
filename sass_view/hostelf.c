/*
 * Job: the sections of a host program, object or library that hold fatbins; its soname.
 *
 * Invariants: libelf is asked for headers alone; contents are read through the source, after their
 * place was held against the file. An ELF file without such sections is no error here.
 */
#include "sass_view/container_priv.h"
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS_MAX = 65000, NAME_MAX_BYTES = 128, DYNAMIC_MAX = 1 << 20 };

static bool inside(const struct container *c, const Elf64_Shdr *h)
{
    return h->sh_type != SHT_NOBITS && h->sh_offset <= c->size &&
           h->sh_size <= c->size - h->sh_offset;
}

static bool header_of(Elf *elf, size_t i, Elf64_Shdr *out)
{
    Elf_Scn *scn = elf_getscn(elf, i);
    const Elf64_Shdr *h = scn ? elf64_getshdr(scn) : NULL;
    if (h) memcpy(out, h, sizeof *out); /* libelf may hand out a misaligned pointer */
    return h != NULL;
}

/* The string at `off` of the table in section h, cut to fit; "" when it isn't there. */
static void string_at(struct container *c, const Elf64_Shdr *h, uint64_t off, char *out,
                      size_t size)
{
    memset(out, 0, size);
    if (!inside(c, h) || off >= h->sh_size) return;
    uint64_t n = h->sh_size - off < size - 1 ? h->sh_size - off : size - 1;
    if (!source_read(&c->priv->src, h->sh_offset + off, out, (size_t)n)) out[0] = 0;
}

static void read_soname(struct container *c, Elf *elf, const Elf64_Shdr *dynamic)
{
    Elf64_Shdr strings;
    if (!inside(c, dynamic) || !header_of(elf, dynamic->sh_link, &strings)) return;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->sh_size && at < DYNAMIC_MAX;
         at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        if (!source_read(&c->priv->src, dynamic->sh_offset + at, &d, sizeof d)) return;
        if (d.d_tag == DT_NULL) return;
        if (d.d_tag == DT_SONAME) string_at(c, &strings, d.d_un.d_val, c->soname, sizeof c->soname);
    }
}

static enum status walk_sections(struct container *c, Elf *elf)
{
    size_t n = 0, strndx = 0;
    Elf64_Shdr names, h;
    if (elf_getshdrnum(elf, &n) || elf_getshdrstrndx(elf, &strndx) || n > SECTIONS_MAX)
        return err_set(ERR_FORMAT, "%s: broken ELF header", c->label);
    if (!header_of(elf, strndx, &names)) return OK; /* stripped of its section headers */
    enum status st = OK;
    for (size_t i = 1; st == OK && i < n; i++) {
        char name[NAME_MAX_BYTES];
        if (!header_of(elf, i, &h)) continue;
        if (h.sh_type == SHT_DYNAMIC) read_soname(c, elf, &h);
        string_at(c, &names, h.sh_name, name, sizeof name);
        bool relocatable = !strcmp(name, "__nv_relfatbin");
        if ((!relocatable && strcmp(name, ".nv_fatbin")) || !inside(c, &h)) continue;
        st = fatbin_walk(c, h.sh_offset, h.sh_size, relocatable);
    }
    return st;
}

enum status hostelf_walk(struct container *c)
{
    struct source *s = &c->priv->src;
    elf_version(EV_CURRENT);
    Elf *elf = s->fd >= 0 ? elf_begin(s->fd, ELF_C_READ, NULL)
                          : elf_memory((char *)(uintptr_t)s->mem, s->size);
    if (!elf) return err_set(ERR_FORMAT, "%s: %s", c->label, elf_errmsg(-1));
    enum status st = OK;
    if (elf_kind(elf) != ELF_K_ELF || !elf64_getehdr(elf))
        st = err_set(ERR_FORMAT, "%s: not a 64-bit ELF file", c->label);
    else
        st = walk_sections(c, elf);
    elf_end(elf);
    return st;
}
