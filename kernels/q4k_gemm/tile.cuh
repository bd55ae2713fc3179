/*
 * What the Q4_K GEMM variants share: the two tensor-core instructions, the scale unpacking, the
 * staging of weights and activations, and the policy struct.
 *
 * Operands: A = tokens (m16), B = output rows (n8), k32 = one activation chunk. Lane L holds of
 *   A  rows L/4 and L/4 + 8, bytes 4*(L%4)..+3 and 16 more
 *   B  column L/4, the same bytes
 *   C  rows L/4 (l = 0, 1) and L/4 + 8 (l = 2, 3), columns 2*(L%4) + (l & 1)
 *
 * Per chunk: sum += da*dsv*clow + da*sa*dmv with dsv = d*sc, dmv = -dmin*m.
 * Rows past m and tokens past n are staged as copies of the last one: loads need no predicate
 * (which would make the compiler emit the whole loop twice), and only the store needs a guard.
 */
#ifndef KERNELS_Q4K_GEMM_TILE_CUH
#define KERNELS_Q4K_GEMM_TILE_CUH

#include "kernels/variant.h"

#include <cuda_fp16.h>

namespace q4k
{

enum { BLOCK_BYTES = 144, CHUNK_BYTES = 40, CHUNKS = 8, THREADS = 256 };

extern __shared__ __align__(16) uint8_t smem[];

/* The places where a variant of this family goes wrong when it is written with a slip. Sound code
 * is this struct; a broken_* variant derives from it and replaces one member. */
struct sound {
    static __device__ __forceinline__ void barrier()
    {
        __syncthreads();
    }
    /* Which of a thread's token rows the l-th C value belongs to, of the h-th A fragment. */
    static __device__ __forceinline__ int fold_row(int h, int l)
    {
        return h * 2 + (l >> 1);
    }
    static __device__ __forceinline__ float sum_of(int32_t sa)
    {
        return (float)sa;
    }
    /* The lane whose place in the A fragment this lane fills. */
    static __device__ __forceinline__ int a_lane(int lane)
    {
        return lane;
    }
    static __device__ __forceinline__ bool inside(int i, int end)
    {
        return i < end;
    }
    /* Called once by every thread before the first load. */
    static __device__ __forceinline__ void begin(float *y) {}
};

struct args {
    const uint8_t *w;
    const uint8_t *a;
    float *y;
    int m, n, k;
};

/* Super-block sb of a weight row, and a token's chunks; indices past the end mean the last. */
template <int BYTES = BLOCK_BYTES>
__device__ __forceinline__ const uint8_t *block_ptr(const args &g, int row, int sb)
{
    return g.w + ((size_t)min(row, g.m - 1) * (g.k / 256) + sb) * BYTES;
}

__device__ __forceinline__ const uint8_t *token_ptr(const args &g, int token)
{
    return g.a + (size_t)min(token, g.n - 1) * (g.k / 32) * CHUNK_BYTES;
}

__device__ __forceinline__ void mma_k32(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};\n"
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(0));
}

/* Four 8x16-byte matrices; this lane gives the address of one of the 32 rows. */
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const uint8_t *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(p)));
}

/* The header of a super-block (its first 16 bytes) -> {dsv, dmv} of sub-block j. */
__device__ __forceinline__ float2 sub_scales(const uint4 &head, int j)
{
    const float d = __half2float(__ushort_as_half((unsigned short)head.x));
    const float dmin = __half2float(__ushort_as_half((unsigned short)(head.x >> 16)));
    /* Both forms and a mask: a branch on j would make the compiler emit the loop around it twice.
     */
    const int at = (j & 3) * 8;
    const uint32_t upper = (uint32_t)((3 - j) >> 31); /* all ones for sub-blocks 4..7 */
    const uint32_t low_sc = head.y >> at, low_m = head.z >> at, high = head.w >> at;
    const uint32_t sc = (low_sc & 63u & ~upper) | (((high & 15u) | (low_sc >> 2 & 48u)) & upper);
    const uint32_t m = (low_m & 63u & ~upper) | (((high >> 4 & 15u) | (low_m >> 2 & 48u)) & upper);
    return make_float2(d * (float)sc, -dmin * (float)m);
}

