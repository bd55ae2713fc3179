/*
 * Cubins for the SASS tests: the committed ones, and those compiled here from tests/fixtures/sass/.
 *
 * Compiled ones are kept in build/sass_corpus/ and made again when their source is newer. Paths are
 * static and valid until the next call. Tests run from the repository's root.
 */
#ifndef TESTS_LIB_SASS_LAB_H
#define TESTS_LIB_SASS_LAB_H

#include <stdbool.h>
#include <stddef.h>

struct lab_source {
    const char *name, *arch; /* "memory", "90a" */
};

/* Row i of the corpus, NULL past the end. */
const struct lab_source *lab_corpus(size_t i);

/* The cubin of one source, compiled when need be; NULL when there's no nvcc, or it knows no such
 * arch: *why then says which. */
const char *lab_build(const struct lab_source *s, const char **why);

/* Calls fn for each file: the committed cubins, then what of the corpus is or can be compiled, then
 * every cubin under build/cubin. Returns the number of files. */
size_t lab_each_cubin(void (*fn)(const char *path, void *ctx), void *ctx);

/* Whether nvcc was found. */
bool lab_have_nvcc(void);

/* Whether that nvcc is of this release ("13.0"). */
bool lab_nvcc_is(const char *release);

#endif
