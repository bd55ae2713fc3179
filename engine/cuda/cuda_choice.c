/*
 * Which GEMM a product runs: the selected variant of its family or, under `auto`, the one that was
 * chosen for its shape (engine/auto.h chooses). A shape with no choice runs the selected variant.
 */
#include "engine/cuda/cuda_priv.h"

#include <stdio.h>
#include <string.h>

static struct cuda_auto *choices(struct backend *b, const char *family)
{
    if (!strcmp(family, "q4k_gemm")) return &b->choice;
    return strcmp(family, "q6k_gemm") ? NULL : &b->choice6;
}

const struct variant *cuda_chosen(const struct backend *b, const struct op *op)
{
    bool six = op->w->type == QUANT_Q6_K;
    const struct cuda_auto *a = six ? &b->choice6 : &b->choice;
    if (!six && op->w->type != QUANT_Q4_K) return NULL;
    for (uint32_t i = 0; *a->name && i < a->n; i++)
        if (a->of[i].m == op->w->m && a->of[i].n == op->n && a->of[i].k == op->w->k)
            return a->of[i].v;
    return six ? b->gemm6 : b->gemm;
}

enum status cuda_choose(struct backend *b, const char *family, const uint32_t mnk[3],
                        const char *variant, uint32_t kd)
{
    struct cuda_auto *a = choices(b, family);
    if (!a) return err_set(ERR_USAGE, "family %s has nothing to choose from", family);
    if (!mnk) {
        a->n = 0;
        return OK;
    }
    const struct variant *v = registry_find_kd(b->reg, family, variant, (int)kd);
    if (!v) return err_set(ERR_USAGE, "%s has no variant %s of KD %u", family, variant, kd);
    enum status st = cuda_usable(b, v);
    if (st != OK) return st;
    if (a->n == CUDA_CHOICES)
        return err_set(ERR_LIMIT, "more than %d shapes of %s", CUDA_CHOICES, family);
    a->of[a->n++] = (struct cuda_choice){mnk[0], mnk[1], mnk[2], v};
    b->proven[v->index] = false;
    return OK;
}

enum status cuda_take_auto(struct backend *b, const char *family, const char *name)
{
    struct cuda_auto *a = choices(b, family);
    if (!a) return err_set(ERR_USAGE, "family %s has nothing to choose from", family);
    if (*name && a->n == 0)
        return err_set(ERR_UNAVAILABLE, "%s: nothing was measured that could be chosen from", name);
    snprintf(a->name, sizeof a->name, "%s", name);
    cuda_graph_drop(b);
    b->q8_of = 0;
    return OK;
}
