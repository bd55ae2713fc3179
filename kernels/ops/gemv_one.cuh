/*
 * Products of quantised weights with one token, for rows of up to OPS_GEMV_ONE_K values: what
 * decode is made of. Memory speed is the limit, so the loop is about bytes in flight.
 *
 * A warp reads two streams of super-blocks at once: two rows, the same row's two halves, or a
 * gate's row and its up's. Loads run ONE_DEPTH steps ahead of their use, past the end of a unit
 * into the warp's next one, and the first of them leave before the activations are staged.
 *
 * A format F is a struct: BYTES of a super-block, LANES that share one, place(c) = where chunk c of
 * a super-block lies in the staged values, `struct raw` = one lane's share in registers, load(),
 * and dot() = the lane's part of the sum. A plan P is a struct: units() of this warp, at(unit,
 * stream), done(unit, v0, v1) with both streams' sums in every lane, and end() of the block.
 */
#ifndef KERNELS_OPS_GEMV_ONE_CUH
#define KERNELS_OPS_GEMV_ONE_CUH

#include "kernels/ops/activation.cuh"
#include "kernels/ops/quantise.cuh"

namespace ops
{

enum { ONE_THREADS = 256, ONE_WARPS = ONE_THREADS / 32, ONE_DEPTH = 2 };

struct one_tile {
    uint4 q[OPS_GEMV_ONE_K / 16];
    float2 d[OPS_GEMV_ONE_K / 32]; /* {da, da * sa} */
};

/* `count` super-blocks at p, whose activations start at staged super-block `first`. */
struct one_stream {
    const uint8_t *p;
    int first, count;
};

template <class F>
static __device__ __forceinline__ void one_stage(one_tile *s, const uint8_t *chunks, int k)
{
    const uint32_t *a = (const uint32_t *)chunks;
    uint32_t *q = (uint32_t *)s->q;
    for (int i = threadIdx.x; i < k / 32 * 8; i += ONE_THREADS) {
        int c = i >> 3;
        q[((c & ~7) + F::place(c & 7)) * 8 + (i & 7)] = a[c * CHUNK_WORDS + 1 + (i & 7)];
    }
    for (int c = threadIdx.x; c < k / 32; c += ONE_THREADS) {
        float da = half_bits(a[c * CHUNK_WORDS] & 0xffff);
        s->d[c] = make_float2(da, da * (float)(int)a[c * CHUNK_WORDS + 9]);
    }
}

/* Where a warp is in its units, each of `steps` steps, with this lane's places in both streams. */
template <class F, class P> struct one_cursor {
    enum { EACH = 32 / F::LANES }; /* super-blocks a step */
    int unit, step, sb;
    one_stream s[2];

    __device__ __forceinline__ void enter(const P &plan)
    {
        const int group = (threadIdx.x & 31) / F::LANES;
        sb = group;
        s[0] = plan.at(unit, 0);
        s[1] = plan.at(unit, 1);
        s[0].p += group * F::BYTES;
        s[1].p += group * F::BYTES;
    }
    __device__ __forceinline__ void next(const P &plan, int steps)
    {
        if (++step == steps) {
            step = 0;
            unit++;
            enter(plan);
            return;
        }
        sb += EACH;
        s[0].p += EACH * F::BYTES;
        s[1].p += EACH * F::BYTES;
    }
    /* A group of lanes past the end holds zeros: scales of 0 add nothing. */
    __device__ __forceinline__ void load(typename F::raw (&r)[2]) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            r[i] = typename F::raw{};
            if (sb < s[i].count) F::load(r[i], s[i].p, (threadIdx.x & 31) % F::LANES);
        }
    }
};

/* The longest stream of any unit has `steps` steps; stream 1 starts at staged super-block `first`.
 */
template <class F>
static __device__ __forceinline__ float one_use(const typename F::raw &r, const one_tile *t,
                                                int first, int step, int count)
{
    const int lane = threadIdx.x & 31, sb = step * (32 / F::LANES) + lane / F::LANES;
    return F::dot(r, t, sb < count ? first + sb : 0, lane % F::LANES);
}

