/*
 * wide_32x64: wide with each warp on 32 rows x 64 tokens instead of 16 x 128: 4 A and 2 B
 * ldmatrix.x4 a chunk instead of 8 and 1, the same 16 chains.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{
struct wide_32x64_knobs : q4k::wide::knobs {
    enum { GROUPS = 4, PAIRS = 2 };
};
} // namespace

#define WIDE_32X64(KD)                                                                             \
    WIDE_RUNG(wide_32x64, KD, wide_32x64_knobs, "q4_k", "r17", "wide",                             \
              "reverted: noise, SM% fell too",                                                     \
              "wide with warps of 32 rows x 64 tokens: LDSM.x4 72 -> 48 per block and "            \
              "chunk, nothing else changes")

WIDE_32X64(4);
WIDE_32X64(8);
