/*
 * Products of quantised weights with one token, for rows of up to OPS_GEMV_ONE_K values: what
 * decode is made of. Memory speed is the limit, so this is about bytes under way, and about having
 * them under way before the kernel in front has ended.
 *
 * A block an SM: its shared memory leaves no room for a second. (Two launches whose blocks fitted
 * side by side left SMs with two blocks of the next one and others with none: 16.6 us instead of
 * 11.7 at 4096 x 1 x 14336.) Registers and the rest of the SM are for the small kernels between the
 * products, which start early too. Pairs of rows (two neighbours, or a gate's row and its up's) are
 * dealt out evenly to the blocks and in turn to a block's warps. A warp brings its pairs through a
 * ring of its own in shared memory by cp.async: a stage is F::EACH super-blocks of both rows, taken
 * in one or two turns, and is fetched anew as soon as its bytes are in registers. Weights are
 * written by nobody, so the ring fills before early_wait(); then the activations are staged, once a
 * block: chunks as they are, or values that are normed and quantised on the way.
 *
 * A format F is a struct: BYTES of a super-block, LANES that share one, EACH = a stage's,
 * STAGES, SCALES = floats staged of a super-block beside its values; place(c, w) = where word w of
 * chunk c lies among the staged values; put() stages the rest of a chunk from {scale, sum of the
 * first 16 values, sum}, scales() from the chunk; `struct lane` = what
 * prepare() makes of a lane once; `struct raw` = a lane's share of a row's super-block, read() from
 * the stage; dot() = the lane's part of a row's sum. A plan P is a struct: units() of all blocks,
 * at(unit, s) = row s of a pair, done(unit, v0, v1) with both sums in every lane, end(lo, hi) of a
 * block's units.
 */
#ifndef KERNELS_OPS_GEMV_ONE_CUH
#define KERNELS_OPS_GEMV_ONE_CUH

#include "kernels/ops/activation.cuh"
#include "kernels/ops/quantise.cuh"

namespace ops
{

enum {
    ONE_WARPS = 16,
    ONE_THREADS = ONE_WARPS * 32,
    ONE_BLOCKS = 2, /* in registers: half of them are left to others */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
    ONE_STAGES = 3, /* 4 and 5 measured no faster */
    ONE_TURNS = 2,  /* of Q6_K */
#else
    ONE_STAGES = 2, /* 99 KB of shared memory a block are all that others grant */
    ONE_TURNS = 1,
#endif
    ONE_COUNTS = OPS_GEMV_GLU_M / 32
};

/* Shared memory: values and scales of the activations, then the warps' rings. */
template <class F> struct one_layout {
    enum {
        BLOCKS = OPS_GEMV_ONE_K / 256,
        SCALES_AT = BLOCKS * 256,
        RINGS_AT = SCALES_AT + BLOCKS * F::SCALES * 4,
        /* Copies are of 16 aligned bytes, and half a warp's of two whole lines: where a row begins
         * within one, what lies before it is left out. */
        ALIGN = F::BYTES % 16 ? 128 : 16,
        PIECES = (F::EACH * F::BYTES + (F::BYTES % 16 ? ALIGN - 2 : 0) + 15) / 16,
        SEGMENT = PIECES * 16,
        STAGE = 2 * SEGMENT,
        RING = F::STAGES * STAGE,
        BYTES = RINGS_AT + ONE_WARPS * RING,
    };
};

struct one_tile {
    const uint4 *q;
    const float *scales;
};

/* Never taken for a value that doesn't change: chunks are written while the block waits. */
static __device__ __forceinline__ uint32_t load_chunk_word(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

/* Unsigned bytes of w times signed bytes of a, added to c. */
static __device__ __forceinline__ int dot_u8s8(uint32_t w, uint32_t a, int c)
{
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(w), "r"(a));
    return c;
}

/* An RMSNorm on the way into shared memory: the product of a norm's result does the norm in each
 * block, which is shorter than a launch of one block between two products. The sums are those of
 * rms_norm_q8. Its weights are fetched before the wait. */
struct one_norm {
    enum { EACH = OPS_NORM_Q8_DIM / 4 / ONE_THREADS }; /* fours a thread */
    float4 w[EACH];

    __device__ __forceinline__ void before(const float *from, int k)
    {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int i = threadIdx.x + j * ONE_THREADS;
            w[j] = i < k / 4 ? ((const float4 *)from)[i] : make_float4(0, 0, 0, 0);
        }
    }

