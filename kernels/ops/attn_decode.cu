/*
 * attn_decode: attention of one query over the cache. The positions are cut into OPS_ATTN_SPLITS
 * parts, so that the grid doesn't depend on the position (which is read from memory); a second
 * launch merges the parts. One kernel a head length.
 *
 * A block takes a part of the positions for up to four query heads of one kv head, so that a key is
 * read once for all of them; eight lanes share a position, so that a warp has four under way, each
 * with an online softmax of its own. Scratch: for each head and part {maximum, sum, acc[HD]}; an
 * empty part has maximum -inf. attn_decode_HD arguments: const float *q, const float *k_cache,
 * const float *v_cache, float *scratch, const struct ops_state *state, int heads, int kv_heads, int
 * window, float scale. Grid {kv_heads * ceil(heads / kv_heads / OPS_ATTN_GROUP), OPS_ATTN_SPLITS}.
 * attn_decode_merge arguments: const float *scratch, float *y, int head_dim. Grid {heads}.
 * attn_decode_merge_q8: the same, and the q8 chunks; one more argument: uint8_t *chunks.
 */
#include "kernels/ops/quantise.cuh"

enum { WARPS = 4, THREADS = WARPS * 32, GROUP = OPS_ATTN_GROUP, SPLITS = OPS_ATTN_SPLITS };
enum { SUB = 8, SUBS = 32 / SUB }; /* lanes that share a position, positions a warp takes at once */

/* A lane's part of the HD values: four at a time, SUB * 4 apart. */
template <int HD> struct partial {
    enum { FOURS = HD / 4 / SUB };
    float top[GROUP], sum[GROUP];
    float4 acc[GROUP][FOURS];
};

static __device__ __forceinline__ float dot4(float4 a, float4 b, float s)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, s))));
}

static __device__ __forceinline__ float4 scaled_add(float4 v, float e, float4 acc, float old)
{
    return make_float4(fmaf(e, v.x, acc.x * old), fmaf(e, v.y, acc.y * old),
                       fmaf(e, v.z, acc.z * old), fmaf(e, v.w, acc.w * old));
}

/* One position for each group of SUB lanes; `in`: this group has one. */
template <int HD>
static __device__ __forceinline__ void take_position(struct partial<HD> *p, const float4 *k,
                                                     const float4 *v, const float4 *q, bool in)
{
    enum { FOURS = partial<HD>::FOURS };
    int lane = threadIdx.x & (SUB - 1);
    float4 kk[FOURS], vv[FOURS];
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        kk[i] = in ? k[i * SUB + lane] : make_float4(0, 0, 0, 0);
        vv[i] = in ? v[i * SUB + lane] : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        float s = 0;
#pragma unroll
        for (int i = 0; i < FOURS; i++) s = dot4(q[g * (HD / 4) + i * SUB + lane], kk[i], s);
        for (int o = SUB / 2; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
        if (!in) continue;
        float top = fmaxf(p->top[g], s), old = expf(p->top[g] - top), e = expf(s - top);
        p->top[g] = top;
        p->sum[g] = p->sum[g] * old + e;
#pragma unroll
        for (int i = 0; i < FOURS; i++) p->acc[g][i] = scaled_add(vv[i], e, p->acc[g][i], old);
    }
}

/* The weight of a part whose maximum is `top` when all have `best`; 0 for an empty part. */
static __device__ __forceinline__ float weight(float top, float best)
{
    return top == -INFINITY ? 0.0f : expf(top - best);
}

/* Brings the positions of a warp's groups of lanes together: afterwards every group has all. */
template <int HD> static __device__ __forceinline__ void merge_groups(struct partial<HD> *p)
{
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        float best = p->top[g];
        for (int o = SUB; o < 32; o <<= 1) best = fmaxf(best, __shfl_xor_sync(~0u, best, o));
        float f = weight(p->top[g], best), sum = p->sum[g] * f;
        for (int o = SUB; o < 32; o <<= 1) sum += __shfl_xor_sync(~0u, sum, o);
        p->top[g] = best;
        p->sum[g] = sum;
#pragma unroll
        for (int i = 0; i < partial<HD>::FOURS; i++) {
            float4 a = p->acc[g][i];
            a = make_float4(a.x * f, a.y * f, a.z * f, a.w * f);
            for (int o = SUB; o < 32; o <<= 1) {
                a.x += __shfl_xor_sync(~0u, a.x, o);
                a.y += __shfl_xor_sync(~0u, a.y, o);
                a.z += __shfl_xor_sync(~0u, a.z, o);
                a.w += __shfl_xor_sync(~0u, a.w, o);
            }
            p->acc[g][i] = a;
        }
    }
}

/* Merges the block's warps and writes {maximum, sum, acc} of each head. */
template <int HD>
static __device__ __forceinline__ void write_parts(struct partial<HD> *p, float *scratch, int head0,
                                                   int group)
{
    __shared__ float top[WARPS][GROUP], sum[WARPS][GROUP];
    __shared__ float4 acc[WARPS][GROUP][HD / 4];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    merge_groups<HD>(p);
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        if (lane == 0) top[warp][g] = p->top[g], sum[warp][g] = p->sum[g];
#pragma unroll
        for (int i = 0; i < partial<HD>::FOURS; i++)
            if (lane < SUB) acc[warp][g][i * SUB + lane] = p->acc[g][i];
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
            for (int w = 0; w < WARPS; w++) v = fmaf(f[w], ((float *)acc[w][g])[d], v);
            out[2 + d] = v;
        }
    }
}

