/*
 * The tensor-core body of the Q6_K rungs: weights expanded to bytes in shared memory, single-buffer
 * synchronous staging, as in the Q4_K family's wide body. A scale covers 16 values, so a chunk is
 * two k16 products, scaled and added as integers (at most 2 * 128 * 16 * 63 * 127 < 2^26, and below
 * 2^24 once the 32 is off: exact as f32 too).
 *
 * A rung is a struct that derives from `knobs`. A warp takes 16 rows x TOKENS tokens.
 *
 * The fold: a weight is q - 32 with q = 0..63. Either the 32 comes off every weight as it is
 * expanded, or the sums start at -32 times the sum of a token's 16 values: once a token row, in
 * the place of the zero that the product starts from anyway.
 */
#ifndef KERNELS_Q6K_GEMM_Q6K_CUH
#define KERNELS_Q6K_GEMM_Q6K_CUH

#include "kernels/q4k_gemm/tile.cuh"

namespace q6k
{

using q4k::args;
using q4k::chunk;
using q4k::CHUNK_BYTES;
using q4k::CHUNKS;
using q4k::smem;

enum { BLOCK_BYTES = 210, HIGH = 128, SCALES = 192, SCALE = 208, STRIDE = 48, ROWS = 128 };

struct knobs {
    enum { TOKENS = 128 };
    static const bool FOLD = true;
    /* The weights as A operand (m16) and the tokens as B (n8): a thread's C values lie on two
     * rows of weights and many tokens instead of the other way round. */
    static const bool TRANSPOSED = false;
};

/* Dynamic shared memory, in this order, all per staged chunk: weights, {d, scales}, activations,
 * {da, sums of both halves}. Tokens r and r + 8 of a group side by side; TRANSPOSED: in order. */
template <int KD, class K> struct place {
    enum {
        QB_CHUNK = ROWS * STRIDE,
        SDS_CHUNK = ROWS * 8,
        QA_CHUNK = K::TOKENS * 32,
        SDA_CHUNK = K::TOKENS * 8,
        SDS = KD * QB_CHUNK,
        QA = SDS + KD * SDS_CHUNK,
        SDA = QA + KD * QA_CHUNK,
        SUM = K::TOKENS / 16 * 8,
    };
};

__device__ __forceinline__ void mma_k16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                 "{%0,%1,%2,%3};\n"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a0), "r"(a1), "r"(b));
}

__device__ __forceinline__ const uint8_t *block_ptr(const args &g, int row, int sb)
{
    return g.w + ((size_t)min(row, g.m - 1) * (g.k / 256) + sb) * BLOCK_BYTES;
}

/* Four words at p, which is even, put together from aligned ones. */
__device__ __forceinline__ void load_words(uint32_t (&v)[4], const uint8_t *p)
{
    const uint32_t off = (uint32_t)(uintptr_t)p & 2;
    const uint32_t *w = (const uint32_t *)(p - off);
    uint32_t x[5];
#pragma unroll
    for (int i = 0; i < 5; i++) x[i] = __ldg(w + i);
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = __funnelshift_r(x[i], x[i + 1], off * 8);
}

/* Four values: low bits from `low` >> s, high ones from `high` >> t. */
template <bool FOLD>
__device__ __forceinline__ uint32_t join(uint32_t low, int s, uint32_t high, int t)
{
    const uint32_t q = (low >> s & 0x0f0f0f0fu) | (high >> t & 0x03030303u) << 4;
    /* Bit 7 set keeps the subtraction inside each byte. */
    return FOLD ? q : ((q | 0x80808080u) - 0x20202020u) ^ 0x80808080u;
}

/* Chunks sub0 .. sub0 + KD - 1 of a super-block: two threads a row, a 16-byte half of each chunk.
 */
