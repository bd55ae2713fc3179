/*
 * Job: tell what a file is, list its parts, open one of them.
 *
 * Invariants: `parts` only names bytes inside the file; a read that fails is an error of its part,
 * not of the container. To add a kind of file: its test in open_source(), a walk that calls
 * container_add().
 */
#include "sass_view/container.h"
#include "base/buf.h"
#include "sass_view/container_priv.h"
#include "sass_view/cubin_priv.h"
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EM_NVIDIA_CUDA = 190, PTX_HEAD = 4096 };

/* Libraries under NVIDIA's toolkit and cuDNN licences, by the start of their soname. NCCL is not
 * here: its licence is BSD. */
static const char *const vendor_names[] = {
    "libcublas",   "libcudnn",      "libcufft",       "libcurand",   "libcusolver",
    "libcusparse", "libnpp",        "libnvjpeg",      "libnvrtc",    "libnvJitLink",
    "libnvvm",     "libcupti",      "libcudart",      "libcuda.",    "libcufile",
    "libcutensor", "libnvinfer",    "libcudadevrt",   "libcusparse", "libnvptxcompiler",
    "libnvfatbin", "libnvToolsExt", "libcuobjclient",
};

static bool read_all(int fd, void *dst, size_t n, uint64_t off)
{
    uint8_t *p = dst;
    while (n) {
        ssize_t got = pread(fd, p, n, (off_t)off);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        p += got;
        n -= (size_t)got;
        off += (uint64_t)got;
    }
    return true;
}

bool source_read(struct source *s, uint64_t off, void *dst, size_t n)
{
    if (off > s->size || n > s->size - off) return false;
    if (s->fd < 0) {
        if (n) memcpy(dst, s->mem + off, n);
        return true;
    }
    if (n > SOURCE_WINDOW / 4) return read_all(s->fd, dst, n, off);
    if (off < s->window_at || off + n > s->window_at + s->window_len) {
        uint64_t left = s->size - off;
        s->window_at = off;
        s->window_len = left < SOURCE_WINDOW ? (size_t)left : SOURCE_WINDOW;
        if (!read_all(s->fd, s->window, s->window_len, off)) {
            s->window_len = 0;
            return false;
        }
    }
    memcpy(dst, s->window + (off - s->window_at), n);
    return true;
}

struct part *container_add(struct container *c)
{
    if (c->nparts == CONTAINER_PARTS_MAX) return NULL;
    if (c->nparts == c->priv->cap) {
        size_t cap = c->priv->cap ? c->priv->cap * 2 : 16;
        struct part *p = realloc(c->parts, cap * sizeof *p);
        if (!p) return NULL;
        c->parts = p;
        c->priv->cap = cap;
    }
    struct part *p = &c->parts[c->nparts++];
    *p = (struct part){0};
    return p;
}

/* Whether the text starts as PTX does: comments, blanks, then ".version". */
static bool is_ptx(const char *s)
{
    for (;;) {
        s += strspn(s, " \t\r\n");
        if (!strncmp(s, "//", 2))
            s += strcspn(s, "\n");
        else if (!strncmp(s, "/*", 2) && strstr(s + 2, "*/"))
            s = strstr(s + 2, "*/") + 2;
        else
            return !strncmp(s, ".version", 8);
    }
}

static enum status add_whole(struct container *c, enum part_kind kind)
{
    struct part *p = container_add(c);
    if (!p) return err_set(ERR_NOMEM, "%s: out of memory", c->label);
    p->kind = kind;
    p->size = p->raw_size = c->size;
    return OK;
}

/* The arch after ".target sm_90a" in the head of a PTX text. */
static void ptx_arch(struct part *p, const char *head)
{
    const char *t = strstr(head, ".target");
    char word[12] = "";
    if (t && sscanf(t, ".target sm_%11[0-9a-z]", word) == 1) {
        p->sm = atoi(word);
        snprintf(p->arch, sizeof p->arch, "compute_%.5s", word);
    }
}

