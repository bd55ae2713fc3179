/*
 * Job: which chip and toolkit a cubin is for.
 *
 * The number stands in e_flags: bits 8-15 with ABI 8 (CUDA 13), bits 0-7 before. The suffix ('a',
 * 'f') is in the option string of .note.nv.tkinfo ("-arch sm_90a"); without the note, 'a' is told
 * by .nv.compat attribute 9 (ABI 8) or e_flags bit 11 (ABI 7, as LLVM writes it). With neither, the
 * plain name is given. The toolkit's number is the second word of .note.nv.cuinfo.
 */
#include "base/buf.h"
#include "sass_view/cubin_priv.h"
#include <stdio.h>
#include <string.h>

enum { ABI_CUDA13 = 8, COMPAT_ARCH_SPECIFIC = 9 };

/* The descriptor of the first note in `s`; an empty reader when it's not whole. */
static struct rd note_desc(const struct cubin_section *s)
{
    if (!s || !s->data) return rd_make("", 0);
    struct rd r = rd_make(s->data, s->size);
    uint32_t namesz = rd_u32(&r), descsz = rd_u32(&r);
    rd_u32(&r); /* type */
    const uint8_t *name = rd_bytes(&r, ((size_t)namesz + 3) & ~(size_t)3);
    const uint8_t *desc = name ? rd_bytes(&r, descsz) : NULL;
    return desc ? rd_make(desc, descsz) : rd_make("", 0);
}

/* The suffix letter after "sm_NN" in the options of the assembler, 0 when not found. */
static int note_suffix(const struct cubin_priv *p, int sm, bool *found)
{
    struct rd r = note_desc(cubin_section_find(p, ".note.nv.tkinfo", ""));
    char key[32];
    int n = snprintf(key, sizeof key, "-arch sm_%d", sm);
    for (const uint8_t *b = r.p; (size_t)(r.end - b) > (size_t)n; b++) {
        if (memcmp(b, key, (size_t)n)) continue;
        *found = true;
        return b[n] == 'a' || b[n] == 'f' ? b[n] : 0;
    }
    return 0;
}

static bool compat_says_a(const struct cubin_priv *p)
{
    const struct cubin_section *s = cubin_section_find(p, ".nv.compat", "");
    if (!s || !s->data) return false;
    struct rd r = rd_make(s->data, s->size);
    while (rd_left(&r) >= 4) {
        uint8_t fmt = rd_u8(&r), code = rd_u8(&r);
        uint16_t value = rd_u16(&r);
        if (fmt == 4)
            rd_bytes(&r, value);
        else if (code == COMPAT_ARCH_SPECIFIC && value == 1)
            return true;
    }
    return false;
}

enum status cubin_read_arch(struct cubin *c, const char *label)
{
    const struct cubin_priv *p = c->priv;
    bool abi8 = c->abi >= ABI_CUDA13, found = false;
    c->sm = (int)(abi8 ? p->e_flags >> 8 & 0xff : p->e_flags & 0xff);
    if (c->sm < 10) return err_set(ERR_FORMAT, "%s: no SM number in the ELF flags", label);
    int suffix = note_suffix(p, c->sm, &found);
    if (!found && (abi8 ? compat_says_a(p) : (p->e_flags >> 11 & 1))) suffix = 'a';
    c->arch_suffix = suffix == 'a';
    snprintf(c->arch, sizeof c->arch, suffix ? "sm_%d%c" : "sm_%d", c->sm, suffix);

    struct rd r = note_desc(cubin_section_find(p, ".note.nv.cuinfo", ""));
    rd_u16(&r);
    rd_u16(&r);
    uint32_t tk = rd_u32(&r);
    if (!r.bad && tk >= 70 && tk < 1000)
        snprintf(c->toolkit, sizeof c->toolkit, "%u.%u", tk / 10, tk % 10);
    return OK;
}
