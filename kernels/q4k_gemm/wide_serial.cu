/*
 * wide_serial: wide with each activation chunk stored before the next is loaded: the staging that
 * r20 started from, a memory round trip a chunk. ptxas gathers wide's loads by itself, so the
 * source has to forbid it. Control of wide_split.
 */
#include "kernels/q4k_gemm/wide.cuh"

namespace
{
struct wide_serial_knobs : q4k::wide::knobs {
    static const q4k::wide::order ORDER = q4k::wide::SERIAL;
};
} // namespace

#define WIDE_SERIAL(KD)                                                                            \
    WIDE_RUNG(wide_serial, KD, wide_serial_knobs, "q4_k", "", "wide", "",                          \
              "wide with one activation chunk loaded and stored at a time, as before r20: "        \
              "ptxas had gathered wide's loads by itself")

WIDE_SERIAL(4);
WIDE_SERIAL(8);
