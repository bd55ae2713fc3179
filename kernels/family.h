/*
 * A kernel family: one mathematical contract, one reference, many variants.
 *
 * kernels/FAMILY/family.c fills one const struct kernel_family; the launcher, kcheck and the bench
 * work through it and know no family by name. To add one: a folder with family.c and ref.c, and a
 * row in family.c beside this header.
 *
 * Threads: everything here is pure but for the memory in struct family_inputs, which
 * family_inputs_free() releases.
 */
#ifndef KERNELS_FAMILY_H
#define KERNELS_FAMILY_H

#include "base/status.h"
#include "kernels/variant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Output rows, tokens, inner dimension. */
struct shape {
    int m, n, k;
};

enum input_kind {
    INPUT_RANDOM,   /* what a model looks like */
    INPUT_EXTREME,  /* the largest scales, mins, nibbles and activations, signs mixed */
    INPUT_NEGATIVE, /* every activation -127: the sums are at their most negative */
    INPUT_ZERO,     /* whole blocks and whole tokens of zeros among random ones */
    INPUT_KINDS,    /* the ones above are the check; those below only narrow a failure down */
    INPUT_NO_MIN = INPUT_KINDS, /* random, but the weights' mins are 0 */
    INPUT_ALIKE,                /* random, but every token is the same */
};

/* Host copies in the family's canonical layout. Freed by family_inputs_free(). */
struct family_inputs {
    uint8_t *a; /* activations */
    uint8_t *b; /* weights */
    size_t a_bytes, b_bytes;
};

/* One output element by the reference. */
struct reference_value {
    double v;   /* the exact integer dots, combined in double */
    double mag; /* sum of the absolute values of the terms added: what rounding scales with */
    /* Of numeric classes but q8, by the family's widen(): */
    double abs;    /* the same over single products, each part of a weight apart */
    double square; /* expected square error in units of the class's relative rounding, squared */
};

/* Limits for one output element and, summed, for the whole (see the family's tolerance()). */
struct tolerance {
    double worst;       /* |y - v| may reach this */
    double mean_square; /* expected square error, to be summed over elements for the NMSE limit */
};

struct kernel_family {
    const char *name;
    const char *title;
    const struct shape *shapes; /* what kcheck runs by default, ragged ones included */
    int n_shapes;

    /* OK or ERR_USAGE with the reason (k not a multiple of the block, a dimension out of range). */
    enum status (*check_shape)(const struct shape *s);
    /* Deterministic in (shape, kind, seed). */
    enum status (*make_inputs)(const struct shape *s, enum input_kind kind, uint64_t seed,
                               struct family_inputs *out);
    /* Output element (token, row); in range by the caller's word. */
    struct reference_value (*reference)(const struct shape *s, const struct family_inputs *in,
                                        int token, int row);
    /* Fills ref->abs and ref->square, for classes that round single values. */
    void (*widen)(const struct shape *s, const struct family_inputs *in, int token, int row,
                  struct reference_value *ref);
    struct tolerance (*tolerance)(const struct variant_desc *d, const struct shape *s,
                                  const struct reference_value *ref);
    /* Canonical weights -> the layout this variant wants (desc.layout_b). When it is the canonical
     * one *out stays NULL. Otherwise the caller frees *out. ERR_UNAVAILABLE: unknown layout. */
    enum status (*prepare)(const struct variant_desc *d, const struct shape *s,
                           const uint8_t *canonical, uint8_t **out, size_t *out_bytes);
    /* The same for activations and desc.layout_a. */
    enum status (*prepare_a)(const struct variant_desc *d, const struct shape *s,
                             const uint8_t *canonical, uint8_t **out, size_t *out_bytes);
    /* Grid for a shape; block and shared memory come from the descriptor. */
    void (*geometry)(const struct variant_desc *d, const struct shape *s, uint32_t grid[3]);
    double (*macs)(const struct shape *s);
    double (*bytes)(const struct shape *s); /* read and written once each */
    size_t (*a_bytes)(const struct shape *s);
    size_t (*b_bytes)(const struct shape *s);
    size_t (*y_bytes)(const struct shape *s); /* y[n][m] f32 */
};

/* Arguments of every kernel of q4k_gemm, in order:
 *   const uint8_t *w   Q4_K super-blocks, m rows of k/256 * 144 bytes, 16-byte aligned
 *   const uint8_t *a   by desc.layout_a: q8 chunks, n tokens of k/32 * 40 bytes, 8-byte aligned; or
 *                      "bf16" (kernels/bf16.h), 16-byte aligned
 *   float *y           y[token * m + row], 8-byte aligned
 *   int m, n, k
 * Every m, n >= 1; k a multiple of 256. */

const struct kernel_family *family_find(const char *name); /* NULL when unknown */
int family_count(void);
const struct kernel_family *family_get(int i);
void family_inputs_free(struct family_inputs *in);

#endif
