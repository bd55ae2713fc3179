/*
 * Products of quantised weights with one token, for rows of up to OPS_GEMV_ONE_K values: what
 * decode is made of. Memory speed is the limit, so the loop is about bytes in flight and about few
 * instructions: on an H200 a warp has some 130 of them for 1,152 bytes.
 *
 * A warp takes a row at a time, 32 / LANES super-blocks a step. Loads run ONE_DEPTH steps ahead of
 * their use, past the end of a row into the warp's next one, and the first of them leave before the
 * activations are staged.
 *
 * A format F is a struct: BYTES of a super-block, LANES that share one, place(c) = where chunk c of
 * a super-block lies in the staged values, `struct lane` = what prepare() makes of a lane's number
 * once, `struct raw` = one lane's share in registers, load(), and dot() = the lane's part of the
 * sum. A plan P is a struct: rows() of this warp, at(i) = where its i-th row lies, done(i, v) with
 * the sum in every lane, and end() of the block.
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

/* Unsigned bytes of w times signed bytes of a, added to c. */
static __device__ __forceinline__ int dot_u8s8(uint32_t w, uint32_t a, int c)
{
#ifdef __CUDA_ARCH__
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(w), "r"(a));
#else
    for (int i = 0; i < 4; i++) c += (int)(w >> 8 * i & 255) * (int)(int8_t)(a >> 8 * i);
#endif
    return c;
}

/* FULL: every lane has a super-block in every step. Else a group of lanes past the end holds zeros:
 * scales of 0 add nothing. */
template <class F, class P, bool FULL>
static __device__ __forceinline__ void one_loop(const P &plan, const uint8_t *chunks, int k,
                                                one_tile *tile)
{
    typedef typename F::raw raw;
    enum { EACH = 32 / F::LANES }; /* super-blocks a step */
    const int group = (threadIdx.x & 31) / F::LANES, count = k / 256;
    const int steps = (count + EACH - 1) / EACH, offset = group * F::BYTES;
    const typename F::lane own = F::prepare((threadIdx.x & 31) % F::LANES);
    raw r[ONE_DEPTH];
    int left = plan.rows() * steps, todo = left, row = 0, load_row = 0, sb = group, load_sb = group;
    const uint8_t *p = plan.at(0) + offset;
    float v = 0;

    auto fetch = [&](raw &x) {
        if (left-- <= 0) return;
        if (!FULL) x = raw{};
        if (FULL || load_sb < count) F::load(x, p, own);
        p += EACH * F::BYTES;
        load_sb += EACH;
        if (load_sb < steps * EACH) return;
        load_sb = group;
        p = plan.at(++load_row) + offset;
    };
    auto use = [&](const raw &x) {
        v += F::dot(x, own, tile, FULL || sb < count ? sb : 0);
        sb += EACH;
        if (sb < steps * EACH) return;
        plan.done(row++, warp_sum(v));
        v = 0;
        sb = group;
    };
#pragma unroll
    for (int d = 0; d < ONE_DEPTH; d++) fetch(r[d]);
    one_stage<F>(tile, chunks, k);
    __syncthreads();
#pragma unroll 1
    while (todo > 0) {
#pragma unroll
        for (int d = 0; d < ONE_DEPTH; d++) {
            if (todo-- > 0) use(r[d]);
            fetch(r[d]);
        }
    }
}

template <class F, class P>
static __device__ __forceinline__ void one_run(const P &plan, const uint8_t *chunks, int k)
{
    __shared__ one_tile tile;
    if (k / 256 % (32 / F::LANES) == 0)
        one_loop<F, P, true>(plan, chunks, k, &tile);
    else
        one_loop<F, P, false>(plan, chunks, k, &tile);
    plan.end();
}

/* ---- plans ---- */

/* Rows of one to three matrices of the same k, one after the other, dealt out to the grid's warps;
 * x2: added to the first one's result when it isn't NULL. */
template <class F, int N> struct one_rows {
    struct ops_gemv_many g;
    const float *x2;
    int all, warp, warps;
    size_t bytes; /* of a row */

    __device__ __forceinline__ one_rows(const ops_gemv_many &many, const float *add, int k)
        : g(many), x2(add), all(N == 1 ? many.m[0] : many.m[0] + many.m[1] + many.m[2]),
          warp(blockIdx.x * ONE_WARPS + (threadIdx.x >> 5)), warps(gridDim.x * ONE_WARPS),
          bytes((size_t)(k / 256) * F::BYTES)
    {
    }
    __device__ __forceinline__ int rows() const
    {
        return warp < all ? (all - warp + warps - 1) / warps : 0;
    }
    /* Which matrix; r becomes its row. */
    __device__ __forceinline__ int part(int &r) const
    {
        if (N == 1 || r < g.m[0]) return 0;
        r -= g.m[0];
        if (r < g.m[1]) return 1;
        r -= g.m[1];
        return 2;
    }
    __device__ __forceinline__ const uint8_t *at(int i) const
    {
        int r = min(warp + i * warps, all - 1), n = part(r);
        const uint8_t *w = n == 0 ? g.w[0] : n == 1 ? g.w[1] : g.w[2];
        return w + r * bytes;
    }
    __device__ __forceinline__ void done(int i, float v) const
    {
        if (threadIdx.x & 31) return;
        int r = warp + i * warps, n = part(r);
        float *y = n == 0 ? g.y[0] : n == 1 ? g.y[1] : g.y[2];
        y[r] = x2 ? x2[r] + v : v;
    }
    __device__ __forceinline__ void end() const {}
};

/* act(gate) * up for 32 rows a block, and their q8 chunk. m a multiple of 32. A warp takes a row of
 * the gate and the same one of up in turn. */
template <class F> struct one_glu {
    enum { EACH = 32 / ONE_WARPS };
    const uint8_t *gate, *up;
    float *y;
    uint8_t *chunks;
    float *sums; /* shared, 64: gate's and up's of each row */
    size_t bytes;
    bool gelu;

    __device__ __forceinline__ int in_block(int i) const
    {
        return (threadIdx.x >> 5) * EACH + (i >> 1);
    }
    __device__ __forceinline__ int rows() const
    {
        return 2 * EACH;
    }
    __device__ __forceinline__ const uint8_t *at(int i) const
    {
        return (i & 1 ? up : gate) + (blockIdx.x * 32 + in_block(i)) * bytes;
    }
    __device__ __forceinline__ void done(int i, float v) const
    {
        if ((threadIdx.x & 31) == 0) sums[in_block(i) * 2 + (i & 1)] = v;
    }
    __device__ __forceinline__ void end() const
    {
        __syncthreads();
        if (threadIdx.x >= 32) return;
        float g = sums[threadIdx.x * 2], u = sums[threadIdx.x * 2 + 1];
        float v = (gelu ? act_gelu(g) : act_silu(g)) * u;
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
                      "one token: a row a warp, loads two steps ahead");                           \
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
