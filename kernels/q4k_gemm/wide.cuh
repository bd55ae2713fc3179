/*
 * The wide body: 128 tokens x 128 rows a block of 8 warps, weights expanded to int8 in shared
 * memory, single-buffer synchronous staging, 16 accumulator chains a warp.
 *
 * A rung is a struct that derives from `knobs` and replaces one member. A warp takes GROUPS groups
 * of 16 tokens x PAIRS groups of 16 rows.
 */
#ifndef KERNELS_Q4K_GEMM_WIDE_CUH
#define KERNELS_Q4K_GEMM_WIDE_CUH

#include "kernels/q4k_gemm/tile.cuh"

namespace q4k
{
namespace wide
{

enum { STRIDE = 48 };

/* The order of a batch of activation loads and their stores. */
enum order {
    FREE,   /* the compiler's */
    SERIAL, /* a chunk is loaded, then stored, before the next is loaded */
    AHEAD,  /* all are loaded before the barrier that frees the buffer, and stored behind it */
};

struct knobs {
    enum { TOKENS = 128, ROWS = 128, GROUPS = 8, PAIRS = 1 };
    static const bool LDSM_B = true;   /* B fragments by one ldmatrix.x4 per 16 rows, else LDS */
    static const bool FOLD = true;     /* da*sa once per token row, else once per value */
    static const bool B_WHOLE = true;  /* the super-block's weights at once, else KD sub-blocks */
    static const bool INT8_B = false;  /* weights are int8 in memory already: 16 + 256 bytes */
    static const bool DA_BITS = false; /* scales of tokens are staged as f16 bits, else as f32 */
    static const order ORDER = FREE;
};

/* Dynamic shared memory, in this order: weights, {dsv, dmv}, activations, and {da, sa} with tokens
 * r and r + 8 of a group side by side. All but the weights per staged chunk. */
template <int KD, class K> struct place {
    enum {
        B_CHUNKS = K::B_WHOLE ? (int)CHUNKS : KD,
        QB_BYTES = B_CHUNKS * K::ROWS * STRIDE,
        SDS_CHUNK = K::ROWS * 8,
        QA_CHUNK = K::TOKENS * 32,
        SDA_CHUNK = K::TOKENS * 8,
        SDS = QB_BYTES,
        QA = SDS + KD * SDS_CHUNK,
        SDA = QA + KD * QA_CHUNK,
        BLOCK = K::INT8_B ? 272 : (int)BLOCK_BYTES, /* of a super-block in memory */
        SUM = K::GROUPS * K::PAIRS * 8,
    };
};

/* Sub-blocks 2*p0 .. 2*p0 + 2*P - 1. Two threads a row, a 16-byte half of each 32-byte group each:
 * whole sectors are read, and the stores of 8 lanes meet at most two to a bank group. */
template <class K, int P>
__device__ __forceinline__ void stage_nibbles(const args &g, int row0, int sb, int p0)
{
    const int half = threadIdx.x & 1;
    const uint32_t M = 0x0f0f0f0fu;
#pragma unroll
    for (int r = 0; r < K::ROWS; r += 128) {
        const int row = r + (threadIdx.x >> 1);
        const uint4 *src = (const uint4 *)block_ptr(g, row0 + row, sb) + 1 + half + p0 * 2;
        uint4 v[P];
#pragma unroll
        for (int p = 0; p < P; p++) v[p] = __ldg(src + p * 2);
#pragma unroll
        for (int p = 0; p < P; p++) {
            uint8_t *lo = smem + (p * 2 * K::ROWS + row) * STRIDE + half * 16;
            *(uint4 *)lo = make_uint4(v[p].x & M, v[p].y & M, v[p].z & M, v[p].w & M);
            *(uint4 *)(lo + K::ROWS * STRIDE) =
                make_uint4(v[p].x >> 4 & M, v[p].y >> 4 & M, v[p].z >> 4 & M, v[p].w >> 4 & M);
        }
    }
}

/* The same of weights that were expanded when they were loaded: copies. */
template <class K> __device__ __forceinline__ void stage_int8(const args &g, int row0, int sb)
{
    const int row = threadIdx.x >> 1, half = threadIdx.x & 1;
    const uint4 *src = (const uint4 *)block_ptr<272>(g, row0 + row, sb) + 1 + half;
    uint4 v[CHUNKS];
#pragma unroll
    for (int j = 0; j < CHUNKS; j++) v[j] = __ldg(src + j * 2);
#pragma unroll
    for (int j = 0; j < CHUNKS; j++)
        *(uint4 *)(smem + (j * K::ROWS + row) * STRIDE + half * 16) = v[j];
}

template <class K>
__device__ __forceinline__ void load_b(uint32_t (&b)[K::PAIRS * 2][2], int sub, int j0w, int lane)
{
#pragma unroll
    for (int q = 0; q < K::PAIRS; q++) {
        const uint8_t *base = smem + (sub * K::ROWS + j0w + q * 16) * STRIDE;
        if (K::LDSM_B) {
            /* Matrices 0, 1 = the two k halves of rows 0..7, matrices 2, 3 = of rows 8..15. */
            uint32_t r[4];
            ldmatrix_x4(r, base + ((lane >> 4) * 8 + (lane & 7)) * STRIDE + ((lane >> 3) & 1) * 16);
            b[q * 2][0] = r[0], b[q * 2][1] = r[1];
            b[q * 2 + 1][0] = r[2], b[q * 2 + 1][1] = r[3];
        } else {
#pragma unroll
            for (int nh = 0; nh < 2; nh++) {
                const uint8_t *p = base + (nh * 8 + (lane >> 2)) * STRIDE + (lane & 3) * 4;
                b[q * 2 + nh][0] = *(const uint32_t *)p;
                b[q * 2 + nh][1] = *(const uint32_t *)(p + 16);
            }
        }
    }
}

/* Chunk c of those staged at qa and sda, against sub-block `sub` of those staged. */
template <int KD, class K>
__device__ __forceinline__ void chunk_step(float (&sum)[place<KD, K>::SUM], const uint8_t *qa,
                                           const uint8_t *sda, int c, int sub, int i0w, int j0w,
                                           int lane)
{
    const uint8_t *sds = smem + place<KD, K>::SDS + c * place<KD, K>::SDS_CHUNK;
    uint32_t b[K::PAIRS * 2][2];
    float4 s[K::PAIRS * 2];
    load_b<K>(b, sub, j0w, lane);
#pragma unroll
    for (int nh = 0; nh < K::PAIRS * 2; nh++)
        s[nh] = *(const float4 *)(sds + (j0w + nh * 8 + (lane & 3) * 2) * 8);
#pragma unroll
    for (int h = 0; h < K::GROUPS; h++) {
        uint32_t a[4];
        ldmatrix_x4(a, qa + (i0w + h * 16 + (lane & 7) + ((lane >> 3) & 1) * 8) * 32 +
                           (lane >> 4) * 16);
        const uint4 t = *(const uint4 *)(sda + (i0w + h * 16 + (lane >> 2) * 2) * 8);
        const float da[2] = {K::DA_BITS ? half_bits(t.x) : __uint_as_float(t.x),
                             K::DA_BITS ? half_bits(t.z) : __uint_as_float(t.z)};
        const float sa[2] = {(float)(int32_t)t.y, (float)(int32_t)t.w};
        const float dma[2] = {da[0] * sa[0], da[1] * sa[1]};
#pragma unroll
        for (int nh = 0; nh < K::PAIRS * 2; nh++) {
            const float dsv[2] = {s[nh].x, s[nh].z}, dmv[2] = {s[nh].y, s[nh].w};
            int clow[4];
            mma_k32(clow, a, b[nh]);
#pragma unroll
            for (int l = 0; l < 4; l++) {
                float &acc = sum[(h * K::PAIRS * 2 + nh) * 4 + l];
                acc += da[l >> 1] * dsv[l & 1] * (float)clow[l];
                acc += K::FOLD ? dma[l >> 1] * dmv[l & 1] : da[l >> 1] * dmv[l & 1] * sa[l >> 1];
            }
        }
    }
}

/* Where {da, sa} of a token lie among a chunk's. */
__device__ __forceinline__ int slot_of(int token)
{
    return (token & ~15) + (token & 7) * 2 + (token >> 3 & 1);
}

/* A thread's share of a stage of activations, in registers; places as in stage_a(). */
template <int KD, class K> struct batch {
    chunk v[K::TOKENS / 64][KD / 4];

    static __device__ __forceinline__ int token(int i)
    {
        return (i * 8 + (threadIdx.x >> 5)) * 8 + (threadIdx.x & 7);
    }
    static __device__ __forceinline__ const uint8_t *from(const args &g, int token0, int chunk0,
                                                          int i, int j)
    {
        const int lane = threadIdx.x & 31;
        return token_ptr(g, token0 + token(i)) + (chunk0 + (lane >> 3) + j * 4) * CHUNK_BYTES;
    }
    __device__ __forceinline__ void load(const args &g, int token0, int chunk0)
    {
#pragma unroll
        for (int i = 0; i < K::TOKENS / 64; i++)
#pragma unroll
            for (int j = 0; j < KD / 4; j++) v[i][j] = load_chunk(from(g, token0, chunk0, i, j));
    }
    static __device__ __forceinline__ void store_one(const chunk &x, int i, int j)
    {
        using P = place<KD, K>;
        const int c = j * 4 + ((threadIdx.x & 31) >> 3), t = token(i);
        uint4 *dst = (uint4 *)(smem + P::QA + (c * K::TOKENS + t) * 32);
        dst[0] = make_uint4(x.q[0], x.q[1], x.q[2], x.q[3]);
        dst[1] = make_uint4(x.q[4], x.q[5], x.q[6], x.q[7]);
        ((uint2 *)(smem + P::SDA + c * P::SDA_CHUNK))[slot_of(t)] =
            make_uint2(__float_as_uint(half_bits(x.da_bits)), (uint32_t)x.sa);
    }
    __device__ __forceinline__ void store() const
    {
#pragma unroll
        for (int i = 0; i < K::TOKENS / 64; i++)
#pragma unroll
            for (int j = 0; j < KD / 4; j++) store_one(v[i][j], i, j);
    }
};

/* load_chunk() that neither the front end nor ptxas moves across a __syncwarp(). */
__device__ __forceinline__ chunk load_chunk_here(const uint8_t *p)
{
    uint2 v[5];
#pragma unroll
    for (int i = 0; i < 5; i++)
        asm volatile("ld.global.v2.u32 {%0,%1}, [%2];\n"
                     : "=r"(v[i].x), "=r"(v[i].y)
                     : "l"(p + i * 8)
                     : "memory");
    return chunk{{v[0].y, v[1].x, v[1].y, v[2].x, v[2].y, v[3].x, v[3].y, v[4].x},
                 v[0].x & 0xffffu,
                 (int32_t)v[4].y};
}

template <int KD, class K>
__device__ __forceinline__ void stage_serial(const args &g, int token0, int chunk0)
{
#pragma unroll
    for (int i = 0; i < K::TOKENS / 64; i++)
#pragma unroll
        for (int j = 0; j < KD / 4; j++) {
            const chunk v = load_chunk_here(batch<KD, K>::from(g, token0, chunk0, i, j));
            batch<KD, K>::store_one(v, i, j);
            __syncwarp();
        }
}

template <int KD, class K>
__device__ __forceinline__ void stage_free(const args &g, int token0, int chunk0)
{
    using P = place<KD, K>;
    stage_a<KD, K::TOKENS>(g, smem + P::QA, token0, chunk0,
                           [&](int c, int token, uint32_t da_bits, int32_t sa) {
                               ((uint2 *)(smem + P::SDA + c * P::SDA_CHUNK))[slot_of(token)] =
                                   make_uint2(__float_as_uint(half_bits(da_bits)), (uint32_t)sa);
                           });
}

template <int KD, class K>
__device__ __forceinline__ void stage_weights(const args &g, int row0, int sb, int sub0)
{
    if (!K::B_WHOLE)
        stage_nibbles<K, KD / 2>(g, row0, sb, sub0 / 2);
    else if (sub0 == 0 && K::INT8_B)
        stage_int8<K>(g, row0, sb);
    else if (sub0 == 0)
        stage_nibbles<K, CHUNKS / 2>(g, row0, sb, 0);
}

template <int KD, class K>
__device__ __forceinline__ void store(const args &g, const float (&sum)[place<KD, K>::SUM],
                                      int token0, int row0, int lane)
{
#pragma unroll
    for (int h = 0; h < K::GROUPS; h++)
#pragma unroll
        for (int nh = 0; nh < K::PAIRS * 2; nh++)
#pragma unroll
            for (int r = 0; r < 2; r++)
                store_pair<sound>(g, token0 + h * 16 + r * 8 + (lane >> 2),
                                  row0 + nh * 8 + (lane & 3) * 2,
                                  sum[(h * K::PAIRS * 2 + nh) * 4 + r * 2],
                                  sum[(h * K::PAIRS * 2 + nh) * 4 + r * 2 + 1]);
}

template <int KD, class K> __device__ __forceinline__ void body(const args g)
{
    using P = place<KD, K>;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warps_n = K::TOKENS / 16 / K::GROUPS; /* warps side by side along the tokens */
    static_assert(K::TOKENS * K::ROWS == K::GROUPS * K::PAIRS * 256 * 8, "8 warps fill the tile");
    const int i0w = warp % warps_n * K::GROUPS * 16, j0w = warp / warps_n * K::PAIRS * 16;
    const int token0 = blockIdx.x * K::TOKENS, row0 = blockIdx.y * K::ROWS;
    float sum[P::SUM] = {};
    batch<KD, K> ahead;
    if (K::ORDER == AHEAD) ahead.load(g, token0, 0);
#pragma unroll 1
    for (int sb = 0; sb < g.k / 256; sb++) {
        if (K::B_WHOLE) stage_weights<KD, K>(g, row0, sb, 0);
#pragma unroll 1
        for (int sub0 = 0; sub0 < CHUNKS; sub0 += KD) {
            const int chunk0 = sb * CHUNKS + sub0;
            if (!K::B_WHOLE) stage_weights<KD, K>(g, row0, sb, sub0);
            stage_scales<KD, K::ROWS, P::BLOCK>(g, (float2 *)(smem + P::SDS), row0, sb, sub0);
            if (K::ORDER == FREE) stage_free<KD, K>(g, token0, chunk0);
            if (K::ORDER == SERIAL) stage_serial<KD, K>(g, token0, chunk0);
            if (K::ORDER == AHEAD) ahead.store();
            __syncthreads();
/* Rolled: 16 chains already fill a chunk, and unrolled it spills at 255 registers. */
#pragma unroll 1
            for (int c = 0; c < KD; c++)
                chunk_step<KD, K>(sum, smem + P::QA + c * P::QA_CHUNK,
                                  smem + P::SDA + c * P::SDA_CHUNK, c, K::B_WHOLE ? sub0 + c : c,
                                  i0w, j0w, lane);
            /* Past the end it reads the last chunks again: a guard would split the loop. */
            if (K::ORDER == AHEAD) ahead.load(g, token0, min(chunk0 + KD, g.k / 32 - KD));
            __syncthreads();
        }
    }
    store<KD, K>(g, sum, token0 + i0w, row0 + j0w, lane);
}

} // namespace wide
} // namespace q4k

