/*
 * The body of the hopper_* kernels: y = weights x activations in bf16 on wgmma, the weights coming
 * as super-blocks of 256 and leaving memory in that form only.
 *
 * A block computes 128 output rows x T tokens. Warps 0-7 are two warpgroups of 64 rows; each thread
 * reads the quantised bytes of its own places in the A operand from shared memory, makes bf16 of
 * them in registers and feeds them to wgmma from there: an expanded weight is never stored. Warps
 * 8-10 bring weights (a super-block of each row a stage) by 16-byte cp.async, warp 11 activations
 * (64 values of k a stage) by one bulk copy; both complete on mbarriers, and a stage is given back
 * by an arrival of each consumer warp. While a step of 64 values is in the tensor cores, the next
 * one is unpacked. (Weights by bulk copies of one row each were tried first: each took 35 to 80
 * ns.)
 *
 * Clusters, by descriptor: PAIR = 2 blocks of neighbouring rows share the activations, each
 * fetching half of every stage for both; SPLIT blocks of one output tile take a part of k each, and
 * add their sums in a fixed order through each other's shared memory.
 *
 * Activations: kernels/bf16.h's layout, tiles of 8 tokens x 64 values as wgmma wants them, the
 * values of each 16 permuted (even ones first) so that two neighbours in the A operand are two
 * nibbles 16 bits apart. Rows past m are copies of the last; tokens past n are whatever the stage
 * held: they reach only outputs that aren't stored.
 *
 * A format (q4k here, q6k in kernels/q6k_gemm/) is a struct:
 *   ROW           bytes copied for a row's super-block, in a stage one row after the other
 *   BLOCK, at()   bytes of a super-block; where the copy for one at an offset starts
 *   head          what a thread keeps of a super-block: scales
 *   step()        the A operand of 64 values: a[4][4]
 */
#ifndef KERNELS_Q4K_GEMM_HOPPER_CUH
#define KERNELS_Q4K_GEMM_HOPPER_CUH

#include "kernels/q4k_gemm/hopper_prims.cuh"
#include "kernels/variant.h"

