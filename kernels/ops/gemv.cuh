/*
 * Products of quantised weights with 1 to 8 tokens: y[t][row] = sum over chunks. Decode lives here;
 * each weight byte is read once, so memory speed is the limit.
 *
 * Shared by every variant: a block of GEMV_THREADS takes OPS_GEMV_ROWS rows, two a warp; the
 * activations of a tile of k are staged in shared memory once a block, split into planes so that
 * every read is 8 or 16 bytes wide and free of bank conflicts. Rows past m read row m - 1 and
 * aren't stored; tokens past n are zeros. Arguments: const uint8_t *w, const uint8_t *chunks, float
 * *y, int m, int n, int k.
 */
#ifndef KERNELS_OPS_GEMV_CUH
#define KERNELS_OPS_GEMV_CUH

#include "kernels/ops/common.cuh"

namespace ops
{

enum { GEMV_THREADS = 128, GEMV_WARP_ROWS = 2 };
static_assert(GEMV_THREADS / 32 * GEMV_WARP_ROWS == OPS_GEMV_ROWS, "rows a block");

/* Activations of TC chunks for NT tokens. Values: 32 bytes a chunk, in the order that `place` gives
 * the eight chunks of a super-block; scales in the order of the chunks. */
template <int NT, int TC> struct gemv_tile {
    uint4 q[NT][TC * 2];
    float2 d[NT][TC]; /* {da, da * sa} */
};

template <int NT, int TC, class PLACE>
static __device__ __forceinline__ void gemv_stage(gemv_tile<NT, TC> *s, const uint8_t *chunks,
                                                  int n, int row_chunks, int first, int count,
                                                  PLACE place)
{
    for (int t = 0; t < NT; t++) {
        const uint32_t *a =
            (const uint32_t *)chunks + ((size_t)t * row_chunks + first) * CHUNK_WORDS;
        uint32_t *q = (uint32_t *)s->q[t];
        for (int i = threadIdx.x; i < count * 8; i += GEMV_THREADS) {
            int c = i >> 3;
            q[((c & ~7) + place(c & 7)) * 8 + (i & 7)] =
                t < n ? a[(size_t)c * CHUNK_WORDS + 1 + (i & 7)] : 0;
        }
        for (int c = threadIdx.x; c < count; c += GEMV_THREADS) {
            float2 d = make_float2(0, 0);
            if (t < n) {
                d.x = half_bits(a[(size_t)c * CHUNK_WORDS] & 0xffff);
                d.y = d.x * (float)(int)a[(size_t)c * CHUNK_WORDS + 9];
            }
            s->d[t][c] = d;
        }
    }
}

/* Sums the lanes and stores the two rows of a warp. */
template <int NT>
static __device__ __forceinline__ void gemv_store(float acc[GEMV_WARP_ROWS][NT], float *y, int row,
                                                  int m, int n)
{
    for (int r = 0; r < GEMV_WARP_ROWS; r++) {
        for (int t = 0; t < NT; t++) {
            float v = warp_sum(acc[r][t]);
            if ((threadIdx.x & 31) == 0 && row + r < m && t < n) y[(size_t)t * m + row + r] = v;
        }
    }
}

/* Chunks of activations a tile holds: 20 KB of shared memory, 40 KB for eight tokens. */
template <int NT> struct gemv_chunks {
    enum { VALUE = NT == 1 ? 512 : NT == 2 ? 256 : 128 };
};

} // namespace ops

/* FAMILY_nNT, a call of the file's body<NT>(). */
#define OPS_GEMV(FAMILY, NT, LAYOUT_B, TILE_K, NOTE)                                               \
    extern "C" __global__ void __launch_bounds__(ops::GEMV_THREADS)                                \
        FAMILY##_n##NT(const uint8_t *w, const uint8_t *chunks, float *y, int m, int n, int k)     \
    {                                                                                              \
        body<NT>(w, chunks, y, m, n, k);                                                           \
    }                                                                                              \
    VARIANT_DESC(FAMILY##_n##NT) = {VARIANT_HEAD(FAMILY##_n##NT),                                  \
                                    .family = #FAMILY,                                             \
                                    .note = NOTE ", up to " #NT " tokens",                         \
                                    .numeric = "q8",                                               \
                                    .layout_a = "q8_chunk40",                                      \
                                    .layout_b = LAYOUT_B,                                          \
                                    .tile_m = OPS_GEMV_ROWS,                                       \
                                    .tile_n = NT,                                                  \
                                    .tile_k = TILE_K,                                              \
                                    .threads = ops::GEMV_THREADS,                                  \
                                    .min_sm = 80}

#endif
