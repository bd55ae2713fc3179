/*
 * Status codes and the one error message of a thread.
 *
 * A function that can fail returns enum status. The message is set once, where the cause is known,
 * and says what happened, what still works and what to try. Callers pass the status on untouched.
 * The message is thread-local and stays until the next err_set() of that thread.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stdarg.h>

enum status {
    OK = 0,
    ERR_FAILED,      /* it was tried and went wrong */
    ERR_USAGE,       /* the caller's words are off (exit status 2) */
    ERR_UNAVAILABLE, /* can't be done on this machine (exit status 3) */
    ERR_FORMAT,      /* input bytes are not what they should be */
    ERR_LIMIT,       /* a named limit was met */
    ERR_NOMEM,
    ERR_IO,
    ERR_AGAIN, /* nothing yet: not an error, no message */
    ERR_END,   /* the input has ended: not an error, no message */
};

/* Exit statuses of every program here. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNAVAILABLE = 3 };

/* Sets this thread's message and returns `st`, so that `return err_set(ERR_IO, ...)` reads well.
 * A message longer than the limit (1 KiB) is cut. */
enum status err_set(enum status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "text: " before the message that is there already; returns `st`. */
enum status err_prefix(enum status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The message of this thread; "" when none was set. Never NULL. */
const char *err_msg(void);

/* The exit status that fits: OK 0, ERR_USAGE 2, ERR_UNAVAILABLE 3, all else 1. */
int err_exit_code(enum status st);

#endif
