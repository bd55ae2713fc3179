/*
 * attn_one: what stands between the products of q, k, v and that of attention's output, for one
 * token, in one launch: q and k rotated, k and v into the cache, attention over the cache, the
 * result's q8 chunks. One kernel a head length; sm_90 on.
 *
 * A cluster of OPS_ATTN_CLUSTER blocks takes up to GROUP query heads of one kv head. Its blocks
 * share the positions evenly, and a block's warps share its. A warp keeps up to PER rows of keys
 * and of values in shared memory of its own. Rows of earlier steps are written by nobody in this
 * one, so they are fetched before early_wait(), while the products in front still run; the new row
 * comes from registers. When a warp has more, it takes PER at a time with a running maximum. At the
 * end a block brings its warps together, sends each chunk of 32 values to the block of the cluster
 * that finishes it, and that block brings the parts together: always in the same order.
 *
 * Scores count in powers of two: log2(e) is in the scale of q.
 * Argument: const struct ops_attn_one. Grid {OPS_ATTN_CLUSTER, kv_heads * ceil(heads / kv_heads /
 * GROUP)}.
 */
#include "kernels/ops/quantise.cuh"
#include "kernels/ops/rope.cuh"

namespace
{

enum { WARPS = 8, THREADS = WARPS * 32, GROUP = OPS_ATTN_ONE_GROUP, CLUSTER = OPS_ATTN_CLUSTER };

/* PER rows a warp; SUB lanes share a key, AT_ONCE keys side by side. FOURS: float4s of a row; K4:
 * of a key a lane, V4: of a value a lane. A block finishes SLOTS chunks. */
template <int HD> struct shape {
    enum {
        PER = HD == 64    ? 16
              : HD == 96  ? 12
              : HD == 128 ? 10
                          : 4,
        SUB = HD == 96 ? 8 : 16,
        AT_ONCE = 32 / SUB,
        STEPS = PER / AT_ONCE,
        FOURS = HD / 4,
        K4 = FOURS / SUB,
        V4 = (FOURS + 31) / 32,
        VALUES = GROUP * HD,
        SLOTS = (VALUES / 32 + CLUSTER - 1) / CLUSTER,
        PAIRS = (VALUES / 2 + THREADS - 1) / THREADS, /* a thread */
    };
};

template <int HD> struct shared {
    typedef shape<HD> S;
    float4 k[WARPS][S::PER * S::FOURS]; /* at the end: a warp's sums, [GROUP][HD] */
    float4 v[WARPS][S::PER * S::FOURS];
    float4 q[GROUP * S::FOURS];
    float weight[WARPS][S::PER + 1][GROUP]; /* of a position; last row: of the sums so far */
    float2 part[WARPS][GROUP];              /* {maximum, sum} */
    float got[CLUSTER][S::SLOTS * 32];      /* what the cluster's blocks send */
    float2 got_part[CLUSTER][GROUP];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

__device__ __forceinline__ void copy_16(void *to, const float *from)
{
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}

/* All copies of this warp but those of the last group are there. */
__device__ __forceinline__ void rows_wait()
{
    ops::copies_wait<1>();
    __syncwarp();
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The same place in the shared memory of the cluster's block `rank`. */
template <class T> __device__ __forceinline__ T *at_rank(T *p, int rank)
{
    uint64_t there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(rank));
    return (T *)there;
}

/* `rows` rows, one group of copies. */
template <int HD>
__device__ __forceinline__ void fetch(float4 *to, const float *from, size_t stride, int rows)
{
    enum { FOURS = shape<HD>::FOURS };
    const int lane = threadIdx.x & 31;
    if (rows > 0) {
#pragma unroll
        for (int j = 0; j < (shape<HD>::PER * FOURS + 31) / 32; j++) {
            const int i = lane + 32 * j;
            if (i < rows * FOURS) copy_16(to + i, from + i / FOURS * stride + i % FOURS * 4);
        }
    }
    ops::copies_end();
}

/* Sums of GROUP values over SUB lanes: afterwards lane l of them has number l / (SUB / GROUP). */
template <int SUB> __device__ __forceinline__ float sum_each(float (&s)[GROUP])
{
    const int lane = threadIdx.x;
    int o = SUB / 2;
#pragma unroll
    for (int n = GROUP / 2; n; n /= 2, o /= 2) {
        const bool high = lane & o;
#pragma unroll
        for (int j = 0; j < n; j++) {
            const float keep = high ? s[j + n] : s[j], send = high ? s[j] : s[j + n];
            s[j] = keep + __shfl_xor_sync(~0u, send, o);
        }
    }
#pragma unroll
    for (; o; o /= 2) s[0] += __shfl_xor_sync(~0u, s[0], o);
    return s[0];
}

/* The weight of a part whose maximum is `top` when all have `best`; 0 for an empty part. */
__device__ __forceinline__ float part_weight(float top, float best)
{
    return top == -INFINITY ? 0.0f : exp2f(top - best);
}

/* Which positions are whose: n from `first` on. */
struct positions {
    int first, n;
};

__device__ __forceinline__ positions share_of(positions all, int who, int count)
{
    const int each = (all.n + count - 1) / count, at = min(who * each, all.n);
    return {all.first + at, min(each, all.n - at)};
}

/* What a warp knows of its positions: lane l has maximum and sum of head l % SUB / (SUB / GROUP);
 * the sum over its own positions only. */
template <int HD> struct running {
    typedef shape<HD> S;
    float top, sum;
    float4 acc[GROUP][S::V4];

    /* Scores of `rows` rows become weights in shared memory. */
    __device__ __forceinline__ void scores(shared<HD> &sh, const float4 (&q)[GROUP][S::K4],
                                           int rows)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, sub = lane % S::SUB;
        const int head = sub / (S::SUB / GROUP);
        float s[S::STEPS], best = top, now = 0;
#pragma unroll
        for (int i = 0; i < S::STEPS; i++) {
            const int row = i * S::AT_ONCE + lane / S::SUB;
            float d[GROUP] = {};
#pragma unroll
            for (int f = 0; f < S::K4; f++) {
                const float4 k = sh.k[warp][row * S::FOURS + f * S::SUB + sub];
#pragma unroll
                for (int g = 0; g < GROUP; g++)
                    d[g] = fmaf(
                        q[g][f].w, k.w,
                        fmaf(q[g][f].z, k.z, fmaf(q[g][f].y, k.y, fmaf(q[g][f].x, k.x, d[g]))));
            }
            s[i] = sum_each<S::SUB>(d);
            if (row >= rows) s[i] = -INFINITY;
            best = fmaxf(best, s[i]);
        }
#pragma unroll
        for (int o = S::SUB; o < 32; o *= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, o));
        const float old = part_weight(top, best);
        const bool writes = sub % (S::SUB / GROUP) == 0;
#pragma unroll
        for (int i = 0; i < S::STEPS; i++) {
            const float e = exp2f(s[i] - best);
            now += e;
            if (writes) sh.weight[warp][i * S::AT_ONCE + lane / S::SUB][head] = e;
        }
        if (writes && lane < S::SUB) sh.weight[warp][S::PER][head] = old;
        sum = sum * old + now;
        top = best;
    }

