/* Job: write a session file out of cubins; see code_session.h. */
#include "tui/code_session.h"

#include "sass_view/census.h"
#include "sass_view/container.h"
#include "session/record.h"

#include <stdio.h>
#include <string.h>

enum { PIECE = 256 << 10 };

struct writer {
    struct recorder *rec;
    struct buf frame;
    uint64_t t;
    uint32_t kernels, generation, left_out;
    char family[32], variant[48];
};

static enum status put(struct writer *w, enum frame_type type, const void *msg)
{
    buf_reset(&w->frame);
    w->t += 1000;
    enum status st = proto_encode(&w->frame, type, w->t, msg);
    return st ? st : recorder_add(w->rec, w->frame.data, w->frame.len, w->t);
}

static enum status put_hello(struct writer *w)
{
    struct msg_hello h = {.instance = 1, .backend = "cuda", .device = "files", .session = "code"};
    return put(w, FRAME_HELLO, &h);
}

/* build/cubin/sm_90a/q4k_gemm/nb.cubin: family q4k_gemm, variant nb. */
static void name_file(struct writer *w, const char *path)
{
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path, *from = path;
    size_t n = strcspn(stem, ".");
    snprintf(w->variant, sizeof w->variant, "%.*s", (int)n, stem);
    snprintf(w->family, sizeof w->family, "files");
    for (const char *p = path; slash && p < slash; p++)
        if (*p == '/') from = p + 1;
    if (slash && slash > from)
        snprintf(w->family, sizeof w->family, "%.*s", (int)(slash - from), from);
}

static enum status put_generation(struct writer *w, const char *path)
{
    struct msg_generation g = {.generation = ++w->generation, .parity = "unchecked"};
    name_file(w, path);
    snprintf(g.family, sizeof g.family, "%s", w->family);
    snprintf(g.variant, sizeof g.variant, "%s", w->variant);
    snprintf(g.reason, sizeof g.reason, "%s", w->generation == 1 ? "start" : "flip");
    return put(w, FRAME_GENERATION, &g);
}

static enum status put_module(struct writer *w, const struct cubin *c, const uint8_t *bytes)
{
    struct msg_module m = {.cubin_hash = c->file_hash, .total = (uint32_t)c->size};
    enum status st = OK;
    for (size_t at = 0; st == OK && at < c->size; at += PIECE) {
        m.offset = (uint32_t)at;
        m.bytes.data = bytes + at;
        m.bytes.len = (uint32_t)(c->size - at < PIECE ? c->size - at : PIECE);
        st = put(w, FRAME_MODULE, &m);
    }
    return st;
}

static enum status put_census(struct writer *w, const struct census *s)
{
    struct buf items = {0}, hot = {0};
    for (size_t i = 0; i < s->nrows; i++) {
        buf_u32(&hot, s->rows[i].n[CENSUS_HOT]);
        buf_str8(&items, s->rows[i].key);
        buf_str8(&items, insn_class_name((enum insn_class)s->rows[i].cls));
        buf_u32(&items, s->rows[i].n[CENSUS_ALL]);
        buf_u32(&items, s->rows[i].n[CENSUS_LOOP]);
    }
    struct msg_census m = {.kernel = w->kernels,
                           .arch = (uint32_t)s->sm,
                           .code_hash = s->code_hash,
                           .total = s->total,
                           .padding = s->padding,
                           .unknown = s->unknown,
                           .hot_macs = census_macs(s, CENSUS_HOT),
                           .items = {items.data, (uint32_t)items.len}};
    if (s->loops_known) m.hot = (struct blob){hot.data, (uint32_t)hot.len};
    enum status st =
        items.failed || hot.failed ? err_set(ERR_NOMEM, "out of memory") : put(w, FRAME_CENSUS, &m);
    buf_free(&items);
    buf_free(&hot);
    return st;
}

