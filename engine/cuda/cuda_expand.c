/*
 * Weights in the layout q4_k_int8, for variants that want them expanded once (wide_preb).
 *
 * A matrix is expanded by a kernel when it is first multiplied under such a variant, and stays
 * beside the original (1.9 times its size) until another variant of the family is selected. The
 * first round after such a flip has that work in it.
 */
#include "engine/cuda/cuda_priv.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char KERNEL[] = "q4k_expand";

bool cuda_wants_int8(const struct variant *v)
{
    return !strcmp(v->desc.layout_b, "q4_k_int8");
}

bool cuda_can_expand(const struct backend *b)
{
    return registry_find(b->reg, KERNEL) != NULL;
}

static enum status expand(struct backend *b, const struct op *op, uint64_t units, drv_ptr out)
{
    const struct weight *w = op->w;
    struct op named = *op;
    int count = (int)units;
    drv_ptr in = w->data.addr;
    void *args[] = {&in, &out, &count};
    named.role = "expand_weights";
    struct cuda_launch l = {.v = registry_find(b->reg, KERNEL),
                            .op = &named,
                            .grid = {(uint32_t)((units + OPS_FLAT - 1) / OPS_FLAT), 1, 1},
                            .block = OPS_FLAT,
                            .dyn_smem = -1,
                            .m = w->m,
                            .n = 1,
                            .k = w->k,
                            .bytes = (double)units / OPS_EXPAND_UNITS * (144 + 272),
                            .args = args};
    return cuda_launch(b, &l);
}

enum status cuda_expanded(struct backend *b, const struct op *op, drv_ptr *out)
{
    const struct weight *w = op->w;
    uint64_t units = (uint64_t)w->m * (w->k / 256) * OPS_EXPAND_UNITS;
    size_t at = (size_t)(w - b->weights);
    if (w < b->weights || at >= b->n_weights)
        return err_set(ERR_USAGE, "%s: these weights are not the model's", op->role);
    if (units > INT_MAX - OPS_FLAT)
        return err_set(ERR_LIMIT, "%s: %u x %u weights are more than are expanded here", op->role,
                       w->m, w->k);
    if (!b->expanded) b->expanded = calloc(b->n_weights, sizeof *b->expanded);
    if (!b->expanded) return err_set(ERR_NOMEM, "out of memory for the list of weights");
    if (!b->expanded[at]) {
        enum status st = cuda_alloc_bytes(b, units * 16, "expanded weights", &b->expanded[at]);
        if (st == OK) st = expand(b, op, units, b->expanded[at]);
        if (st != OK) return st;
    }
    *out = b->expanded[at];
    return OK;
}

void cuda_expanded_free(struct backend *b)
{
    if (!b->expanded) return;
    b->drv->StreamSynchronize(b->stream);
    for (uint32_t i = 0; i < b->n_weights; i++)
        if (b->expanded[i]) b->drv->MemFree(b->expanded[i]);
    free(b->expanded);
    b->expanded = NULL;
}
