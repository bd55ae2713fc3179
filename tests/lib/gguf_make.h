/*
 * Small GGUF files made in memory: models of every tensor type and both tokenizers, and the means
 * to spoil them.
 *
 * The committed files in tests/fixtures/gguf/ are exactly what gguf_make_fixture() gives; a test
 * holds that, and rewrites them when ACCEPT=1 is set. Buffers belong to the caller.
 */
#ifndef TESTS_LIB_GGUF_MAKE_H
#define TESTS_LIB_GGUF_MAKE_H

#include "base/buf.h"
#include "engine/gguf.h"

enum { GGUF_MAKER_TENSORS = 128 };

/* A file being made: metadata entries are appended to `kv` with the synth_put_kv_*() functions,
 * each adding 1 to n_kv. Zero-initialise; alignment 0 means 32 with no metadata entry for it. */
struct gguf_maker {
    struct buf kv, data;
    uint64_t n_kv;
    uint32_t alignment;
    size_t n_tensors;
    struct {
        char name[64];
        uint32_t type, n_dims;
        uint64_t ne[GGUF_MAX_DIMS], offset;
    } tensors[GGUF_MAKER_TENSORS];
};

/* Adds a matrix (rows > 0) or vector (rows 0) of Gaussian values * sd + mean, its stream numbered
 * by its place. */
void gguf_maker_tensor(struct gguf_maker *m, const char *name, enum quant_type type, uint64_t row,
                       uint64_t rows, float sd, float mean);

/* Appends the whole file to `out`. */
void gguf_maker_finish(const struct gguf_maker *m, struct buf *out);
void gguf_maker_free(struct gguf_maker *m);

/* The models of tests/fixtures/gguf/. */
size_t gguf_fixture_count(void);
const char *gguf_fixture_name(size_t i); /* "llama-q4_k-bpe.gguf" */
void gguf_make_fixture(size_t i, struct buf *out);

/* The maker of fixture i before it is finished, to be spoiled. */
void gguf_fixture_maker(size_t i, struct gguf_maker *m);

#endif
