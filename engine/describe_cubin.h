/* CENSUS of a kernel and, once a file, MODULE: the cubin's bytes, for the SASS view. */
#ifndef ENGINE_DESCRIBE_CUBIN_H
#define ENGINE_DESCRIBE_CUBIN_H

#include "engine/engine.h"
#include "sass_view/cubin.h"

/* Kernel `i` of the backend's list. Does nothing for kernels without a cubin; a cubin that can't be
 * read costs its census, told as LOG. */
void describe_cubin(struct engine *e, const struct kernel_info *list, uint32_t i);

/* Reads and opens the cubin of a kernel: *c points into *bytes; cubin_close() and free() them.
 * ERR_UNAVAILABLE when there is none, else as cubin_open_memory(): nothing is left then. */
enum status describe_open(const struct kernel_info *k, struct cubin *c, uint8_t **bytes, size_t *n);

#endif
