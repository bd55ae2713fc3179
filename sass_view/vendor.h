/*
 * The vendor's disassembler, where it is installed: its text of a kernel's instructions.
 *
 * $SASSTOP_NVDISASM names the program (empty: none), else nvdisasm in the PATH. It runs as a child
 * with its own file of the cubin, is read for at most VENDOR_SECONDS and VENDOR_BYTES_MAX, and is
 * ended when it takes longer. The caller owns the text. Blocks; one thread at a time.
 */
#ifndef SASS_VIEW_VENDOR_H
#define SASS_VIEW_VENDOR_H

#include "base/status.h"
#include "sass_view/cubin.h"

enum { VENDOR_SECONDS = 20, VENDOR_BYTES_MAX = 64 << 20 };

struct vendor_text {
    char **line; /* by instruction; NULL where it said nothing */
    uint32_t n;
};

/* Whether it is installed. */
bool vendor_installed(void);

/* ERR_UNAVAILABLE when it isn't installed, or its cubin may not be disassembled; ERR_FAILED when it
 * fails or says nothing about the kernel. */
enum status vendor_read(struct vendor_text *out, const struct cubin *c,
                        const struct cubin_kernel *k);
void vendor_free(struct vendor_text *t); /* also fine on a zeroed struct */

/* Takes one line of its output: true and the text when it is an instruction's. Exported for tests.
 */
bool vendor_line(const char *line, uint32_t *offset, char *text, size_t size);

#endif