template <int KD, class K>
__device__ __forceinline__ void stage_b(const args &g, int row0, int sb, int sub0)
{
    const int row = threadIdx.x >> 1, half = threadIdx.x & 1;
    const uint8_t *b = block_ptr(g, row0 + row, sb);
#pragma unroll
    for (int i = 0; i < KD / 4; i++) {
        const int h = sub0 / 4 + i; /* of the super-block: four chunks share its high bits */
        uint32_t l0[4], l1[4], high[4];
        load_words(l0, b + h * 64 + half * 16);
        load_words(l1, b + h * 64 + 32 + half * 16);
        load_words(high, b + HIGH + h * 32 + half * 16);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            uint32_t v[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[j] = join<K::FOLD>(q & 1 ? l1[j] : l0[j], (q >> 1) * 4, high[j], q * 2);
            *(uint4 *)(smem + ((i * 4 + q) * ROWS + row) * STRIDE + half * 16) =
                make_uint4(v[0], v[1], v[2], v[3]);
        }
    }
}

template <int KD, class K>
__device__ __forceinline__ void stage_scales(const args &g, int row0, int sb, int sub0)
{
    using P = place<KD, K>;
    const int row = threadIdx.x >> 1, half = threadIdx.x & 1;
    const uint8_t *b = block_ptr(g, row0 + row, sb);
    const float d = q4k::half_bits(__ldg((const unsigned short *)(b + SCALE)));
#pragma unroll
    for (int i = 0; i < KD / 2; i++) {
        const int c = half * (KD / 2) + i;
        const uint32_t s = __ldg((const unsigned short *)(b + SCALES) + sub0 + c);
        const uint32_t s0 = (uint32_t)(int)(int8_t)s & 0xffffu,
                       s1 = (uint32_t)(int)(int8_t)(s >> 8);
        *(uint2 *)(smem + P::SDS + c * P::SDS_CHUNK + row * 8) =
            make_uint2(__float_as_uint(d), s1 << 16 | s0);
    }
}

template <int KD, class K>
__device__ __forceinline__ void stage_a(const args &g, int token0, int chunk0)
{
    using P = place<KD, K>;
    q4k::stage_a_chunks<KD, K::TOKENS>(
        g, smem + P::QA, token0, chunk0, [&](int c, int token, const chunk &v) {
            int first = 0;
#pragma unroll
            for (int i = 0; i < 4; i++) first = __dp4a((int)v.q[i], 0x01010101, first);
            const int slot =
                K::TRANSPOSED ? token : (token & ~15) + (token & 7) * 2 + (token >> 3 & 1);
            ((uint2 *)(smem + P::SDA + c * P::SDA_CHUNK))[slot] =
                make_uint2(__float_as_uint(q4k::half_bits(v.da_bits)),
                           (uint32_t)(v.sa - first) << 16 | ((uint32_t)first & 0xffffu));
        });
}

/* The two 16-bit integers of a word. */
__device__ __forceinline__ void split(int (&out)[2], uint32_t v)
{
    out[0] = (int)(int16_t)(v & 0xffffu);
    out[1] = (int)v >> 16;
}

/* Both products of a 16 x 8 tile and their scaling. `start`: what the sums of the C values begin
 * with, by half and by the operand's index that the activations have; ws: scales of the weights. */
template <bool FOLD, bool T>
__device__ __forceinline__ void
tile(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const float (&da)[2],
     const int (&start)[2][2], const float (&d)[2], const int (&ws)[2][2])
{
    int c0[4], c1[4];
#pragma unroll
    for (int l = 0; l < 4; l++) {
        const int t = T ? l & 1 : l >> 1;
        c0[l] = FOLD ? start[t][0] : 0;
        c1[l] = FOLD ? start[t][1] : 0;
    }
    mma_k16(c0, a[0], a[1], b[0]);
    mma_k16(c1, a[2], a[3], b[1]);
#pragma unroll
    for (int l = 0; l < 4; l++) {
        const int t = T ? l & 1 : l >> 1, r = T ? l >> 1 : l & 1;
        sum[l] += da[t] * d[r] * (float)(c0[l] * ws[r][0] + c1[l] * ws[r][1]);
    }
}

