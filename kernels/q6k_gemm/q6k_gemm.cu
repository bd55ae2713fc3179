/*
 * q6k_gemm: Q6_K weights against many tokens on int8 tensor cores. Each scale covers 16 values, so
 * a chunk takes two k16 products, whose sums are scaled and added as integers (at most
 * 2 * 128 * 16 * 32 * 127 < 2^24: exact also as f32).
 * Arguments: const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k.
 */
#include "kernels/ops/qgemm.cuh"

struct q6_k {
    enum { SPLIT = 1, HAS_MIN = 0, BYTES = 210 };

    /* Chunk c of a block: half c/4, quarter c%4 of it; see struct q6_k_block in engine/quant.h. */
    static __device__ __forceinline__ float2 expand(const uint8_t *w, size_t row, int chunk,
                                                    int row_chunks, uint32_t v[8])
    {
        const uint8_t *b = w + (row * (row_chunks / 8) + chunk / 8) * BYTES;
        int c = chunk & 7, half = c >> 2, quarter = c & 3;
        const uint8_t *ql = b + half * 64 + (quarter & 1) * 32, *qh = b + 128 + half * 32;
        int sl = (quarter >> 1) * 4, sh = quarter * 2;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            uint32_t low = ops::load_u32(ql + 4 * j) >> sl & 0x0f0f0f0f;
            uint32_t high = (ops::load_u32(qh + 4 * j) >> sh & 0x03030303) << 4;
            /* Minus 32 in each byte; bit 7 set keeps the subtraction inside it. */
            v[j] = ((low | high | 0x80808080) - 0x20202020) ^ 0x80808080;
        }
        int s0 = (int8_t)b[192 + 2 * c], s1 = (int8_t)b[193 + 2 * c];
        return make_float2(ops::half_bits(ops::load_u16(b + 208)),
                           __int_as_float(s1 << 16 | (s0 & 0xffff)));
    }
};

extern "C" __global__ void __launch_bounds__(ops::QG_THREADS)
    q6k_gemm(const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k)
{
    ops::qgemm<q6_k>(w, chunks, y, m, n, k);
}
VARIANT_DESC(q6k_gemm) = {
    VARIANT_HEAD(q6k_gemm),
    .family = "q6k_gemm",
    .note =
        "int8 tensor cores, 64 x 64 tiles, two k16 products a chunk, weights expanded in shared "
        "memory",
    .numeric = "q8",
    .layout_a = "q8_chunk40",
    .layout_b = "q6_k",
    .tile_m = OPS_GEMM_TILE,
    .tile_n = OPS_GEMM_TILE,
    .tile_k = 128,
    .threads = ops::QG_THREADS,
    .min_sm = 80};
