/*
 * The largest logit, its token and the runner-up, in two launches; of equal logits the lowest token
 * wins, a NaN never does.
 * argmax_part: OPS_ARGMAX_PARTS blocks. Arguments: const float *logits, struct part *parts, int n.
 * argmax_merge: one block. Arguments: const struct part *parts, struct ops_argmax *out,
 * struct ops_state *state; the token also goes to state->token[0], for the next step.
 */
#include "kernels/ops/common.cuh"

struct part {
    float v1, v2;
    uint32_t i1, reserved;
};
static_assert(sizeof(struct part) == OPS_ARGMAX_PART_BYTES, "scratch of argmax");

static __device__ __forceinline__ bool beats(float a, uint32_t ia, float b, uint32_t ib)
{
    return a > b || (a == b && ia < ib);
}

static __device__ __forceinline__ struct part better(struct part a, struct part b)
{
    bool first = beats(a.v1, a.i1, b.v1, b.i1);
    struct part win = first ? a : b, lose = first ? b : a;
    win.v2 = fmaxf(win.v2, lose.v1);
    return win;
}

static __device__ struct part warp_best(struct part p)
{
    for (int o = 16; o; o >>= 1) {
        struct part q;
        q.v1 = __shfl_xor_sync(~0u, p.v1, o);
        q.v2 = __shfl_xor_sync(~0u, p.v2, o);
        q.i1 = __shfl_xor_sync(~0u, p.i1, o);
        q.reserved = 0;
        p = better(p, q);
    }
    return p;
}

/* Best of a block of OPS_FLAT threads, in the first warp's lanes. */
static __device__ struct part block_best(struct part p)
{
    __shared__ struct part shared[OPS_FLAT / 32];
    p = warp_best(p);
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = p;
    __syncthreads();
    struct part none = {-INFINITY, -INFINITY, ~0u, 0};
    p = threadIdx.x < OPS_FLAT / 32 ? shared[threadIdx.x] : none;
    return threadIdx.x < 32 ? warp_best(p) : p;
}

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    argmax_part(const float *logits, struct part *parts, int n)
{
    struct part best = {-INFINITY, -INFINITY, ~0u, 0};
    early_release();
    early_wait();
    for (int i = blockIdx.x * OPS_FLAT + threadIdx.x; i < n; i += gridDim.x * OPS_FLAT) {
        struct part p = {logits[i], -INFINITY, (uint32_t)i, 0};
        if (p.v1 == p.v1) best = better(best, p);
    }
    best = block_best(best);
    if (threadIdx.x == 0) parts[blockIdx.x] = best;
}
OPS_DESC_EARLY(argmax_part, "ops", "largest and second largest logit of a part of the vocabulary",
               "f32", "f32", "", OPS_FLAT);

extern "C" __global__ void __launch_bounds__(OPS_FLAT)
    argmax_merge(const struct part *parts, struct ops_argmax *out, struct ops_state *state)
{
    struct part none = {-INFINITY, -INFINITY, ~0u, 0};
    early_release();
    early_wait();
    struct part best = block_best(threadIdx.x < OPS_ARGMAX_PARTS ? parts[threadIdx.x] : none);
    if (threadIdx.x) return;
    out->token = best.i1 == ~0u ? 0 : best.i1;
    out->top1 = best.v1;
    out->top2 = best.v2;
    state->token[0] = out->token;
}
OPS_DESC_EARLY(argmax_merge, "ops", "merges the parts, writes the next token", "f32", "f32", "",
               OPS_FLAT);