template <class F, class P>
static __device__ __forceinline__ void one_run(P plan, const uint8_t *chunks, int k)
{
    __shared__ one_tile tile;
    typename F::raw r[ONE_DEPTH][2];
    const int count0 = plan.at(0, 0).count, count1 = plan.at(0, 1).count;
    const int first1 = plan.at(0, 1).first;
    const int steps = (count0 + 32 / F::LANES - 1) / (32 / F::LANES); /* count1 <= count0 */
    const int total = plan.units() * steps;
    one_cursor<F, P> load = {};
    int unit = 0, step = 0;
    float v0 = 0, v1 = 0;
    load.enter(plan);
#pragma unroll
    for (int d = 0; d < ONE_DEPTH; d++) {
        if (d >= total) break;
        load.load(r[d]);
        load.next(plan, steps);
    }
    one_stage<F>(&tile, chunks, k);
    __syncthreads();
    for (int i = 0; i < total; i += ONE_DEPTH) {
#pragma unroll
        for (int d = 0; d < ONE_DEPTH; d++) {
            if (i + d >= total) break;
            v0 += one_use<F>(r[d][0], &tile, 0, step, count0);
            v1 += one_use<F>(r[d][1], &tile, first1, step, count1);
            if (i + d + ONE_DEPTH < total) {
                load.load(r[d]);
                load.next(plan, steps);
            }
            if (++step < steps) continue;
            plan.done(unit++, warp_sum(v0), warp_sum(v1));
            v0 = v1 = 0;
            step = 0;
        }
    }
    plan.end();
}

/* ---- plans ---- */

/* Rows of one to three matrices of the same k, one after the other; x2: added to the first one's
 * result when it isn't NULL. With as many warps as rows a row's halves are the two streams, else
 * two neighbouring rows (every m even when there are several matrices). */
template <class F, int N> struct one_rows {
    struct ops_gemv_many g;
    const float *x2;
    int all, blocks, warp, warps;
    bool halves;

    __device__ __forceinline__ one_rows(const ops_gemv_many &many, const float *add, int k)
        : g(many), x2(add), all(N == 1 ? many.m[0] : many.m[0] + many.m[1] + many.m[2]),
          blocks(k / 256), warp(blockIdx.x * ONE_WARPS + (threadIdx.x >> 5)),
          warps(gridDim.x * ONE_WARPS), halves(warps >= all)
    {
    }
    __device__ __forceinline__ int units() const
    {
        int n = halves ? all : (all + 1) / 2;
        return warp < n ? (n - warp + warps - 1) / warps : 0;
    }
    __device__ __forceinline__ int row(int unit, int s) const
    {
        int u = warp + unit * warps;
        return halves ? u : u * 2 + s;
    }
    __device__ __forceinline__ int part(int &r) const
    {
        if (N == 1 || r < g.m[0]) return 0;
        r -= g.m[0];
        if (r < g.m[1]) return 1;
        r -= g.m[1];
        return 2;
    }
    __device__ __forceinline__ one_stream at(int unit, int s) const
    {
        int r = min(row(unit, s), all - 1), i = part(r), first = (blocks + 1) / 2;
        const uint8_t *w = i == 0 ? g.w[0] : i == 1 ? g.w[1] : g.w[2];
        w += (size_t)r * blocks * F::BYTES;
        if (!halves) return one_stream{w, 0, blocks};
        return s ? one_stream{w + (size_t)first * F::BYTES, first, blocks - first}
                 : one_stream{w, 0, first};
    }
    __device__ __forceinline__ void put(int r, float v) const
    {
        if (r >= all) return;
        int i = part(r);
        float *y = i == 0 ? g.y[0] : i == 1 ? g.y[1] : g.y[2];
        y[r] = x2 ? x2[r] + v : v;
    }
    __device__ __forceinline__ void done(int unit, float v0, float v1) const
    {
        int lane = threadIdx.x & 31;
        if (halves && lane == 0) put(row(unit, 0), v0 + v1);
        if (!halves && lane < 2) put(row(unit, lane), lane ? v1 : v0);
    }
    __device__ __forceinline__ void end() const {}
};