/* 49,152 + KD * 6,144 bytes with the knobs as they are. */
#define WIDE_BUFFERS_OF(KD, K)                                                                     \
    .n_buffers = 4, .buffers = {{"b_int8", q4k::wide::place<KD, K>::QB_BYTES},                     \
                                {"b_scales", (KD)*q4k::wide::place<KD, K>::SDS_CHUNK},             \
                                {"a_int8", (KD)*q4k::wide::place<KD, K>::QA_CHUNK},                \
                                {"a_scales", (KD)*q4k::wide::place<KD, K>::SDA_CHUNK}}
#define WIDE_BUFFERS(KD) WIDE_BUFFERS_OF(KD, q4k::wide::knobs)

/* A kernel and its descriptor, for the tile that `K` says. STEP, PARENT, VERDICT, NOTE: texts. */
#define WIDE_RUNG(NAME, KD, K, LAYOUT_B, STEP, PARENT, VERDICT, NOTE)                              \
    extern "C" __global__ void __launch_bounds__(256, 1)                                           \
        NAME##_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)           \
    {                                                                                              \
        q4k::wide::body<KD, K>(q4k::args{w, a, y, m, n, k});                                       \
    }                                                                                              \
    VARIANT_DESC(NAME##_kd##KD) = {VARIANT_HEAD(NAME##_kd##KD),                                    \
                                   .family = "q4k_gemm",                                           \
                                   .note = NOTE,                                                   \
                                   .parent = PARENT,                                               \
                                   .step = STEP,                                                   \
                                   .numeric = "q8",                                                \
                                   .layout_a = "q8_chunk40",                                       \
                                   .layout_b = LAYOUT_B,                                           \
                                   .tile_m = K::ROWS,                                              \
                                   .tile_n = K::TOKENS,                                            \
                                   .tile_k = 256,                                                  \
                                   .kd = KD,                                                       \
                                   .threads = 256,                                                 \
                                   .min_blocks = 1,                                                \
                                   .min_sm = 80,                                                   \
                                   WIDE_BUFFERS_OF(KD, K),                                         \
                                   .verdict = VERDICT}

#endif
