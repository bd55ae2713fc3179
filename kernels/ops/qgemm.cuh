/*
 * The product of quantised weights with many tokens on int8 tensor cores, for every format but Q4_K
 * (whose family is q4k_gemm). One tile shape, simple synchronous staging.
 *
 * A block computes 64 tokens x 64 rows with four warps of 32 x 32. Per step four chunks (128
 * values) of activations and of weights, expanded to signed bytes, are staged in rows of 128 + 16
 * bytes (an odd number of 16-byte units: ldmatrix meets no bank twice). Rows past m, tokens past n
 * and chunks past k are zeros, so only the store needs a guard.
 *
 * Operand places of mma.m16n8k32 (A = tokens, B = rows): lane L holds of A rows L/4 and L/4 + 8,
 * of B column L/4, bytes 4*(L%4)..+3 of both 16-byte halves; of C rows L/4 (0, 1) and L/4 + 8
 * (2, 3), columns 2*(L%4) + {0, 1}. The k16 form takes the first or the second half alone.
 *
 * A format is a struct: SPLIT (two scales a chunk, each for 16 values), expand(w, row, chunk, k,
 * v): 32 signed bytes and the chunk's scales: {d, m}, or {d, two int16} when SPLIT.
 */
#ifndef KERNELS_OPS_QGEMM_CUH
#define KERNELS_OPS_QGEMM_CUH

#include "kernels/ops/common.cuh"

