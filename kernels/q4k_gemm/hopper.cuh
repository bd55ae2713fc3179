/*
 * The body of the hopper_* kernels: y = weights x activations in bf16 on wgmma, the weights coming
 * as super-blocks of 256 and leaving memory in that form only.
 *
 * A block computes 64 output rows a warpgroup x T tokens. Each thread of the first WGS warpgroups
 * reads the quantised bytes of its own places in the A operand from shared memory, makes bf16 of
 * them in registers and feeds them to wgmma from there: an expanded weight is never stored. Of the
 * last warpgroup three warps bring weights (a super-block of each row a stage) by 16-byte cp.async,
 * one activations (64 values of k a stage) by one bulk copy; both complete on mbarriers, and a
 * stage is given back by an arrival of each consumer thread (of a lane a warp and block where a
 * pair shares activations): a tool that looks for races takes a barrier for an order between the
 * threads that arrive, and one lane's arrival after __syncwarp() takes as long. While a step of 64
 * values is in the tensor cores, the next one is unpacked; a warpgroup that unpacks leaves them to
 * the others. (Weights by bulk copies of one row each were tried first: each took 35 to 80 ns.)
 *
 * PAIR = 2: clusters of two blocks of neighbouring rows share the activations, each fetching half
 * of every stage for both. With CLUSTERS as many as the GPU holds, all tiles' super-blocks are
 * dealt out evenly, whatever the shape: see share. (A cluster of four that splits k and adds
 * through shared memory was tried before: 32 such clusters do not fit on an H200 at once, whose
 * processors hold 30.)
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
 *   FEW           whether a consumer of four warpgroups gets along with 88 registers
 */
#ifndef KERNELS_Q4K_GEMM_HOPPER_CUH
#define KERNELS_Q4K_GEMM_HOPPER_CUH

#include "kernels/early.cuh"
#include "kernels/q4k_gemm/hopper_prims.cuh"
#include "kernels/q4k_gemm/hopper_share.cuh"
#include "kernels/variant.h"

namespace hopper
{

enum {
    FETCHERS = 96,      /* threads that bring weights */
    PRODUCERS = 128,    /* and one more warp, for activations: a warpgroup */
    GROUP_BYTES = 1024, /* 8 tokens x 64 values */
};

extern __shared__ __align__(1024) uint8_t smem[];

struct args {
    const uint8_t *w;
    const uint8_t *a;
    float *y;
    int m, n, k;
};

/* CLUSTERS: 0 = a tile each; else that many clusters share all tiles, and where a tile's k is
 * divided, all but its last part are left in `partial` (ROWS * T floats a block), its flag up. */
template <class F, int WGS, int T, int A_STAGES, int W_STAGES, int PAIR, int CLUSTERS>
struct kernel {
    enum {
        ROWS = WGS * 64,
        CONSUMERS = WGS * 128,
        WARPS = WGS * 4,
        THREADS = CONSUMERS + PRODUCERS,
        /* Registers a thread at the block's start: what ptxas finds for a block of CAP threads,
         * multiples of 128. A producer gives back what it has above LESS, a consumer takes MORE:
         * together no more than what there was, or they wait for it forever. Where a CAP above
         * THREADS will do, the SM has room left for blocks of the next kernel, the conversion of
         * other activations: then they are there already when this kernel ends. */
        CAP = WGS == 4 && F::FEW    ? 768
              : WGS == 3 && T < 128 ? 640
              : WGS == 2 && T < 256 ? 512
                                    : THREADS,
        START = 65536 / CAP / 8 * 8,
        LESS = 48,
        MORE = (START * (WGS + 1) - LESS) / WGS / 8 * 8,
        /* A super-block is four stages of activations: where they are always the same four, or
         * eight, their addresses are constants. */
        FOURS = A_STAGES % 4 == 0,
        A_STAGE = T * 128,
        W_STAGE = ROWS * F::ROW,
        A_AT = 0,
        W_AT = A_AT + A_STAGES * A_STAGE,
        BARS_AT = W_AT + W_STAGES * W_STAGE,
        BARS = 2 * (A_STAGES + W_STAGES) * 8,
        PARTIALS = CLUSTERS ? CLUSTERS * PAIR : 1, /* blocks that may leave one */
        TILE = ROWS * T,
    };
    static_assert(CAP % 128 == 0, "registers");

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