    __device__ __forceinline__ void values(const shared<HD> &sh, int rows, bool first)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
        for (int g = 0; g < GROUP && !first; g++) {
            const float old = sh.weight[warp][S::PER][g];
#pragma unroll
            for (int f = 0; f < S::V4; f++)
                acc[g][f] = make_float4(acc[g][f].x * old, acc[g][f].y * old, acc[g][f].z * old,
                                        acc[g][f].w * old);
        }
#pragma unroll
        for (int j = 0; j < S::PER; j++) {
            const int row = min(j, rows - 1); /* past the end: weights are 0 */
#pragma unroll
            for (int f = 0; f < S::V4; f++) {
                const int i = min(lane + 32 * f, S::FOURS - 1);
                const float4 v = sh.v[warp][row * S::FOURS + i];
#pragma unroll
                for (int g = 0; g < GROUP; g++) {
                    const float e = sh.weight[warp][j][g];
                    acc[g][f] = make_float4(fmaf(e, v.x, acc[g][f].x), fmaf(e, v.y, acc[g][f].y),
                                            fmaf(e, v.z, acc[g][f].z), fmaf(e, v.w, acc[g][f].w));
                }
            }
        }
    }

    /* To where the warp's keys were. */
    __device__ __forceinline__ void leave(shared<HD> &sh)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, sub = lane % S::SUB;
#pragma unroll
        for (int o = S::SUB; o < 32; o *= 2) sum += __shfl_xor_sync(~0u, sum, o);
        if (lane < S::SUB && sub % (S::SUB / GROUP) == 0)
            sh.part[warp][sub / (S::SUB / GROUP)] = make_float2(top, sum);
#pragma unroll
        for (int g = 0; g < GROUP; g++)
#pragma unroll
            for (int f = 0; f < S::V4; f++)
                if (lane + 32 * f < S::FOURS) sh.k[warp][g * S::FOURS + lane + 32 * f] = acc[g][f];
    }
};

