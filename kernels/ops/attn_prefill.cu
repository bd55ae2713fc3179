/*
 * attn_prefill: causal attention of many queries over the cache, tiled, with an online softmax; f32
 * throughout. One kernel a head length.
 *
 * A block takes 32 queries of one head, a warp eight of them: lane / 8 picks two queries, lane % 8
 * a share of the keys (scores) and of the columns (output). Keys and values of 32 positions go
 * through one buffer in turn. Rows are padded by four floats, so that eight lanes reading 16 bytes
 * of eight rows meet every bank once. Scores and probabilities stay within a warp.
 *
 * Query t is at position pos0 + t and sees positions up to its own, the last `window` of them when
 * window > 0. A row that a tile hides keeps -inf as its maximum and adds nothing.
 * Arguments: const float *q, const float *k_cache, const float *v_cache, float *y,
 * const struct ops_state *state, int n, int heads, int kv_heads, int window, float scale.
 * Grid {ceil(n / 32), heads}; dynamic shared memory ops_attn_prefill_smem().
 */
#include "kernels/ops/common.cuh"

enum { THREADS = 128, TILE = OPS_ATTN_TILE, SCORES = TILE + 4 };

extern __shared__ __align__(16) float smem[];

struct job {
    const float *q, *k, *v;
    float *y;
    int pos0, n, heads, kv_heads, window;
    float scale;
};

/* 32 rows of HD floats, `stride` apart in memory; rows from `rows` on are zeros. */
template <int HD>
static __device__ __forceinline__ void load_tile(float *to, const float *from, size_t stride,
                                                 int rows, float scale)
{
    for (int i = threadIdx.x; i < TILE * (HD / 4); i += THREADS) {
        int r = i / (HD / 4), c = i % (HD / 4) * 4;
        float4 v = make_float4(0, 0, 0, 0);
        if (r < rows) v = *(const float4 *)(from + r * stride + c);
        v.x *= scale, v.y *= scale, v.z *= scale, v.w *= scale;
        *(float4 *)(to + r * (HD + 4) + c) = v;
    }
}

