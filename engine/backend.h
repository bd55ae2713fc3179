/*
 * The seam between the token loop and what computes: cpu (plain C, the reference) and cuda.
 *
 * forward.c turns a model into a list of operators once per (phase, tokens); the loop hands the list
 * to a backend one step at a time. Activations are f32, row-major [tokens][dim]. Quantised matrix
 * products quantise their input to q8 chunks first (kernels/q8.h), on every backend alike, so that
 * backends of one numeric class give equal tokens.
 *
 * Memory: buffers and weights belong to the backend that made them. Everything here is called by
 * the launching thread alone, except `interrupt`.
 */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;        /* engine/model.h */
struct gguf_tensor;  /* engine/gguf.h: name, type, dims, data */

/* A buffer of the backend: host pointer (cpu) or device address (cuda). */
struct buffer {
    uint64_t addr;
    size_t bytes;
};

/* A tensor as the backend holds it (cuda: on the device; cpu: the mapped file). Products are
 * Y[n][m] = X[n][k] * W[m][k]^T with W's rows of k values. */
struct weight {
    const struct gguf_tensor *src;
    struct buffer data;
    uint32_t m, k; /* a vector (norms, biases) has m = 1 */
    int type;      /* enum quant_type of engine/quant.h */
};

enum op_kind {
    OP_EMBED,     /* y[n][d] = rows of w named by the step's tokens, times `scale` */
    OP_NORM,      /* RMSNorm over groups of `dim`: y = x * rsqrt(mean(x^2) + eps) * w; y may be x.
                     `dim` = d_model and heads 0, or head_dim and `heads` groups a token (q/k norms) */
    OP_MATMUL,    /* y[n][m] = x[n][k] * w^T, + bias when there is one */
    OP_ROPE,      /* rotates x[n][heads * head_dim] in place by the step's positions */
    OP_KV_STORE,  /* appends x = k[n][kv_dim] and x2 = v[n][kv_dim] to layer `layer` of the cache */
    OP_ATTENTION, /* y[n][heads * head_dim] from q = x and the cache; causal; `window` > 0: only the
                     last `window` positions are seen */
    OP_GLU,       /* y = act(x) * x2, [n][dim]; act = silu or gelu (tanh form) by `gelu` */
    OP_ADD,       /* y = x + x2 */
    OP_LAST,      /* y[1][dim] = the last token's row of x[n][dim] (prefill needs one row of logits) */
    OP_ARGMAX,    /* of y = logits [n][vocab] of the last row: token, top-1 and top-2 logit */
};

struct op {
    enum op_kind kind;
    const char *role; /* static: "attn_q", "ffn_down", "attn_norm"... */
    int layer;        /* -1 outside layers */
    uint32_t n;       /* tokens in this step */
    const struct weight *w, *bias;
    struct buffer x, x2, y;
    uint32_t dim, heads, kv_heads, head_dim, window;
    float scale, eps;
    float rope_base, rope_scale;    /* frequency = rope_scale * base^(-2i/head_dim) / factors[i] */
    const struct weight *rope_factors; /* f32 [head_dim/2] or NULL */
    bool rope_neox;                 /* pairs (i, i + d/2) instead of (2i, 2i+1) */
    bool gelu;
};

struct step_result {
    uint32_t token; /* argmax of the last position */
    float top1, top2;
};

/* What one kernel launch (or CPU operator) was, told to the loop as it happens. */
struct launch_info {
    uint32_t kernel; /* index into the backend's kernel list */
    uint32_t m, n, k;
    const char *role;
    double macs, bytes;
    uint32_t grid[3], smem_dynamic, blocks_per_sm;
    uint32_t warps_per_sm, max_warps; /* theoretical occupancy; 0 = unknown */
    const char *limiter;              /* what binds it: "registers"; NULL = unknown. Static */
    const char *asked, *why; /* when the guard fell back, else NULL */
};

/* A kernel or CPU operator that this backend can run; index = number in the list. Static or owned by
 * the backend until close. */
struct kernel_info {
    const char *name, *family, *variant, *note, *cls;
    uint32_t kd, arch, regs, smem_static, spill, threads;
    uint64_t code_hash, cubin_hash;
    const char *cubin_path; /* NULL on a CPU */
    bool copies;            /* it works on a larger copy of its weights: never chosen by auto */
    uint8_t standing;       /* KERNEL_... below, or-ed: where to go back to after a fault */
};

/* Of a variant, within its family. */
enum {
    KERNEL_START = 1,    /* what a session starts with when nothing else is asked for */
    KERNEL_FALLBACK = 2, /* runs where others are refused */
    KERNEL_BROKEN = 4,   /* wrong on purpose */
};

struct backend_limits {
    char device[64], driver[32], toolkit[32], chip[16];
    uint32_t sm, sms, smem_optin, clock_mhz;
    uint64_t memory, l2_bytes;
};

