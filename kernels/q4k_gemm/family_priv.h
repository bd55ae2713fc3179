/* Shared by the files of this family's host side only. */
#ifndef KERNELS_Q4K_GEMM_FAMILY_PRIV_H
#define KERNELS_Q4K_GEMM_FAMILY_PRIV_H

#include "kernels/family.h"

/* See struct kernel_family.make_inputs. */
enum status q4k_make_inputs(const struct shape *s, enum input_kind kind, uint64_t seed,
                            struct family_inputs *out);

/* See struct kernel_family.widen. */
void q4k_widen(const struct shape *s, const struct family_inputs *in, int token, int row,
               struct reference_value *ref);

/* See struct kernel_family.prepare. */
enum status q4k_prepare(const struct variant_desc *d, const struct shape *s,
                        const uint8_t *canonical, uint8_t **out, size_t *out_bytes);

#endif
