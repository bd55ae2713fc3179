/*
 * Rotary positions, in place: each pair (a, b) of a head turns by position * freq[i].
 * rope_pairs: (2i, 2i+1). rope_halves: (i, i + head_dim/2). `freq` is made by the host, with scale
 * and factors in it.
 * Arguments: float *x, const double *freq, const struct ops_state *state, int n, int heads,
 * int head_dim. A thread a pair.
 * rope_kv_pairs, rope_kv_halves: the same for q and k in one launch, which also puts k and v into
 * the cache (see kv_store.cu). Arguments: float *q, float *k, const float *v, float *k_cache,
 * float *v_cache, const double *freq, const struct ops_state *state, int n, int heads, int
 * kv_heads, int head_dim, int context. A thread a pair of q or k.
 */
#include "kernels/ops/rope.cuh"

template <bool HALVES>
static __device__ __forceinline__ void rope_body(float *x, const double *freq,
                                                 const struct ops_state *state, int n, int heads,
                                                 int head_dim)
{
    int half = head_dim / 2, pairs = heads * half;
    int p = blockIdx.x * OPS_FLAT + threadIdx.x;
    if (p >= n * pairs) return;
    int t = p / pairs, h = p % pairs / half, i = p % half;
    float *v = x + ((size_t)t * heads + h) * head_dim;
    int ia = HALVES ? i : 2 * i, ib = HALVES ? i + half : 2 * i + 1;
    float2 r = ops::rope_rotate(v[ia], v[ib], ops::rope_angle(freq[i], state->pos0 + t));
    v[ia] = r.x;
    v[ib] = r.y;
}

template <bool HALVES>
static __device__ __forceinline__ void
rope_kv_body(float *q, float *k, const float *v, float *k_cache, float *v_cache, const double *freq,
             const struct ops_state *state, int n, int heads, int kv_heads, int head_dim,
             int context)
{
    int half = head_dim / 2, all = (heads + kv_heads) * half;
    int p = blockIdx.x * OPS_FLAT + threadIdx.x;
    early_release();
    if (p >= n * all) return;
    int t = p / all, h = p % all / half, i = p % half;
    int ia = HALVES ? i : 2 * i, ib = HALVES ? i + half : 2 * i + 1;
    bool key = h >= heads;
    size_t row =
        key ? ((size_t)t * kv_heads + h - heads) * head_dim : ((size_t)t * heads + h) * head_dim;
    float *x = (key ? k : q) + row;
    uint32_t pos = state->pos0 + t;
    float2 by =
        ops::rope_angle(freq[i], pos); /* a step's positions are there before its first kernel */
    early_wait();
    float2 r = ops::rope_rotate(x[ia], x[ib], by);
    x[ia] = r.x;
    x[ib] = r.y;
    if (!key || pos >= (uint32_t)context) return;
    size_t to = ((size_t)pos * kv_heads + h - heads) * head_dim;
    k_cache[to + ia] = r.x;
    k_cache[to + ib] = r.y;
    v_cache[to + ia] = v[row + ia];
    v_cache[to + ib] = v[row + ib];
}

#define ROPE(NAME, HALVES, NOTE)                                                                   \
    extern "C" __global__ void __launch_bounds__(OPS_FLAT)                                         \
        NAME(float *x, const double *freq, const struct ops_state *state, int n, int heads,        \
             int head_dim)                                                                         \
    {                                                                                              \
        rope_body<HALVES>(x, freq, state, n, heads, head_dim);                                     \
    }                                                                                              \
    OPS_DESC(NAME, "ops", NOTE, "f32", "f32", "", OPS_FLAT)

ROPE(rope_pairs, false, "rotary positions of neighbouring values");
ROPE(rope_halves, true, "rotary positions of values half a head apart");

#define ROPE_KV(NAME, HALVES, NOTE)                                                                \
    extern "C" __global__ void __launch_bounds__(OPS_FLAT) NAME(                                   \
        float *q, float *k, const float *v, float *k_cache, float *v_cache, const double *freq,    \
        const struct ops_state *state, int n, int heads, int kv_heads, int head_dim, int context)  \
    {                                                                                              \
        rope_kv_body<HALVES>(q, k, v, k_cache, v_cache, freq, state, n, heads, kv_heads, head_dim, \
                             context);                                                             \
    }                                                                                              \
    OPS_DESC_EARLY(NAME, "ops", NOTE, "f32", "f32", "", OPS_FLAT)

ROPE_KV(rope_kv_pairs, false, "rotary positions of q and k, neighbours; k and v into the cache");
ROPE_KV(rope_kv_halves, true, "rotary positions of q and k, halves; k and v into the cache");