static enum status open_ptx(struct container *c, const char *head)
{
    c->kind = CONTAINER_PTX;
    enum status st = add_whole(c, PART_PTX);
    if (st == OK) ptx_arch(&c->parts[0], head);
    return st;
}

static enum status open_elf(struct container *c, unsigned machine)
{
    c->kind = machine == EM_NVIDIA_CUDA ? CONTAINER_CUBIN : CONTAINER_HOST;
    if (c->kind == CONTAINER_CUBIN) return add_whole(c, PART_CUBIN);
    enum status st = hostelf_walk(c);
    for (size_t i = 0; i < sizeof vendor_names / sizeof vendor_names[0]; i++)
        if (!strncmp(c->soname, vendor_names[i], strlen(vendor_names[i]))) c->vendor = true;
    return st;
}

static enum status no_code(const struct container *c)
{
    if (c->damage[0]) return err_set(ERR_FORMAT, "%s: %s", c->label, c->damage);
    return err_set(ERR_FORMAT, "%s: no GPU code in it (no .nv_fatbin section, no entries)",
                   c->label);
}

static enum status open_source(struct container *c)
{
    uint8_t head[PTX_HEAD + 1] = {0};
    size_t n = c->size < PTX_HEAD ? (size_t)c->size : PTX_HEAD;
    if (!source_read(&c->priv->src, 0, head, n))
        return err_set(ERR_IO, "%s: can't be read", c->label);
    struct rd r = rd_make(head, n);
    enum status st;
    if (n >= sizeof(Elf64_Ehdr) && !memcmp(head, ELFMAG, SELFMAG))
        st = open_elf(c, head[18] | (unsigned)head[19] << 8);
    else if (rd_u32(&r) == 0xba55ed50 && !r.bad)
        c->kind = CONTAINER_FATBIN, st = fatbin_walk(c, 0, c->size, false);
    else if (is_ptx((const char *)head))
        st = open_ptx(c, (const char *)head);
    else if (!memcmp(head, "!<arch>\n", 8))
        return err_set(ERR_FORMAT, "%s: a static library; take its members out first (ar x)",
                       c->label);
    else
        return err_set(ERR_FORMAT, "%s: neither an ELF file nor a fatbin nor PTX", c->label);
    if (st == OK && !c->nparts) st = no_code(c);
    for (size_t i = 0; i < c->nparts; i++) {
        c->ncubins += c->parts[i].kind == PART_CUBIN;
        c->nptx += c->parts[i].kind == PART_PTX;
    }
    return st;
}

/* Takes over `fd`. */
static enum status start(struct container *out, int fd, uint64_t size, const char *label)
{
    *out = (struct container){.size = size};
    snprintf(out->label, sizeof out->label, "%s", label);
    out->priv = calloc(1, sizeof *out->priv);
    if (!out->priv) {
        if (fd >= 0) close(fd);
        return err_set(ERR_NOMEM, "%s: out of memory", label);
    }
    out->priv->src = (struct source){.fd = fd, .size = size};
    return OK;
}

enum status container_open_file(struct container *out, const char *path)
{
    struct stat sb;
    *out = (struct container){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return err_set(ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &sb) || !S_ISREG(sb.st_mode)) {
        close(fd);
        return err_set(ERR_IO, "%s: not a regular file", path);
    }
    enum status st = start(out, fd, (uint64_t)sb.st_size, path);
    if (st) return st;
    struct source *s = &out->priv->src;
    s->window = malloc(SOURCE_WINDOW);
    st = s->window ? open_source(out) : err_set(ERR_NOMEM, "%s: out of memory", path);
    if (st) container_close(out);
    return st;
}