    static __device__ __forceinline__ int rank()
    {
        return PAIR == 1 ? 0 : (CLUSTERS ? blockIdx.x : blockIdx.y) % PAIR;
    }
    static __device__ __forceinline__ int token_tiles(const args &g)
    {
        return (g.n + T - 1) / T;
    }
    static __device__ __forceinline__ share work(const args &g, int cluster)
    {
        const int token = token_tiles(g), pairs = (g.m + ROWS * PAIR - 1) / (ROWS * PAIR);
        return share(token * pairs, g.k / 256, cluster, CLUSTERS ? CLUSTERS : token * pairs);
    }
    static __device__ __forceinline__ int cluster()
    {
        return CLUSTERS ? blockIdx.x / PAIR : blockIdx.y / PAIR * gridDim.x + blockIdx.x;
    }
    static __device__ __forceinline__ int row_of(const args &g, int tile)
    {
        return (tile / token_tiles(g) * PAIR + rank()) * ROWS;
    }
    static __device__ __forceinline__ int token_of(const args &g, int tile)
    {
        return tile % token_tiles(g) * T;
    }

    static __device__ __forceinline__ void init()
    {
        const int i = threadIdx.x;
        if (i < A_STAGES) {
            bar_init(a_full(i), 1);
            bar_init(a_empty(i), PAIR > 1 ? WARPS * PAIR : CONSUMERS);
        }
        if (i < W_STAGES) {
            bar_init(w_full(i), FETCHERS);
            bar_init(w_empty(i), CONSUMERS);
        }
        if (i < 32) bars_visible();
        if (PAIR > 1)
            cluster_barrier();
        else
            __syncthreads();
    }

