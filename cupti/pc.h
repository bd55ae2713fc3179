/* PC sampling beyond the common ops: names of stall reasons, the key that joins samples to a cubin.
 */
#ifndef CUPTI_PC_H
#define CUPTI_PC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct cupti_lib;

/* CUPTI's checksum of a cubin, as in struct counter_pc.cubin_crc. Any thread. */
enum status pc_cubin_crc(const struct cupti_lib *lib, const void *cubin, size_t size,
                         uint64_t *crc);

/* "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued" -> "long_scoreboard", *not_issued
 * true. Plural and older spellings become those of the metric table ("no_instructions" ->
 * "no_instruction"). A name of another form is kept as it is. Any thread. */
void pc_reason_name(const char *raw, char *out, size_t size, bool *not_issued);

#endif
