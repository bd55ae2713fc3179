/*
 * The inside of the CUDA backend, shared by the files of this folder.
 *
 * One primary context, one stream, all calls from the launching thread. Device memory belongs to
 * struct backend and is given back by close(). The order of a step: state (positions, tokens) goes
 * up, operators become launches (cuda_ops.c), each passes through cuda_launch() (cuda_launch.c),
 * the result comes down.
 */
#ifndef ENGINE_CUDA_PRIV_H
#define ENGINE_CUDA_PRIV_H

#include "base/driver.h"
#include "engine/backend.h"
#include "engine/gguf.h"
#include "kernels/launch.h"
#include "kernels/ops/ops.h"
#include "kernels/registry.h"

enum {
    CUDA_ROPE_TABLES = 16,   /* different (base, scale, factors) in one model */
    CUDA_MAX_TOKENS = 65535, /* of a step: the y extent of a grid */
    CUDA_CHOICES = 64        /* shapes that `auto` knows, of one family */
};

enum cuda_kernel {
#define CUDA_KERNEL(id, symbol) CUDA_##id,
#include "engine/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
    CUDA_KERNELS
};

/* One launch as it is asked for. m, n, k name its row in the tables. */
struct cuda_launch {
    const struct variant *v;
    const struct op *op;
    bool gemm; /* of a family with a contract: planned by the launcher, grid and block unused */
    uint32_t grid[3], block;
    int dyn_smem; /* -1: the descriptor's */
    uint32_t m, n, k;
    double macs, bytes;
    void **args;
};

/* A launch whose events wait to be read. */
struct cuda_timed {
    struct launch_info info;
    struct drv_event *start, *end;
};

struct cuda_occupancy {
    uint32_t block, dyn_smem, blocks; /* blocks 0: not asked yet */
};

struct cuda_rope_table {
    float base, scale;
    uint64_t factors;
    uint32_t head_dim;
    drv_ptr freq;
};

struct cuda_kv {
    drv_ptr k, v;
    uint32_t dim;
};

/* Device scratch that grows when a step needs more. */
struct cuda_scratch {
    drv_ptr p;
    size_t bytes;
};

/* What `auto` runs on one shape. */
struct cuda_choice {
    uint32_t m, n, k;
    const struct variant *v;
};

/* The choices of one family; `name` is "auto" or "auto:any" while they are in force, else "". */
struct cuda_auto {
    char name[12];
    struct cuda_choice of[CUDA_CHOICES];
    uint32_t n;
};

struct backend {
    struct backend_options o;
    struct driver *drv;
    int dev;
    bool retained;
    struct drv_ctx *ctx;
    struct drv_stream *stream;
    struct registry *reg;
    struct launcher *launcher;
    const struct variant *kernel[CUDA_KERNELS];
    const struct variant *gemm;       /* selected of q4k_gemm; NULL when there is none */
    const struct variant *gemm6;      /* selected of q6k_gemm */
    struct cuda_auto choice, choice6; /* of the same families */
    drv_ptr *expanded;                /* by weight, see cuda_expand.c; NULL: none is */
    char gemm_why[LAUNCH_WHY];        /* of its last fallback */
    struct kernel_info *infos;        /* by registry index */
    struct cuda_occupancy *occupancy;
    bool *proven; /* by registry index: has run to its end once */
    uint32_t n_kernels;

    drv_ptr weight_block;
    struct weight *weights;
    uint32_t n_weights;
    struct cuda_kv *kv;
    uint32_t layers;
    struct cuda_rope_table rope[CUDA_ROPE_TABLES];
    uint32_t n_rope;

    struct cuda_scratch q8, q8_next, attn; /* q8_next: written while q8 is read; then they swap */
    uint64_t q8_of;                        /* address whose activations q8 holds now, 0 = none */
    uint32_t q8_n, q8_k;
    bool q8_bf16;               /* it holds them as bf16, see cuda_bf16.c */
    drv_ptr state, parts, best; /* struct ops_state, argmax's scratch, struct ops_argmax */
    uint32_t *host_state;       /* pinned: ops_state with max_tokens tokens */
    struct ops_argmax *host_best;

    /* the step under way */
    enum timing timing;
    bool capturing, in_flight;
    struct cuda_timed *timed;
    uint32_t n_timed, cap_timed;
    uint32_t events_made; /* timed[0 .. events_made) own their events */
    struct drv_event *base;
    uint64_t base_wall;
    const char *last_role, *last_kernel;
    uint32_t blocks; /* forced on an SM by padding GEMMs' shared memory; 0 = as they are */
    bool fuse;       /* neighbouring operators in one launch; $SASSTOP_FUSE=0 turns it off */

    /* the decode step as a graph */
    uint64_t seen_list, graph_list; /* hashes of operator lists: run once plainly; captured */
    struct drv_graph_exec *graph;
};