    template <class F>
    __device__ __forceinline__ void stage(uint8_t *shared, const float *x, float eps, int k) const
    {
        __shared__ float part[32];
        float4 v[EACH];
        float sum = 0;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int i = threadIdx.x + j * ONE_THREADS;
            v[j] = i < k / 4 ? __ldcg((const float4 *)x + i) : make_float4(0, 0, 0, 0);
            sum += v[j].x * v[j].x + v[j].y * v[j].y + v[j].z * v[j].z + v[j].w * v[j].w;
        }
        const float r = inverse_rms(block_sum(sum, part), k, eps);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int i = threadIdx.x + j * ONE_THREADS;
            if (i >= k / 4) break; /* whole warps: k is a multiple of 256 */
            const quantised q =
                quantise_four(make_float4(v[j].x * r * w[j].x, v[j].y * r * w[j].y,
                                          v[j].z * r * w[j].z, v[j].w * r * w[j].w));
            ((uint32_t *)shared)[F::place(i >> 3, i & 7)] = q.q;
            if ((i & 7) == 0)
                F::put((float *)(shared + one_layout<F>::SCALES_AT), i >> 3, half_bits(q.scale),
                       q.half, q.sum);
        }
    }
};

template <class F>
static __device__ __forceinline__ void one_stage(uint8_t *shared, const uint8_t *chunks, int k)
{
    enum { WORDS = OPS_GEMV_ONE_K / 4 / ONE_THREADS };
    static_assert(OPS_GEMV_ONE_K / 32 <= ONE_THREADS, "a thread has one chunk's scales");
    const uint32_t *a = (const uint32_t *)chunks;
    uint32_t *q = (uint32_t *)shared, v[WORDS];
    const int c = threadIdx.x;
#pragma unroll
    for (int j = 0; j < WORDS; j++) {
        const int i = threadIdx.x + j * ONE_THREADS;
        if (i < k / 4) v[j] = load_chunk_word(a + (i >> 3) * CHUNK_WORDS + 1 + (i & 7));
    }
    if (c < k / 32) F::scales((float *)(shared + one_layout<F>::SCALES_AT), c, a + c * CHUNK_WORDS);
#pragma unroll
    for (int j = 0; j < WORDS; j++) {
        const int i = threadIdx.x + j * ONE_THREADS;
        if (i < k / 4) q[F::place(i >> 3, i & 7)] = v[j];
    }
}

/* Asks the L2 for one line: with 256 bytes a request, products took 1.4 % (Q4_K) and 2.5 % (Q6_K)
 * longer. */
static __device__ __forceinline__ void copy_16(uint32_t to, const uint8_t *from)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from)
                 : "memory");
}

/* Where a warp's fetches are in its units, each of `steps` steps. Half a warp fetches each row. */
template <class F, class P> struct one_fetch {
    const P &plan;
    const uint8_t *p; /* this lane's row, at the step */
    int unit, step, steps, blocks, row, lane;
    uint32_t to, slot; /* where this lane's first piece goes in a stage; the stage's bytes */

    __device__ __forceinline__ one_fetch(const P &plan_, int unit_, int steps_, int blocks_,
                                         uint32_t ring)
        : plan(plan_), unit(unit_), step(0), steps(steps_), blocks(blocks_),
          row((threadIdx.x & 31) >> 4), lane(threadIdx.x & 15), slot(0)
    {
        p = plan.at(unit, row);
        to = ring + row * one_layout<F>::SEGMENT + lane * 16;
    }

    /* A step's bytes of both rows, one group of copies; `really` or none. */
    __device__ __forceinline__ void next(bool really)
    {
        typedef one_layout<F> L;
        if (really) {
            const int bytes = min(F::EACH, blocks - step * F::EACH) * F::BYTES;
            const int off = F::BYTES % 16 ? (int)((uintptr_t)p & (L::ALIGN - 1)) : 0;
            const uint8_t *from = p - off + lane * 16;
            const int left = off + bytes - lane * 16; /* from this lane's first piece on */
#pragma unroll
            for (int j = 0; j < (L::PIECES + 15) / 16; j++)
                if (left > j * 256 && (j || lane * 16 + 16 > off))
                    copy_16(to + slot + j * 256, from + j * 256);
            p += F::EACH * F::BYTES;
            slot = slot + L::STAGE == L::RING ? 0 : slot + L::STAGE;
            if (++step == steps) {
                step = 0;
                unit += ONE_WARPS;
                p = plan.at(unit, row);
            }
        }
        copies_end();
    }
};

/* The units of all blocks before block b. */
static __device__ __forceinline__ int one_share(int units, int b)
{
    return (int)((long long)units * b / gridDim.x);
}

