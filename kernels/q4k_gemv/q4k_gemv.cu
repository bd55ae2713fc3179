/*
 * q4k_gemv: Q4_K weights against q8 chunks by dp4a. n2, n4, n8 stage activations of several tokens
 * (kernels/ops/gemv.cuh), the others take one token (kernels/ops/gemv_one.cuh): _n1 plain, _n1_add
 * onto the residual stream, _n1_many for matrices that share their activations, _n1_glu for gate
 * and up with the activation and the next product's chunks. Eight lanes a super-block, 16 bytes of
 * nibbles a lane: half of sub-block 2p (low) and half of 2p + 1 (high). Neighbouring lanes swap
 * half sums, so that lane i of the eight ends up with sub-block i whole and decodes one scale and
 * min.
 */
#include "kernels/ops/gemv.cuh"
#include "kernels/ops/gemv_one.cuh"

namespace
{

/* Even sub-blocks first: the eight lanes' reads of low (and of high) values are 128 bytes in a row.
 */
struct evens_first {
    __device__ __forceinline__ int operator()(int c) const
    {
        return (c & 1) * 4 + (c >> 1);
    }
};

struct block_part {
    uint4 head, q; /* d, dmin, 12 bytes of scales; 16 bytes of nibbles */
};

/* {d * sc, -dmin * m} of sub-block j; bytes as in q4_k_scale_min() of engine/quant.h. */
__device__ __forceinline__ float2 scale_min(uint4 head, int j)
{
    int s = (j & 3) * 8;
    uint32_t sc, mn;
    if (j < 4) {
        sc = (head.y >> s) & 63;
        mn = (head.z >> s) & 63;
    } else {
        sc = ((head.w >> s) & 15) | ((head.y >> (s + 6)) & 3) << 4;
        mn = ((head.w >> (s + 4)) & 15) | ((head.z >> (s + 6)) & 3) << 4;
    }
    return make_float2(ops::half_bits(head.x & 0xffff) * (float)sc,
                       -ops::half_bits(head.x >> 16) * (float)mn);
}

__device__ __forceinline__ int dot16(uint4 w, uint4 a, int shift)
{
    const uint32_t mask = 0x0f0f0f0f;
    int c = __dp4a((int)(w.x >> shift & mask), (int)a.x, 0);
    c = __dp4a((int)(w.y >> shift & mask), (int)a.y, c);
    c = __dp4a((int)(w.z >> shift & mask), (int)a.z, c);
    return __dp4a((int)(w.w >> shift & mask), (int)a.w, c);
}

template <int NT, int TC>
__device__ __forceinline__ void step(const ops::gemv_tile<NT, TC> *s, const block_part &b, int sb,
                                     float acc[NT])
{
    int lane = threadIdx.x & 7;
    bool odd = lane & 1;
    float2 ds = scale_min(b.head, lane);
    for (int t = 0; t < NT; t++) {
        int lo = dot16(b.q, s->q[t][sb * 16 + lane], 0);
        int hi = dot16(b.q, s->q[t][sb * 16 + 8 + lane], 4);
        int mine = (odd ? hi : lo) + __shfl_xor_sync(~0u, odd ? lo : hi, 1);
        float2 d = s->d[t][sb * 8 + lane];
        acc[t] += d.x * ds.x * (float)mine + d.y * ds.y;
    }
}

template <int NT>
__device__ __forceinline__ void body(const uint8_t *__restrict__ w,
                                     const uint8_t *__restrict__ chunks, float *__restrict__ y,
                                     int m, int n, int k)
{
    constexpr int TC = ops::gemv_chunks<NT>::VALUE;
    __shared__ ops::gemv_tile<NT, TC> s;
    int lane = threadIdx.x & 31, row = blockIdx.x * OPS_GEMV_ROWS + (threadIdx.x >> 5) * 2;
    int row_chunks = k / 32, blocks = k / 256;
    const uint8_t *w0 = w + (size_t)min(row, m - 1) * blocks * 144;
    const uint8_t *w1 = w + (size_t)min(row + 1, m - 1) * blocks * 144;
    float acc[2][NT] = {};

    for (int first = 0; first < row_chunks; first += TC) {
        int count = min(TC, row_chunks - first);
        if (first) __syncthreads();
        ops::gemv_stage(&s, chunks, n, row_chunks, first, count, evens_first());
        __syncthreads();
        for (int base = 0; base < count / 8; base += 4) {
            int sb = base + (lane >> 3);
            block_part b0 = {}, b1 = {};
            /* A group of lanes past the end keeps zeros: scales of 0 add nothing. */
            if (sb < count / 8) {
                size_t at = (size_t)(first / 8 + sb) * 144;
                b0.head = __ldg((const uint4 *)(w0 + at));
                b1.head = __ldg((const uint4 *)(w1 + at));
                b0.q = __ldg((const uint4 *)(w0 + at + 16) + (lane & 7));
                b1.q = __ldg((const uint4 *)(w1 + at + 16) + (lane & 7));
            } else {
                sb = 0;
            }
            step<NT, TC>(&s, b0, sb, acc[0]);
            step<NT, TC>(&s, b1, sb, acc[1]);
        }
    }
    ops::gemv_store<NT>(acc, y, row, m, n);
}

} // namespace