static uint32_t known(int v)
{
    return v > 0 ? (uint32_t)v : 0;
}

static enum status put_kernel(struct writer *w, const struct cubin *c, const struct cubin_kernel *k)
{
    struct census s;
    enum status st = census_make(&s, c, k);
    if (st) return st;
    struct msg_kernel_def d = {.kernel = ++w->kernels,
                               .arch = (uint32_t)c->sm,
                               .code_hash = k->code_hash,
                               .cubin_hash = c->file_hash,
                               .regs = known(k->regs),
                               .smem_static = known(k->smem),
                               .spill = known(s.spill_bytes),
                               .threads = known(k->max_threads)};
    struct msg_row_def r = {.row = w->kernels, .kernel = w->kernels, .generation = w->generation};
    const char *kd = strrchr(k->name, '_');
    snprintf(d.name, sizeof d.name, "%s", k->name);
    snprintf(d.family, sizeof d.family, "%s", w->family);
    snprintf(d.variant, sizeof d.variant, "%s", w->variant);
    if (kd && sscanf(kd, "_kd%u", &d.kd) == 1)
        snprintf(r.role, sizeof r.role, "kd%u", d.kd);
    else
        snprintf(r.role, sizeof r.role, "%s", k->name);
    st = put(w, FRAME_KERNEL_DEF, &d);
    if (st == OK) st = put_census(w, &s);
    if (st == OK) st = put(w, FRAME_ROW_DEF, &r);
    census_free(&s);
    return st;
}

static enum status put_cubin(struct writer *w, const struct cubin *c)
{
    enum status st = OK;
    bool any = false;
    for (size_t i = 0; st == OK && i < c->nkernels; i++) {
        if (w->kernels == CODE_SESSION_KERNELS_MAX) {
            w->left_out++;
            continue;
        }
        st = put_kernel(w, c, &c->kernels[i]);
        any = true;
    }
    return st == OK && any ? put_module(w, c, cubin_bytes(c)) : st;
}

static enum status put_file(struct writer *w, const char *path, const char *arch)
{
    struct container c;
    enum status st = container_open_file(&c, path);
    if (st) return st;
    st = put_generation(w, path);
    for (size_t i = 0; st == OK && i < c.nparts; i++) {
        struct cubin cu;
        if (c.parts[i].kind != PART_CUBIN ||
            (c.parts[i].arch[0] && !arch_matches(c.parts[i].arch, arch)))
            continue;
        if ((st = container_cubin(&c, i, &cu))) break;
        if (arch_matches(cu.arch, arch)) st = put_cubin(w, &cu);
        cubin_close(&cu);
    }
    container_close(&c);
    return st;
}

static enum status put_end(struct writer *w)
{
    struct msg_log log = {.level = 1};
    struct msg_bye bye = {.text = "all files are read"};
    enum status st = OK;
    if (!w->kernels) return err_set(ERR_FAILED, "no kernel in these files for the wanted arch");
    if (w->left_out) {
        snprintf(log.text, sizeof log.text, "%u kernels past the first %d are left out",
                 w->left_out, CODE_SESSION_KERNELS_MAX);
        st = put(w, FRAME_LOG, &log);
    }
    return st ? st : put(w, FRAME_BYE, &bye);
}

enum status code_session_write(const char *out, char *const *files, int nfiles, const char *arch)
{
    struct writer w = {0};
    if (nfiles > CODE_SESSION_FILES_MAX)
        return err_set(ERR_USAGE, "%d files, the limit is %d", nfiles, CODE_SESSION_FILES_MAX);
    enum status st = recorder_open(out, &w.rec);
    if (st) return st;
    st = put_hello(&w);
    for (int i = 0; st == OK && i < nfiles; i++) st = put_file(&w, files[i], arch);
    if (st == OK) st = put_end(&w);
    enum status closed = recorder_close(w.rec);
    buf_free(&w.frame);
    return st ? st : closed;
}