enum status container_open_memory(struct container *out, const void *data, size_t size,
                                  const char *label)
{
    enum status st = start(out, -1, size, label);
    if (st) return st;
    out->priv->copy = malloc(size ? size : 1);
    if (out->priv->copy) {
        if (size) memcpy(out->priv->copy, data, size);
        out->priv->src.mem = out->priv->copy;
        st = open_source(out);
    } else {
        st = err_set(ERR_NOMEM, "%s: out of memory", label);
    }
    if (st) container_close(out);
    return st;
}

void container_close(struct container *c)
{
    free(c->parts);
    if (c->priv) {
        if (c->priv->src.fd >= 0) close(c->priv->src.fd);
        free(c->priv->src.window);
        free(c->priv->copy);
        free(c->priv);
    }
    *c = (struct container){0};
}

/* The part's bytes as they are in the file. */
static uint8_t *load(const struct container *c, const struct part *p)
{
    uint8_t *b = malloc(p->size ? (size_t)p->size : 1);
    if (b && !source_read(&c->priv->src, p->offset, b, (size_t)p->size)) {
        free(b);
        return NULL;
    }
    return b;
}

static enum status check_sizes(const struct part *p, const char *label)
{
    if (p->raw_size > CUBIN_SIZE_MAX || p->size > CUBIN_SIZE_MAX)
        return err_set(ERR_LIMIT, "%s: %llu bytes, the limit for a cubin is %d", label,
                       (unsigned long long)p->raw_size, CUBIN_SIZE_MAX);
    if (p->packing == PACKING_UNKNOWN)
        return err_set(ERR_FORMAT, "%s: packed in a way that isn't known here", label);
    /* LZ4's best ratio is 255; saves asking for memory that can't be filled. */
    if (p->packing == PACKING_LZ4 && p->raw_size / 256 > p->size)
        return err_set(ERR_FORMAT, "%s: its unpacked size can't be right", label);
    return OK;
}

enum status container_cubin(const struct container *c, size_t i, struct cubin *out)
{
    char label[340];
    *out = (struct cubin){0};
    if (i >= c->nparts || c->parts[i].kind != PART_CUBIN)
        return err_set(ERR_USAGE, "%s: part %zu is no cubin", c->label, i);
    const struct part *p = &c->parts[i];
    if (c->kind == CONTAINER_CUBIN)
        snprintf(label, sizeof label, "%s", c->label);
    else
        snprintf(label, sizeof label, "%s, part %zu (%s)", c->label, i, p->arch);
    enum status st = check_sizes(p, label);
    if (st) return st;
    uint8_t *data = load(c, p), *raw = NULL;
    if (!data) return err_set(ERR_IO, "%s: can't be read", label);
    if (p->packing == PACKING_STORED)
        return cubin_adopt(out, data, (size_t)p->size, label, c->vendor);
    raw = malloc(p->raw_size ? (size_t)p->raw_size : 1);
    if (!raw)
        st = err_set(ERR_NOMEM, "%s: out of memory", label);
    else if (!unpack(p->packing, data, (size_t)p->size, raw, (size_t)p->raw_size))
        st = err_set(ERR_FORMAT, "%s: its %s payload is broken", label,
                     part_packing_name(p->packing));
    free(data);
    if (st == OK) return cubin_adopt(out, raw, (size_t)p->raw_size, label, c->vendor);
    free(raw);
    return st;
}

const char *container_kind_name(enum container_kind k)
{
    static const char *const names[] = {"cubin", "fatbin", "host program", "PTX"};
    return names[k];
}

const char *part_packing_name(enum part_packing p)
{
    static const char *const names[] = {"stored", "LZ4", "zstd", "unknown"};
    return names[p];
}

bool arch_matches(const char *have, const char *arch)
{
    if (!arch) return true;
    if (!strncmp(arch, "sm_", 3)) arch += 3;
    have = strchr(have, '_') ? strchr(have, '_') + 1 : have;
    size_t n = strlen(arch);
    if (strncmp(have, arch, n)) return false;
    return !have[n] ||
           (n && isdigit((unsigned char)arch[n - 1]) && !isdigit((unsigned char)have[n]));
}
