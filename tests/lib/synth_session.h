/*
 * A whole made-up GPU session for tests: seven kernels' variants on a made-up model, six flips, a
 * fault with a restart, windows, stalls, exact counters, censuses. The device is called "synthetic"
 * and no figure in it was measured. Equal seeds give equal bytes.
 *
 * Nothing here owns what it is given; one thread.
 */
#ifndef TESTS_SYNTH_SESSION_H
#define TESTS_SYNTH_SESSION_H

#include "session/model.h"

/* The seed of tests/fixtures/synthetic.sasstop. */
enum { SYNTH_SEED = 20251 };

/* Appends the session's frames, as on the socket. */
enum status synth_session(struct buf *out, uint64_t seed);

/* Writes them as a session file, which must not exist yet. */
enum status synth_session_file(const char *path, uint64_t seed);

/* Folds all whole frames of [p, p+n); bytes that are none are skipped. */
enum status synth_fold(struct session *s, const uint8_t *p, size_t n);

#endif
