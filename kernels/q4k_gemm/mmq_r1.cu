/*
 * mmq_r1: the word-level legacy kernel. 64 tokens x 64 rows, everything staged and read as 32-bit
 * words, one word of nibbles expanded at a time, the min term multiplied out for every C value
 * behind HAS_OFF (formats without mins leave it out). The old control; not to be tuned.
 */
#include "kernels/q4k_gemm/tile.cuh"

namespace
{

using namespace q4k;

enum { TOKENS = 64, ROWS = 64, WORDS = 9 }; /* 8 words of values a row, one of padding */

/* Dynamic shared memory, in this order, per staged chunk. */
enum {
    QB_CHUNK = ROWS * WORDS * 4,
    DS_CHUNK = ROWS * 4,
    DM_CHUNK = ROWS * 4,
    QA_CHUNK = TOKENS * WORDS * 4,
    DA_CHUNK = TOKENS * 4,
    SA_CHUNK = TOKENS * 4,
};

template <int KD> struct tile {
    uint32_t qb[KD][ROWS][WORDS];
    float ds[KD][ROWS], dm[KD][ROWS];
    uint32_t qa[KD][TOKENS][WORDS];
    float da[KD][TOKENS];
    int32_t sa[KD][TOKENS];
};

/* Word w of group p holds four values of sub-block 2p (low) and four of 2p + 1. */
template <int KD>
__device__ __forceinline__ void stage_b(const args &g, tile<KD> &s, int row0, int sb, int sub0)
{
    for (int i = threadIdx.x; i < ROWS * KD * 4; i += THREADS) {
        const int row = i / (KD * 4), w = i % 8, p = i / 8 % (KD / 2);
        const uint32_t *words = (const uint32_t *)(block_ptr(g, row0 + row, sb) + 16);
        const uint32_t v = __ldg(words + (sub0 / 2 + p) * 8 + w);
        s.qb[p * 2][row][w] = v & 0x0f0f0f0fu;
        s.qb[p * 2 + 1][row][w] = v >> 4 & 0x0f0f0f0fu;
    }
    for (int i = threadIdx.x; i < ROWS * KD; i += THREADS) {
        const int row = i / KD, c = i % KD;
        const uint32_t *head = (const uint32_t *)block_ptr(g, row0 + row, sb);
        const float2 v = sub_scales(
            make_uint4(__ldg(head), __ldg(head + 1), __ldg(head + 2), __ldg(head + 3)), sub0 + c);
        s.ds[c][row] = v.x;
        s.dm[c][row] = v.y;
    }
}

template <int KD>
__device__ __forceinline__ void stage_words_a(const args &g, tile<KD> &s, int token0, int chunk0)
{
    for (int i = threadIdx.x; i < TOKENS * KD * 10; i += THREADS) {
        const int token = i / (KD * 10), c = i / 10 % KD, w = i % 10;
        const uint32_t *from =
            (const uint32_t *)(token_ptr(g, token0 + token) + (size_t)(chunk0 + c) * CHUNK_BYTES);
        const uint32_t v = __ldg(from + w);
        if (w == 0)
            s.da[c][token] = half_bits(v & 0xffffu);
        else if (w == 9)
            s.sa[c][token] = (int32_t)v;
        else
            s.qa[c][token][w - 1] = v;
    }
}

template <int KD, bool HAS_OFF>
__device__ __forceinline__ void chunk_step(float (&sum)[16], const tile<KD> &s, int c, int i0w,
                                           int j0w, int lane)
{
    uint32_t a[2][4], b[2][2];
#pragma unroll
    for (int t4 = 0; t4 < 4; t4++) {
        const uint32_t *row = s.qa[c][i0w + t4 * 8 + (lane >> 2)];
        a[t4 >> 1][t4 & 1] = row[lane & 3];
        a[t4 >> 1][2 + (t4 & 1)] = row[4 + (lane & 3)];
    }
#pragma unroll
    for (int nh = 0; nh < 2; nh++) {
        const uint32_t *row = s.qb[c][j0w + nh * 8 + (lane >> 2)];
        b[nh][0] = row[lane & 3];
        b[nh][1] = row[4 + (lane & 3)];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int clow[4];
            mma_k32(clow, a[h], b[nh]);
#pragma unroll
            for (int l = 0; l < 4; l++) {
                const int i = i0w + h * 16 + (l >> 1) * 8 + (lane >> 2);
                const int j = j0w + nh * 8 + (lane & 3) * 2 + (l & 1), idx = nh * 8 + h * 4 + l;
                const float da = s.da[c][i], sa = (float)s.sa[c][i];
                sum[idx] += da * s.ds[c][j] * (float)clow[l];
                if (HAS_OFF) sum[idx] += da * s.dm[c][j] * sa;
            }
        }
    }
}

