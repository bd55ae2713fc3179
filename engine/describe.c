/*
 * The frames by which the stream introduces itself: who runs, which model, which kernels. Sent
 * once, before the first generation. What isn't known stays empty or 0, which readers show as
 * unknown.
 */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/version.h"
#include "cupti/lib.h"
#include "engine/describe_cubin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COPY(field, text) snprintf(field, sizeof(field), "%s", text)

void describe_hello(struct engine *e)
{
    const struct options *o = e->opt;
    struct msg_hello h = {.instance = o->instance,
                          .wall_ns = clock_wall_ns() - emit_now(e->emit),
                          .sm = e->limits.sm,
                          .sms = e->limits.sms,
                          .memory = e->limits.memory,
                          .l2_bytes = e->limits.l2_bytes,
                          .smem_optin = e->limits.smem_optin,
                          .clock_mhz = e->limits.clock_mhz,
                          .seed = o->seed};
    if (*o->session)
        COPY(h.session, o->session);
    else
        snprintf(h.session, sizeof h.session, "%llx-%x", (unsigned long long)h.wall_ns / 1000,
                 (unsigned)getpid());
    COPY(h.backend, e->bo->name);
    COPY(h.device, e->limits.device);
    if (e->cupti) {
        snprintf(h.chip, sizeof h.chip, "%.15s", e->cupti->chip);
        snprintf(h.cupti, sizeof h.cupti, "%u.%u.%u", e->cupti->version / 10000,
                 e->cupti->version / 100 % 100, e->cupti->version % 100);
    }
    COPY(h.driver, e->limits.driver);
    COPY(h.toolkit, e->limits.toolkit);
    snprintf(h.commit, sizeof h.commit, "%s %s", version_string(), version_commit());
    COPY(h.command, o->command);
    emit_send(e->emit, FRAME_HELLO, &h);
}

void describe_model(struct engine *e)
{
    const struct model_hparams *h = model_hparams(e->model);
    const struct model_identity *id = model_identity(e->model);
    struct msg_model m = {.layers = h->layers,
                          .d_model = h->d_model,
                          .d_ff = h->d_ff,
                          .heads = h->heads,
                          .kv_heads = h->kv_heads,
                          .head_dim = h->head_dim,
                          .vocab = h->vocab,
                          .params = id->params,
                          .bytes = id->bytes,
                          .hash = id->hash};
    COPY(m.name, id->name);
    COPY(m.arch, id->arch);
    COPY(m.quant, id->quant);
    COPY(m.workload, e->work.label);
    emit_send(e->emit, FRAME_MODEL, &m);
}

void describe_kernels(struct engine *e)
{
    const struct kernel_info *list;
    uint32_t n = e->bo->kernels(e->b, &list);
    for (uint32_t i = 0; i < n; i++) {
        const struct kernel_info *k = &list[i];
        struct msg_kernel_def d = {.kernel = i,
                                   .kd = k->kd,
                                   .arch = k->arch,
                                   .code_hash = k->code_hash,
                                   .cubin_hash = k->cubin_hash,
                                   .regs = k->regs,
                                   .smem_static = k->smem_static,
                                   .spill = k->spill,
                                   .threads = k->threads};
        COPY(d.name, k->name);
        COPY(d.family, k->family);
        COPY(d.variant, k->variant);
        COPY(d.note, k->note);
        COPY(d.cls, k->cls);
        emit_send(e->emit, FRAME_KERNEL_DEF, &d);
    }
    for (uint32_t i = 0; i < n; i++) describe_cubin(e, list, i);
}

/* What can be flipped to: entries of families that have a selection. Each is tried, so that one
 * that can't run here says so before it is asked for. */
void describe_variants(struct engine *e)
{
    const struct kernel_info *list;
    uint32_t n = e->bo->kernels(e->b, &list), kd, old_kd;
    const char *now;
    char old[48];
    for (uint32_t i = 0; i < n; i++) {
        struct msg_variant_def d = {.kd = list[i].kd, .ok = 1, .standing = list[i].standing};
        if (!e->bo->selected(e->b, list[i].family, &now, &old_kd)) continue;
        COPY(old, now); /* `now` may change with the selection */
        COPY(d.family, list[i].family);
        COPY(d.variant, list[i].variant);
        COPY(d.note, list[i].note);
        if (e->bo->select(e->b, d.family, d.variant, d.kd) != OK) {
            d.ok = 0;
            COPY(d.why, err_msg());
        } else if (e->bo->selected(e->b, d.family, &now, &kd)) {
            (void)e->bo->select(e->b, d.family, old, old_kd); /* it ran before */
        }
        emit_send(e->emit, FRAME_VARIANT_DEF, &d);
    }
}
