/*
 * What the host must know to launch the kernels of kernels/ops, q4k_gemv, q6k_gemv and q6k_gemm.
 *
 * Read by C and by CUDA C++; constants and the layout of the small buffers only, no memory, no
 * state. Each .cu file says in its first comment what its arguments are, in order. All activations
 * are f32, row-major [tokens][dim]; quantised ones are q8 chunks (kernels/q8.h).
 *
 * A step's positions and token ids are read from device memory (struct ops_state), so that the
 * launches of a decode step don't depend on the position and can be replayed as a CUDA graph.
 */
#ifndef KERNELS_OPS_OPS_H
#define KERNELS_OPS_OPS_H

#ifdef __cplusplus
#include <cstdint>
#else
#include <stdint.h>
#endif

/* Set at the start of each run; token[i] is at position pos0 + i. Argmax writes the next token id
 * into token[0]. Allocated with room for the longest step. */
struct ops_state {
    uint32_t pos0, n;
    uint32_t reserved[2];
    uint32_t token[4];
};

/* What argmax leaves. top2 is the largest logit among the other tokens, -inf when there is none.
 * Of equal logits the lowest token id wins. */
struct ops_argmax {
    uint32_t token;
    float top1, top2;
    uint32_t reserved;
};

/* Matrices of one k that share their activations; unused ones have m 0. */
struct ops_gemv_many {
    const uint8_t *w[3];
    float *y[3];
    int m[3], unused;
};

/* What a product of one token is given: q8 chunks; or, when there are none, the values x, of which
 * it makes the chunks of their RMSNorm by w itself. At most OPS_NORM_Q8_DIM values then. */
struct ops_gemv_input {
    const uint8_t *chunks;
    const float *x, *w;
    float eps;
};

/* Attention of one query that isn't rotated yet, as attn_one_HD takes it. q, k, v: the step's;
 * freq: as for rope; chunks: of y, or NULL. */
struct ops_attn_one {
    const float *q, *k, *v;
    float *k_cache, *v_cache, *y;
    uint8_t *chunks;
    const double *freq;
    const struct ops_state *state;
    int heads, kv_heads, window, context, halves;
    float scale;
};

enum {
    OPS_STATE_TOKENS = 16, /* byte offset of token[] */
    OPS_PAD = 64,          /* readable bytes that must follow every weight tensor: blocks of 20, 22,
                            * 34 and 210 bytes are read by whole words */

    OPS_EXPAND_UNITS = 17,   /* pieces of 16 bytes that q4k_expand makes of a super-block */
    OPS_GEMV_MAX = 8,        /* most tokens of a GEMV */
    OPS_GEMV_ROWS = 8,       /* output rows a block of a GEMV */
    OPS_GEMV_ONE_K = 16384,  /* longest row of kernels/ops/gemv_one.cuh */
    OPS_GEMV_GLU_M = 131072, /* most rows of its gate: 32 a counter */
    OPS_GEMM_TILE = 64,      /* rows and tokens a block of kernels/ops/qgemm.cuh */
    OPS_FGEMM_TILE = 64,

    OPS_ATTN_TILE = 32,     /* queries a block of attn_prefill, and keys a step */
    OPS_ATTN_SPLITS = 16,   /* parts of the positions in attn_decode */
    OPS_ATTN_GROUP = 4,     /* query heads of one kv head that a block of attn_decode takes */
    OPS_ATTN_ONE_GROUP = 2, /* and a cluster of attn_one: 4 measured slower */
    OPS_ATTN_CLUSTER = 8,   /* blocks that share the positions in attn_one */

    OPS_ARGMAX_PARTS = 128,
    OPS_ARGMAX_PART_BYTES = 16,
    OPS_NORM_Q8_DIM = 8192, /* longest row of rms_norm_q8 */
    OPS_NORM_Q8 = 512,      /* and its threads: they and a block of gemv_one.cuh share an SM */
    OPS_FLAT = 256,         /* threads a block of the element-wise kernels */
};

/* Bytes of dynamic shared memory of attn_prefill for a head. */
static inline uint32_t ops_attn_prefill_smem(uint32_t head_dim)
{
    /* q and one tile of k or v with rows padded by 4 floats, and the scores. */
    return 4u * (2u * OPS_ATTN_TILE * (head_dim + 4u) + OPS_ATTN_TILE * (OPS_ATTN_TILE + 4u));
}

/* Floats of scratch that attn_decode and attn_decode_merge share: {max, sum, acc[head_dim]} for
 * each head and part. */
static inline uint32_t ops_attn_decode_floats(uint32_t heads, uint32_t head_dim)
{
    return heads * OPS_ATTN_SPLITS * (head_dim + 2u);
}

#endif