/* NORM: there may be no chunks. */
template <class F, bool NORM, class P>
static __device__ __forceinline__ void one_run(const P plan, const ops_gemv_input in, int k)
{
    typedef one_layout<F> L;
    extern __shared__ __align__(128) uint8_t one_shared[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane / F::LANES;
    constexpr int TURNS = F::EACH * F::LANES / 32;
    const int blocks = k / 256, steps = (blocks + F::EACH - 1) / F::EACH;
    const int lo = one_share(plan.units(), blockIdx.x),
              hi = one_share(plan.units(), blockIdx.x + 1);
    const int total = max(0, hi - lo - warp + ONE_WARPS - 1) / ONE_WARPS * steps;
    uint8_t *const ring = one_shared + L::RINGS_AT + warp * L::RING;
    const typename F::lane prepared = F::prepare(lane % F::LANES);
    const one_tile tile = {(const uint4 *)one_shared, (const float *)(one_shared + L::SCALES_AT)};
    one_fetch<F, P> fetch(plan, lo + warp, steps, blocks, (uint32_t)__cvta_generic_to_shared(ring));
    one_norm norm;
    if (NORM && !in.chunks) norm.before(in.w, k);
#pragma unroll
    for (int i = 0; i < F::STAGES; i++) fetch.next(i < total);
    early_release();
    early_wait();
    if (!NORM || in.chunks)
        one_stage<F>(one_shared, in.chunks, k);
    else
        norm.stage<F>(one_shared, in.x, in.eps, k);
    __syncthreads();
    uint32_t slot = 0;
    int step = 0, unit = lo + warp, at[2] = {};
    float v[2] = {};
#pragma unroll 1
    for (int i = 0; i < total; i++) {
        const int sb = step * F::EACH + group * TURNS;
        typename F::raw r[2];
        copies_wait<F::STAGES - 1>();
        __syncwarp();
#pragma unroll
        for (int t = 0; t < TURNS; t++) {
#pragma unroll
            for (int s = 0; s < 2; s++) {
                if (F::BYTES % 16) {
                    if (step == 0 && t == 0)
                        at[s] = (int)((uintptr_t)plan.at(unit, s) & (L::ALIGN - 1));
                }
                const int block = group * TURNS + t;
                F::read(r[s], ring + slot + s * L::SEGMENT + at[s] + block * F::BYTES, prepared);
            }
            if (t == TURNS - 1) {
                __syncwarp();
                fetch.next(i + F::STAGES < total);
            }
            if (sb + t < blocks) F::dot(v, r, prepared, tile, sb + t);
        }
#pragma unroll
        for (int s = 0; s < 2; s++) at[s] = (at[s] + F::EACH * F::BYTES) & (L::ALIGN - 1);
        slot = slot + L::STAGE == L::RING ? 0 : slot + L::STAGE;
        if (++step < steps) continue;
        plan.done(unit, warp_sum(v[0]), warp_sum(v[1]));
        unit += ONE_WARPS;
        step = 0;
        v[0] = v[1] = 0;
    }
    plan.end(lo, hi);
}

/* ---- plans ---- */

/* Rows of one to three matrices of the same k, one after the other; x2: added to the first one's
 * result when it isn't NULL. Every m is even when there are several matrices. */
template <class F, int N> struct one_rows {
    struct ops_gemv_many g;
    const float *x2;
    int all, blocks;

    __device__ __forceinline__ one_rows(const ops_gemv_many &many, const float *add, int k)
        : g(many), x2(add), all(N == 1 ? many.m[0] : many.m[0] + many.m[1] + many.m[2]),
          blocks(k / 256)
    {
    }
    __device__ __forceinline__ int units() const
    {
        return (all + 1) / 2;
    }
    __device__ __forceinline__ int part(int &r) const
    {
        if (N == 1 || r < g.m[0]) return 0;
        r -= g.m[0];
        if (r < g.m[1]) return 1;
        r -= g.m[1];
        return 2;
    }
    __device__ __forceinline__ const uint8_t *at(int unit, int s) const
    {
        int r = min(unit * 2 + s, all - 1), i = part(r);
        const uint8_t *w = i == 0 ? g.w[0] : i == 1 ? g.w[1] : g.w[2];
        return w + (size_t)r * blocks * F::BYTES;
    }
    __device__ __forceinline__ void done(int unit, float v0, float v1) const
    {
        const int lane = threadIdx.x & 31;
        int r = unit * 2 + lane;
        if (lane > 1 || r >= all) return;
        const int i = part(r);
        float *y = i == 0 ? g.y[0] : i == 1 ? g.y[1] : g.y[2];
        const float v = lane ? v1 : v0;
        y[r] = x2 ? x2[r] + v : v;
    }
    __device__ __forceinline__ void end(int, int) const {}
};

/* act(gate) * up, and its q8 chunks: of a chunk whose rows are several blocks', the last block that
 * has rows of it makes it. `counts`: rows done of a chunk, by its number's last bits; all 0 before
 * and after. m a multiple of 32, at most 32 * ONE_COUNTS. */
template <class F> struct one_glu {
    const uint8_t *gate, *up;
    float *y;
    uint8_t *chunks;
    unsigned *counts;
    int m, blocks;
    bool gelu;

    __device__ __forceinline__ int units() const
    {
        return m;
    }
    __device__ __forceinline__ const uint8_t *at(int unit, int s) const
    {
        return (s ? up : gate) + (size_t)min(unit, m - 1) * blocks * F::BYTES;
    }
    __device__ __forceinline__ void done(int unit, float v0, float v1) const
    {
        if ((threadIdx.x & 31) == 0) __stcg(y + unit, (gelu ? act_gelu(v0) : act_silu(v0)) * v1);
    }
    __device__ __forceinline__ void end(int lo, int hi) const
    {
        __threadfence();
        __syncthreads();
        for (int c = lo / 32 + (threadIdx.x >> 5); c * 32 < hi; c += ONE_WARPS) {
            const int rows = min(hi, c * 32 + 32) - max(lo, c * 32);
            if (rows < 32) {
                unsigned before = 0;
                if ((threadIdx.x & 31) == 0) before = atomicAdd(counts + c, rows);
                if (__shfl_sync(~0u, before, 0) + rows < 32) continue;
                __threadfence();
                if ((threadIdx.x & 31) == 0) counts[c] = 0;
            }
            quantise_warp(__ldcg(y + c * 32 + (threadIdx.x & 31)),
                          chunks + (size_t)c * CHUNK_BYTES);
        }
    }
};

} // namespace ops

