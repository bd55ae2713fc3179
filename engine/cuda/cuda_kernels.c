/*
 * The kernels of the CUDA backend: the registry read for this device, the ones launched by name,
 * the list for the frames, and the selection.
 */
#include "engine/cuda/cuda_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const SYMBOLS[CUDA_KERNELS] = {
#define CUDA_KERNEL(id, symbol) [CUDA_##id] = symbol,
#include "engine/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
};

static const char FAMILY[] = "q4k_gemm", FAMILY6[] = "q6k_gemm";

static uint32_t known(int v)
{
    return v > 0 ? (uint32_t)v : 0;
}

static struct kernel_info info_of(const struct variant *v)
{
    return (struct kernel_info){
        .name = v->kernel,
        .family = v->family,
        .variant = strcmp(v->family, "ops") ? v->name : "",
        .note = v->desc.note,
        .cls = v->desc.numeric,
        .kd = known(v->kd),
        .arch = (uint32_t)strtoul(v->arch, NULL, 10),
        .regs = known(v->regs),
        .smem_static = known(v->static_smem),
        .spill = known(v->spill_bytes),
        .threads = v->desc.threads,
        .code_hash = v->code_hash,
        .cubin_hash = v->cubin_hash,
        .cubin_path = v->path,
        .copies = cuda_wants_int8(v),
        .standing = (uint8_t)((v->broken ? KERNEL_BROKEN : 0) |
                              (v->desc.flags & VARIANT_FALLBACK ? KERNEL_FALLBACK : 0))};
}

/* What a session starts with: nb, the unrolled form that keeps weights as nibbles, at KD 8; else
 * the family's fallback; else any. */
static const struct variant *first_gemm(const struct registry *r)
{
    const struct variant *v = registry_find(r, "nb_kd8");
    if (!v || strcmp(v->family, FAMILY)) v = registry_fallback(r, FAMILY, 8);
    for (int i = 0; !v && i < registry_count(r); i++) {
        const struct variant *c = registry_get(r, i);
        if (!strcmp(c->family, FAMILY) && !c->broken) v = c;
    }
    return v;
}

static enum status find_named(struct backend *b)
{
    for (int i = 0; i < CUDA_KERNELS; i++) {
        b->kernel[i] = registry_find(b->reg, SYMBOLS[i]);
        if (!b->kernel[i])
            return err_set(ERR_UNAVAILABLE,
                           "%s has no kernel %s for this GPU; `make cubins` builds them, "
                           "--backend cpu works without",
                           registry_dir(b->reg), SYMBOLS[i]);
    }
    return OK;
}

enum status cuda_kernels_open(struct backend *b)
{
    int sm = 10 * driver_attribute(b->drv, b->dev, DRV_DEV_CC_MAJOR, 0) +
             driver_attribute(b->drv, b->dev, DRV_DEV_CC_MINOR, 0);
    struct registry_options o = {.sm = sm, .include_broken = b->o.allow_broken};
    enum status st = registry_open(&o, &b->reg);
    if (st == OK) st = find_named(b);
    if (st == OK) st = launcher_open(&b->launcher, b->drv, b->dev, b->reg);
    if (st != OK) return st;
    b->gemm = first_gemm(b->reg);
    b->gemm6 = b->kernel[CUDA_Q6K_GEMM];
    b->n_kernels = (uint32_t)registry_count(b->reg);
    b->infos = calloc(b->n_kernels, sizeof *b->infos);
    b->occupancy = calloc(b->n_kernels, sizeof *b->occupancy);
    b->proven = calloc(b->n_kernels, sizeof *b->proven);
    if (!b->infos || !b->occupancy || !b->proven)
        return err_set(ERR_NOMEM, "out of memory for the kernel list");
    for (uint32_t i = 0; i < b->n_kernels; i++) b->infos[i] = info_of(registry_get(b->reg, (int)i));
    if (b->gemm) b->infos[b->gemm->index].standing |= KERNEL_START;
    if (b->gemm6) b->infos[b->gemm6->index].standing |= KERNEL_START;
    return OK;
}

void cuda_kernels_close(struct backend *b)
{
    launcher_close(b->launcher);
    registry_close(b->reg);
    free(b->infos);
    free(b->occupancy);
    free(b->proven);
}

uint32_t cuda_kernel_list(struct backend *b, const struct kernel_info **list)
{
    *list = b->infos;
    return b->n_kernels;
}

uint32_t cuda_blocks_per_sm(struct backend *b, const struct variant *v, uint32_t block,
                            uint32_t dyn_smem)
{
    struct cuda_occupancy *o = &b->occupancy[v->index];
    if (o->blocks && o->block == block && o->dyn_smem == dyn_smem) return o->blocks;
    struct launch_plan plan = {.asked = v, .ran = v, .block = block, .dyn_smem = dyn_smem};
    int blocks = 0;
    if (launcher_occupancy(b->launcher, &plan, &blocks) != OK) blocks = 0;
    *o = (struct cuda_occupancy){block, dyn_smem, known(blocks)};
    return o->blocks;
}

