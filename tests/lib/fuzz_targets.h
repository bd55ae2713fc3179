/*
 * What the fuzzers run, and what `make test` runs on the kept inputs: one function a format. Each
 * takes any bytes, uses all that a screen would of what they open, and leaves nothing behind. A
 * broken promise (sums that don't add up, a text past its limit) aborts. One thread.
 */
#ifndef TESTS_LIB_FUZZ_TARGETS_H
#define TESTS_LIB_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

void fuzz_gguf(const uint8_t *data, size_t size);
/* What starts as a session file is read as one; all else is frames for the fold, {u8 type, u8
 * version, u16 length, payload} each, so that no checksum is in the way. */
void fuzz_session(const uint8_t *data, size_t size);
void fuzz_cubin(const uint8_t *data, size_t size);
void fuzz_container(const uint8_t *data, size_t size);
/* First byte picks the arch, the rest is code. */
void fuzz_decode(const uint8_t *data, size_t size);
void fuzz_lines(const uint8_t *data, size_t size);
void fuzz_rules(const uint8_t *data, size_t size);

struct fuzz_target {
    const char *name; /* of the folder in tests/fuzz/ */
    void (*run)(const uint8_t *data, size_t size);
};

/* Row i, NULL past the end. */
const struct fuzz_target *fuzz_target_at(size_t i);

#endif
