/* Runs a command of sasstop inside a test and keeps what it printed. One thread, cmocka's asserts.
 */
#ifndef TESTS_CAPTURE_H
#define TESTS_CAPTURE_H

#include <stddef.h>

/* Both streams of `cmd` into out[size], NUL-terminated and cut to fit; returns its exit status. */
int capture_command(int (*cmd)(int, char **), int argc, char **argv, char *out, size_t size);

/* The same, stderr apart in err[err_size]. */
int capture_streams(int (*cmd)(int, char **), int argc, char **argv, char *out, size_t size,
                    char *err, size_t err_size);

#endif