namespace ops
{

enum { QG_THREADS = 128, QG_TILE = OPS_GEMM_TILE, QG_STEP = 4, QG_STRIDE = QG_STEP * 32 + 16 };

struct qgemm_smem {
    alignas(16) uint8_t a[QG_TILE * QG_STRIDE], b[QG_TILE * QG_STRIDE];
    alignas(16) float2 da[QG_STEP][QG_TILE]; /* {da, da * sa} */
    alignas(16) float2 db[QG_STEP][QG_TILE];
};

static __device__ __forceinline__ void ldmatrix_x4(uint32_t r[4], const uint8_t *p)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(p);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

static __device__ __forceinline__ void mma_k32(int c[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void mma_k16(int c[4], uint32_t a0, uint32_t a1, uint32_t b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                 "{%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a0), "r"(a1), "r"(b));
}

static __device__ __forceinline__ void put_chunk(uint8_t *row, int chunk, const uint32_t v[8])
{
    uint4 *to = (uint4 *)(row + chunk * 32);
    to[0] = make_uint4(v[0], v[1], v[2], v[3]);
    to[1] = make_uint4(v[4], v[5], v[6], v[7]);
}

static __device__ __forceinline__ void stage_a(qgemm_smem *s, const uint8_t *chunks, int token0,
                                               int n, int chunk0, int row_chunks)
{
    for (int i = threadIdx.x; i < QG_TILE * QG_STEP; i += QG_THREADS) {
        int t = i / QG_STEP, c = i % QG_STEP;
        uint32_t v[8] = {};
        float2 d = make_float2(0, 0);
        if (token0 + t < n && chunk0 + c < row_chunks) {
            const uint32_t *p = (const uint32_t *)chunks +
                                ((size_t)(token0 + t) * row_chunks + chunk0 + c) * CHUNK_WORDS;
            for (int j = 0; j < 8; j++) v[j] = p[1 + j];
            d.x = half_bits(p[0] & 0xffff);
            d.y = d.x * (float)(int)p[9];
        }
        put_chunk(s->a + t * QG_STRIDE, c, v);
        s->da[c][t] = d;
    }
}

template <class T>
static __device__ __forceinline__ void stage_b(qgemm_smem *s, const uint8_t *w, int row0, int m,
                                               int chunk0, int row_chunks)
{
    for (int i = threadIdx.x; i < QG_TILE * QG_STEP; i += QG_THREADS) {
        int r = i / QG_STEP, c = i % QG_STEP;
        uint32_t v[8] = {};
        float2 d = make_float2(0, 0);
        if (row0 + r < m && chunk0 + c < row_chunks)
            d = T::expand(w, (size_t)(row0 + r), chunk0 + c, row_chunks, v);
        put_chunk(s->b + r * QG_STRIDE, c, v);
        s->db[c][r] = d;
    }
}

/* One 16 x 8 tile of one chunk into sum[4]. da: of tokens L/4 and L/4 + 8; db: of rows 2*(L%4) and
 * the next, in one float4. */
template <class T>
static __device__ __forceinline__ void tile(float sum[4], const uint32_t a[4], const uint32_t b[2],
                                            const float2 da[2], float4 db)
{
    int c[4] = {};
    if (T::SPLIT) {
        int c1[4] = {};
        mma_k16(c, a[0], a[1], b[0]);
        mma_k16(c1, a[2], a[3], b[1]);
        int s[2] = {__float_as_int(db.y), __float_as_int(db.w)};
        for (int l = 0; l < 4; l++) {
            int v = c[l] * (int16_t)(s[l & 1] & 0xffff) + c1[l] * (s[l & 1] >> 16);
            sum[l] += da[l >> 1].x * ((l & 1) ? db.z : db.x) * (float)v;
        }
    } else {
        mma_k32(c, a, b);
        for (int l = 0; l < 4; l++) {
            sum[l] += da[l >> 1].x * ((l & 1) ? db.z : db.x) * (float)c[l];
            if (T::HAS_MIN) sum[l] += da[l >> 1].y * ((l & 1) ? db.w : db.y);
        }
    }
}

template <class T>
static __device__ __forceinline__ void chunk_step(const qgemm_smem *s, float sum[2][4][4], int wt,
                                                  int wr, int c)
{
    int lane = threadIdx.x & 31;
    uint32_t a[2][4], b[2][4];
    float2 da[2][2];
    for (int i = 0; i < 2; i++) {
        ldmatrix_x4(a[i],
                    s->a + (wt + i * 16 + (lane & 15)) * QG_STRIDE + c * 32 + (lane >> 4) * 16);
        da[i][0] = s->da[c][wt + i * 16 + (lane >> 2)];
        da[i][1] = s->da[c][wt + i * 16 + (lane >> 2) + 8];
    }
    for (int j = 0; j < 2; j++) {
        int r = wr + j * 16 + (lane >> 4) * 8 + (lane & 7);
        ldmatrix_x4(b[j], s->b + r * QG_STRIDE + c * 32 + ((lane >> 3) & 1) * 16);
    }
    for (int j = 0; j < 4; j++) {
        float4 db = *(const float4 *)&s->db[c][wr + j * 8 + (lane & 3) * 2];
        for (int i = 0; i < 2; i++) tile<T>(sum[i][j], a[i], b[j >> 1] + (j & 1) * 2, da[i], db);
    }
}

static __device__ __forceinline__ void store(const float sum[2][4][4], float *y, int token0,
                                             int row0, int m, int n)
{
    int lane = threadIdx.x & 31;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 4; j++) {
            for (int l = 0; l < 4; l++) {
                int t = token0 + i * 16 + (lane >> 2) + (l >> 1) * 8;
                int r = row0 + j * 8 + (lane & 3) * 2 + (l & 1);
                if (t < n && r < m) y[(size_t)t * m + r] = sum[i][j][l];
            }
        }
    }
}

/* Grid {ceil(m / 64), ceil(n / 64)}. */
template <class T>
static __device__ __forceinline__ void qgemm(const uint8_t *__restrict__ w,
                                             const uint8_t *__restrict__ chunks,
                                             float *__restrict__ y, int m, int n, int k)
{
    __shared__ qgemm_smem s;
    int warp = threadIdx.x >> 5, wt = (warp & 1) * 32, wr = (warp >> 1) * 32;
    int row0 = blockIdx.x * QG_TILE, token0 = blockIdx.y * QG_TILE, row_chunks = k / 32;
    float sum[2][4][4] = {};
    for (int chunk0 = 0; chunk0 < row_chunks; chunk0 += QG_STEP) {
        if (chunk0) __syncthreads();
        stage_a(&s, chunks, token0, n, chunk0, row_chunks);
        stage_b<T>(&s, w, row0, m, chunk0, row_chunks);
        __syncthreads();
#pragma unroll
        for (int c = 0; c < QG_STEP; c++) chunk_step<T>(&s, sum, wt, wr, c);
    }
    store(sum, y, token0 + wt, row0 + wr, m, n);
}

} // namespace ops

#endif
