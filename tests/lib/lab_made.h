/*
 * A made-up experiment, frame by frame into a session's fold; for tests under cmocka. Whoever calls
 * lab_made() frees the session.
 */
#ifndef TESTS_LAB_MADE_H
#define TESTS_LAB_MADE_H

#include "session/model.h"

extern const struct msg_experiment lab_made_def; /* experiment 1 */

void lab_made_put(struct session *s, enum frame_type type, uint64_t t, const void *msg);
void lab_made_pair(struct session *s, const char *kind, uint32_t i, double a, double b); /* us */

/* The session's start, the experiment, a gate, 12 pairs A/B and 12 A/A. B takes `share` of A's
 * time; the jitter is 0.1 %. */
void lab_made(struct session *s, double share);
void lab_made_figure(struct session *s, const char *name, const char *unit, double a, double b);
void lab_made_verdict(struct session *s); /* the one that follows */

#endif
