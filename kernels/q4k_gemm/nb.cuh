/*
 * The nb body: weights stay raw nibbles in shared memory and are unpacked in registers. 64 tokens
 * x 128 rows a block, a warp 16 rows x 64 tokens (4 groups x 2 = 8 chains), two blocks an SM.
 *
 * A rung is a struct that derives from `knobs` and replaces one member. With rows of nibbles 128
 * bytes apart the eight rows of a fragment start on the same bank, with 144 on eight different
 * ones; rows of activations 32 bytes apart meet each bank twice, 48 once. With the loop over staged
 * chunks unrolled, the two chunks that share a word of nibbles stand in one basic block and the
 * compiler reads each word once. Per warp and super-block that is LDS.32 16 (words), LDS.64 32
 * (scales of tokens r, r + 8), LDS.128 16 (two {dsv, dmv} per 8 rows), LDSM.x4 32, IMMA 64.
 */
#ifndef KERNELS_Q4K_GEMM_NB_CUH
#define KERNELS_Q4K_GEMM_NB_CUH

#include "kernels/q4k_gemm/tile.cuh"

namespace q4k
{
namespace nb
{

enum { TOKENS = 64, ROWS = 128 };

/* Dynamic shared memory, in this order; the last three per staged chunk, after ROWS * STRIDE of
 * nibbles. */
enum {
    SDS_CHUNK = ROWS * 8,
    SDA_CHUNK = TOKENS / 2 * 8, /* {da f16, da f16, sa i16, sa i16} of tokens r and r + 8 */
};

/* Two threads a row, 64 bytes of nibbles each. */
template <int STRIDE> __device__ __forceinline__ void stage_b(const args &g, int row0, int sb)
{
    const int row = threadIdx.x >> 1, half = threadIdx.x & 1;
    const uint4 *src = (const uint4 *)block_ptr(g, row0 + row, sb) + 1 + half * 4;
    uint4 *dst = (uint4 *)(smem + row * STRIDE) + half * 4;
    uint4 v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = __ldg(src + i);
#pragma unroll
    for (int i = 0; i < 4; i++) dst[i] = v[i];
}

/* What a rung of this body replaces. */
struct knobs {
    enum { STRIDE = 128 };             /* bytes from row to row of nibbles */
    enum { A_STRIDE = 32 };            /* bytes from token to token of a chunk of activations */
    static const bool UNROLL = true;   /* the loop over staged chunks */
    static const bool CARRY = false;   /* even chunks hand their words' high nibbles on */
    static const bool Q_MAJOR = false; /* a token pair's scales of all chunks side by side */
};

/* Bytes of a staged chunk of activations. */
template <class K> struct a_chunk {
    enum { BYTES = TOKENS * K::A_STRIDE };
};

/* What one chunk leaves for the next one. */
struct carried {
    uint32_t high[2][2]; /* CARRY: nibbles of the odd chunk */
    uint4 scales[4];     /* Q_MAJOR: of an even chunk and the odd one after it, per group */
};

template <int STRIDE>
__device__ __forceinline__ void load_b(uint32_t (&b)[2][2], int p, int high, int j0w, int lane)
{
    const uint32_t M = 0x0f0f0f0fu;
#pragma unroll
    for (int nh = 0; nh < 2; nh++) {
        const uint8_t *q = smem + (j0w + nh * 8 + (lane >> 2)) * STRIDE + p * 32 + (lane & 3) * 4;
        const uint32_t v0 = *(const uint32_t *)q, v1 = *(const uint32_t *)(q + 16);
        b[nh][0] = high ? v0 >> 4 & M : v0 & M;
        b[nh][1] = high ? v1 >> 4 & M : v1 & M;
    }
}

/* The same by words: the even chunk reads a word and splits it in two, the odd one reads none. */
template <int STRIDE>
__device__ __forceinline__ void load_b_words(uint32_t (&b)[2][2], uint32_t (&high)[2][2], int p,
                                             int odd, int j0w, int lane)
{
    const uint32_t M = 0x0f0f0f0fu;
#pragma unroll
    for (int nh = 0; nh < 2; nh++) {
        const uint8_t *q = smem + (j0w + nh * 8 + (lane >> 2)) * STRIDE + p * 32 + (lane & 3) * 4;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (odd) {
                b[nh][i] = high[nh][i];
                continue;
            }
            const uint32_t v = *(const uint32_t *)(q + i * 16);
            b[nh][i] = v & M;
            high[nh][i] = v >> 4 & M;
        }
    }
}

/* {da, da, sa, sa} of tokens r and r + 8 of group h. */
template <int KD, class K>
__device__ __forceinline__ uint2 token_scales(const uint8_t *sda, carried &carry, int c, int h,
                                              int lane)
{
    const int slot = h * 8 + (lane >> 2);
    if (!K::Q_MAJOR) return *(const uint2 *)(sda + c * SDA_CHUNK + slot * 8);
    if ((c & 1) == 0) carry.scales[h] = *(const uint4 *)(sda + slot * KD * 8 + c * 8);
    const uint4 t = carry.scales[h];
    return c & 1 ? make_uint2(t.z, t.w) : make_uint2(t.x, t.y);
}

template <int KD, class K>
__device__ __forceinline__ void chunk_step(float (&sum)[32], carried &carry, int c, int sub0,
                                           int j0w, int lane)
{
    const uint8_t *sds = smem + ROWS * K::STRIDE + c * SDS_CHUNK;
    const uint8_t *qa = smem + ROWS * K::STRIDE + KD * SDS_CHUNK + c * a_chunk<K>::BYTES;
    const uint8_t *sda = smem + ROWS * K::STRIDE + KD * (SDS_CHUNK + a_chunk<K>::BYTES);
    uint32_t b[2][2];
    float4 s[2];
    /* sub0 is even: written so that the compiler sees the parity. */
    if (K::CARRY)
        load_b_words<K::STRIDE>(b, carry.high, (sub0 >> 1) + (c >> 1), c & 1, j0w, lane);
    else
        load_b<K::STRIDE>(b, (sub0 >> 1) + (c >> 1), c & 1, j0w, lane);
#pragma unroll
    for (int nh = 0; nh < 2; nh++)
        s[nh] = *(const float4 *)(sds + (j0w + nh * 8 + (lane & 3) * 2) * 8);
#pragma unroll
    for (int h = 0; h < 4; h++) {
        uint32_t a[4];
        ldmatrix_x4(a, qa + (h * 16 + (lane & 7) + ((lane >> 3) & 1) * 8) * K::A_STRIDE +
                           (lane >> 4) * 16);
        const uint2 t = token_scales<KD, K>(sda, carry, c, h, lane);
        const float da[2] = {half_bits(t.x & 0xffffu), half_bits(t.x >> 16)};
        const float dma[2] = {da[0] * (float)(int16_t)(t.y & 0xffffu),
                              da[1] * (float)(int16_t)(t.y >> 16)};
#pragma unroll
        for (int nh = 0; nh < 2; nh++) {
            const float dsv[2] = {s[nh].x, s[nh].z}, dmv[2] = {s[nh].y, s[nh].w};
            int clow[4];
            mma_k32(clow, a, b[nh]);
#pragma unroll
            for (int l = 0; l < 4; l++) {
                float &acc = sum[(h * 2 + nh) * 4 + l];
                acc += da[l >> 1] * dsv[l & 1] * (float)clow[l];
                acc += dma[l >> 1] * dmv[l & 1];
            }
        }
    }
}

template <int KD, class K>
__device__ __forceinline__ void stage(const args &g, int token0, int row0, int sb, int sub0)
{
    uint8_t *sds = smem + ROWS * K::STRIDE, *qa = sds + KD * SDS_CHUNK,
            *sda = qa + KD * a_chunk<K>::BYTES;
    if (sub0 == 0) stage_b<K::STRIDE>(g, row0, sb);
    stage_scales<KD>(g, (float2 *)sds, row0, sb, sub0);
    stage_a<KD, TOKENS, K::A_STRIDE>(
        g, qa, token0, sb * CHUNKS + sub0, [&](int c, int token, uint32_t da_bits, int32_t sa) {
            /* |sa| <= 32 * 127 fits 16 bits. */
            const int slot = (token >> 4) * 8 + (token & 7);
            uint16_t *pair = (uint16_t *)(sda + c * SDA_CHUNK) + slot * 4;
            if (K::Q_MAJOR) pair = (uint16_t *)sda + (slot * KD + c) * 4;
            pair[token >> 3 & 1] = (uint16_t)da_bits;
            pair[2 + (token >> 3 & 1)] = (uint16_t)sa;
        });
}

template <int KD, class K> __device__ __forceinline__ void body(const args g)
{
    const int lane = threadIdx.x & 31, j0w = (threadIdx.x >> 5) * 16;
    const int token0 = blockIdx.x * TOKENS, row0 = blockIdx.y * ROWS;
    float sum[32] = {};
#pragma unroll 1
    for (int sb = 0; sb < g.k / 256; sb++) {
#pragma unroll 1
        for (int sub0 = 0; sub0 < CHUNKS; sub0 += KD) {
            carried carry;
            stage<KD, K>(g, token0, row0, sb, sub0);
            __syncthreads();
#pragma unroll(K::UNROLL ? KD : 1)
            for (int c = 0; c < KD; c++)
                chunk_step<KD, K>(sum, carry, c, KD == CHUNKS ? 0 : sub0, j0w, lane);
            __syncthreads();
        }
    }
#pragma unroll
    for (int h = 0; h < 4; h++)
#pragma unroll
        for (int nh = 0; nh < 2; nh++)
#pragma unroll
            for (int r = 0; r < 2; r++)
                store_pair<sound>(g, token0 + h * 16 + r * 8 + (lane >> 2),
                                  row0 + j0w + nh * 8 + (lane & 3) * 2,
                                  sum[(h * 2 + nh) * 4 + r * 2], sum[(h * 2 + nh) * 4 + r * 2 + 1]);
}

} // namespace nb
} // namespace q4k