/* q rotated and scaled into shared memory; by[]: this thread's angles. */
template <int HD>
__device__ __forceinline__ void rotate_q(shared<HD> &sh, const ops_attn_one &a, int head0,
                                         int group, const float2 (&by)[shape<HD>::PAIRS])
{
    float *to = (float *)sh.q;
    const float scale = a.scale * 1.4426950408889634f;
#pragma unroll
    for (int j = 0; j < shape<HD>::PAIRS; j++) {
        const int p = threadIdx.x + j * THREADS, g = p / (HD / 2), i = p % (HD / 2);
        if (g >= GROUP) break;
        const int ia = a.halves ? i : 2 * i, ib = a.halves ? i + HD / 2 : 2 * i + 1;
        const float *q = a.q + (size_t)(head0 + g) * HD;
        float2 r = make_float2(0, 0);
        if (g < group) r = ops::rope_rotate(__ldcg(q + ia), __ldcg(q + ib), by[j]);
        to[g * HD + ia] = r.x * scale;
        to[g * HD + ib] = r.y * scale;
    }
}

/* The new key, rotated, and the new value into the cache (every cluster of the kv head stores the
 * same), and into the rows of shared memory when they are among the first that their warp takes. */
template <int HD>
__device__ __forceinline__ void new_row(shared<HD> &sh, const ops_attn_one &a, int kv_head, int pos,
                                        positions mine, float2 by)
{
    const int i = threadIdx.x;
    if (i >= HD / 2) return;
    const int ia = a.halves ? i : 2 * i, ib = a.halves ? i + HD / 2 : 2 * i + 1;
    const size_t from = (size_t)kv_head * HD, to = (size_t)pos * a.kv_heads * HD + from;
    const float2 k = ops::rope_rotate(__ldcg(a.k + from + ia), __ldcg(a.k + from + ib), by);
    const float2 v = make_float2(__ldcg(a.v + from + ia), __ldcg(a.v + from + ib));
    if (pos < a.context) {
        a.k_cache[to + ia] = k.x, a.k_cache[to + ib] = k.y;
        a.v_cache[to + ia] = v.x, a.v_cache[to + ib] = v.y;
    }
    const int each = (mine.n + WARPS - 1) / WARPS, at = pos - mine.first;
    if (at % each >= shape<HD>::PER) return;
    float *ks = (float *)(sh.k[at / each] + at % each * shape<HD>::FOURS);
    float *vs = (float *)(sh.v[at / each] + at % each * shape<HD>::FOURS);
    ks[ia] = k.x, ks[ib] = k.y;
    vs[ia] = v.x, vs[ib] = v.y;
}

/* The block's warps together, two values a thread at a time, each to the block that finishes it. */
template <int HD> __device__ __forceinline__ void send(shared<HD> &sh, int rank)
{
    typedef shape<HD> S;
#pragma unroll
    for (int j = 0; j < S::PAIRS; j++) {
        const int e = 2 * (threadIdx.x + j * THREADS), g = e / HD, chunk = e / 32;
        if (e >= S::VALUES) break;
        float best = -INFINITY, sum = 0;
        float2 v = make_float2(0, 0);
#pragma unroll
        for (int w = 0; w < WARPS; w++) best = fmaxf(best, sh.part[w][g].x);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            const float f = part_weight(sh.part[w][g].x, best);
            const float2 x = ((const float2 *)sh.k[w])[e / 2];
            sum = fmaf(f, sh.part[w][g].y, sum);
            v = make_float2(fmaf(f, x.x, v.x), fmaf(f, x.y, v.y));
        }
        const int to = chunk % CLUSTER;
        *at_rank((float2 *)&sh.got[rank][chunk / CLUSTER * 32 + e % 32], to) = v;
        if (e % 32 == 0) *at_rank(&sh.got_part[rank][g], to) = make_float2(best, sum);
    }
}

template <int HD>
__device__ __forceinline__ void finish(const shared<HD> &sh, const ops_attn_one &a, int rank,
                                       int head0, int group)
{
    const int lane = threadIdx.x & 31, slot = threadIdx.x >> 5, chunk = rank + slot * CLUSTER;
    const int g = chunk * 32 / HD;
    if (slot >= shape<HD>::SLOTS || g >= group) return;
    float best = -INFINITY, sum = 0, v = 0;
#pragma unroll
    for (int r = 0; r < CLUSTER; r++) best = fmaxf(best, sh.got_part[r][g].x);
#pragma unroll
    for (int r = 0; r < CLUSTER; r++) {
        const float f = part_weight(sh.got_part[r][g].x, best);
        sum = fmaf(f, sh.got_part[r][g].y, sum);
        v = fmaf(f, sh.got[r][slot * 32 + lane], v);
    }
    v = __fdiv_rn(v, sum);
    const size_t at = (size_t)head0 * HD + chunk * 32;
    a.y[at + lane] = v;
    if (a.chunks) ops::quantise_warp(v, a.chunks + at / 32 * ops::CHUNK_BYTES);
}