/* {scale, two integers} of neighbouring entries. */
__device__ __forceinline__ void read_pair(float (&f)[2], int (&v)[2][2], const uint8_t *p)
{
    const uint4 x = *(const uint4 *)p;
    f[0] = __uint_as_float(x.x), f[1] = __uint_as_float(x.z);
    split(v[0], x.y);
    split(v[1], x.w);
}

__device__ __forceinline__ void sums_to_start(int (&v)[2][2])
{
#pragma unroll
    for (int i = 0; i < 4; i++) v[i >> 1][i & 1] *= -32;
}

/* A = tokens, B = rows of weights. */
template <int KD, class K>
__device__ __forceinline__ void chunk_step(float (&sum)[place<KD, K>::SUM], int c, int j0w,
                                           int lane)
{
    using P = place<KD, K>;
    const uint8_t *qb = smem + c * P::QB_CHUNK, *sds = smem + P::SDS + c * P::SDS_CHUNK;
    const uint8_t *qa = smem + P::QA + c * P::QA_CHUNK, *sda = smem + P::SDA + c * P::SDA_CHUNK;
    uint32_t r[4];
    float d[2][2];
    int ws[2][2][2];
    q4k::ldmatrix_x4(r, qb + (j0w + (lane >> 4) * 8 + (lane & 7)) * STRIDE + (lane >> 3 & 1) * 16);
    const uint32_t b[2][2] = {{r[0], r[1]}, {r[2], r[3]}};
#pragma unroll
    for (int nh = 0; nh < 2; nh++)
        read_pair(d[nh], ws[nh], sds + (j0w + nh * 8 + (lane & 3) * 2) * 8);
#pragma unroll
    for (int h = 0; h < K::TOKENS / 16; h++) {
        uint32_t a[4];
        float da[2];
        int start[2][2];
        q4k::ldmatrix_x4(a, qa + (h * 16 + (lane & 15)) * 32 + (lane >> 4) * 16);
        read_pair(da, start, sda + (h * 16 + (lane >> 2) * 2) * 8);
        sums_to_start(start);
#pragma unroll
        for (int nh = 0; nh < 2; nh++)
            tile<K::FOLD, false>((float(&)[4])sum[(h * 2 + nh) * 4], a, b[nh], da, start, d[nh],
                                 ws[nh]);
    }
}

/* A = rows of weights, B = tokens. */
template <int KD, class K>
__device__ __forceinline__ void chunk_step_bt(float (&sum)[place<KD, K>::SUM], int c, int j0w,
                                              int lane)
{
    using P = place<KD, K>;
    const uint8_t *qb = smem + c * P::QB_CHUNK, *sds = smem + P::SDS + c * P::SDS_CHUNK;
    const uint8_t *qa = smem + P::QA + c * P::QA_CHUNK, *sda = smem + P::SDA + c * P::SDA_CHUNK;
    uint32_t w[4];
    float d[2];
    int ws[2][2];
    q4k::ldmatrix_x4(w, qb + (j0w + (lane & 15)) * STRIDE + (lane >> 4) * 16);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint2 x = *(const uint2 *)(sds + (j0w + i * 8 + (lane >> 2)) * 8);
        d[i] = __uint_as_float(x.x);
        split(ws[i], x.y);
    }
#pragma unroll
    for (int h = 0; h < K::TOKENS / 16; h++) {
        uint32_t r[4];
        q4k::ldmatrix_x4(r,
                         qa + (h * 16 + (lane >> 4) * 8 + (lane & 7)) * 32 + (lane >> 3 & 1) * 16);
        const uint32_t b[2][2] = {{r[0], r[1]}, {r[2], r[3]}};
#pragma unroll
        for (int nh = 0; nh < 2; nh++) {
            float da[2];
            int start[2][2];
            read_pair(da, start, sda + (h * 16 + nh * 8 + (lane & 3) * 2) * 8);
            sums_to_start(start);
            tile<K::FOLD, true>((float(&)[4])sum[(h * 2 + nh) * 4], w, b[nh], da, start, d, ws);
        }
    }
}

