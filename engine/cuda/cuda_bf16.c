/*
 * Activations for a selected GEMM of the numeric class bf16: converted where the others quantise.
 *
 * The result lies in the scratch of the quantised activations, so that whatever makes those stale
 * makes these stale too; q8_bf16 says which of both the scratch holds.
 */
#include "engine/cuda/cuda_priv.h"

#include "kernels/bf16.h"

#include <string.h>

enum { VALUES = 256 }; /* of a token that a warp of to_bf16 takes */

bool cuda_wants_bf16(const struct backend *b, const struct op *op)
{
    const struct variant *v = cuda_chosen(b, op);
    return op->n > OPS_GEMV_MAX && v && !strcmp(v->desc.layout_a, "bf16");
}

enum status cuda_to_bf16(struct backend *b, const struct op *op)
{
    uint32_t k = op->w->k;
    if (b->q8_bf16 && b->q8_of == op->x.addr && b->q8_n == op->n && b->q8_k == k) return OK;
    b->q8_of = 0;
    enum status st = cuda_grow(b, &b->q8, bf16_bytes((int)op->n, (int)k), "bf16 activations");
    if (st != OK) return st;
    int in = (int)op->n, ik = (int)k;
    drv_ptr x = op->x.addr;
    void *args[] = {&x, &b->q8.p, &in, &ik};
    struct cuda_launch l = {.v = b->kernel[CUDA_TO_BF16],
                            .op = op,
                            .grid = {k / VALUES, (op->n + BF16_GROUP - 1) / BF16_GROUP, 1},
                            .block = OPS_FLAT,
                            .dyn_smem = -1,
                            .m = k,
                            .n = op->n,
                            .bytes = (double)op->n * k * 6,
                            .args = args};
    st = cuda_launch(b, &l);
    if (st != OK) return st;
    b->q8_of = op->x.addr;
    b->q8_n = op->n;
    b->q8_k = k;
    b->q8_bf16 = true;
    return OK;
}