namespace hopper
{

enum {
    ROWS = 128,
    CONSUMERS = 256,
    FETCHERS = 96, /* of weights */
    THREADS = CONSUMERS + FETCHERS + 32,
    WARPS = CONSUMERS / 32,
    GROUP_BYTES = 1024,   /* 8 tokens x 64 values */
    RED_STRIDE = ROWS + 4 /* floats from token to token in the output tile: no bank conflicts */
};

extern __shared__ __align__(1024) uint8_t smem[];

struct args {
    const uint8_t *w;
    const uint8_t *a;
    float *y;
    int m, n, k;
};

/* A place in a ring of N stages; the parity flips with every turn. */
template <int N> struct ring {
    uint32_t slot = 0, parity = 0;
    __device__ __forceinline__ void next()
    {
        if (++slot == N) {
            slot = 0;
            parity ^= 1;
        }
    }
};

template <class F, int T, int A_STAGES, int W_STAGES, int PAIR, int SPLIT> struct kernel {
    enum {
        A_STAGE = T * 128,
        W_STAGE = ROWS * F::ROW,
        A_AT = 0,
        W_AT = A_AT + A_STAGES * A_STAGE,
        W_END = W_AT + W_STAGES * W_STAGE,
        TILE = T * RED_STRIDE * 4, /* the output tile reuses the stages */
        BARS_AT = W_END > TILE ? W_END : TILE,
        BARS = 2 * (A_STAGES + W_STAGES) * 8,
    };

    static __device__ __forceinline__ uint32_t a_full(int i)
    {
        return smem_at(smem) + BARS_AT + i * 8;
    }
    static __device__ __forceinline__ uint32_t a_empty(int i)
    {
        return a_full(A_STAGES + i);
    }
    static __device__ __forceinline__ uint32_t w_full(int i)
    {
        return a_full(2 * A_STAGES + i);
    }
    static __device__ __forceinline__ uint32_t w_empty(int i)
    {
        return a_full(2 * A_STAGES + W_STAGES + i);
    }

    static __device__ __forceinline__ void init()
    {
        if (threadIdx.x == 0) {
            for (int i = 0; i < A_STAGES; i++) {
                bar_init(a_full(i), 1);
                bar_init(a_empty(i), WARPS * PAIR);
            }
            for (int i = 0; i < W_STAGES; i++) {
                bar_init(w_full(i), FETCHERS);
                bar_init(w_empty(i), WARPS);
            }
            bars_visible();
        }
        if (PAIR * SPLIT > 1)
            cluster_barrier();
        else
            __syncthreads();
    }

    /* One lane. Groups of 8 tokens [0, valid) of the tile; a pair's blocks fetch half each. */
    static __device__ __forceinline__ void fetch_a(const args &g, int sb0, int sb1)
    {
        const int groups = (g.n + 7) / 8, group0 = blockIdx.x * (T / 8);
        const int valid = min(T / 8, groups - group0);
        const int rank = PAIR > 1 ? (int)cluster_rank() : 0, share = T / 8 / PAIR;
        const int first = min(rank * share, valid), count = min(first + share, valid) - first;
        ring<A_STAGES> r;
        for (int kb = sb0 * 4; kb < sb1 * 4; kb++, r.next()) {
            bar_wait(a_empty(r.slot), r.parity ^ 1);
            bar_expect(a_full(r.slot), valid * GROUP_BYTES);
            if (!count) continue;
            const uint8_t *src = g.a + ((size_t)kb * groups + group0 + first) * GROUP_BYTES;
            const uint32_t dst = smem_at(smem) + A_AT + r.slot * A_STAGE + first * GROUP_BYTES;
            if (PAIR > 1)
                copy_to(dst, src, count * GROUP_BYTES, a_full(r.slot), (1 << PAIR) - 1);
            else
                copy(dst, src, count * GROUP_BYTES, a_full(r.slot));
        }
    }

    /* FETCHERS threads: consecutive ones take consecutive 16 bytes of the rows' copies. */
    static __device__ __forceinline__ void fetch_w(const args &g, int sb0, int sb1)
    {
        enum { PARTS = F::ROW / 16, EACH = ROWS * PARTS / FETCHERS };
        static_assert(EACH * FETCHERS == ROWS * PARTS, "");
        const int thread = threadIdx.x - CONSUMERS, row0 = (int)blockIdx.y * ROWS;
        const uint32_t row_bytes = g.k / 256 * F::BLOCK;
        const uint8_t *base = g.w + (size_t)min(row0, g.m - 1) * row_bytes;
        uint32_t from[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int c = i * FETCHERS + thread;
            from[i] = min(c / PARTS, max(g.m - 1 - row0, 0)) * row_bytes + c % PARTS * 16;
        }
        ring<W_STAGES> r;
        for (int sb = sb0; sb < sb1; sb++, r.next()) {
            bar_wait(w_empty(r.slot), r.parity ^ 1);
            const uint32_t stage = smem_at(smem) + W_AT + r.slot * W_STAGE + thread * 16;
#pragma unroll
            for (int i = 0; i < EACH; i++)
                copy_16(stage + i * FETCHERS * 16, base + F::at(from[i] + sb * F::BLOCK));
            bar_arrive_after_copies(w_full(r.slot));
        }
    }

    static __device__ __forceinline__ void give_back_a(int slot)
    {
        const uint32_t lane = threadIdx.x & 31;
        if (PAIR > 1)
            bar_arrive_at(a_empty(slot), lane, lane < PAIR);
        else
            bar_arrive(a_empty(slot), lane == 0);
    }

    static __device__ __forceinline__ void consume(const args &g, int sb0, int sb1,
                                                   float (&c)[T / 2])
    {
        const int lane = threadIdx.x & 31, row = (threadIdx.x >> 5) * 16 + (lane >> 2);
        const int row0 = (int)blockIdx.y * ROWS + row;
        uint32_t a[2][4][4];
        typename F::head h(g);
        ring<A_STAGES> ra;
        ring<W_STAGES> rw;
        int before = -1; /* the stage of the step before this one */
#pragma unroll 1
        for (int sb = sb0; sb < sb1; sb++, rw.next()) {
            bar_wait(w_full(rw.slot), rw.parity);
            const uint8_t *w = smem + W_AT + rw.slot * W_STAGE + row * F::ROW;
            h.load(g, w, row0, sb, lane);
#pragma unroll
            for (int p = 0; p < 4; p++) {
                h.step(a[p & 1], w, p, lane);
                if (p == 3) {
                    __syncwarp();
                    bar_arrive(w_empty(rw.slot), lane == 0);
                }
                bar_wait(a_full(ra.slot), ra.parity);
                const uint64_t b = b_descriptor(smem_at(smem) + A_AT + ra.slot * A_STAGE);
                fence();
#pragma unroll
                for (int s = 0; s < 4; s++) mma<T>::step(c, a[p & 1][s], b + s * 2);
                commit();
                wait<1>();
                if (before >= 0) give_back_a(before);
                before = (int)ra.slot;
                ra.next();
            }
        }
        wait<0>();
        if (before >= 0) give_back_a(before);
    }

    /* y[token][row .. row + 3] */
    static __device__ __forceinline__ void put(const args &g, int token, int row, float4 v)
    {
        float *p = g.y + (size_t)token * g.m + row;
        if ((g.m & 3) == 0) {
            if (row < g.m) *(float4 *)p = v;
            return;
        }
        const float each[4] = {v.x, v.y, v.z, v.w};
        for (int i = 0; i < 4; i++)
            if (row + i < g.m) p[i] = each[i];
    }

    /* Through shared memory: sums of a split added in the order of their blocks, whole lines to y.
     */
    static __device__ __forceinline__ void store(const args &g, const float (&c)[T / 2])
    {
        float *tile = (float *)smem;
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        __syncthreads(); /* the other warpgroup may still read the stages */
        if (threadIdx.x < CONSUMERS) {
            const int row = warp * 16 + (lane >> 2);
#pragma unroll
            for (int i = 0; i < T / 2; i++)
                tile[((i >> 2) * 8 + (lane & 3) * 2 + (i & 1)) * RED_STRIDE + row +
                     8 * (i >> 1 & 1)] = c[i];
        }
        if (SPLIT > 1)
            cluster_barrier();
        else
            __syncthreads();
        const int part = T / SPLIT, first = SPLIT > 1 ? (int)blockIdx.z * part : 0;
        for (int t = warp; t < part; t += THREADS / 32) {
            const int token = blockIdx.x * T + first + t;
            const float *from = tile + (first + t) * RED_STRIDE + lane * 4;
            if (token >= g.n) continue;
            float4 v = SPLIT > 1 ? load_from(smem_at(from), 0) : *(const float4 *)from;
            for (int r = 1; r < SPLIT; r++) {
                const float4 o = load_from(smem_at(from), r);
                v = make_float4(v.x + o.x, v.y + o.y, v.z + o.z, v.w + o.w);
            }
            put(g, token, blockIdx.y * ROWS + lane * 4, v);
        }
    }

    static __device__ __forceinline__ void body(const args g)
    {
        const int blocks = g.k / 256, z = SPLIT > 1 ? blockIdx.z : 0;
        const int sb0 = blocks * z / SPLIT, sb1 = blocks * (z + 1) / SPLIT;
        float c[T / 2] = {};
        init();
        if (threadIdx.x < CONSUMERS)
            consume(g, sb0, sb1, c);
        else if (threadIdx.x < CONSUMERS + FETCHERS)
            fetch_w(g, sb0, sb1);
        else if (threadIdx.x == CONSUMERS + FETCHERS)
            fetch_a(g, sb0, sb1);
        __syncwarp();
        store(g, c);
        /* Nobody may leave while another block still arrives at or reads its shared memory. */
        if (PAIR * SPLIT > 1) cluster_barrier();
    }
};

/* ---- unpacking ---- */

/* Constants that the compiler must keep in registers: as immediates they cost an instruction each
 * time, since LOP3 takes one of them and HADD2 none twice. `never` is negative in no launch. */
struct constants {
    uint32_t mask, magic, bias;
    __device__ __forceinline__ constants(int never, uint32_t mask_, uint32_t bias_)
        : mask(mask_ | (uint32_t)never >> 31), magic(0x43004300u | (uint32_t)never >> 31),
          bias(bias_ | (uint32_t)never >> 31)
    {
    }
};

/* The two values of `v` under the mask, 16 bits apart and at most 7 bits, as bf16: 128 + q is q in
 * the mantissa of 128, so taking the bias (128 and the format's own) off again is exact. */
__device__ __forceinline__ __nv_bfloat162 exact_pair(uint32_t v, const constants &k)
{
    uint32_t bits;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(bits) : "r"(v), "r"(k.mask), "r"(k.magic));
    return __hsub2(*(const __nv_bfloat162 *)&bits, *(const __nv_bfloat162 *)&k.bias);
}

