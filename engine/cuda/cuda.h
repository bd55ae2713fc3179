/*
 * What the CUDA backend offers beyond engine/backend.h: writing into a buffer, for tests that check
 * single operators. The launching thread alone may call it.
 */
#ifndef ENGINE_CUDA_H
#define ENGINE_CUDA_H

#include "engine/backend.h"

/* Copies `bytes` to `to` + offset, after all that was launched before. ERR_LIMIT when it doesn't
 * fit, ERR_FAILED with the driver's word. */
enum status cuda_upload(struct backend *b, const struct buffer *to, size_t offset, const void *from,
                        size_t bytes);

#endif
