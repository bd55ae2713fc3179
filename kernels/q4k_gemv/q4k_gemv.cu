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

#define NOTE "dp4a, eight lanes a super-block, activations staged in planes"
OPS_GEMV(q4k_gemv, 2, "q4_k", 1024, NOTE);
OPS_GEMV(q4k_gemv, 4, "q4_k", 1024, NOTE);
OPS_GEMV(q4k_gemv, 8, "q4_k", 1024, NOTE);

namespace
{

/* Four lanes a super-block: lane p has its bytes 32p to 32p + 31, sub-block 2p in the low nibbles
 * and 2p + 1 in the high ones, which count 16 times in the sums: their activations' scale is staged
 * as a sixteenth. Eight lanes' 16-byte reads cover all banks. */
struct q4k_one {
    enum { BYTES = 144, LANES = 4, EACH = 32 / LANES, STAGES = ops::ONE_STAGES, SCALES = 16 };
    struct raw {
        uint4 head, q[2];
    };
    /* Bits of the two sub-blocks' scales in the first eight bytes, in the last four, and on top. */
    struct lane {
        int p, shift;
        uint32_t low, high, top;
    };
    static __device__ __forceinline__ lane prepare(int p)
    {
        const uint32_t later = p < 2 ? 0 : ~0u;
        return lane{p, (p & 1) * 16, ~later & 0x3f3f, later & 0x0f0f, later & 0x3030};
    }
    static __device__ __forceinline__ int place(int c, int w)
    {
        const int sb = c >> 3, p = (c & 7) >> 1, piece = (c & 1) * 2 + (w >> 2);
        return ((sb >> 1) * 32 + piece * 8 + (sb & 1) * 4 + p) * 4 + (w & 3);
    }
    static __device__ __forceinline__ void put(float *to, int c, float da, int, int sum)
    {
        ((float2 *)to)[c] = make_float2(c & 1 ? da / 16 : da, da * (float)sum);
    }
    static __device__ __forceinline__ void scales(float *to, int c, const uint32_t *chunk)
    {
        const uint32_t bits = ops::load_chunk_word(chunk), sum = ops::load_chunk_word(chunk + 9);
        put(to, c, ops::half_bits(bits & 0xffff), 0, (int)sum);
    }
    static __device__ __forceinline__ void read(raw &r, const uint8_t *block, const lane &o)
    {
        const uint4 *at = (const uint4 *)block;
        r.head = at[0];
        r.q[0] = at[1 + o.p * 2];
        r.q[1] = at[2 + o.p * 2];
    }
    static __device__ __forceinline__ int dots(const raw &r, uint32_t mask, uint4 a0, uint4 a1)
    {
        int c = ops::dot_u8s8(r.q[0].x & mask, a0.x, 0);
        c = ops::dot_u8s8(r.q[0].y & mask, a0.y, c);
        c = ops::dot_u8s8(r.q[0].z & mask, a0.z, c);
        c = ops::dot_u8s8(r.q[0].w & mask, a0.w, c);
        c = ops::dot_u8s8(r.q[1].x & mask, a1.x, c);
        c = ops::dot_u8s8(r.q[1].y & mask, a1.y, c);
        c = ops::dot_u8s8(r.q[1].z & mask, a1.z, c);
        return ops::dot_u8s8(r.q[1].w & mask, a1.w, c);
    }
    static __device__ __forceinline__ void dot(float (&v)[2], const raw (&r)[2], const lane &o,
                                               const ops::one_tile &t, int sb)
    {
        const uint4 *a = t.q + (sb >> 1) * 32 + (sb & 1) * 4 + o.p;
        const float4 d = ((const float4 *)t.scales)[sb * 4 + o.p];
        int low[2], high[2];
        uint4 a0 = a[0], a1 = a[8];
#pragma unroll
        for (int s = 0; s < 2; s++) low[s] = dots(r[s], 0x0f0f0f0f, a0, a1);
        a0 = a[16], a1 = a[24];
#pragma unroll
        for (int s = 0; s < 2; s++) high[s] = dots(r[s], 0xf0f0f0f0, a0, a1);
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const uint4 h = r[s].head;
            const uint32_t y = h.y >> o.shift, z = h.z >> o.shift, w = h.w >> o.shift;
            const uint32_t sc = (y & o.low) | (w & o.high) | (y >> 2 & o.top);
            const uint32_t mn = (z & o.low) | (w >> 4 & o.high) | (z >> 2 & o.top);
            const float sum =
                d.x * (float)(sc & 0xff) * (float)low[s] + d.z * (float)(sc >> 8) * (float)high[s];
            const float less = d.y * (float)(mn & 0xff) + d.w * (float)(mn >> 8);
            v[s] += ops::half_bits(h.x & 0xffff) * sum - ops::half_bits(h.x >> 16) * less;
        }
    }
};

__device__ unsigned glu_counts[ops::ONE_COUNTS];

} // namespace

OPS_GEMV_ONE(q4k_gemv, q4k_one, "q4_k");

/* Arguments: gate, up, what goes in, y, the chunks of y, m, k, gelu or silu. */
OPS_GEMV_ONE_KERNEL(q4k_gemv_n1_glu, const uint8_t *gate, const uint8_t *up,
                    const ops_gemv_input in, float *y, uint8_t *out, int m, int k, int gelu)
{
    ops::one_run<q4k_one, true>(
        ops::one_glu<q4k_one>{gate, up, y, out, glu_counts, m, k / 256, gelu != 0}, in, k);
}
OPS_GEMV_ONE_DESC(q4k_gemv_n1_glu, "q4k_gemv", q4k_one, "q4_k",
                  "gate and up as the rows of a pair, act(gate) * up and its q8 chunks");
