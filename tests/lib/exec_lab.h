/*
 * Small sessions with executed counts, for tests. Rows and kernels are numbered as on the wire; the
 * session of exec_start() has kernel 2, nb_kd8, with row 1 (index 0) of 1000 MACs and 4 warps.
 * Failures end the test. One thread.
 */
#ifndef TESTS_EXEC_LAB_H
#define TESTS_EXEC_LAB_H

#include "session/model.h"

enum { EXEC_KEYS = 3, EXEC_SOME = 4 };

/* FFMA and FADD of class float, IMMA of class tensor. */
extern const struct exec_key exec_keys[EXEC_KEYS];

/* In 4 warps: FFMA runs 10 times each in a loop, one of two never; IMMA 5 times with a guard that
 * half of the threads pass; FADD was not counted. 60 in all. */
extern const struct exec_item exec_some[EXEC_SOME];

struct session *exec_start(void); /* for lab_end() */
void exec_kernel(struct session *s, uint32_t number, const char *name, uint64_t code_hash);
/* Of 2 blocks of 64 threads. */
void exec_row(struct session *s, uint32_t number, uint32_t of_kernel, uint32_t generation,
              uint32_t m_, double macs);
void exec_put_keys(struct buf *b);
/* An EXECUTED frame with exec_keys. */
void exec_tell(struct session *s, uint32_t of_row, uint32_t of_kernel, uint8_t has,
               const struct exec_item *items, unsigned n);
/* FFMA ffma_hot times, FADD 10, IMMA 20 times in a hot loop of 1000 MACs; with_hot false: as in
 * recordings that don't tell. */
void exec_census(struct session *s, uint32_t number, uint32_t ffma_hot, bool with_hot);

#endif
