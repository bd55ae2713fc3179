/*
 * q6k_gemv: Q6_K weights against q8 chunks by dp4a. Sixteen lanes a super-block, 8 bytes of low
 * bits and 8 of high bits a lane. Blocks lie at multiples of 210 bytes, so words are put together
 * from aligned ones (OPS_PAD bytes follow the tensor).
 *
 * Lane j of the sixteen: half h = j / 8, i = j % 8; its low nibbles are the values at
 * h * 128 + (i / 4) * 32 + 8 * (i % 4), its high nibbles those 64 further on. Eight values lie
 * within one scale's 16.
 */
#include "kernels/ops/gemv.cuh"
#include "kernels/ops/gemv_one.cuh"

namespace
{

/* Chunks {0, 1, 4, 5} first, then {2, 3, 6, 7}: sixteen lanes read 128 bytes in a row. */
struct low_first {
    __device__ __forceinline__ int operator()(int c) const
    {
        return (c & 2) << 1 | (c & 4) >> 1 | (c & 1);
    }
};

struct block_part {
    uint2 lo, hi; /* eight values each, as signed bytes */
    float d;
    int sc_lo, sc_hi;
};

__device__ __forceinline__ uint2 load_8(const uint8_t *p)
{
    const uint32_t *w = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3);
    uint32_t a = __ldg(w), b = __ldg(w + 1), c = __ldg(w + 2);
    bool off = (uintptr_t)p & 2;
    return make_uint2(off ? __funnelshift_r(a, b, 16) : a, off ? __funnelshift_r(b, c, 16) : b);
}

/* Four 6-bit values minus 32 as signed bytes: bit 7 set keeps the subtraction inside each byte. */
__device__ __forceinline__ uint32_t join(uint32_t low4, uint32_t high2)
{
    uint32_t q = (low4 & 0x0f0f0f0f) | (high2 & 0x03030303) << 4 | 0x80808080;
    return (q - 0x20202020) ^ 0x80808080;
}

__device__ __forceinline__ block_part load_part(const uint8_t *b, int j)
{
    int h = j >> 3, i = j & 7, shift = (i >> 2) * 2;
    int at = h * 128 + (i >> 2) * 32 + (i & 3) * 8;
    uint2 ql = load_8(b + j * 8), qh = load_8(b + 128 + h * 32 + (i & 3) * 8);
    block_part p;
    p.lo = make_uint2(join(ql.x, qh.x >> shift), join(ql.y, qh.y >> shift));
    p.hi = make_uint2(join(ql.x >> 4, qh.x >> (shift + 4)), join(ql.y >> 4, qh.y >> (shift + 4)));
    p.sc_lo = (int8_t)b[192 + at / 16];
    p.sc_hi = (int8_t)b[192 + at / 16 + 4];
    p.d = ops::half_bits(ops::load_u16(b + 208));
    return p;
}

template <int NT, int TC>
__device__ __forceinline__ void step(const ops::gemv_tile<NT, TC> *s, const block_part &b, int sb,
                                     float acc[NT])
{
    int j = threadIdx.x & 15, c = (j >> 3) * 4 + ((j & 7) >> 2);
    for (int t = 0; t < NT; t++) {
        const uint2 *q = (const uint2 *)s->q[t] + sb * 32;
        uint2 lo = q[j], hi = q[16 + j];
        int dl = __dp4a((int)b.lo.y, (int)lo.y, __dp4a((int)b.lo.x, (int)lo.x, 0));
        int dh = __dp4a((int)b.hi.y, (int)hi.y, __dp4a((int)b.hi.x, (int)hi.x, 0));
        acc[t] += s->d[t][sb * 8 + c].x * b.d * (float)(b.sc_lo * dl);
        acc[t] += s->d[t][sb * 8 + c + 2].x * b.d * (float)(b.sc_hi * dh);
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
    const uint8_t *w0 = w + (size_t)min(row, m - 1) * blocks * 210;
    const uint8_t *w1 = w + (size_t)min(row + 1, m - 1) * blocks * 210;
    float acc[2][NT] = {};

    for (int first = 0; first < row_chunks; first += TC) {
        int count = min(TC, row_chunks - first);
        if (first) __syncthreads();
        ops::gemv_stage(&s, chunks, n, row_chunks, first, count, low_first());
        __syncthreads();
        for (int sb = lane >> 4; sb < count / 8; sb += 2) {
            size_t at = (size_t)(first / 8 + sb) * 210;
            block_part b0 = load_part(w0 + at, lane & 15), b1 = load_part(w1 + at, lane & 15);
            step<NT, TC>(&s, b0, sb, acc[0]);
            step<NT, TC>(&s, b1, sb, acc[1]);
        }
    }
    ops::gemv_store<NT>(acc, y, row, m, n);
}

} // namespace

