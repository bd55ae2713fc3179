/*
 * Ceilings for rooflines, measured where the session runs: DRAM bandwidth, multiply-adds of int8
 * and bf16 by the instructions that this GPU has, warp instructions issued
 * (kernels/ops/ceiling*.cu).
 */
#ifndef ENGINE_CEILINGS_H
#define ENGINE_CEILINGS_H

#include "engine/engine.h"

/* Measures all and sends a CEILING frame each, also for those that could not be measured, with the
 * reason. Launching thread, stream drained, no counter armed; takes about half a second and up to
 * 512 MiB for its length. `text` says what came of it. ERR_UNAVAILABLE without a GPU. */
enum status ceilings_measure(struct engine *e, char *text, size_t size);

#endif