/* How a step is measured. TIMING_NONE: nothing per launch (timed rounds). TIMING_LAUNCH: `on_time`
 * is called for each launch after the step has been synchronised, in launch order, with times by
 * the backend's own means (cpu: clock; cuda: events). TIMING_EXTERNAL: `on_launch` is called for each
 * launch in order, times come from a counter source. */
enum timing { TIMING_NONE, TIMING_LAUNCH, TIMING_EXTERNAL };

struct backend_hooks {
    void *ctx;
    void (*on_launch)(void *ctx, const struct launch_info *info); /* right before the launch */
    /* TIMING_EXTERNAL: right after it was enqueued (cpu: after it ran). May be NULL. */
    void (*on_launched)(void *ctx, const struct launch_info *info);
    void (*on_time)(void *ctx, const struct launch_info *info, uint64_t start_ns, uint64_t dur_ns);
};

/* Outcome of a check of one variant on one shape. */
struct parity_result {
    bool passed;
    double nmse;  /* sum (y - ref)^2 / sum ref^2 */
    double worst; /* largest |y - ref|, relative to the root mean square of ref */
    char text[160];
};

struct backend;
struct driver;

struct backend_options {
    int threads;            /* cpu: 0 = all */
    uint32_t max_tokens;    /* longest prefill step */
    uint32_t context;       /* KV cache length */
    struct backend_hooks hooks;
    bool allow_broken;      /* fault-containment tests may load broken_* variants */
    bool graphs;            /* cuda: replay decode steps as a graph in timed rounds */
    size_t pad_smem;        /* cuda: extra dynamic shared memory a block for GEMMs, 0 = none */
};

struct backend_ops {
    const char *name; /* "cpu", "cuda" */
    /* ERR_UNAVAILABLE with the reason when this machine can't. */
    enum status (*open)(const struct backend_options *o, struct backend **out);
    enum status (*limits)(struct backend *b, struct backend_limits *out);
    /* Takes a model's tensors: cuda copies them to the device, cpu keeps the mapping. `progress` may
     * be NULL; it is called with bytes done and bytes in all. The result is found by get_weight. */
    enum status (*load)(struct backend *b, const struct model *m,
                        void (*progress)(void *ctx, uint64_t done, uint64_t total), void *ctx);
    const struct weight *(*get_weight)(struct backend *b, const struct gguf_tensor *t);
    enum status (*alloc)(struct backend *b, size_t bytes, struct buffer *out); /* zero-filled */
    void (*release)(struct backend *b, struct buffer *buf);
    enum status (*download)(struct backend *b, const struct buffer *from, size_t offset, void *to,
                            size_t bytes);
    enum status (*kv_init)(struct backend *b, uint32_t layers, const uint32_t *kv_dim);
    /* Runs a list of operators over `n` tokens at positions pos0... ; blocks until `result` is there
     * (result NULL: until all is launched). `decode`: n = 1 and this list is run again and again
     * with rising positions, so a graph may be made of it. */
    enum status (*run)(struct backend *b, const struct op *ops, uint32_t nops,
                       const uint32_t *tokens, uint32_t n, uint32_t pos0, bool decode,
                       enum timing timing, struct step_result *result);
    enum status (*sync)(struct backend *b);
    uint32_t (*kernels)(struct backend *b, const struct kernel_info **list);
    /* Selects the variant of a family from the next run on. ERR_USAGE: unknown; ERR_UNAVAILABLE: not
     * on this device, with the reason. */
    enum status (*select)(struct backend *b, const char *family, const char *variant, uint32_t kd);
    bool (*selected)(struct backend *b, const char *family, const char **variant, uint32_t *kd);
    /* What `select(b, family, "auto", 0)` (or "auto:any") runs on one shape from then on; mnk NULL
     * forgets all of the family. ERR_USAGE, ERR_UNAVAILABLE as select. NULL: this backend has no
     * choice by shape. */
    enum status (*choose)(struct backend *b, const char *family, const uint32_t mnk[3],
                          const char *variant, uint32_t kd);
    /* From the next run on, shared memory of GEMMs is padded so that `blocks` fit on an SM and no
     * more (0: as they are); a kernel that doesn't fit so often stays as it is. What comes of it for
     * the selected one is written to text[size]. NULL on a CPU. ERR_LIMIT: not on this device. */
    enum status (*force_blocks)(struct backend *b, uint32_t blocks, char *text, size_t size);
    /* Checks a variant against the family's reference on random inputs of one shape, in this process.
     * NULL: a faulty variant could take the process along, so kcheck does it in a scratch child. */
    enum status (*check)(struct backend *b, const char *family, const char *variant, uint32_t kd,
                         const uint32_t mnk[3], struct parity_result *out);
    /* cuda: context and stream for counter sources; cpu: NULL. */
    void *(*context)(struct backend *b);
    void *(*stream)(struct backend *b);
    /* cuda: base/driver.h's table for counter sources; NULL elsewhere. */
    const struct driver *(*driver)(struct backend *b);
    void (*close)(struct backend *b);
};

extern const struct backend_ops cpu_backend, cuda_backend;

#endif