#define NB_BUFFERS(KD, K)                                                                          \
    .n_buffers = 4, .buffers = {{"b_nibbles", q4k::nb::ROWS * K::STRIDE},                          \
                                {"b_scales", (KD)*q4k::nb::SDS_CHUNK},                             \
                                {"a_int8", (KD)*q4k::nb::a_chunk<K>::BYTES},                       \
                                {"a_scales", (KD)*q4k::nb::SDA_CHUNK}}

/* A kernel and its descriptor. STEP, PARENT, VERDICT, NOTE: texts. */
#define NB_RUNG(NAME, KD, K, STEP, PARENT, VERDICT, NOTE)                                          \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
        NAME##_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)           \
    {                                                                                              \
        q4k::nb::body<KD, K>(q4k::args{w, a, y, m, n, k});                                         \
    }                                                                                              \
    VARIANT_DESC(NAME##_kd##KD) = {VARIANT_HEAD(NAME##_kd##KD),                                    \
                                   .family = "q4k_gemm",                                           \
                                   .note = NOTE,                                                   \
                                   .parent = PARENT,                                               \
                                   .step = STEP,                                                   \
                                   .numeric = "q8",                                                \
                                   .layout_a = "q8_chunk40",                                       \
                                   .layout_b = "q4_k",                                             \
                                   .tile_m = 128,                                                  \
                                   .tile_n = 64,                                                   \
                                   .tile_k = 256,                                                  \
                                   .kd = KD,                                                       \
                                   .threads = 256,                                                 \
                                   .min_blocks = 2,                                                \
                                   .min_sm = 80,                                                   \
                                   NB_BUFFERS(KD, K),                                              \
                                   .verdict = VERDICT}

#endif