/* act(gate) * up for 32 rows a block, and their q8 chunk. m a multiple of 32. */
template <class F> struct one_glu {
    const uint8_t *gate, *up;
    float *y;
    uint8_t *chunks;
    float *part; /* shared, 32 */
    int blocks;
    bool gelu;

    __device__ __forceinline__ int units() const
    {
        return 32 / ONE_WARPS;
    }
    __device__ __forceinline__ one_stream at(int unit, int s) const
    {
        int r = blockIdx.x * 32 + (threadIdx.x >> 5) * (32 / ONE_WARPS) + unit;
        return one_stream{(s ? up : gate) + (size_t)r * blocks * F::BYTES, 0, blocks};
    }
    __device__ __forceinline__ void done(int unit, float v0, float v1) const
    {
        if ((threadIdx.x & 31) == 0)
            part[(threadIdx.x >> 5) * (32 / ONE_WARPS) + unit] =
                (gelu ? act_gelu(v0) : act_silu(v0)) * v1;
    }
    __device__ __forceinline__ void end() const
    {
        __syncthreads();
        if (threadIdx.x >= 32) return;
        float v = part[threadIdx.x];
        y[blockIdx.x * 32 + threadIdx.x] = v;
        quantise_warp(v, chunks + (size_t)blockIdx.x * CHUNK_BYTES);
    }
};

} // namespace ops

#define OPS_GEMV_ONE_DESC(NAME, FAMILY, LAYOUT_B, NOTE)                                            \
    VARIANT_DESC(NAME) = {VARIANT_HEAD(NAME),                                                      \
                          .family = FAMILY,                                                        \
                          .note = NOTE,                                                            \
                          .numeric = "q8",                                                         \
                          .layout_a = "q8_chunk40",                                                \
                          .layout_b = LAYOUT_B,                                                    \
                          .tile_m = OPS_GEMV_ROWS,                                                 \
                          .tile_n = 1,                                                             \
                          .threads = ops::ONE_THREADS,                                             \
                          .min_blocks = OPS_GEMV_ONE_BLOCKS,                                       \
                          .min_sm = 80}

/* FAMILY_n1, FAMILY_n1_add and FAMILY_n1_many of a format. */
#define OPS_GEMV_ONE(FAMILY, F, LAYOUT_B)                                                          \
    extern "C" __global__ void __launch_bounds__(ops::ONE_THREADS, OPS_GEMV_ONE_BLOCKS)            \
        FAMILY##_n1(const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k)        \
    {                                                                                              \
        ops::one_run<F>(ops::one_rows<F, 1>(ops_gemv_many{{w}, {y}, {m}, 0}, nullptr, k), chunks,  \
                        k);                                                                        \
    }                                                                                              \
    OPS_GEMV_ONE_DESC(FAMILY##_n1, #FAMILY, LAYOUT_B,                                              \
                      "one token: loads run two steps ahead, two rows or a row's halves a warp");  \
    extern "C" __global__ void __launch_bounds__(ops::ONE_THREADS, OPS_GEMV_ONE_BLOCKS)            \
        FAMILY##_n1_add(const uint8_t *w, const uint8_t *chunks, const float *x2, float *y, int m, \
                        int k)                                                                     \
    {                                                                                              \
        ops::one_run<F>(ops::one_rows<F, 1>(ops_gemv_many{{w}, {y}, {m}, 0}, x2, k), chunks, k);   \
    }                                                                                              \
    OPS_GEMV_ONE_DESC(FAMILY##_n1_add, #FAMILY, LAYOUT_B,                                          \
                      "one token, added onto the residual stream");                                \
    extern "C" __global__ void __launch_bounds__(ops::ONE_THREADS, OPS_GEMV_ONE_BLOCKS)            \
        FAMILY##_n1_many(const ops_gemv_many g, const uint8_t *chunks, int k)                      \
    {                                                                                              \
        ops::one_run<F>(ops::one_rows<F, 3>(g, nullptr, k), chunks, k);                            \
    }                                                                                              \
    OPS_GEMV_ONE_DESC(FAMILY##_n1_many, #FAMILY, LAYOUT_B,                                         \
                      "one token, up to three matrices that share its chunks");

#endif