/* cuda_launch.c */
/* force_blocks_per_sm for a GEMM: 0 when nothing is asked for or v doesn't fit so often. */
int cuda_forced_blocks(const struct backend *b, const struct variant *v);
enum status cuda_launch(struct backend *b, const struct cuda_launch *l);
enum status cuda_wait(struct backend *b); /* drains the stream; names what ran on a fault */
enum status cuda_timing_start(struct backend *b, enum timing timing);
enum status cuda_timing_tell(struct backend *b);
void cuda_timing_free(struct backend *b);

/* cuda_ops.c, cuda_matmul.c: one operator as launches. */
enum status cuda_run_op(struct backend *b, const struct op *op);
enum status cuda_matmul(struct backend *b, const struct op *op);
enum status cuda_quantise(struct backend *b,
                          const struct op *op); /* a product's input, if needed */
/* cuda_choice.c: the GEMM for a product's weights, NULL when its type has but one. */
const struct variant *cuda_chosen(const struct backend *b, const struct op *op);
enum status cuda_choose(struct backend *b, const char *family, const uint32_t mnk[3],
                        const char *variant, uint32_t kd);
/* Puts the choices in force under this name ("auto", "auto:any"), or ("") out of it. */
enum status cuda_take_auto(struct backend *b, const char *family, const char *name);
/* cuda_expand.c: whether a variant wants its weights as bytes; whether the kernel for that is
 * there; those of a product, made when there are none yet; all of them freed. */
bool cuda_wants_int8(const struct variant *v);
bool cuda_can_expand(const struct backend *b);
enum status cuda_expanded(struct backend *b, const struct op *op, drv_ptr *out);
void cuda_expanded_free(struct backend *b);
/* cuda_bf16.c: whether that GEMM wants bf16 activations; those, in q8's place. */
bool cuda_wants_bf16(const struct backend *b, const struct op *op);
enum status cuda_to_bf16(struct backend *b, const struct op *op);

/* q8 holds the chunks of the activations at x from now on. */
void cuda_q8_holds(struct backend *b, uint64_t x, uint32_t n, uint32_t k);
bool cuda_is_quantised(const struct weight *w);
/* Blocks for a kernel of kernels/ops/gemv_one.cuh: one an SM, or a pair of rows. */
uint32_t cuda_gemv_one_blocks(const struct backend *b, uint32_t pairs);
enum status cuda_rope_table(struct backend *b, const struct op *op, drv_ptr *out);
/* Whether attention as asked can be launched: its layer has a cache that fits it and there are
 * kernels for its heads, the *kind-th of each list of them. */
enum status cuda_check_attention(const struct backend *b, const struct op *op, int *kind);
/* Launches attn_decode_*, and leaves the merge of its parts to the caller. */
enum status cuda_attention_parts(struct backend *b, const struct op *op);

/* cuda_fuse.c: the operators at ops[0..nops) that one launch does as well. *done = how many were
 * launched, 0 when nothing here fits and cuda_run_op() has to take the first. */
enum status cuda_fuse(struct backend *b, const struct op *ops, uint32_t nops, uint32_t *done);

/* cuda_run.c */
enum status cuda_run(struct backend *b, const struct op *ops, uint32_t nops, const uint32_t *tokens,
                     uint32_t n, uint32_t pos0, bool decode, enum timing timing,
                     struct step_result *result);
void cuda_graph_drop(struct backend *b);

/* cuda_weights.c */
enum status cuda_load(struct backend *b, const struct model *m,
                      void (*progress)(void *ctx, uint64_t done, uint64_t total), void *ctx);
const struct weight *cuda_get_weight(struct backend *b, const struct gguf_tensor *t);

/* cuda_kernels.c */
enum status cuda_kernels_open(struct backend *b); /* registry, launcher, the named kernels */
void cuda_kernels_close(struct backend *b);
uint32_t cuda_kernel_list(struct backend *b, const struct kernel_info **list);
/* Whether the engine can run a GEMM: its device, its layouts, its shared memory. */
enum status cuda_usable(const struct backend *b, const struct variant *v);
enum status cuda_select(struct backend *b, const char *family, const char *variant, uint32_t kd);
enum status cuda_force_blocks(struct backend *b, uint32_t blocks, char *text, size_t size);
bool cuda_selected(struct backend *b, const char *family, const char **variant, uint32_t *kd);
uint32_t cuda_blocks_per_sm(struct backend *b, const struct variant *v, uint32_t block,
                            uint32_t dyn_smem); /* 0 = the driver doesn't say */

/* cuda_memory.c */
enum status cuda_alloc_bytes(struct backend *b, size_t bytes, const char *what, drv_ptr *out);
enum status cuda_grow(struct backend *b, struct cuda_scratch *s, size_t bytes, const char *what);
enum status cuda_alloc(struct backend *b, size_t bytes, struct buffer *out);
void cuda_release(struct backend *b, struct buffer *buf);
enum status cuda_download(struct backend *b, const struct buffer *from, size_t offset, void *to,
                          size_t bytes);
enum status cuda_kv_init(struct backend *b, uint32_t layers, const uint32_t *kv_dim);

#endif
