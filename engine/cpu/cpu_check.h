/*
 * Holds a CPU schedule of q4k_gemm against the family's reference in double: random Q4_K weights
 * and activations of a shape, every output up to CHECK_FULL_MACS, above that CHECK_SAMPLES of them
 * with all corners. Limits come from the family's tolerance. Any thread but one pool at a time.
 */
#ifndef ENGINE_CPU_CHECK_H
#define ENGINE_CPU_CHECK_H

#include "engine/backend.h"
#include "engine/cpu/matmul.h"

enum { CHECK_FULL_MACS = 1 << 26, CHECK_SAMPLES = 4096 };

/* mnk = output rows, tokens, inner length. OK also when it did not pass: see out->passed. */
enum status cpu_check_q4k(struct pool *p, enum cpu_schedule s, uint32_t kd, const uint32_t mnk[3],
                          struct parity_result *out);

#endif