/* An activation chunk in registers: 8 words of values, scale, sum. */
struct chunk {
    uint32_t q[8];
    uint32_t da_bits; /* f16 in the low half */
    int32_t sa;
};

__device__ __forceinline__ chunk load_chunk(const uint8_t *p)
{
    uint2 v[5];
#pragma unroll
    for (int i = 0; i < 5; i++) v[i] = __ldg((const uint2 *)p + i);
    return chunk{{v[0].y, v[1].x, v[1].y, v[2].x, v[2].y, v[3].x, v[3].y, v[4].x},
                 v[0].x & 0xffffu,
                 (int32_t)v[4].y};
}

__device__ __forceinline__ float half_bits(uint32_t bits)
{
    return __half2float(__ushort_as_half((unsigned short)bits));
}

/* Stages KD chunks of TOKENS activations: values to qa[chunk][token][32], rows STRIDE bytes apart,
 * then put(chunk, token, whole chunk) for the rest. A warp takes 8 tokens x 4 chunks at a time: 160
 * contiguous bytes of a token per load, 8 token rows per store. */
template <int KD, int TOKENS, int STRIDE = 32, class Put>
__device__ __forceinline__ void stage_a_chunks(const args &g, uint8_t *qa, int token0, int chunk0,
                                               Put put)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int i = 0; i < TOKENS / 64; i++) {
        const int token = (i * 8 + warp) * 8 + (lane & 7);
        const uint8_t *p = token_ptr(g, token0 + token) + (chunk0 + (lane >> 3)) * CHUNK_BYTES;
#pragma unroll
        for (int j = 0; j < KD / 4; j++) {
            const int c = j * 4 + (lane >> 3);
            const chunk v = load_chunk(p + j * 4 * CHUNK_BYTES);
            uint4 *dst = (uint4 *)(qa + (c * TOKENS + token) * STRIDE);
            dst[0] = make_uint4(v.q[0], v.q[1], v.q[2], v.q[3]);
            dst[1] = make_uint4(v.q[4], v.q[5], v.q[6], v.q[7]);
            put(c, token, v);
        }
    }
}

/* The same with put(chunk, token, da bits, sa). */
template <int KD, int TOKENS, int STRIDE = 32, class Put>
__device__ __forceinline__ void stage_a(const args &g, uint8_t *qa, int token0, int chunk0, Put put)
{
    stage_a_chunks<KD, TOKENS, STRIDE>(
        g, qa, token0, chunk0,
        [&](int c, int token, const chunk &v) { put(c, token, v.da_bits, v.sa); });
}

/* Stages {dsv, dmv} of KD sub-blocks from `sub0` on for ROWS rows: sds[sub][row]. Two threads a
 * row, 128 rows at a time. */
template <int KD, int ROWS = 128, int BYTES = BLOCK_BYTES>
__device__ __forceinline__ void stage_scales(const args &g, float2 *sds, int row0, int sb, int sub0)
{
    const int half = threadIdx.x & 1;
#pragma unroll
    for (int r = 0; r < ROWS; r += 128) {
        const int row = r + (threadIdx.x >> 1);
        const uint4 head = __ldg((const uint4 *)block_ptr<BYTES>(g, row0 + row, sb));
#pragma unroll
        for (int i = 0; i < KD / 2; i++) {
            const int c = half * (KD / 2) + i;
            sds[c * ROWS + row] = sub_scales(head, sub0 + c);
        }
    }
}

/* y[token][row], row + 1 for two neighbouring C values. */
template <class P>
__device__ __forceinline__ void store_pair(const args &g, int token, int row, float v0, float v1)
{
    if (!P::inside(token, g.n)) return;
    float *p = g.y + (size_t)token * g.m + row;
    if ((g.m & 1) == 0 && row + 1 < g.m) {
        *(float2 *)p = make_float2(v0, v1);
        return;
    }
    if (P::inside(row, g.m)) p[0] = v0;
    if (P::inside(row + 1, g.m)) p[1] = v1;
}

} // namespace q4k

#endif
