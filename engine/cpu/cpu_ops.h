/*
 * The operators that are not matrix products, on the CPU, in f32: each a function on the caller's
 * memory, shared out over a pool by rows. What each computes stands with enum op_kind in
 * engine/backend.h. Sums of squares and angles are made in double: this is the reference.
 */
#ifndef ENGINE_CPU_OPS_H
#define ENGINE_CPU_OPS_H

#include "engine/backend.h"
#include "engine/cpu/pool.h"

/* Keys and values of a layer, f32 [context][kv_dim]: exact, since this backend is the reference. */
struct cpu_kv {
    float *k, *v;
    uint32_t dim;
};

void cpu_embed(const struct op *op, const uint32_t *tokens, float *y);
void cpu_norm(struct pool *p, const struct op *op, const float *x, float *y);
void cpu_rope(const struct op *op, uint32_t pos0, float *x);
void cpu_glu(const struct op *op, const float *x, const float *x2, float *y);
void cpu_add(const struct op *op, const float *x, const float *x2, float *y);
void cpu_bias(uint32_t n, uint32_t m, const float *bias, float *y);
void cpu_kv_store(const struct op *op, uint32_t pos0, struct cpu_kv *kv);

/* `scores`: room for `context` floats a thread. */
void cpu_attention(struct pool *p, const struct op *op, const struct cpu_kv *kv, uint32_t pos0,
                   uint32_t context, float *scores);

/* Highest and second highest of logits[vocab]; of equal ones the lowest token wins. */
void cpu_argmax(const float *logits, uint32_t vocab, struct step_result *out);

#endif