/* ---- selection ---- */

enum status cuda_usable(const struct backend *b, const struct variant *v)
{
    const struct device_limits *lim = launcher_limits(b->launcher);
    if ((int)v->desc.min_sm > lim->sm)
        return err_set(ERR_UNAVAILABLE, "%s needs sm_%u, this GPU is sm_%d", v->kernel,
                       v->desc.min_sm, lim->sm);
    bool bf16 = !strcmp(v->desc.layout_a, "bf16"), int8 = cuda_wants_int8(v);
    const char *weights = strcmp(v->family, FAMILY6) ? "q4_k" : "q6_k";
    if ((strcmp(v->desc.layout_b, weights) && !(int8 && cuda_can_expand(b))) ||
        (!bf16 && strcmp(v->desc.layout_a, "q8_chunk40")))
        return err_set(ERR_UNAVAILABLE,
                       "%s wants %s weights and %s activations; the engine holds %s and makes "
                       "q8_chunk40 and bf16 (kcheck runs it)",
                       v->kernel, v->desc.layout_b, v->desc.layout_a, weights);
    /* No fallback reads bf16 activations or expanded weights: refused now, not at the first launch.
     */
    if ((bf16 || int8) && (int)v->dyn_smem > lim->smem_optin)
        return err_set(ERR_UNAVAILABLE, "%s needs %u bytes of shared memory a block, %s grants %d",
                       v->kernel, v->dyn_smem, lim->lowered ? "SASSTOP_SMEM_LIMIT" : "this GPU",
                       lim->smem_optin);
    return OK;
}

/* Families but the GEMMs have one way here; naming it is fine. */
static enum status select_other(const struct backend *b, const char *family, const char *variant)
{
    bool there = false;
    for (uint32_t i = 0; i < b->n_kernels; i++) {
        if (strcmp(b->infos[i].family, family)) continue;
        there = true;
        if (!strcmp(b->infos[i].variant, variant)) return OK;
    }
    return there ? err_set(ERR_USAGE, "%s has no variant %s", family, variant)
                 : err_set(ERR_USAGE, "no kernel family is called %s", family);
}

enum status cuda_select(struct backend *b, const char *family, const char *variant, uint32_t kd)
{
    bool six = !strcmp(family, FAMILY6);
    if (!six && strcmp(family, FAMILY)) return select_other(b, family, variant);
    if (!strncmp(variant, "auto", 4) && kd == 0) return cuda_take_auto(b, family, variant);
    const struct variant *v = registry_find_kd(b->reg, family, variant, (int)kd);
    if (!v)
        return err_set(ERR_USAGE,
                       "%s has no variant %s of KD %u for this GPU (`sasstop variants` "
                       "lists them)",
                       family, variant, kd);
    enum status st = cuda_usable(b, v);
    if (st != OK) return st;
    (void)cuda_take_auto(b, family, "");
    if (!six && !cuda_wants_int8(v)) cuda_expanded_free(b);
    if (six)
        b->gemm6 = v;
    else
        b->gemm = v;
    b->proven[v->index] = false; /* its next launch is waited for, so that a fault has a name */
    cuda_graph_drop(b);
    return OK;
}

enum status cuda_force_blocks(struct backend *b, uint32_t blocks, char *text, size_t size)
{
    static const struct shape any = {256, 256, 256};
    struct launch_options opt = {.force_blocks_per_sm = (int)blocks};
    struct launch_plan plan;
    if (!b->gemm) return err_set(ERR_UNAVAILABLE, "no kernel of q4k_gemm is selected here");
    enum status st =
        launch_plan_make(b->reg, launcher_limits(b->launcher), b->gemm, &any, &opt, &plan);
    if (st != OK) return st;
    b->blocks = blocks;
    cuda_graph_drop(b);
    if (!blocks)
        snprintf(text, size, "blocks/SM as the kernels are");
    else
        snprintf(text, size, "at most %u blocks/SM: %s has %u bytes of padding in %u", blocks,
                 plan.ran->kernel, plan.pad, plan.dyn_smem);
    return OK;
}

bool cuda_selected(struct backend *b, const char *family, const char **variant, uint32_t *kd)
{
    bool six = !strcmp(family, FAMILY6);
    const struct cuda_auto *a = six ? &b->choice6 : &b->choice;
    if ((six || !strcmp(family, FAMILY)) && *a->name) {
        *variant = a->name;
        *kd = 0;
        return true;
    }
    if (!strcmp(family, FAMILY)) {
        if (!b->gemm) return false;
        *variant = b->gemm->name;
        *kd = known(b->gemm->kd);
        return true;
    }
    if (six) {
        *variant = b->gemm6->name;
        *kd = known(b->gemm6->kd);
        return true;
    }
    for (uint32_t i = 0; i < b->n_kernels; i++) {
        if (strcmp(b->infos[i].family, family) || !*b->infos[i].variant) continue;
        *variant = b->infos[i].variant;
        *kd = b->infos[i].kd;
        return true;
    }
    return false;
}