#define GEMV(NT)                                                                                   \
    extern "C" __global__ void __launch_bounds__(ops::GEMV_THREADS)                                \
        q4k_gemv_n##NT(const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k)     \
    {                                                                                              \
        body<NT>(w, chunks, y, m, n, k);                                                           \
    }                                                                                              \
    VARIANT_DESC(q4k_gemv_n##NT) = {                                                               \
        VARIANT_HEAD(q4k_gemv_n##NT),                                                              \
        .family = "q4k_gemv",                                                                      \
        .note =                                                                                    \
            "dp4a, eight lanes a super-block, activations staged in planes, up to " #NT " tokens", \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = "q4_k",                                                                        \
        .tile_m = OPS_GEMV_ROWS,                                                                   \
        .tile_n = NT,                                                                              \
        .tile_k = 1024,                                                                            \
        .threads = ops::GEMV_THREADS,                                                              \
        .min_sm = 80}

GEMV(2);
GEMV(4);
GEMV(8);

namespace
{

struct q4k_one {
    enum { BYTES = 144, LANES = 8 };
    struct raw {
        uint4 head, q;
    };
    static __device__ __forceinline__ int place(int c)
    {
        return evens_first()(c);
    }
    static __device__ __forceinline__ void load(raw &r, const uint8_t *p, int lane)
    {
        r.head = __ldg((const uint4 *)p);
        r.q = __ldg((const uint4 *)p + 1 + lane);
    }
    static __device__ __forceinline__ float dot(const raw &r, const ops::one_tile *t, int sb,
                                                int lane)
    {
        float2 ds = scale_min(r.head, lane), d = t->d[sb * 8 + lane];
        int lo = dot16(r.q, t->q[sb * 16 + lane], 0);
        int hi = dot16(r.q, t->q[sb * 16 + 8 + lane], 4);
        bool odd = lane & 1;
        int mine = (odd ? hi : lo) + __shfl_xor_sync(~0u, odd ? lo : hi, 1);
        return d.x * ds.x * (float)mine + d.y * ds.y;
    }
};

} // namespace

OPS_GEMV_ONE(q4k_gemv, q4k_one, "q4_k")

extern "C" __global__ void __launch_bounds__(ops::ONE_THREADS, OPS_GEMV_ONE_BLOCKS)
    q4k_gemv_n1_glu(const uint8_t *gate, const uint8_t *up, const uint8_t *chunks, float *y,
                    uint8_t *out, int k, int gelu)
{
    __shared__ float part[32];
    ops::one_run<q4k_one>(ops::one_glu<q4k_one>{gate, up, y, out, part, k / 256, gelu != 0}, chunks,
                          k);
}
OPS_GEMV_ONE_DESC(q4k_gemv_n1_glu, "q4k_gemv", "q4_k",
                  "gate and up of 32 rows a block, act(gate) * up and its q8 chunk at the end");
