/* PC sampling beyond the common ops: names of stall reasons, the key that joins samples to a cubin.
 */
#ifndef CUPTI_PC_H
#define CUPTI_PC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct cupti_lib;
struct counter_source;

/* A window of PC sampling in which `work` launches what is to be sampled later, and waits for it;
 * what it samples is thrown away. Once before anything enables kernel activity or a range pass, and
 * again, with nothing armed, whenever kernels come that have never run.
 *
 * Once activity was on or a range pass has run, PC sampling names only kernels that were launched
 * in a window before that, and kernels whose first launch ever lies in a window. Samples of others
 * count as "of code that is not the user's" for the life of the process. Arming alone, or a window
 * without a launch, does not help; how and when the module was loaded does not matter (H200, driver
 * 580.159.04, CUDA 13.0: docs/MEASUREMENTS.md). The first time takes about 0.5 s, later ones 0.2 s.
 *
 * Launching thread. A source that can't work, or a synthetic one, is left as it is: OK. Else what
 * arm, start, work, stop or disarm failed with; the source's state says it too. */
enum status pc_prime(struct counter_source *src, enum status (*work)(void *), void *ctx);

/* CUPTI's checksum of a cubin, as in struct counter_pc.cubin_crc. Any thread. */
enum status pc_cubin_crc(const struct cupti_lib *lib, const void *cubin, size_t size,
                         uint64_t *crc);

/* "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued" -> "long_scoreboard", *not_issued
 * true. Plural and older spellings become those of the metric table ("no_instructions" ->
 * "no_instruction"). A name of another form is kept as it is. Any thread. */
void pc_reason_name(const char *raw, char *out, size_t size, bool *not_issued);

#endif
