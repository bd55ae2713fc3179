/*
 * Generations: what runs from here on. A flip is checked first (parity.h), then happens between two
 * rounds, and starts a generation, so that before and after never mix.
 */
#include "engine/auto.h"
#include "engine/collect.h"
#include "engine/engine.h"
#include "engine/parity.h"

#include <stdio.h>
#include <string.h>

void generation_begin(struct engine *e, const char *family, const char *reason, const char *parity,
                      const char *text)
{
    struct msg_generation g = {.generation = ++e->generation};
    const char *variant = "";
    snprintf(e->family, sizeof e->family, "%s", family);
    snprintf(g.family, sizeof g.family, "%s", family);
    if (e->bo->selected(e->b, g.family, &variant, &g.kd))
        snprintf(g.variant, sizeof g.variant, "%s", variant);
    snprintf(g.reason, sizeof g.reason, "%s", reason);
    snprintf(g.parity, sizeof g.parity, "%s", parity);
    snprintf(g.parity_text, sizeof g.parity_text, "%s", text);
    rows_generation(e->rows, e->generation);
    emit_send(e->emit, FRAME_GENERATION, &g);
}

static void reply(struct engine *e, bool ok, const char *text)
{
    struct msg_reply r = {.ok = ok};
    snprintf(r.verb, sizeof r.verb, "flip");
    snprintf(r.text, sizeof r.text, "%s", text);
    emit_send(e->emit, FRAME_REPLY, &r);
}

static bool known(struct engine *e, const char *family, const char *variant, uint32_t kd)
{
    const struct kernel_info *list;
    uint32_t n = e->bo->kernels(e->b, &list);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(list[i].family, family) && !strcmp(list[i].variant, variant) &&
            list[i].kd == kd)
            return true;
    return false;
}

/* Each shape to its fastest sound kernel: what is measured for it is the check. */
static void flip_to_auto(struct engine *e, const char *family, const char *name)
{
    char text[400], why[200] = "";
    collect_settle(e->collect);
    enum status st = auto_take(e, family, name, why, sizeof why);
    if (st != OK) {
        snprintf(text, sizeof text, "%s is not taken: %.250s", name, err_msg());
        reply(e, false, text);
        return;
    }
    generation_begin(e, family, "flip", "ok", why);
    collect_after_flip(e->collect);
    snprintf(text, sizeof text, "%s runs from generation %u on: %s", name, e->generation, why);
    reply(e, true, text);
}

void generation_flip(struct engine *e, const struct msg_command *cmd)
{
    const char *family = *cmd->family ? cmd->family : "q4k_gemm", *now = "", *parity = "unchecked";
    char variant[48], text[300] = "", why[200] = "";
    uint32_t now_kd = 0;
    if (!e->bo->selected(e->b, family, &now, &now_kd)) {
        snprintf(text, sizeof text, "family %s has one variant here: nothing to flip", family);
        reply(e, false, text);
        return;
    }
    snprintf(variant, sizeof variant, "%s", *cmd->variant ? cmd->variant : now);
    if (auto_is(variant)) {
        flip_to_auto(e, family, variant);
        return;
    }
    uint32_t kd = cmd->kd ? cmd->kd : now_kd;
    if (!known(e, family, variant, kd)) {
        snprintf(text, sizeof text, "%s has no variant %s with KD %u here; %s KD %u goes on",
                 family, variant, kd, now, now_kd);
        reply(e, false, text);
        return;
    }
    collect_settle(e->collect);
    if (cmd->force) {
        parity = "forced";
    } else if (e->opt->parity) {
        parity = "ok";
        if (!parity_gate(e, family, variant, kd, why, sizeof why)) {
            snprintf(text, sizeof text, "%s KD %u is not taken: %.180s; %s KD %u goes on", variant,
                     kd, why, now, now_kd);
            reply(e, false, text);
            return;
        }
    }
    if (e->bo->select(e->b, family, variant, kd) != OK) {
        reply(e, false, err_msg());
        return;
    }
    generation_begin(e, family, "flip", parity, why);
    collect_after_flip(e->collect);
    snprintf(text, sizeof text, "%s KD %u runs from generation %u on", variant, kd, e->generation);
    reply(e, true, text);
}