    /* One lane. Groups of 8 tokens [0, valid) of the tile; a pair's blocks fetch half each. */
    static __device__ __forceinline__ void fetch_a(const args &g)
    {
        const int groups = (g.n + 7) / 8, part = T / 8 / PAIR;
        share todo = work(g, cluster());
        segment s;
        ring<A_STAGES> r;
        bool more = todo.next(s);
        early_wait(); /* weights are there from the start, activations aren't */
        for (; more; more = todo.next(s)) {
            const int group0 = token_of(g, s.tile) / 8, valid = min(T / 8, groups - group0);
            const int first = min(rank() * part, valid), count = min(first + part, valid) - first;
            for (int kb = s.first * 4; kb < s.end * 4; kb++, r.next()) {
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
    }

    /* FETCHERS threads: consecutive ones take consecutive 16 bytes of a few rows at a time. Not
     * unrolled further, since a producer has few registers. */
    enum { PARTS = F::ROW / 16, AT_ONCE = FETCHERS / PARTS, TURNS = ROWS / AT_ONCE };

    /* One super-block of each row: from + offset is this thread's part of the first. */
    static __device__ __forceinline__ void fetch_rows(uint32_t to, const uint8_t *from,
                                                      uint32_t offset, uint32_t row_bytes, int row)
    {
        const uint32_t step = AT_ONCE * row_bytes;
#pragma unroll 6
        for (int i = 0; i < TURNS; i++, offset += step)
            copy_16(to + i * AT_ONCE * F::ROW, from + F::at(offset));
        if (row < ROWS % AT_ONCE) copy_16(to + TURNS * AT_ONCE * F::ROW, from + F::at(offset));
    }
    /* The same where rows [0, last] are left. */
    static __device__ __forceinline__ void fetch_some(uint32_t to, const uint8_t *from,
                                                      uint32_t offset, uint32_t row_bytes, int row,
                                                      int last)
    {
#pragma unroll 1
        for (int i = row; i < ROWS; i += AT_ONCE, to += AT_ONCE * F::ROW)
            copy_16(to, from + F::at(offset + min(i, last) * row_bytes));
    }

    static __device__ __forceinline__ void fetch_w(const args &g)
    {
        const int thread = threadIdx.x - CONSUMERS, row = thread / PARTS;
        const bool idle = thread >= AT_ONCE * PARTS;
        const uint32_t row_bytes = g.k / 256 * F::BLOCK;
        share todo = work(g, cluster());
        segment s;
        ring<W_STAGES> r;
        while (todo.next(s)) {
            /* A multiple of 64 also when the tile lies past m: so aligned for every format. */
            const int row0 = min(row_of(g, s.tile), (g.m - 1) & ~63), last = g.m - 1 - row0;
            const uint8_t *base = g.w + (size_t)row0 * row_bytes + thread % PARTS * 16;
            for (int sb = s.first; sb < s.end; sb++, r.next()) {
                bar_wait(w_empty(r.slot), r.parity ^ 1);
                const uint32_t to = smem_at(smem) + W_AT + r.slot * W_STAGE + thread * 16;
                const uint32_t offset = sb * F::BLOCK;
                if (!idle && last >= ROWS - 1)
                    fetch_rows(to, base, offset + row * row_bytes, row_bytes, row);
                else if (!idle)
                    fetch_some(to, base, offset, row_bytes, row, last);
                bar_arrive_after_copies(w_full(r.slot));
            }
        }
    }

    static __device__ __forceinline__ void give_back_a(int slot)
    {
        const uint32_t lane = threadIdx.x & 31;
        if (PAIR > 1)
            bar_arrive_at(a_empty(slot), lane, lane < PAIR);
        else
            bar_arrive(a_empty(slot));
    }

    typedef ring<FOURS ? A_STAGES / 4 : A_STAGES> a_ring; /* FOURS: of a super-block's stages */

    /* One segment into c[]; all of its stages are given back when it returns. */
    static __device__ __forceinline__ void products(const args &g, const segment &seg,
                                                    typename F::head &h, a_ring &ra,
                                                    ring<W_STAGES> &rw, float (&c)[T / 2])
    {
        const int lane = threadIdx.x & 31, row = (threadIdx.x >> 5) * 16 + (lane >> 2);
        const uint32_t row_at = kept(W_AT + row * F::ROW);
        const uint32_t b0 = b_place(smem_at(smem) + A_AT);
        const int row0 = row_of(g, seg.tile) + row;
        uint32_t a[2][4][4];
        int before = -1; /* the stage of the step before this one */
#pragma unroll 1
        for (int sb = seg.first; sb < seg.end; sb++, rw.next()) {
            bar_wait(w_full(rw.slot), rw.parity);
            const uint8_t *w = smem + rw.slot * W_STAGE + row_at;
            h.load(g, w, row0, sb, lane);
#pragma unroll
            for (int p = 0; p < 4; p++) {
                const int slot = FOURS ? ra.slot * 4 + p : ra.slot;
                h.step(a[p & 1], w, p, lane);
                if (p == 3) bar_arrive(w_empty(rw.slot));
                bar_wait(a_full(slot), ra.parity);
                const uint32_t b = b0 + slot * (A_STAGE / 16);
                fence();
#pragma unroll
                for (int s = 0; s < 4; s++) mma<T>::step(c, a[p & 1][s], b_descriptor(b + s * 2));
                commit();
                wait<1>();
                if (before >= 0) give_back_a(before);
                before = slot;
                if (!FOURS || p == 3) ra.next();
            }
        }
        wait<0>();
        give_back_a(before);
    }

    static __device__ __forceinline__ void leave(const float (&c)[T / 2], float *partial,
                                                 unsigned *flags)
    {
        float *to = partial + (size_t)blockIdx.x * TILE + threadIdx.x;
#pragma unroll
        for (int i = 0; i < T / 2; i++) __stcg(to + i * CONSUMERS, c[i]);
        consumers_barrier<CONSUMERS>();
        if (threadIdx.x == 0) flag_raise(flags + blockIdx.x);
    }

    /* Adds what earlier clusters left of this tile, the nearest first: a fixed order. Four at a
     * time are under way. */
    static __device__ __forceinline__ void collect(const args &g, int tile, float (&c)[T / 2],
                                                   const float *partial, unsigned *flags)
    {
        const uint32_t start = (uint32_t)tile * (g.k / 256);
        int count = 1;
        while (work(g, cluster() - count).lo > start) count++;
        const int block = blockIdx.x - PAIR;
        for (int i = threadIdx.x; i < count; i += CONSUMERS)
            flag_wait_and_lower(flags + block - i * PAIR);
        consumers_barrier<CONSUMERS>();
        const float *at = partial + (ptrdiff_t)block * TILE + threadIdx.x;
#pragma unroll 1
        for (int j = 0; j < count; j += 4, at -= 4 * PAIR * TILE) {
#pragma unroll
            for (int i = 0; i < T / 2; i += 8) {
                float v[4][8];
#pragma unroll
                for (int q = 0; q < 32; q++)
                    v[q / 8][q % 8] =
                        j + q / 8 < count
                            ? __ldcg(at - q / 8 * PAIR * TILE + (i + q % 8) * CONSUMERS)
                            : 0.0f;
#pragma unroll
                for (int q = 0; q < 32; q++) c[i + q % 8] += v[q / 8][q % 8];
            }
        }
    }

    /* Where a thread's sums of a tile go. Eight rows of a token are one sector of 32 bytes. */
    struct output {
        float *y;
        int rows, tokens, m; /* left from y on */

        __device__ __forceinline__ output(const args &g, int tile) : m(g.m)
        {
            const int lane = threadIdx.x & 31;
            const int row = row_of(g, tile) + (threadIdx.x >> 5) * 16 + (lane >> 2);
            const int token = token_of(g, tile) + (lane & 3) * 2;
            y = g.y + (size_t)token * g.m + row;
            rows = g.m - row;
            tokens = g.n - token;
        }
        __device__ __forceinline__ void put(int i, float v) const
        {
            const int t = (i >> 2) * 8 + (i & 1), r = 8 * (i >> 1 & 1);
            if (t < tokens && r < rows) y[(size_t)t * m + r] = v * power(DOWN);
        }
    };

    static __device__ __forceinline__ void store(const args &g, int tile, const float (&c)[T / 2])
    {
        const output out(g, tile);
#pragma unroll
        for (int i = 0; i < T / 2; i++) out.put(i, c[i]);
    }

    /* A tile that `each` clusters have to themselves: all leave their sums, wait for one another,
     * and each adds and stores its part of them, the clusters in order. */
    static __device__ __forceinline__ void add_shares(const args &g, int tile, int each,
                                                      const float (&c)[T / 2], float *partial,
                                                      unsigned *count, unsigned turn)
    {
        enum { REGS = 4, ADDENDS = 8 }; /* under way at a time */
        const int mine = cluster() % each, first = blockIdx.x - mine * PAIR;
        float *const left = partial + (size_t)blockIdx.x * TILE + threadIdx.x;
        const float *const from = partial + (size_t)first * TILE + threadIdx.x;
        const int lo = T / 2 * mine / each, hi = T / 2 * (mine + 1) / each;
        const output out(g, tile);
#pragma unroll
        for (int i = 0; i < T / 2; i++) __stcg(left + i * CONSUMERS, c[i]);
        consumers_barrier<CONSUMERS>();
        if (threadIdx.x == 0) meet(count, turn, each, mine);
        consumers_barrier<CONSUMERS>();
#pragma unroll 1
        for (int i = lo; i < hi; i += REGS) {
            float sum[REGS] = {};
#pragma unroll 1
            for (int q = 0; q < each; q += ADDENDS) {
                float v[REGS][ADDENDS];
#pragma unroll
                for (int j = 0; j < REGS * ADDENDS; j++) {
                    const int r = j / ADDENDS, a = q + j % ADDENDS;
                    const bool in = i + r < hi && a < each;
                    v[r][j % ADDENDS] =
                        in ? __ldcg(from + (size_t)a * PAIR * TILE + (i + r) * CONSUMERS) : 0.0f;
                }
#pragma unroll
                for (int j = 0; j < REGS * ADDENDS; j++)
                    sum[j / ADDENDS] += v[j / ADDENDS][j % ADDENDS];
            }
#pragma unroll
            for (int r = 0; r < REGS; r++)
                if (i + r < hi) out.put(i + r, sum[r]);
        }
    }

    /* A tile that two clusters share, HALF of its sums each, those from MINE on: each leaves the
     * other half, waits, and adds what the other one left. */
    template <int MINE>
    static __device__ __forceinline__ void add_half(const args &g, int tile, float (&c)[T / 2],
                                                    float *partial, unsigned *count, unsigned turn)
    {
        enum { HALF = T / 4, THEIRS = HALF - MINE };
        float *const left = partial + (size_t)blockIdx.x * TILE + threadIdx.x;
        const float *const from = left + (MINE ? -PAIR : PAIR) * TILE;
        const output out(g, tile);
#pragma unroll
        for (int i = 0; i < HALF; i++) __stcg(left + i * CONSUMERS, c[THEIRS + i]);
        consumers_barrier<CONSUMERS>();
        if (threadIdx.x == 0) meet(count, turn, 2, MINE != 0);
        consumers_barrier<CONSUMERS>();
        float v[HALF];
#pragma unroll
        for (int i = 0; i < HALF; i++) v[i] = __ldcg(from + i * CONSUMERS);
#pragma unroll
        for (int i = 0; i < HALF; i++) out.put(MINE + i, c[MINE + i] + v[i]);
    }

    static __device__ __forceinline__ void consume(const args &g, float *partial, unsigned *flags)
    {
        typename F::head h(g);
        share todo = work(g, cluster());
        segment s;
        a_ring ra;
        ring<W_STAGES> rw;
        /* Of those that share this block's tile, all with blocks of its rank in their pairs. */
        const int mine = CLUSTERS && todo.each > 1 ? cluster() % todo.each : 0;
        unsigned *const count = flags + PARTIALS + blockIdx.x - mine * PAIR;
        const unsigned turn = CLUSTERS && threadIdx.x == 0 ? turn_of(count) : 0;
#pragma unroll 1
        while (todo.next(s)) {
            float c[T / 2] = {};
            products(g, s, h, ra, rw, c);
            if (CLUSTERS && T < 256 && todo.each > 1)
                add_shares(g, s.tile, todo.each, c, partial, count, turn);
            else if (CLUSTERS && T >= 256 && todo.each == 2 && mine)
                add_half<T / 4>(g, s.tile, c, partial, count, turn);
            else if (CLUSTERS && T >= 256 && todo.each == 2)
                add_half<0>(g, s.tile, c, partial, count, turn);
            else if (CLUSTERS && s.end < todo.blocks)
                leave(c, partial, flags);
            else {
                if (CLUSTERS && s.first) collect(g, s.tile, c, partial, flags);
                store(g, s.tile, c);
            }
        }
    }

    static __device__ __forceinline__ void body(const args g, float *partial, unsigned *flags)
    {
        init();
        early_release();
        if (threadIdx.x < CONSUMERS) {
            registers_more<MORE>();
            early_wait(); /* before sums are left, collected or stored */
            consume(g, partial, flags);
        } else {
            registers_less<LESS>();
            if (threadIdx.x < CONSUMERS + FETCHERS) {
                fetch_w(g);
            } else if (threadIdx.x == CONSUMERS + FETCHERS) {
                fetch_a(g);
            }
            __syncwarp();
        }
        /* Nobody may leave while another block still arrives at its barriers. */
        if (PAIR > 1) cluster_barrier();
    }
};

} // namespace hopper

/* One kernel: its file's base name, format, tokens a tile, stages, blocks that share activations,
 * clusters that share all tiles (0: a tile each). It exists for sm_90a alone;
 * elsewhere the file is empty, and the registry passes over it. The partial sums and flags are the
 * kernel's own, so two launches of it may not run at the same time. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER_KERNEL(NAME, F, WGS, T, A_STAGES, W_STAGES, PAIR, CLUSTERS)                         \
    typedef hopper::kernel<hopper::F, WGS, T, A_STAGES, W_STAGES, PAIR, CLUSTERS> NAME##_body;     \
    __device__ float NAME##_partial[NAME##_body::PARTIALS * NAME##_body::TILE];                    \
    __device__ unsigned NAME##_flags[2 * NAME##_body::PARTIALS];                                   \
    extern "C" __global__ void __cluster_dims__((CLUSTERS) ? (PAIR) : 1, (CLUSTERS) ? 1 : (PAIR))  \
        __launch_bounds__(NAME##_body::CAP, 1)                                                     \
            NAME(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)                \
    {                                                                                              \
        NAME##_body::body(hopper::args{w, a, y, m, n, k}, NAME##_partial, NAME##_flags);           \
    }                                                                                              \
    VARIANT_DESC(NAME)
#define HOPPER_DESC(NAME, FAMILY, NOTE, PARENT, LAYOUT_B, T, PAIR, CLUSTERS, VERDICT)              \
    {                                                                                              \
        VARIANT_HEAD(NAME), .family = FAMILY, .note = NOTE, .parent = PARENT, .step = "",          \
                            .numeric = "bf16", .layout_a = "bf16", .layout_b = LAYOUT_B,           \
                            .tile_m = NAME##_body::ROWS, .tile_n = T, .tile_k = 256, .kd = 8,      \
                            .threads = NAME##_body::THREADS, .min_blocks = 1, .min_sm = 90,        \
                            .features = VARIANT_WGMMA | VARIANT_EARLY, .n_buffers = 3,             \
                            .buffers = {{"activations", NAME##_body::W_AT},                        \
                                        {"weights", NAME##_body::BARS_AT - NAME##_body::W_AT},     \
                                        {"mbarriers", NAME##_body::BARS}},                         \
                            .cluster_m = PAIR, .grid = (CLUSTERS) * (PAIR), .verdict = VERDICT     \
    }
#endif

#endif