template <int KD, bool HAS_OFF> __device__ __forceinline__ void body(const args g)
{
    static_assert(sizeof(tile<KD>) ==
                      KD * (QB_CHUNK + DS_CHUNK + DM_CHUNK + QA_CHUNK + DA_CHUNK + SA_CHUNK),
                  "no holes");
    tile<KD> &s = *(tile<KD> *)smem;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int i0w = (warp & 1) * 32, j0w = (warp >> 1) * 16;
    const int token0 = blockIdx.x * TOKENS, row0 = blockIdx.y * ROWS;
    float sum[16] = {};
#pragma unroll 1
    for (int chunk0 = 0; chunk0 < g.k / 32; chunk0 += KD) {
        stage_b<KD>(g, s, row0, chunk0 / CHUNKS, chunk0 % CHUNKS);
        stage_words_a<KD>(g, s, token0, chunk0);
        __syncthreads();
#pragma unroll 1
        for (int c = 0; c < KD; c++) chunk_step<KD, HAS_OFF>(sum, s, c, i0w, j0w, lane);
        __syncthreads();
    }
#pragma unroll
    for (int nh = 0; nh < 2; nh++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            store_pair<sound>(g, token0 + i0w + r * 8 + (lane >> 2),
                              row0 + j0w + nh * 8 + (lane & 3) * 2, sum[nh * 8 + r * 2],
                              sum[nh * 8 + r * 2 + 1]);
}

} // namespace

#define MMQ_R1(KD)                                                                                 \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
        mmq_r1_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)           \
    {                                                                                              \
        body<KD, true>(args{w, a, y, m, n, k});                                                    \
    }                                                                                              \
    VARIANT_DESC(mmq_r1_kd##KD) = {                                                                \
        VARIANT_HEAD(mmq_r1_kd##KD),                                                               \
        .family = "q4k_gemm",                                                                      \
        .note = "the word-level legacy kernel: staged and read 32-bit word by word, min term "     \
                "per value; the old control",                                                      \
        .parent = "",                                                                              \
        .step = "r1",                                                                              \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = "q4_k",                                                                        \
        .tile_m = 64,                                                                              \
        .tile_n = 64,                                                                              \
        .tile_k = 256,                                                                             \
        .kd = KD,                                                                                  \
        .threads = 256,                                                                            \
        .min_blocks = 2,                                                                           \
        .min_sm = 80,                                                                              \
        .n_buffers = 6,                                                                            \
        .buffers = {{"b_int8", (KD)*QB_CHUNK},                                                     \
                    {"b_scales", (KD)*DS_CHUNK},                                                   \
                    {"b_mins", (KD)*DM_CHUNK},                                                     \
                    {"a_int8", (KD)*QA_CHUNK},                                                     \
                    {"a_scales", (KD)*DA_CHUNK},                                                   \
                    {"a_sums", (KD)*SA_CHUNK}},                                                    \
        .verdict = "superseded; kept as it was"}

MMQ_R1(4);
MMQ_R1(8);
