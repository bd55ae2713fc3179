/*
 * Rotary positions, in place: each pair (a, b) of a head turns by position * freq[i].
 * rope_pairs: (2i, 2i+1). rope_halves: (i, i + head_dim/2). `freq` is made by the host, with scale
 * and factors in it. Angles are reduced to one turn in double, as f32 would be off by 1e-4 at
 * position 2000; sine and cosine are f32.
 * Arguments: float *x, const double *freq, const struct ops_state *state, int n, int heads,
 * int head_dim. A thread a pair.
 */
#include "kernels/ops/common.cuh"

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
    double turns = (double)(state->pos0 + t) * freq[i] * 0.15915494309189535;
    float s, c, a = v[ia], b = v[ib];
    sincospif(2.0f * (float)(turns - rint(turns)), &s, &c);
    v[ia] = __fsub_rn(__fmul_rn(a, c), __fmul_rn(b, s));
    v[ib] = __fadd_rn(__fmul_rn(a, s), __fmul_rn(b, c));
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
