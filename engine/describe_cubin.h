/* CENSUS of a kernel and, once a file, MODULE: the cubin's bytes, for the SASS view. */
#ifndef ENGINE_DESCRIBE_CUBIN_H
#define ENGINE_DESCRIBE_CUBIN_H

#include "engine/engine.h"

/* Kernel `i` of the backend's list. Does nothing for kernels without a cubin; a cubin that can't be
 * read costs its census, told as LOG. */
void describe_cubin(struct engine *e, const struct kernel_info *list, uint32_t i);

#endif