template <int KD, class K>
__device__ __forceinline__ void store(const args &g, const float (&sum)[place<KD, K>::SUM],
                                      int token0, int row0, int lane)
{
#pragma unroll
    for (int i = 0; i < place<KD, K>::SUM; i++) {
        const int h = i / 8, nh = i / 4 % 2, l = i % 4;
        if (!K::TRANSPOSED) {
            if (l & 1) continue; /* by pairs */
            q4k::store_pair<q4k::sound>(g, token0 + h * 16 + (l >> 1) * 8 + (lane >> 2),
                                        row0 + nh * 8 + (lane & 3) * 2, sum[i], sum[i + 1]);
            continue;
        }
        const int token = token0 + h * 16 + nh * 8 + (lane & 3) * 2 + (l & 1);
        const int row = row0 + (l >> 1) * 8 + (lane >> 2);
        if (token < g.n && row < g.m) g.y[(size_t)token * g.m + row] = sum[i];
    }
}

template <int KD, class K> __device__ __forceinline__ void body(const args g)
{
    const int lane = threadIdx.x & 31, j0w = (threadIdx.x >> 5) * 16;
    const int row0 = blockIdx.x * ROWS, token0 = blockIdx.y * K::TOKENS;
    float sum[place<KD, K>::SUM] = {};
#pragma unroll 1
    for (int chunk0 = 0; chunk0 < g.k / 32; chunk0 += KD) {
        const int sb = chunk0 / CHUNKS, sub0 = chunk0 % CHUNKS;
        stage_b<KD, K>(g, row0, sb, sub0);
        stage_scales<KD, K>(g, row0, sb, sub0);
        stage_a<KD, K>(g, token0, chunk0);
        __syncthreads();
#pragma unroll 1
        for (int c = 0; c < KD; c++)
            if (K::TRANSPOSED)
                chunk_step_bt<KD, K>(sum, c, j0w, lane);
            else
                chunk_step<KD, K>(sum, c, j0w, lane);
        __syncthreads();
    }
    store<KD, K>(g, sum, token0, row0 + j0w, lane);
}

} // namespace q6k

/* A kernel and its descriptor. STEP, PARENT, VERDICT, NOTE: texts. */
#define Q6K_RUNG(NAME, KD, K, BLOCKS, PARENT, NOTE)                                                \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS)                                      \
        NAME##_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)           \
    {                                                                                              \
        q6k::body<KD, K>(q4k::args{w, a, y, m, n, k});                                             \
    }                                                                                              \
    VARIANT_DESC(NAME##_kd##KD) = {VARIANT_HEAD(NAME##_kd##KD),                                    \
                                   .family = "q6k_gemm",                                           \
                                   .note = NOTE,                                                   \
                                   .parent = PARENT,                                               \
                                   .step = "",                                                     \
                                   .numeric = "q8",                                                \
                                   .layout_a = "q8_chunk40",                                       \
                                   .layout_b = "q6_k",                                             \
                                   .tile_m = q6k::ROWS,                                            \
                                   .tile_n = K::TOKENS,                                            \
                                   .tile_k = 256,                                                  \
                                   .kd = KD,                                                       \
                                   .threads = 256,                                                 \
                                   .min_blocks = BLOCKS,                                           \
                                   .min_sm = 80,                                                   \
                                   .n_buffers = 4,                                                 \
                                   .buffers = {{"b_int8", (KD)*q6k::place<KD, K>::QB_CHUNK},       \
                                               {"b_scales", (KD)*q6k::place<KD, K>::SDS_CHUNK},    \
                                               {"a_int8", (KD)*q6k::place<KD, K>::QA_CHUNK},       \
                                               {"a_scales", (KD)*q6k::place<KD, K>::SDA_CHUNK}}}

#endif
