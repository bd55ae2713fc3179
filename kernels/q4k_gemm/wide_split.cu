/*
 * wide_split: all loads of a batch of activations are issued before the barrier that frees the
 * buffer, and stored behind it. No byte and no operation is saved, only the order changes.
 *
 * r20 issued a batch's loads before its stores; nvcc 13.0 does so for wide already (wide_serial
 * shows what that is worth), so what is left for the source to split is the barrier.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{
struct wide_split_knobs : q4k::wide::knobs {
    static const q4k::wide::order ORDER = q4k::wide::AHEAD;
};
} // namespace

#define WIDE_SPLIT(KD)                                                                             \
    WIDE_RUNG(wide_split, KD, wide_split_knobs, "q4_k", "r20", "wide", "landed: +7.1% on GB10",    \
              "split-phase staging: a batch's loads go out before the barrier, its stores "        \
              "behind it; order only, no byte saved")

WIDE_SPLIT(4);
WIDE_SPLIT(8);
