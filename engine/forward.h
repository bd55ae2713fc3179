/*
 * A model's forward pass as a list of operators for a step of n tokens; the formulas stand in
 * engine/model.h.
 *
 * A forward_buffers is the room for activations of up to `max_tokens` tokens, shared by the lists
 * built on it (only one runs at a time). Both belong to the backend's thread and are freed before
 * the backend is closed. The lists point at the model's and the backend's weights.
 */
#ifndef ENGINE_FORWARD_H
#define ENGINE_FORWARD_H

#include "engine/backend.h"
#include "engine/model.h"

struct forward_buffers {
    uint32_t max_tokens;
    bool all_logits; /* logits of every token, not of the last one only */
    struct buffer x, a, q, k, v, o, t, gate, up, last, logits;
};

struct forward {
    struct op *ops;
    uint32_t nops;
    uint32_t n;
};

enum status forward_buffers_alloc(const struct backend_ops *bo, struct backend *b,
                                  const struct model *m, uint32_t max_tokens, bool all_logits,
                                  struct forward_buffers *out);
void forward_buffers_free(const struct backend_ops *bo, struct backend *b,
                          struct forward_buffers *f);

/* Builds the list for n <= max_tokens tokens. Without `all_logits` it ends in OP_ARGMAX of the last
 * token; with, in the product that makes logits [n][vocab]. */
enum status forward_build(const struct backend_ops *bo, struct backend *b, const struct model *m,
                          const struct forward_buffers *bufs, uint32_t n, struct forward *out);
void forward_free(struct forward *f);

/* Gives the backend a KV cache of every layer's size. */
enum status forward_kv_init(const struct backend_ops *bo, struct backend *b, const struct model *m);

#endif
