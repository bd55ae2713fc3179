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

#define NOTE "dp4a, sixteen lanes a super-block, activations staged in planes"
OPS_GEMV(q6k_gemv, 2, "q6_k", 512, NOTE);
OPS_GEMV(q6k_gemv, 4, "q6_k", 512, NOTE);
OPS_GEMV(q6k_gemv, 8, "q6_k", 512, NOTE);

namespace
{

/* Eight lanes a super-block: lane j = h * 4 + p * 2 + i takes the low bits' bytes 16j to 16j + 15:
 * half i of chunk h * 4 + p in their low nibbles, of the chunk two further on in the high ones,
 * each half under one scale. Blocks lie at multiples of 2 bytes: words are put together from
 * aligned ones when they are used. Groups of lanes that read two blocks apart, 105 words, meet in
 * no bank. */
struct q6k_one {
    enum {
        BYTES = 210,
        LANES = 8,
        EACH = 4 * ops::ONE_TURNS,
        STAGES = ops::ONE_STAGES,
        SCALES = 32
    };
    struct raw {
        uint32_t l[5], h[5];
        uint32_t d_off; /* f16 scale; bit 16: the block starts at an odd multiple of 2 */
        int sc;         /* two scales in its halves */
    };
    struct lane {
        int j, shift, half, high; /* half chunk; byte of its high bits */
    };
    static __device__ __forceinline__ lane prepare(int j)
    {
        const int h = j >> 2, p = j >> 1 & 1, i = j & 1;
        return lane{j, p * 2, (h * 4 + p) * 2 + i, 128 + h * 32 + i * 16};
    }
    static __device__ __forceinline__ int place(int c, int w)
    {
        return ((c & ~7) + low_first()(c & 7)) * 8 + w;
    }
    /* A lane's float4: of both its halves {da, -32 times the sum of the values as an integer}: the
     * 32 that a weight is less than its bits say. */
    static __device__ __forceinline__ void put(float *to, int c, float da, int first, int sum)
    {
        float2 *half = (float2 *)to + ((c & ~3) + (c & 1) * 2) * 2 + (c >> 1 & 1);
        half[0] = make_float2(da, __int_as_float(-32 * first));
        half[2] = make_float2(da, __int_as_float(-32 * (sum - first)));
    }
    static __device__ __forceinline__ void scales(float *to, int c, const uint32_t *chunk)
    {
        uint32_t v[6];
        for (int i = 0; i < 5; i++) v[i] = ops::load_chunk_word(chunk + i);
        v[5] = ops::load_chunk_word(chunk + 9);
        int first = 0;
        for (int i = 1; i < 5; i++) first = __dp4a((int)v[i], 0x01010101, first);
        put(to, c, ops::half_bits(v[0] & 0xffff), first, (int)v[5]);
    }
    static __device__ __forceinline__ void read(raw &r, const uint8_t *b, const lane &o)
    {
        const uint32_t off = (uint32_t)(uintptr_t)b & 2;
        const uint32_t *l = (const uint32_t *)(b - off) + o.j * 4;
        const uint32_t *h = (const uint32_t *)(b - off + o.high);
#pragma unroll
        for (int i = 0; i < 5; i++) {
            r.l[i] = l[i];
            r.h[i] = h[i];
        }
        const int8_t *sc = (const int8_t *)b + 192 + o.half;
        r.sc = (sc[0] & 0xffff) | sc[4] << 16;
        r.d_off = *(const unsigned short *)(b + 208) | off << 15;
    }
    static __device__ __forceinline__ void dot(float (&v)[2], const raw (&r)[2], const lane &o,
                                               const ops::one_tile &t, int sb)
    {
        const uint32_t low = 0x0f0f0f0f;
        const uint4 al = t.q[sb * 16 + o.j], ah = t.q[sb * 16 + 8 + o.j];
        const float4 d = ((const float4 *)t.scales)[sb * 8 + o.j];
        const uint32_t lo[4] = {al.x, al.y, al.z, al.w}, hi[4] = {ah.x, ah.y, ah.z, ah.w};
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const uint32_t off = r[s].d_off >> 16 << 4;
            int dl = __float_as_int(d.y), dh = __float_as_int(d.w);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t l = __funnelshift_r(r[s].l[i], r[s].l[i + 1], off);
                const uint32_t h =
                    __funnelshift_r(r[s].h[i], r[s].h[i + 1], off + o.shift) & 0x33333333;
                dl = ops::dot_u8s8((l & low) | (h << 4 & ~low), lo[i], dl);
                dh = ops::dot_u8s8((l >> 4 & low) | (h & ~low), hi[i], dh);
            }
            v[s] +=
                ops::half_bits(r[s].d_off & 0xffff) *
                (d.x * (float)((int)(int16_t)r[s].sc * dl) + d.z * (float)((r[s].sc >> 16) * dh));
        }
    }
};

} // namespace

OPS_GEMV_ONE(q6k_gemv, q6k_one, "q6_k");
