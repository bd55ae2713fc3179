/*
 * One engine process: started with fork and exec in its own process group, ended, never more than
 * one at a time. Used by source_engine.c alone. One thread.
 */
#ifndef TUI_ENGINE_CHILD_H
#define TUI_ENGINE_CHILD_H

#include "tui/options.h"

#include <stddef.h>
#include <sys/types.h>

struct engine_child {
    pid_t pid;
    int fd;     /* our end of the socket pair, nonblocking */
    int err_fd; /* its stdout and stderr, nonblocking */
};

struct engine_spawn {
    const char *program;
    const struct run_options *options;
    uint64_t epoch_ns;
    uint32_t instance, generation_base;
    const char *session_id;
    const char *variant, *kd; /* instead of those of the options; NULL = the options' */
};

enum status engine_spawn(const struct engine_spawn *how, struct engine_child *child);
/* Ends it: TERM, after a second KILL; reaps it. */
void engine_child_end(struct engine_child *child);
void engine_child_close(struct engine_child *child); /* our ends of its pipes */

/* The path of the engine program: $SASSTOP_ENGINE, else beside the running program. */
enum status engine_program(char *path, size_t size);

#endif