#define GEMV(NT)                                                                                   \
    extern "C" __global__ void __launch_bounds__(ops::GEMV_THREADS)                                \
        q6k_gemv_n##NT(const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k)     \
    {                                                                                              \
        body<NT>(w, chunks, y, m, n, k);                                                           \
    }                                                                                              \
    VARIANT_DESC(q6k_gemv_n##NT) = {                                                               \
        VARIANT_HEAD(q6k_gemv_n##NT),                                                              \
        .family = "q6k_gemv",                                                                      \
        .note = "dp4a, sixteen lanes a super-block, activations staged in planes, up to " #NT      \
                " tokens",                                                                         \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = "q6_k",                                                                        \
        .tile_m = OPS_GEMV_ROWS,                                                                   \
        .tile_n = NT,                                                                              \
        .tile_k = 512,                                                                             \
        .threads = ops::GEMV_THREADS,                                                              \
        .min_sm = 80}

GEMV(2);
GEMV(4);
GEMV(8);

namespace
{

/* The bytes as they come, joined when they are used: fewer registers wait for memory. */
struct q6k_one {
    enum { BYTES = 210, LANES = 16 };
    struct raw {
        uint32_t l[3], h[3];
        uint32_t d_off; /* f16 scale; bit 16: the block starts at an odd multiple of 2 */
        int sc;         /* two scales in its halves */
    };
    static __device__ __forceinline__ int place(int c)
    {
        return low_first()(c);
    }
    static __device__ __forceinline__ int at(int j)
    {
        return (j >> 3) * 128 + ((j & 7) >> 2) * 32 + (j & 3) * 8;
    }
    static __device__ __forceinline__ void load(raw &r, const uint8_t *b, int j)
    {
        const uint32_t off = (uint32_t)(uintptr_t)b & 2;
        const uint32_t *l = (const uint32_t *)(b - off) + j * 2;
        const uint32_t *h = (const uint32_t *)(b - off) + 32 + (j >> 3) * 8 + (j & 3) * 2;
#pragma unroll
        for (int i = 0; i < 3; i++) {
            r.l[i] = __ldg(l + i);
            r.h[i] = __ldg(h + i);
        }
        const int8_t *sc = (const int8_t *)b + 192 + at(j) / 16;
        r.sc = (__ldg(sc) & 0xffff) | __ldg(sc + 4) << 16;
        r.d_off = __ldg((const unsigned short *)(b + 208)) | off << 15;
    }
    static __device__ __forceinline__ float dot(const raw &r, const ops::one_tile *t, int sb, int j)
    {
        const uint32_t s = r.d_off >> 16 & 1 ? 16 : 0;
        const int shift = ((j & 7) >> 2) * 2, c = sb * 8 + (j >> 3) * 4 + ((j & 7) >> 2);
        const uint2 *q = (const uint2 *)t->q + sb * 32;
        const uint2 lo = q[j], hi = q[16 + j];
        const uint32_t l0 = __funnelshift_r(r.l[0], r.l[1], s);
        const uint32_t l1 = __funnelshift_r(r.l[1], r.l[2], s);
        const uint32_t h0 = __funnelshift_r(r.h[0], r.h[1], s) >> shift;
        const uint32_t h1 = __funnelshift_r(r.h[1], r.h[2], s) >> shift;
        const int dl =
            __dp4a((int)join(l1, h1), (int)lo.y, __dp4a((int)join(l0, h0), (int)lo.x, 0));
        const int dh = __dp4a((int)join(l1 >> 4, h1 >> 4), (int)hi.y,
                              __dp4a((int)join(l0 >> 4, h0 >> 4), (int)hi.x, 0));
        const float d = ops::half_bits(r.d_off & 0xffff);
        return t->d[c].x * d * (float)((int)(int16_t)r.sc * dl) +
               t->d[c + 2].x * d * (float)((r.sc >> 16) * dh);
    }
};

} // namespace

OPS_GEMV_ONE(q6k_gemv, q6k_one, "q6_k")