#define OPS_GEMV_ONE_DESC(NAME, FAMILY, F, LAYOUT_B, NOTE)                                         \
    VARIANT_DESC(NAME) = {VARIANT_HEAD(NAME),                                                      \
                          .family = FAMILY,                                                        \
                          .note = NOTE,                                                            \
                          .numeric = "q8",                                                         \
                          .layout_a = "q8_chunk40",                                                \
                          .layout_b = LAYOUT_B,                                                    \
                          .tile_m = 2 * ops::ONE_WARPS,                                            \
                          .tile_n = 1,                                                             \
                          .threads = ops::ONE_THREADS,                                             \
                          .min_blocks = ops::ONE_BLOCKS,                                           \
                          .min_sm = 80,                                                            \
                          .features = VARIANT_EARLY,                                               \
                          .n_buffers = 2,                                                          \
                          .buffers = {{"activations", ops::one_layout<F>::RINGS_AT},               \
                                      {"weights", ops::ONE_WARPS * ops::one_layout<F>::RING}}}

#define OPS_GEMV_ONE_KERNEL(NAME, ...)                                                             \
    extern "C" __global__ void __launch_bounds__(ops::ONE_THREADS, ops::ONE_BLOCKS)                \
        NAME(__VA_ARGS__)

/* FAMILY_n1, FAMILY_n1_add and FAMILY_n1_many of a format. */
#define OPS_GEMV_ONE(FAMILY, F, LAYOUT_B)                                                          \
    OPS_GEMV_ONE_KERNEL(FAMILY##_n1, const uint8_t *w, const uint8_t *chunks, float *y, int m,     \
                        int n, int k)                                                              \
    {                                                                                              \
        ops::one_run<F, false>(ops::one_rows<F, 1>(ops_gemv_many{{w}, {y}, {m}, 0}, nullptr, k),   \
                               ops_gemv_input{chunks, nullptr, nullptr, 0}, k);                    \
    }                                                                                              \
    OPS_GEMV_ONE_DESC(FAMILY##_n1, #FAMILY, F, LAYOUT_B,                                           \
                      "one token: pairs of rows through a ring a warp, filled before the wait");   \
    OPS_GEMV_ONE_KERNEL(FAMILY##_n1_add, const uint8_t *w, const uint8_t *chunks, const float *x2, \
                        float *y, int m, int k)                                                    \
    {                                                                                              \
        ops::one_run<F, false>(ops::one_rows<F, 1>(ops_gemv_many{{w}, {y}, {m}, 0}, x2, k),        \
                               ops_gemv_input{chunks, nullptr, nullptr, 0}, k);                    \
    }                                                                                              \
    OPS_GEMV_ONE_DESC(FAMILY##_n1_add, #FAMILY, F, LAYOUT_B,                                       \
                      "one token, added onto the residual stream");                                \
    OPS_GEMV_ONE_KERNEL(FAMILY##_n1_many, const ops_gemv_many g, const ops_gemv_input in, int k)   \
    {                                                                                              \
        ops::one_run<F, true>(ops::one_rows<F, 3>(g, nullptr, k), in, k);                          \
    }                                                                                              \
    OPS_GEMV_ONE_DESC(FAMILY##_n1_many, #FAMILY, F, LAYOUT_B,                                      \
                      "one token, up to three matrices that share its chunks")

#endif