__device__ __forceinline__ uint32_t bits_of(__nv_bfloat162 v)
{
    return *(const uint32_t *)&v;
}

__device__ __forceinline__ __nv_bfloat162 pair_of(uint32_t v)
{
    return *(const __nv_bfloat162 *)&v;
}

/* The low or the high half of v, twice. */
__device__ __forceinline__ __nv_bfloat162 twice(uint32_t v, bool high)
{
    return pair_of(__byte_perm(v, 0, high ? 0x3232 : 0x1010));
}

/* Q4_K; the format in kernels/q4k_gemm/ref.h. */
struct q4k {
    enum { BLOCK = 144, ROW = 144 };

    static __device__ __forceinline__ uint32_t at(uint32_t offset)
    {
        return offset;
    }

    struct head {
        constants k;
        uint32_t s[2]
                  [2]; /* {d*sc, -dmin*m} of sub-blocks 2*(lane%4) + 0, 1, rows L/4 and L/4 + 8 */

        __device__ __forceinline__ explicit head(const args &g) : k(g.m, 0x000f000fu, 0x43004300u)
        {
        }

        __device__ __forceinline__ void load(const args &, const uint8_t *w, int, int, int lane)
        {
            const bool high = lane & 2;
            const int at = (lane & 1) * 16;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint4 v = *(const uint4 *)(w + r * 8 * ROW);
                const float d = __half2float(__ushort_as_half((unsigned short)v.x));
                const float dmin = -__half2float(__ushort_as_half((unsigned short)(v.x >> 16)));
                uint32_t sc = v.y & 0x3f3f3f3fu, m = v.z & 0x3f3f3f3fu;
                const uint32_t sc4 = (v.w & 0x0f0f0f0fu) | (v.y >> 2 & 0x30303030u);
                const uint32_t m4 = (v.w >> 4 & 0x0f0f0f0fu) | (v.z >> 2 & 0x30303030u);
                sc = (high ? sc4 : sc) >> at;
                m = (high ? m4 : m) >> at;
#pragma unroll
                for (int i = 0; i < 2; i++)
                    s[r][i] = bits_of(__floats2bfloat162_rn(d * (float)(sc >> i * 8 & 0xff),
                                                            dmin * (float)(m >> i * 8 & 0xff)));
            }
        }

