/*
 * The wide body: 128 tokens x 128 rows a block of 8 warps, weights expanded to int8 in shared
 * memory, single-buffer synchronous staging. 16 accumulator chains a warp, in one of two shapes.
 *
 * Knobs, one per rung: GROUPS x PAIRS = token groups of 16 x row groups of 16 a warp (8 x 1 or
 * 4 x 2); LDSM_B = B fragments by one ldmatrix.x4 per 16 rows, else by plain loads; FOLD = da*sa
 * once per token row, else once per value.
 */
#ifndef KERNELS_Q4K_GEMM_WIDE_CUH
#define KERNELS_Q4K_GEMM_WIDE_CUH

#include "kernels/q4k_gemm/tile.cuh"

namespace q4k
{
namespace wide
{

enum { TOKENS = 128, ROWS = 128, STRIDE = 48 };

/* Dynamic shared memory, in this order; the last three per staged chunk. */
enum {
    QB_BYTES = CHUNKS * ROWS * STRIDE, /* 49,152: the super-block whole, at either KD */
    SDS_CHUNK = ROWS * 8,              /* {dsv, dmv} */
    QA_CHUNK = TOKENS * 32,
    SDA_CHUNK = TOKENS * 8, /* {da f32, sa}, tokens r and r + 8 of a group side by side */
};

/* Two threads a row, a 16-byte half of each 32-byte group each: whole sectors are read, and the
 * stores of 8 lanes meet at most two to a bank group. */
__device__ __forceinline__ void stage_b(const args &g, int row0, int sb)
{
    const int row = threadIdx.x >> 1, half = threadIdx.x & 1;
    const uint4 *src = (const uint4 *)block_ptr(g, row0 + row, sb) + 1 + half;
    const uint32_t M = 0x0f0f0f0fu;
    uint4 v[4];
#pragma unroll
    for (int p = 0; p < 4; p++) v[p] = __ldg(src + p * 2);
#pragma unroll
    for (int p = 0; p < 4; p++) {
        uint8_t *lo = smem + (p * 2 * ROWS + row) * STRIDE + half * 16;
        *(uint4 *)lo = make_uint4(v[p].x & M, v[p].y & M, v[p].z & M, v[p].w & M);
        *(uint4 *)(lo + ROWS * STRIDE) =
            make_uint4(v[p].x >> 4 & M, v[p].y >> 4 & M, v[p].z >> 4 & M, v[p].w >> 4 & M);
    }
}

template <int PAIRS, bool LDSM_B>
__device__ __forceinline__ void load_b(uint32_t (&b)[PAIRS * 2][2], int sub, int j0w, int lane)
{
#pragma unroll
    for (int q = 0; q < PAIRS; q++) {
        const uint8_t *base = smem + (sub * ROWS + j0w + q * 16) * STRIDE;
        if (LDSM_B) {
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

template <int KD, int GROUPS, int PAIRS, bool LDSM_B, bool FOLD>
__device__ __forceinline__ void chunk_step(float (&sum)[64], int c, int sub, int i0w, int j0w,
                                           int lane)
{
    const uint8_t *sds = smem + QB_BYTES + c * SDS_CHUNK;
    const uint8_t *qa = smem + QB_BYTES + KD * SDS_CHUNK + c * QA_CHUNK;
    const uint8_t *sda = smem + QB_BYTES + KD * (SDS_CHUNK + QA_CHUNK) + c * SDA_CHUNK;
    uint32_t b[PAIRS * 2][2];
    float4 s[PAIRS * 2];
    load_b<PAIRS, LDSM_B>(b, sub, j0w, lane);
#pragma unroll
    for (int nh = 0; nh < PAIRS * 2; nh++)
        s[nh] = *(const float4 *)(sds + (j0w + nh * 8 + (lane & 3) * 2) * 8);
#pragma unroll
    for (int h = 0; h < GROUPS; h++) {
        uint32_t a[4];
        ldmatrix_x4(a, qa + (i0w + h * 16 + (lane & 7) + ((lane >> 3) & 1) * 8) * 32 +
                           (lane >> 4) * 16);
        const uint4 t = *(const uint4 *)(sda + (i0w + h * 16 + (lane >> 2) * 2) * 8);
        const float da[2] = {__uint_as_float(t.x), __uint_as_float(t.z)};
        const float sa[2] = {(float)(int32_t)t.y, (float)(int32_t)t.w};
        const float dma[2] = {da[0] * sa[0], da[1] * sa[1]};
#pragma unroll
        for (int nh = 0; nh < PAIRS * 2; nh++) {
            const float dsv[2] = {s[nh].x, s[nh].z}, dmv[2] = {s[nh].y, s[nh].w};
            int clow[4];
            mma_k32(clow, a, b[nh]);
#pragma unroll
            for (int l = 0; l < 4; l++) {
                float &acc = sum[(h * PAIRS * 2 + nh) * 4 + l];
                acc += da[l >> 1] * dsv[l & 1] * (float)clow[l];
                acc += FOLD ? dma[l >> 1] * dmv[l & 1] : da[l >> 1] * dmv[l & 1] * sa[l >> 1];
            }
        }
    }
}

template <int KD, int GROUPS, int PAIRS, bool LDSM_B, bool FOLD>
__device__ __forceinline__ void body(const args g)
{
    static_assert(GROUPS * PAIRS == 8, "16 chains a warp");
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warps_n = TOKENS / 16 / GROUPS; /* warps side by side along the tokens */
    const int i0w = warp % warps_n * GROUPS * 16, j0w = warp / warps_n * PAIRS * 16;
    const int token0 = blockIdx.x * TOKENS, row0 = blockIdx.y * ROWS;
    uint8_t *sds = smem + QB_BYTES, *qa = sds + KD * SDS_CHUNK, *sda = qa + KD * QA_CHUNK;
    float sum[64] = {};
#pragma unroll 1
    for (int sb = 0; sb < g.k / 256; sb++) {
        stage_b(g, row0, sb);
#pragma unroll 1
        for (int sub0 = 0; sub0 < CHUNKS; sub0 += KD) {
            stage_scales<KD>(g, (float2 *)sds, row0, sb, sub0);
            stage_a<KD, TOKENS>(g, qa, token0, sb * CHUNKS + sub0,
                                [&](int c, int token, uint32_t da_bits, int32_t sa) {
                                    const int slot =
                                        (token & ~15) + (token & 7) * 2 + (token >> 3 & 1);
                                    ((uint2 *)(sda + c * SDA_CHUNK))[slot] = make_uint2(
                                        __float_as_uint(half_bits(da_bits)), (uint32_t)sa);
                                });
            __syncthreads();
/* Rolled: 16 chains already fill a chunk, and unrolled it spills at 255 registers. */
#pragma unroll 1
            for (int c = 0; c < KD; c++)
                chunk_step<KD, GROUPS, PAIRS, LDSM_B, FOLD>(sum, c, sub0 + c, i0w, j0w, lane);
            __syncthreads();
        }
    }
#pragma unroll
    for (int h = 0; h < GROUPS; h++)
#pragma unroll
        for (int nh = 0; nh < PAIRS * 2; nh++)
#pragma unroll
            for (int r = 0; r < 2; r++)
                store_pair<sound>(g, token0 + i0w + h * 16 + r * 8 + (lane >> 2),
                                  row0 + j0w + nh * 8 + (lane & 3) * 2,
                                  sum[(h * PAIRS * 2 + nh) * 4 + r * 2],
                                  sum[(h * PAIRS * 2 + nh) * 4 + r * 2 + 1]);
}

} // namespace wide
} // namespace q4k

/* 49,152 + KD * 6,144 bytes. */
#define WIDE_BUFFERS(KD)                                                                           \
    .n_buffers = 4, .buffers = {{"b_int8", q4k::wide::QB_BYTES},                                   \
                                {"b_scales", (KD)*q4k::wide::SDS_CHUNK},                           \
                                {"a_int8", (KD)*q4k::wide::QA_CHUNK},                              \
                                {"a_scales", (KD)*q4k::wide::SDA_CHUNK}}

#endif
