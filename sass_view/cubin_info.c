/*
 * Job: a kernel's figures, from .nv.info, .nv.info.K, .nv.shared.K and section headers.
 *
 * An attribute is {u8 form, u8 code, u16 value}, with `value` bytes after it when form is 4. A list
 * that breaks off is read up to the break: figures behind it stay unknown. To add an attribute: its
 * code in the enum, a case in read_module() (keyed by symbol) or read_own().
 */
#include "base/buf.h"
#include "sass_view/cubin_priv.h"
#include "sass_view/decode.h"
#include <stdlib.h>
#include <string.h>

enum attr_code {
    ATTR_MAX_THREADS = 0x05,
    ATTR_REQNTID = 0x10,
    ATTR_FRAME_SIZE = 0x11,
    ATTR_KPARAM_INFO = 0x17,
    ATTR_PARAM_SIZE = 0x19,
    ATTR_MAXREG = 0x1b,
    ATTR_REGCOUNT = 0x2f,
    ATTR_KPARAM_INFO_V2 = 0x45,
    ATTR_NUM_BARRIERS = 0x4c,
    ATTR_ANNOTATIONS = 0x55, /* pairs (kind, offset); kind 1 marks a spill or refill */
};

enum { FORM_BYTES = 4, ANNOTATION_SPILL = 1, MAXREG_NONE = 0xff, SMEM_RESERVED_SM90 = 1024 };

struct attr {
    uint8_t code;
    uint16_t value;
    struct rd data; /* empty unless form 4 */
};

static bool next_attr(struct rd *r, struct attr *a)
{
    if (rd_left(r) < 4) return false;
    uint8_t form = rd_u8(r);
    a->code = rd_u8(r);
    a->value = rd_u16(r);
    a->data = rd_make("", 0);
    if (form == FORM_BYTES) {
        const uint8_t *d = rd_bytes(r, a->value);
        if (d) a->data = rd_make(d, a->value);
    }
    return !r->bad;
}

static struct rd section_reader(const struct cubin_section *s)
{
    return s && s->data ? rd_make(s->data, s->size) : rd_make("", 0);
}

static int bounded(uint64_t v)
{
    return v <= INT32_MAX ? (int)v : CUBIN_UNKNOWN;
}

enum status cubin_read_module(struct cubin_priv *p, const char *label)
{
    struct rd r = section_reader(cubin_section_find(p, ".nv.info", ""));
    struct attr a;
    size_t n = p->nsyms ? p->nsyms : 1;
    p->module_regs = malloc(n * sizeof *p->module_regs);
    p->module_stack = malloc(n * sizeof *p->module_stack);
    if (!p->module_regs || !p->module_stack) return err_set(ERR_NOMEM, "%s: out of memory", label);
    for (size_t i = 0; i < n; i++) p->module_regs[i] = p->module_stack[i] = CUBIN_UNKNOWN;
    while (next_attr(&r, &a)) {
        if (a.code != ATTR_REGCOUNT && a.code != ATTR_FRAME_SIZE) continue;
        uint32_t who = rd_u32(&a.data), v = rd_u32(&a.data);
        if (a.data.bad || who >= p->nsyms) continue;
        *(a.code == ATTR_REGCOUNT ? &p->module_regs[who] : &p->module_stack[who]) = bounded(v);
    }
    return OK;
}

/* The spill annotations name instructions; their widths add up to what ptxas -v prints. */
static void add_spills(struct cubin_kernel *k, const struct decoder *d, struct rd pairs)
{
    if (k->spill_store == CUBIN_UNKNOWN) k->spill_store = k->spill_load = 0;
    while (rd_left(&pairs) >= 8) {
        uint32_t kind = rd_u32(&pairs), off = rd_u32(&pairs);
        if (kind != ANNOTATION_SPILL || off % INSN_BYTES || off >= k->code_size) continue;
        struct insn in;
        insn_decode(d, k->code + off, off, &in);
        if (in.flags & INSN_STORE)
            k->spill_store += in.width / 8;
        else if (in.flags & INSN_LOAD)
            k->spill_load += in.width / 8;
    }
}

static int threads_of(struct rd dims)
{
    uint64_t x = rd_u32(&dims), y = rd_u32(&dims), z = rd_u32(&dims);
    if (dims.bad || !x || !y || !z || x > 1024 || y > 1024 || z > 1024) return CUBIN_UNKNOWN;
    return bounded(x * y * z);
}

/* Attributes of the kernel itself. True when spills are listed. */
static bool read_own(const struct cubin *c, struct cubin_kernel *k)
{
    struct rd r = section_reader(cubin_section_find(c->priv, ".nv.info.", k->name));
    struct attr a;
    bool spills = false;
    if (rd_left(&r)) k->barriers = k->params = k->param_bytes = 0;
    while (next_attr(&r, &a)) {
        switch (a.code) {
        case ATTR_MAX_THREADS:
        case ATTR_REQNTID:
            k->max_threads = threads_of(a.data);
            break;
        case ATTR_KPARAM_INFO:
        case ATTR_KPARAM_INFO_V2:
            k->params++;
            break;
        case ATTR_PARAM_SIZE:
            k->param_bytes = a.value;
            break;
        case ATTR_MAXREG:
            k->max_regs = a.value == MAXREG_NONE ? CUBIN_UNKNOWN : a.value;
            break;
        case ATTR_NUM_BARRIERS:
            k->barriers = a.value;
            break;
        case ATTR_ANNOTATIONS:
            if (!c->sealed) add_spills(k, decoder_get(c->sm), a.data);
            spills = true;
            break;
        default:
            break;
        }
    }
    return spills;
}

void cubin_read_info(const struct cubin *c, struct cubin_kernel *k, size_t text)
{
    const struct cubin_section *t = &c->priv->sections[text];
    k->regs = k->stack = k->spill_store = k->spill_load = k->barriers = CUBIN_UNKNOWN;
    k->params = k->param_bytes = k->max_threads = k->max_regs = CUBIN_UNKNOWN;
    if (t->info >> 24) k->regs = (int)(t->info >> 24);
    uint32_t sym = t->info & 0xffffff;
    if (sym < c->priv->nsyms) {
        if (c->priv->module_regs[sym] >= 0) k->regs = c->priv->module_regs[sym];
        k->stack = c->priv->module_stack[sym];
    }
    bool spills = read_own(c, k);
    if (t->flags >> 20 & 0x7f && k->barriers <= 0) k->barriers = (int)(t->flags >> 20 & 0x7f);

    const struct cubin_section *sh = cubin_section_find(c->priv, ".nv.shared.", k->name);
    k->smem = sh ? bounded(sh->size) : 0;
    if (c->sm >= 90 && k->smem >= SMEM_RESERVED_SM90) {
        k->smem -= SMEM_RESERVED_SM90;
        k->smem_reserved = SMEM_RESERVED_SM90;
    }
    /* No annotations and no frame: nothing can have been spilled. CUDA 13 (ABI 8) lists every
     * spill, so no list means none there; an older file with a frame leaves it open. */
    if (!spills && (k->stack == 0 || c->abi >= 8)) k->spill_store = k->spill_load = 0;
}
