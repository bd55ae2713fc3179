/*
 * wide_r7: the first wide form: 128 tokens x 128 rows, activations left as raw 40-byte chunks in
 * two buffers, fragments by plain loads, no fold. At KD 8 it needs 139,264 bytes of shared memory:
 * a device that grants 99 KB refuses it (SASSTOP_SMEM_LIMIT=99K shows that anywhere), and a launch
 * that isn't checked fails without a word. KD 4 fits.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{

using namespace q4k;
using K = wide::knobs;

/* Dynamic shared memory, in this order. */
enum {
    QB_BYTES = CHUNKS * K::ROWS * wide::STRIDE,
    SDS_BYTES = CHUNKS * K::ROWS * 8, /* {dsv, dmv} of the whole super-block */
    QA_CHUNK = K::TOKENS * CHUNK_BYTES,
};

/* Raw copy of a token's KD chunks, 8 bytes at a time. */
template <int KD>
__device__ __forceinline__ void stage_raw(const args &g, uint8_t *qa, int token0, int chunk0)
{
    enum { WORDS = KD * 5 };
#pragma unroll
    for (int j = 0; j < K::TOKENS * WORDS / THREADS; j++) {
        const int i = threadIdx.x + j * THREADS, token = i / WORDS, w = i % WORDS;
        const uint8_t *from = token_ptr(g, token0 + token) + (size_t)chunk0 * CHUNK_BYTES;
        *(uint2 *)(qa + w / 5 * QA_CHUNK + token * CHUNK_BYTES + w % 5 * 8) =
            __ldg((const uint2 *)from + w);
    }
}

__device__ __forceinline__ void chunk_step(float (&sum)[64], const uint8_t *qa, int sub, int j0w,
                                           int lane)
{
    const float2 *sds = (const float2 *)(smem + QB_BYTES) + sub * K::ROWS;
    uint32_t b[2][2];
    float4 s[2];
#pragma unroll
    for (int nh = 0; nh < 2; nh++) {
        const uint8_t *p =
            smem + (sub * K::ROWS + j0w + nh * 8 + (lane >> 2)) * wide::STRIDE + (lane & 3) * 4;
        b[nh][0] = *(const uint32_t *)p;
        b[nh][1] = *(const uint32_t *)(p + 16);
        s[nh] = *(const float4 *)(sds + j0w + nh * 8 + (lane & 3) * 2);
    }
#pragma unroll
    for (int h = 0; h < 8; h++) {
        uint32_t a[4];
        float da[2], sa[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint8_t *at = qa + (h * 16 + r * 8 + (lane >> 2)) * CHUNK_BYTES;
            da[r] = half_bits(*(const uint16_t *)at);
            sa[r] = (float)*(const int32_t *)(at + 36);
            a[r] = *(const uint32_t *)(at + 4 + (lane & 3) * 4);
            a[2 + r] = *(const uint32_t *)(at + 20 + (lane & 3) * 4);
        }
#pragma unroll
        for (int nh = 0; nh < 2; nh++) {
            const float dsv[2] = {s[nh].x, s[nh].z}, dmv[2] = {s[nh].y, s[nh].w};
            int clow[4];
            mma_k32(clow, a, b[nh]);
#pragma unroll
            for (int l = 0; l < 4; l++) {
                float &acc = sum[(h * 2 + nh) * 4 + l];
                acc += da[l >> 1] * dsv[l & 1] * (float)clow[l];
                acc += da[l >> 1] * dmv[l & 1] * sa[l >> 1];
            }
        }
    }
}

template <int KD> __device__ __forceinline__ void body(const args g)
{
    const int lane = threadIdx.x & 31, j0w = (threadIdx.x >> 5) * 16;
    const int token0 = blockIdx.x * K::TOKENS, row0 = blockIdx.y * K::ROWS, end = g.k / 32;
    uint8_t *const qa = smem + QB_BYTES + SDS_BYTES;
    float sum[64] = {};
    stage_raw<KD>(g, qa, token0, 0);
#pragma unroll 1
    for (int chunk0 = 0; chunk0 < end; chunk0 += KD) {
        if (chunk0 % CHUNKS == 0) {
            wide::stage_nibbles<K, CHUNKS / 2>(g, row0, chunk0 / CHUNKS, 0);
            stage_scales<CHUNKS>(g, (float2 *)(smem + QB_BYTES), row0, chunk0 / CHUNKS, 0);
        }
        __syncthreads();
        const int odd = chunk0 / KD & 1;
        uint8_t *const now = qa + odd * KD * QA_CHUNK, *const next = qa + (odd ^ 1) * KD * QA_CHUNK;
        /* Past the end it copies the last chunks once more. */
        stage_raw<KD>(g, next, token0, min(chunk0 + KD, end - KD));
#pragma unroll 1
        for (int c = 0; c < KD; c++)
            chunk_step(sum, now + c * QA_CHUNK, chunk0 % CHUNKS + c, j0w, lane);
        __syncthreads();
    }
    wide::store<KD, K>(g, sum, token0, row0 + j0w, lane);
}

} // namespace

#define WIDE_R7(KD)                                                                                \
    extern "C" __global__ void __launch_bounds__(256, 1)                                           \
        wide_r7_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)          \
    {                                                                                              \
        body<KD>(args{w, a, y, m, n, k});                                                          \
    }                                                                                              \
    VARIANT_DESC(wide_r7_kd##KD) = {                                                               \
        VARIANT_HEAD(wide_r7_kd##KD),                                                              \
        .family = "q4k_gemm",                                                                      \
        .note = "the first wide form: raw activation chunks in two buffers, 136 KB at KD 8: "      \
                "refused where a block gets 99 KB",                                                \
        .parent = "narrow_prefold",                                                                \
        .step = "r7",                                                                              \
        .numeric = "q8",                                                                           \
        .layout_a = "q8_chunk40",                                                                  \
        .layout_b = "q4_k",                                                                        \
        .tile_m = 128,                                                                             \
        .tile_n = 128,                                                                             \
        .tile_k = 256,                                                                             \
        .kd = KD,                                                                                  \
        .threads = 256,                                                                            \
        .min_blocks = 1,                                                                           \
        .min_sm = 80,                                                                              \
        .n_buffers = 3,                                                                            \
        .buffers = {{"b_int8", QB_BYTES},                                                          \
                    {"b_scales", SDS_BYTES},                                                       \
                    {"a_chunks, two", 2 * (KD)*QA_CHUNK}},                                         \
        .verdict = "rewritten: silent above 99 KB"}

WIDE_R7(4);
WIDE_R7(8);
