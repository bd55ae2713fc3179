/*
 * attn_decode: attention of one query over the cache. The positions are cut into OPS_ATTN_SPLITS
 * parts, so that the grid doesn't depend on the position (which is read from memory); a second
 * launch merges the parts. One kernel a head length.
 *
 * A block takes a part of the positions for up to four query heads of one kv head, so that a key is
 * read once for all of them; its warps take positions in turn, each with an online softmax of its
 * own. Scratch: for each head and part {maximum, sum, acc[HD]}; an empty part has maximum -inf.
 * attn_decode_HD arguments: const float *q, const float *k_cache, const float *v_cache,
 * float *scratch, const struct ops_state *state, int heads, int kv_heads, int window, float scale.
 * Grid {kv_heads * ceil(heads / kv_heads / OPS_ATTN_GROUP), OPS_ATTN_SPLITS}.
 * attn_decode_merge arguments: const float *scratch, float *y, int head_dim. Grid {heads}.
 */
#include "kernels/ops/common.cuh"

enum { WARPS = 4, THREADS = WARPS * 32, GROUP = OPS_ATTN_GROUP, SPLITS = OPS_ATTN_SPLITS };

template <int HD> struct partial {
    float top[GROUP], sum[GROUP], acc[GROUP][HD / 32];
};

template <int HD>
static __device__ __forceinline__ void take_position(struct partial<HD> *p, const float *k,
                                                     const float *v, const float q[GROUP][HD / 32])
{
    int lane = threadIdx.x & 31;
    float kk[HD / 32], vv[HD / 32];
    for (int i = 0; i < HD / 32; i++) {
        kk[i] = k[i * 32 + lane];
        vv[i] = v[i * 32 + lane];
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        float s = 0;
        for (int i = 0; i < HD / 32; i++) s = fmaf(q[g][i], kk[i], s);
        s = ops::warp_sum(s);
        float top = fmaxf(p->top[g], s), old = expf(p->top[g] - top), e = expf(s - top);
        p->top[g] = top;
        p->sum[g] = p->sum[g] * old + e;
        for (int i = 0; i < HD / 32; i++) p->acc[g][i] = fmaf(e, vv[i], p->acc[g][i] * old);
    }
}

/* The weight of a part whose maximum is `top` when all have `best`; 0 for an empty part. */
static __device__ __forceinline__ float weight(float top, float best)
{
    return top == -INFINITY ? 0.0f : expf(top - best);
}

/* Merges the block's warps and writes {maximum, sum, acc} of each head. */
template <int HD>
static __device__ __forceinline__ void write_parts(const struct partial<HD> &p, float *scratch,
                                                   int head0, int group)
{
    __shared__ float top[WARPS][GROUP], sum[WARPS][GROUP], acc[WARPS][GROUP][HD];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        if (lane == 0) top[warp][g] = p.top[g], sum[warp][g] = p.sum[g];
        for (int i = 0; i < HD / 32; i++) acc[warp][g][i * 32 + lane] = p.acc[g][i];
    }
    __syncthreads();
    for (int g = 0; g < group; g++) {
        float best = -INFINITY, all = 0, f[WARPS];
        for (int w = 0; w < WARPS; w++) best = fmaxf(best, top[w][g]);
        for (int w = 0; w < WARPS; w++) {
            f[w] = weight(top[w][g], best);
            all += f[w] * sum[w][g];
        }
        float *out = scratch + ((size_t)(head0 + g) * SPLITS + blockIdx.y) * (HD + 2);
        if (threadIdx.x == 0) out[0] = best, out[1] = all;
        for (int d = threadIdx.x; d < HD; d += THREADS) {
            float v = 0;
            for (int w = 0; w < WARPS; w++) v = fmaf(f[w], acc[w][g][d], v);
            out[2 + d] = v;
        }
    }
}

template <int HD>
static __device__ __forceinline__ void body(const float *q, const float *k_cache,
                                            const float *v_cache, float *scratch, int pos,
                                            int heads, int kv_heads, int window, float scale)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int per_kv = heads / kv_heads, groups = (per_kv + GROUP - 1) / GROUP;
    int kv_head = blockIdx.x / groups, in_kv = blockIdx.x % groups * GROUP;
    int head0 = kv_head * per_kv + in_kv, group = min(GROUP, per_kv - in_kv);
    int from = window > 0 ? max(0, pos + 1 - window) : 0;
    int each = (pos + 1 - from + SPLITS - 1) / SPLITS;
    int p0 = from + blockIdx.y * each, p1 = min(p0 + each, pos + 1);
    size_t stride = (size_t)kv_heads * HD;

    float qq[GROUP][HD / 32];
    struct partial<HD> p;
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        p.top[g] = -INFINITY;
        p.sum[g] = 0;
        for (int i = 0; i < HD / 32; i++) {
            qq[g][i] = g < group ? q[(size_t)(head0 + g) * HD + i * 32 + lane] * scale : 0.0f;
            p.acc[g][i] = 0;
        }
    }
    for (int at = p0 + warp; at < p1; at += WARPS) {
        size_t row = at * stride + (size_t)kv_head * HD;
        take_position<HD>(&p, k_cache + row, v_cache + row, qq);
    }
    write_parts<HD>(p, scratch, head0, group);
}

#define ATTN(HD)                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) attn_decode_##HD(                        \
        const float *q, const float *k_cache, const float *v_cache, float *scratch,                \
        const struct ops_state *state, int heads, int kv_heads, int window, float scale)           \
    {                                                                                              \
        body<HD>(q, k_cache, v_cache, scratch, (int)state->pos0, heads, kv_heads, window, scale);  \
    }                                                                                              \
    OPS_DESC(attn_decode_##HD, "ops",                                                              \
             "attention of one query, positions cut into parts; heads of " #HD, "f32", "f32", "",  \
             THREADS)

ATTN(64);
ATTN(96);
ATTN(128);
ATTN(256);

extern "C" __global__ void __launch_bounds__(THREADS)
    attn_decode_merge(const float *scratch, float *y, int head_dim)
{
    const float *part = scratch + (size_t)blockIdx.x * SPLITS * (head_dim + 2);
    float best = -INFINITY, sum = 0, f[SPLITS];
#pragma unroll
    for (int s = 0; s < SPLITS; s++) best = fmaxf(best, part[s * (head_dim + 2)]);
#pragma unroll
    for (int s = 0; s < SPLITS; s++) {
        f[s] = weight(part[s * (head_dim + 2)], best);
        sum += f[s] * part[s * (head_dim + 2) + 1];
    }
    for (int d = threadIdx.x; d < head_dim; d += THREADS) {
        float v = 0;
#pragma unroll
        for (int s = 0; s < SPLITS; s++) v = fmaf(f[s], part[s * (head_dim + 2) + 2 + d], v);
        y[(size_t)blockIdx.x * head_dim + d] = __fdiv_rn(v, sum);
    }
}
OPS_DESC(attn_decode_merge, "ops", "merges the parts of attn_decode", "f32", "f32", "", THREADS);
