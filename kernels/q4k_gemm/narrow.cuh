/*
 * The narrow body: 64 tokens x 64 rows a block, a warp 32 tokens x 16 rows, operands read from
 * shared memory by plain loads, activations left as raw 40-byte chunks.
 *
 * A thread's 16 C values lie on the four token rows lane/4 + {0, 8, 16, 24}:
 * idx = nh*8 + h*4 + l is row h*2 + (l >> 1), column (lane & 3)*2 + (l & 1) of row group nh.
 */
#ifndef KERNELS_Q4K_GEMM_NARROW_CUH
#define KERNELS_Q4K_GEMM_NARROW_CUH

#include "kernels/q4k_gemm/tile.cuh"

namespace q4k
{
namespace narrow
{

enum {
    TOKENS = 64,
    ROWS = 64,
    STRIDE = 48
}; /* 48: eight rows of a fragment on eight bank groups */

/* Dynamic shared memory, in this order. */
enum { QB_BYTES = CHUNKS * ROWS * STRIDE, SDS_BYTES = CHUNKS * ROWS * 8, QA_CHUNK = TOKENS * 40 };

__device__ __forceinline__ void stage_b(const args &g, int row0, int sb)
{
    /* Four threads a row: each unpacks one of the four 32-byte groups, two sub-blocks. */
    const int row = threadIdx.x >> 2, p = threadIdx.x & 3;
    const uint4 *src = (const uint4 *)block_ptr(g, row0 + row, sb);
    const uint4 head = __ldg(src);
    const uint4 v[2] = {__ldg(src + 1 + p * 2), __ldg(src + 2 + p * 2)};
    float2 *sds = (float2 *)(smem + QB_BYTES);
    const uint32_t M = 0x0f0f0f0fu;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint8_t *lo = smem + ((p * 2) * ROWS + row) * STRIDE + half * 16;
        const uint4 x = v[half];
        *(uint4 *)lo = make_uint4(x.x & M, x.y & M, x.z & M, x.w & M);
        *(uint4 *)(lo + ROWS * STRIDE) =
            make_uint4(x.x >> 4 & M, x.y >> 4 & M, x.z >> 4 & M, x.w >> 4 & M);
        sds[(p * 2 + half) * ROWS + row] = sub_scales(head, p * 2 + half);
    }
}

/* Raw copy: a token's KD chunks are KD*40 contiguous bytes. */
template <int KD> __device__ __forceinline__ void stage_raw_a(const args &g, int token0, int chunk0)
{
    enum { WORDS = KD * 5 }; /* of 8 bytes, a token */
    static_assert(TOKENS * WORDS % THREADS == 0, "whole rounds");
    uint8_t *qat = smem + QB_BYTES + SDS_BYTES;
#pragma unroll
    for (int j = 0; j < TOKENS * WORDS / THREADS; j++) {
        const int i = threadIdx.x + j * THREADS;
        const int token = i / WORDS, w = i % WORDS, c = w / 5, part = w % 5;
        const uint2 v =
            __ldg((const uint2 *)(token_ptr(g, token0 + token) + (size_t)chunk0 * CHUNK_BYTES) + w);
        *(uint2 *)(qat + c * QA_CHUNK + token * CHUNK_BYTES + part * 8) = v;
    }
}

/* FOLD: multiply da*sa once per token row; otherwise once per C value. */
template <int KD, bool FOLD, class P>
__device__ __forceinline__ void chunk_step(float (&sum)[16], int c, int sub, int i0w, int j0w,
                                           int lane)
{
    const uint8_t *qat = smem + QB_BYTES + SDS_BYTES + c * QA_CHUNK;
    const float2 *sds = (const float2 *)(smem + QB_BYTES) + sub * ROWS;
    uint32_t a[2][4], b[2][2];
    float da[4], dma[4];
    int32_t sa[4];
#pragma unroll
    for (int t4 = 0; t4 < 4; t4++) {
        const uint8_t *at = qat + (i0w + (lane >> 2) + t4 * 8) * CHUNK_BYTES;
        da[t4] = half_bits(*(const uint16_t *)at);
        sa[t4] = *(const int32_t *)(at + 36);
        const uint8_t *av = qat + (i0w + (P::a_lane(lane) >> 2) + t4 * 8) * CHUNK_BYTES + 4 +
                            (P::a_lane(lane) & 3) * 4;
        a[t4 >> 1][t4 & 1] = *(const uint32_t *)av;
        a[t4 >> 1][2 + (t4 & 1)] = *(const uint32_t *)(av + 16);
        if (FOLD) dma[t4] = da[t4] * P::sum_of(sa[t4]);
    }
#pragma unroll
    for (int nh = 0; nh < 2; nh++) {
        const uint8_t *bv =
            smem + (sub * ROWS + j0w + nh * 8 + (lane >> 2)) * STRIDE + (lane & 3) * 4;
        b[nh][0] = *(const uint32_t *)bv;
        b[nh][1] = *(const uint32_t *)(bv + 16);
        const float4 s = *(const float4 *)(sds + j0w + nh * 8 + (lane & 3) * 2);
        const float dsv[2] = {s.x, s.z}, dmv[2] = {s.y, s.w};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int clow[4];
            mma_k32(clow, a[h], b[nh]);
#pragma unroll
            for (int l = 0; l < 4; l++) {
                const int idx = nh * 8 + h * 4 + l, r = h * 2 + (l >> 1);
                sum[idx] += da[r] * dsv[l & 1] * (float)clow[l];
                if (FOLD)
                    sum[idx] += dma[P::fold_row(h, l)] * dmv[l & 1];
                else
                    sum[idx] += da[r] * dmv[l & 1] * P::sum_of(sa[r]);
            }
        }
    }
}

template <class P>
__device__ __forceinline__ void store(const args &g, const float (&sum)[16], int token0, int row0,
                                      int lane)
{
#pragma unroll
    for (int nh = 0; nh < 2; nh++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            store_pair<P>(g, token0 + (lane >> 2) + r * 8, row0 + nh * 8 + (lane & 3) * 2,
                          sum[nh * 8 + r * 2], sum[nh * 8 + r * 2 + 1]);
}

template <int KD, bool FOLD, class P = sound> __device__ __forceinline__ void body(const args g)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int i0w = (warp & 1) * 32, j0w = (warp >> 1) * 16;
    const int token0 = blockIdx.x * TOKENS, row0 = blockIdx.y * ROWS;
    float sum[16] = {};
    P::begin(g.y);
#pragma unroll 1
    for (int sb = 0; sb < g.k / 256; sb++) {
        stage_b(g, row0, sb);
#pragma unroll 1
        for (int sub0 = 0; sub0 < CHUNKS; sub0 += KD) {
            stage_raw_a<KD>(g, token0, sb * CHUNKS + sub0);
            P::barrier();
#pragma unroll
            for (int c = 0; c < KD; c++) chunk_step<KD, FOLD, P>(sum, c, sub0 + c, i0w, j0w, lane);
            P::barrier();
        }
    }
    store<P>(g, sum, token0 + i0w, row0 + j0w, lane);
}

} // namespace narrow
} // namespace q4k

/* The descriptor's part that every member shares. */
#define NARROW_BUFFERS(KD)                                                                         \
    .n_buffers = 3, .buffers = {{"b_int8", q4k::narrow::QB_BYTES},                                 \
                                {"b_scales", q4k::narrow::SDS_BYTES},                              \
                                {"a_chunks", (KD)*q4k::narrow::QA_CHUNK}}

#endif