        /* Nibbles of 32 bytes: low ones sub-block 2*p, high ones 2*p + 1; 16 values a k16 step. */
        __device__ __forceinline__ void step(uint32_t (&a)[4][4], const uint8_t *w, int p,
                                             int lane) const
        {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint8_t *q = w + r * 8 * ROW + 16 + p * 32 + (lane & 3) * 4;
                const uint32_t v[2] = {*(const uint32_t *)q, *(const uint32_t *)(q + 16)};
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const uint32_t so = __shfl_sync(~0u, s[r][j], p, 4);
                    const __nv_bfloat162 sc = twice(so, false), off = twice(so, true);
#pragma unroll
                    for (int i = 0; i < 2; i++)
#pragma unroll
                        for (int e = 0; e < 2; e++)
                            a[j * 2 + i][e * 2 + r] =
                                bits_of(__hfma2(exact_pair(v[i] >> (j * 4 + e * 8), k), sc, off));
                }
            }
        }
    };
};

} // namespace hopper

/* One kernel: its file's base name, format, tokens a tile, stages, blocks that share activations,
 * parts of k, blocks an SM. It exists for sm_90a alone; elsewhere the file is empty, and the
 * registry passes over it. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER_KERNEL(NAME, F, T, A_STAGES, W_STAGES, PAIR, SPLIT, MIN_BLOCKS)                     \
    typedef hopper::kernel<hopper::F, T, A_STAGES, W_STAGES, PAIR, SPLIT> NAME##_body;             \
    extern "C" __global__ void __cluster_dims__(1, PAIR, SPLIT)                                    \
        __launch_bounds__(hopper::THREADS, MIN_BLOCKS)                                             \
            NAME(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)                \
    {                                                                                              \
        NAME##_body::body(hopper::args{w, a, y, m, n, k});                                         \
    }                                                                                              \
    VARIANT_DESC(NAME)
#define HOPPER_DESC(NAME, FAMILY, NOTE, PARENT, LAYOUT_B, T, PAIR, SPLIT, MIN_BLOCKS)              \
    {                                                                                              \
        VARIANT_HEAD(NAME), .family = FAMILY, .note = NOTE, .parent = PARENT, .step = "",          \
                            .numeric = "bf16", .layout_a = "bf16", .layout_b = LAYOUT_B,           \
                            .tile_m = hopper::ROWS, .tile_n = T, .tile_k = 256, .kd = 8,           \
                            .threads = hopper::THREADS, .min_blocks = MIN_BLOCKS, .min_sm = 90,    \
                            .features = VARIANT_WGMMA, .n_buffers = 3,                             \
                            .buffers = {{"activations", NAME##_body::W_AT},                        \
                                        {"weights", NAME##_body::BARS_AT - NAME##_body::W_AT},     \
                                        {"mbarriers", NAME##_body::BARS}},                         \
                            .cluster_m = PAIR, .split_k = SPLIT                                    \
    }
#endif

#endif