static __device__ __forceinline__ float dot4(float4 a, float4 b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

/* Scores of two queries with keys lane + 8j of the tile. */
template <int HD>
static __device__ __forceinline__ void scores(const float *sq, const float *sk, int row, int lane,
                                              float s[2][4])
{
#pragma unroll 4
    for (int d = 0; d < HD; d += 4) {
        float4 a = *(const float4 *)(sq + row * (HD + 4) + d);
        float4 b = *(const float4 *)(sq + (row + 1) * (HD + 4) + d);
        for (int j = 0; j < 4; j++) {
            float4 k = *(const float4 *)(sk + (lane + 8 * j) * (HD + 4) + d);
            s[0][j] = dot4(a, k, s[0][j]);
            s[1][j] = dot4(b, k, s[1][j]);
        }
    }
}

/* Maximum or sum over the eight lanes that share a pair of queries. */
static __device__ __forceinline__ float max8(float v)
{
    for (int o = 4; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    return v;
}

static __device__ __forceinline__ float sum8(float v)
{
    for (int o = 4; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

/* Hides what query `pos` may not see, takes the new maximum in, turns scores into probabilities;
 * returns the factor for what was summed before. */
static __device__ __forceinline__ float soften(const struct job *j, int pos, int key0, int lane,
                                               float s[4], float *top, float *sum)
{
    float best = *top, part = 0;
    for (int i = 0; i < 4; i++) {
        int key = key0 + lane + 8 * i;
        bool seen = key <= pos && (j->window <= 0 || key > pos - j->window);
        if (!seen) s[i] = -INFINITY;
        best = fmaxf(best, s[i]);
    }
    best = max8(best);
    for (int i = 0; i < 4; i++) {
        s[i] = s[i] == -INFINITY ? 0.0f : expf(s[i] - best);
        part += s[i];
    }
    float old = *top == -INFINITY ? 0.0f : expf(*top - best);
    *top = best;
    *sum = *sum * old + sum8(part);
    return old;
}

/* acc[.][c] += probabilities x values; this lane's columns are lane * 4 + 32c.. of each query. */
template <int HD>
static __device__ __forceinline__ void add_values(const float *sv, const float *sp, int row,
                                                  int lane, float4 acc[2][HD / 32])
{
#pragma unroll 4
    for (int key = 0; key < TILE; key++) {
        float p0 = sp[row * SCORES + key], p1 = sp[(row + 1) * SCORES + key];
        for (int c = 0; c < HD / 32; c++) {
            float4 v = *(const float4 *)(sv + key * (HD + 4) + c * 32 + lane * 4);
            acc[0][c].x = fmaf(p0, v.x, acc[0][c].x), acc[1][c].x = fmaf(p1, v.x, acc[1][c].x);
            acc[0][c].y = fmaf(p0, v.y, acc[0][c].y), acc[1][c].y = fmaf(p1, v.y, acc[1][c].y);
            acc[0][c].z = fmaf(p0, v.z, acc[0][c].z), acc[1][c].z = fmaf(p1, v.z, acc[1][c].z);
            acc[0][c].w = fmaf(p0, v.w, acc[0][c].w), acc[1][c].w = fmaf(p1, v.w, acc[1][c].w);
        }
    }
}

template <int HD> static __device__ __forceinline__ void body(const struct job &j)
{
    float *sq = smem, *skv = sq + TILE * (HD + 4), *sp = skv + TILE * (HD + 4);
    int lane = threadIdx.x & 7, row = threadIdx.x / 8 * 2;
    int q0 = blockIdx.x * TILE, head = blockIdx.y, kv_head = head / (j.heads / j.kv_heads);
    int first = j.pos0 + q0, end = j.pos0 + min(q0 + TILE, j.n);
    size_t q_stride = (size_t)j.heads * HD, kv_stride = (size_t)j.kv_heads * HD;
    int key0 = j.window > 0 ? max(0, first - j.window + 1) : 0;
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    float4 acc[2][HD / 32] = {};

    load_tile<HD>(sq, j.q + q0 * q_stride + (size_t)head * HD, q_stride, j.n - q0, j.scale);
    for (; key0 < end; key0 += TILE) {
        size_t at = key0 * kv_stride + (size_t)kv_head * HD;
        float s[2][4] = {};
        __syncthreads();
        load_tile<HD>(skv, j.k + at, kv_stride, end - key0, 1.0f);
        __syncthreads();
        scores<HD>(sq, skv, row, lane, s);
        for (int r = 0; r < 2; r++) {
            float old = soften(&j, first + row + r, key0, lane, s[r], &top[r], &sum[r]);
            for (int i = 0; i < 4; i++) sp[(row + r) * SCORES + lane + 8 * i] = s[r][i];
            for (int c = 0; c < HD / 32; c++) {
                acc[r][c].x *= old, acc[r][c].y *= old, acc[r][c].z *= old, acc[r][c].w *= old;
            }
        }
        __syncthreads();
        load_tile<HD>(skv, j.v + at, kv_stride, end - key0, 1.0f);
        __syncthreads();
        add_values<HD>(skv, sp, row, lane, acc);
    }
    for (int r = 0; r < 2 && q0 + row + r < j.n; r++) {
        float f = __fdiv_rn(1.0f, sum[r]);
        float *y = j.y + (q0 + row + r) * q_stride + (size_t)head * HD + lane * 4;
        for (int c = 0; c < HD / 32; c++) {
            float4 v = acc[r][c];
            *(float4 *)(y + c * 32) = make_float4(v.x * f, v.y * f, v.z * f, v.w * f);
        }
    }
}

#define ATTN(HD)                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) attn_prefill_##HD(                       \
        const float *q, const float *k_cache, const float *v_cache, float *y,                      \
        const struct ops_state *state, int n, int heads, int kv_heads, int window, float scale)    \
    {                                                                                              \
        struct job j = {q, k_cache, v_cache,  y,      (int)state->pos0,                            \
                        n, heads,   kv_heads, window, scale};                                      \
        body<HD>(j);                                                                               \
    }                                                                                              \
    VARIANT_DESC(attn_prefill_##HD) = {                                                            \
        VARIANT_HEAD(attn_prefill_##HD),                                                           \
        .family = "ops",                                                                           \
        .note = "causal attention of 32 queries a block, online softmax, f32; heads of " #HD,      \
        .numeric = "f32",                                                                          \
        .layout_a = "f32",                                                                         \
        .tile_m = TILE,                                                                            \
        .tile_n = TILE,                                                                            \
        .threads = THREADS,                                                                        \
        .min_sm = 80,                                                                              \
        .n_buffers = 3,                                                                            \
        .buffers = {{"q", TILE * (HD + 4) * 4},                                                    \
                    {"k or v", TILE * (HD + 4) * 4},                                               \
                    {"scores", TILE * SCORES * 4}}}

ATTN(64);
ATTN(96);
ATTN(128);
ATTN(256);
