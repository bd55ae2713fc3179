/* What the engine is started with again after a fault. Pure: looks at the fold alone. */
#ifndef TUI_RESTART_H
#define TUI_RESTART_H

#include "session/model.h"

/*
 * The variant of q4k_gemm for the next start, given that the current generation failed. First the
 * one that ran last before it, when it has not faulted, is not wrong on purpose and was not forced
 * past its check; else what a session starts with, else the family's fallback, else another of the
 * same depth, else any. False, and nothing is written, when no generation has begun or there is no
 * other: the engine then starts as it was asked to on the command line.
 */
bool restart_choose(const struct session *s, char *variant, size_t size, uint32_t *kd);

#endif