template <int HD> __device__ __forceinline__ void body(const ops_attn_one &a)
{
    typedef shape<HD> S;
    extern __shared__ __align__(128) uint8_t attn_shared[];
    shared<HD> &sh = *(shared<HD> *)attn_shared;
    const int lane = threadIdx.x & 31, warp = __shfl_sync(~0u, threadIdx.x >> 5, 0);
    const int rank = blockIdx.x;
    const int per_kv = a.heads / a.kv_heads, groups = (per_kv + GROUP - 1) / GROUP;
    const int kv_head = blockIdx.y / groups, in_kv = blockIdx.y % groups * GROUP;
    const int head0 = kv_head * per_kv + in_kv, group = min(GROUP, per_kv - in_kv);
    double freq[S::PAIRS];
#pragma unroll
    for (int j = 0; j < S::PAIRS; j++)
        freq[j] = ops::load_kept(a.freq + (threadIdx.x + j * THREADS) % (HD / 2));
    const int pos = (int)ops::load_kept(&a.state->pos0); /* there before the step's first kernel */
    early_release();
    const int from = a.window > 0 ? max(0, pos + 1 - a.window) : 0;
    const positions block = share_of({from, pos + 1 - from}, rank, CLUSTER),
                    mine = share_of(block, warp, WARPS);
    const size_t stride = (size_t)a.kv_heads * HD, row = mine.first * stride + kv_head * HD;
    const float *kp = a.k_cache + row, *vp = a.v_cache + row;

    cluster_arrive();
    const int old = min(min(mine.n, (int)S::PER), pos - mine.first);
    fetch<HD>(sh.k[warp], kp, stride, old);
    fetch<HD>(sh.v[warp], vp, stride, old);
    float2 by[S::PAIRS];
#pragma unroll
    for (int j = 0; j < S::PAIRS; j++) by[j] = ops::rope_angle(freq[j], pos);
    early_wait();
    rotate_q<HD>(sh, a, head0, group, by);
    if (block.n > 0 && block.first + block.n == pos + 1)
        new_row<HD>(sh, a, kv_head, pos, block, by[0]);
    __syncthreads();

    float4 q[GROUP][S::K4];
    running<HD> r = {-INFINITY, 0, {}};
#pragma unroll
    for (int g = 0; g < GROUP; g++)
#pragma unroll
        for (int f = 0; f < S::K4; f++) q[g][f] = sh.q[g * S::FOURS + f * S::SUB + lane % S::SUB];
#pragma unroll 1
    for (int at = 0; at < mine.n; at += S::PER) {
        const int rows = min((int)S::PER, mine.n - at), next = at + S::PER;
        const int more = max(0, min((int)S::PER, mine.n - next));
        rows_wait();
        r.scores(sh, q, rows);
        __syncwarp();
        fetch<HD>(sh.k[warp], kp + next * stride, stride, more);
        rows_wait();
        r.values(sh, rows, at == 0);
        __syncwarp();
        fetch<HD>(sh.v[warp], vp + next * stride, stride, more);
    }
    r.leave(sh);
    __syncthreads();
    cluster_wait(); /* the others have started */
    send<HD>(sh, rank);
    cluster_arrive();
    cluster_wait();
    finish<HD>(sh, a, rank, head0, group);
}

#define IN_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#else
template <int HD> __device__ __forceinline__ void body(const ops_attn_one &) {}
#define IN_CLUSTER
#endif

} // namespace

#define ATTN(HD)                                                                                   \
    extern "C" __global__ void IN_CLUSTER __launch_bounds__(THREADS, 2)                            \
        attn_one_##HD(const struct ops_attn_one a)                                                 \
    {                                                                                              \
        body<HD>(a);                                                                               \
    }                                                                                              \
    VARIANT_DESC(attn_one_##HD) = {VARIANT_HEAD(attn_one_##HD),                                    \
                                   .family = "ops",                                                \
                                   .note = "rotation, cache and attention of one token, keys "     \
                                           "fetched before the wait; heads of " #HD,               \
                                   .numeric = "f32",                                               \
                                   .layout_a = "f32",                                              \
                                   .threads = THREADS,                                             \
                                   .min_blocks = 2,                                                \
                                   .min_sm = 90,                                                   \
                                   .features = VARIANT_EARLY,                                      \
                                   .n_buffers = 1,                                                 \
                                   .buffers = {{"keys, values, sums", sizeof(shared<HD>)}},        \
                                   .cluster_m = CLUSTER}

ATTN(64);
ATTN(96);
ATTN(128);
ATTN(256);
