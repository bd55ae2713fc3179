/*
 * The nb body: weights stay raw nibbles in shared memory and are unpacked in registers. 64 tokens
 * x 128 rows a block, a warp 16 rows x 64 tokens (4 groups x 2 = 8 chains), two blocks an SM.
 *
 * Knobs: STRIDE = bytes from row to row of nibbles: at 128 the eight rows of a fragment start on
 * the same bank, at 144 on eight different ones. UNROLL = the loop over staged chunks fully
 * unrolled; then the two chunks that share a word of nibbles stand in one basic block and the
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
    QA_CHUNK = TOKENS * 32,
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

template <int KD, int STRIDE>
__device__ __forceinline__ void chunk_step(float (&sum)[32], int c, int sub0, int j0w, int lane)
{
    const uint8_t *sds = smem + ROWS * STRIDE + c * SDS_CHUNK;
    const uint8_t *qa = smem + ROWS * STRIDE + KD * SDS_CHUNK + c * QA_CHUNK;
    const uint8_t *sda = smem + ROWS * STRIDE + KD * (SDS_CHUNK + QA_CHUNK) + c * SDA_CHUNK;
    uint32_t b[2][2];
    float4 s[2];
    /* sub0 is even: written so that the compiler sees the parity. */
    load_b<STRIDE>(b, (sub0 >> 1) + (c >> 1), c & 1, j0w, lane);
#pragma unroll
    for (int nh = 0; nh < 2; nh++)
        s[nh] = *(const float4 *)(sds + (j0w + nh * 8 + (lane & 3) * 2) * 8);
#pragma unroll
    for (int h = 0; h < 4; h++) {
        uint32_t a[4];
        ldmatrix_x4(a, qa + (h * 16 + (lane & 7) + ((lane >> 3) & 1) * 8) * 32 + (lane >> 4) * 16);
        const uint2 t = *(const uint2 *)(sda + (h * 8 + (lane >> 2)) * 8);
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

template <int KD, int STRIDE>
__device__ __forceinline__ void stage(const args &g, int token0, int row0, int sb, int sub0)
{
    uint8_t *sds = smem + ROWS * STRIDE, *qa = sds + KD * SDS_CHUNK, *sda = qa + KD * QA_CHUNK;
    if (sub0 == 0) stage_b<STRIDE>(g, row0, sb);
    stage_scales<KD>(g, (float2 *)sds, row0, sb, sub0);
    stage_a<KD, TOKENS>(g, qa, token0, sb * CHUNKS + sub0,
                        [&](int c, int token, uint32_t da_bits, int32_t sa) {
                            /* |sa| <= 32 * 127 fits 16 bits. */
                            uint16_t *pair = (uint16_t *)(sda + c * SDA_CHUNK) +
                                             ((token >> 4) * 8 + (token & 7)) * 4;
                            pair[token >> 3 & 1] = (uint16_t)da_bits;
                            pair[2 + (token >> 3 & 1)] = (uint16_t)sa;
                        });
}

template <int KD, bool UNROLL, int STRIDE = 128> __device__ __forceinline__ void body(const args g)
{
    const int lane = threadIdx.x & 31, j0w = (threadIdx.x >> 5) * 16;
    const int token0 = blockIdx.x * TOKENS, row0 = blockIdx.y * ROWS;
    float sum[32] = {};
#pragma unroll 1
    for (int sb = 0; sb < g.k / 256; sb++) {
#pragma unroll 1
        for (int sub0 = 0; sub0 < CHUNKS; sub0 += KD) {
            stage<KD, STRIDE>(g, token0, row0, sb, sub0);
            __syncthreads();
#pragma unroll(UNROLL ? KD : 1)
            for (int c = 0; c < KD; c++)
                chunk_step<KD, STRIDE>(sum, c, KD == CHUNKS ? 0 : sub0, j0w, lane);
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

#define NB_BUFFERS(KD) NB_BUFFERS_AT(KD, 128)
#define NB_BUFFERS_AT(KD, STRIDE)                                                                  \
    .n_buffers = 4, .buffers = {{"b_nibbles", q4k::nb::ROWS * (STRIDE)},                           \
                                {"b_scales", (KD)*q4k::nb::SDS_CHUNK},                             \
                                {"a_int8", (KD)*q4k::nb::QA_CHUNK},                                \
                                {"a_scales", (KD)*q4k::nb::SDA_CHUNK}}

#endif
