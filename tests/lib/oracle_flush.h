/*
 * Puts the L2 into the same state before each launch that the oracle (tests/gpu/oracle.c) compares:
 * the kernel of tests/gpu/oracle.cu reads four times the L2. Memory and module live until the
 * process ends. The launching thread alone.
 */
#ifndef TESTS_ORACLE_FLUSH_H
#define TESTS_ORACLE_FLUSH_H

#include "engine/backend.h"

extern const char oracle_flush_name[];

/* Loads oracle.sm_90a.cubin from the folder of the program `self`; the backend is open. ERR_IO
 * without the file, ERR_FAILED with the driver's word (a GPU that is no sm_90 can't load it). */
enum status oracle_flush_open(struct backend *gpu, const char *self);

/* One launch on the backend's stream, asynchronous. */
enum status oracle_flush_launch(void);

#endif