/* Keys and values of positions [p0, p1) into the L2, 128 bytes a thread at a time. Only a hint: the
 * kernels before this one may still be writing the last of them. */
template <int HD>
static __device__ __forceinline__ void prefetch(const float *k_cache, const float *v_cache,
                                                size_t stride, int kv_head, int p0, int p1)
{
    enum { LINES = HD / 32 };
    for (int i = threadIdx.x; i < (p1 - p0) * LINES; i += THREADS) {
        size_t at = (size_t)(p0 + i / LINES) * stride + (size_t)kv_head * HD + i % LINES * 32;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(k_cache + at));
        asm volatile("prefetch.global.L2 [%0];" ::"l"(v_cache + at));
    }
}

template <int HD>
static __device__ __forceinline__ void body(const float *q, const float *k_cache,
                                            const float *v_cache, float *scratch, int pos,
                                            int heads, int kv_heads, int window, float scale)
{
    __shared__ float4 qq[GROUP * HD / 4];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int per_kv = heads / kv_heads, groups = (per_kv + GROUP - 1) / GROUP;
    int kv_head = blockIdx.x / groups, in_kv = blockIdx.x % groups * GROUP;
    int head0 = kv_head * per_kv + in_kv, group = min(GROUP, per_kv - in_kv);
    int from = window > 0 ? max(0, pos + 1 - window) : 0;
    int each = (pos + 1 - from + SPLITS - 1) / SPLITS;
    int p0 = from + blockIdx.y * each, p1 = min(p0 + each, pos + 1);
    size_t stride = (size_t)kv_heads * HD;

    struct partial<HD> p;
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        p.top[g] = -INFINITY;
        p.sum[g] = 0;
#pragma unroll
        for (int i = 0; i < partial<HD>::FOURS; i++) p.acc[g][i] = make_float4(0, 0, 0, 0);
    }
    early_release();
    prefetch<HD>(k_cache, v_cache, stride, kv_head, p0, p1);
    early_wait();
    for (int i = threadIdx.x; i < GROUP * HD; i += THREADS)
        ((float *)qq)[i] = i / HD < group ? q[(size_t)head0 * HD + i] * scale : 0.0f;
    __syncthreads();
    for (int base = p0 + warp * SUBS; base < p1; base += WARPS * SUBS) {
        int at = base + lane / SUB;
        bool in = at < p1;
        size_t row = (in ? at : p0) * stride + (size_t)kv_head * HD;
        take_position<HD>(&p, (const float4 *)(k_cache + row), (const float4 *)(v_cache + row), qq,
                          in);
    }
    write_parts<HD>(&p, scratch, head0, group);
}

#define ATTN(HD)                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) attn_decode_##HD(                        \
        const float *q, const float *k_cache, const float *v_cache, float *scratch,                \
        const struct ops_state *state, int heads, int kv_heads, int window, float scale)           \
    {                                                                                              \
        body<HD>(q, k_cache, v_cache, scratch, (int)state->pos0, heads, kv_heads, window, scale);  \
    }                                                                                              \
    OPS_DESC_EARLY(attn_decode_##HD, "ops",                                                        \
                   "attention of one query, positions cut into parts; heads of " #HD, "f32",       \
                   "f32", "", THREADS)

ATTN(64);
ATTN(96);
ATTN(128);
ATTN(256);

/* The d-th value of head blockIdx.x; all values of `part` are its parts'. */
static __device__ __forceinline__ float merged(const float *part, int head_dim, int d)
{
    float best = -INFINITY, sum = 0, v = 0, f[SPLITS];
#pragma unroll
    for (int s = 0; s < SPLITS; s++) best = fmaxf(best, part[s * (head_dim + 2)]);
#pragma unroll
    for (int s = 0; s < SPLITS; s++) {
        f[s] = weight(part[s * (head_dim + 2)], best);
        sum += f[s] * part[s * (head_dim + 2) + 1];
        v = fmaf(f[s], part[s * (head_dim + 2) + 2 + d], v);
    }
    return __fdiv_rn(v, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attn_decode_merge(const float *scratch, float *y, int head_dim)
{
    const float *part = scratch + (size_t)blockIdx.x * SPLITS * (head_dim + 2);
    for (int d = threadIdx.x; d < head_dim; d += THREADS)
        y[(size_t)blockIdx.x * head_dim + d] = merged(part, head_dim, d);
}
OPS_DESC(attn_decode_merge, "ops", "merges the parts of attn_decode", "f32", "f32", "", THREADS);

/* A head's values are whole chunks: head_dim is a multiple of 32. */
extern "C" __global__ void __launch_bounds__(THREADS)
    attn_decode_merge_q8(const float *scratch, float *y, int head_dim, uint8_t *chunks)
{
    const float *part = scratch + (size_t)blockIdx.x * SPLITS * (head_dim + 2);
    early_release();
    early_wait();
    for (int d = threadIdx.x; d < head_dim; d += THREADS) {
        int at = blockIdx.x * head_dim + d;
        float v = merged(part, head_dim, d);
        y[at] = v;
        ops::quantise_warp(v, chunks + (size_t)(at / 32) * ops::CHUNK_BYTES);
    }
}
OPS_DESC_EARLY(attn_decode_merge_q8, "ops",
               "merges the parts of attn_decode, and makes their q8 chunks", "f32", "f32", "",
               THREADS);
