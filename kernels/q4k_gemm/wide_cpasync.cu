/*
 * wide_cpasync: wide with the activations in two buffers that cp.async fills while the tensor cores
 * work on the other one. A chunk goes word by word, since its values lie at an odd multiple of 4
 * and ldmatrix wants multiples of 16. KD 8 needs 139,264 bytes of shared memory.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{

using namespace q4k;

struct knobs : wide::knobs {
    static const bool DA_BITS = true; /* copied as they are */
};

template <int KD> struct place : wide::place<KD, knobs> {
    using base = wide::place<KD, knobs>;
    enum { A_BYTES = KD * (base::QA_CHUNK + base::SDA_CHUNK) }; /* of one buffer: values, scales */
};

__device__ __forceinline__ void copy_word(uint32_t to, const uint8_t *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(to), "l"(from));
}

__device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;\n");
}

__device__ __forceinline__ void wait_all_but_last()
{
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
}

/* Starts the copies of KD chunks into the buffer at `to`, places as wide::batch has them. */
template <int KD>
__device__ __forceinline__ void start_copies(const args &g, uint32_t to, int token0, int chunk0)
{
    using P = place<KD>;
    using batch = wide::batch<KD, knobs>;
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < knobs::TOKENS / 64; i++)
#pragma unroll
        for (int j = 0; j < KD / 4; j++) {
            const uint8_t *from = batch::from(g, token0, chunk0, i, j);
            const int t = batch::token(i), c = j * 4 + (lane >> 3);
            const uint32_t values = to + (c * knobs::TOKENS + t) * 32;
            const uint32_t scales = to + KD * P::QA_CHUNK + c * P::SDA_CHUNK + wide::slot_of(t) * 8;
#pragma unroll
            for (int w = 0; w < 8; w++) copy_word(values + w * 4, from + 4 + w * 4);
            copy_word(scales, from);
            copy_word(scales + 4, from + 36);
        }
    commit();
}

template <int KD> __device__ __forceinline__ void body(const args g)
{
    using P = place<KD>;
    const int lane = threadIdx.x & 31, j0w = (threadIdx.x >> 5) * 16, end = g.k / 32;
    const int token0 = blockIdx.x * knobs::TOKENS, row0 = blockIdx.y * knobs::ROWS;
    const uint32_t buffers = (uint32_t)__cvta_generic_to_shared(smem + P::QA);
    float sum[64] = {};
    start_copies<KD>(g, buffers, token0, 0);
#pragma unroll 1
    for (int chunk0 = 0; chunk0 < end; chunk0 += KD) {
        const int sb = chunk0 / CHUNKS, sub0 = chunk0 % CHUNKS, odd = chunk0 / KD & 1;
        /* Past the end it copies the last chunks once more. */
        start_copies<KD>(g, buffers + (odd ^ 1) * P::A_BYTES, token0, min(chunk0 + KD, end - KD));
        wide::stage_weights<KD, knobs>(g, row0, sb, sub0);
        stage_scales<KD>(g, (float2 *)(smem + P::SDS), row0, sb, sub0);
        wait_all_but_last();
        __syncthreads();
        const uint8_t *qa = smem + P::QA + odd * P::A_BYTES, *sda = qa + KD * P::QA_CHUNK;
#pragma unroll 1
        for (int c = 0; c < KD; c++)
            wide::chunk_step<KD, knobs>(sum, qa + c * P::QA_CHUNK, sda + c * P::SDA_CHUNK, c,
                                        sub0 + c, 0, j0w, lane);
        __syncthreads();
    }
    asm volatile("cp.async.wait_all;\n" ::: "memory");
    wide::store<KD, knobs>(g, sum, token0, row0 + j0w, lane);
}

} // namespace

#define WIDE_CPASYNC(KD)                                                                           \
    extern "C" __global__ void __launch_bounds__(256, 1)                                           \
        wide_cpasync_kd##KD(const uint8_t *w, const uint8_t *a, float *y, int m, int n, int k)     \
    {                                                                                              \
        body<KD>(args{w, a, y, m, n, k});                                                          \
    }                                                                                              \
    VARIANT_DESC(wide_cpasync_kd##KD) = {                                                          \
        VARIANT_HEAD(wide_cpasync_kd##KD),                                                         \
        .family = "q4k_gemm",                                                                      \
        .note = "activations in two buffers filled by cp.async, a 4-byte word a copy, while the "  \
                "other one is used",                                                               \
        .parent = "wide",                                                                          \
        .step = "",                                                                                \
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
        .buffers = {{"b_int8", place<KD>::QB_BYTES},                                               \
                    {"b_scales", (KD)*place<KD>::SDS_CHUNK},                                       \
                    {"a, two", 2 * place<KD>::A_BYTES}},                                           \
        .verdict = "vetoed: traffic isn't the cost"}

WIDE_CPASYNC(4);
WIDE_CPASYNC(8);
