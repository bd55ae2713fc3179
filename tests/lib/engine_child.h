/*
 * An engine in a forked child of the test, and the screen's end of its socket. The child runs
 * engine_run() itself, so no program needs to be built. One test thread; a test that forks must
 * have no threads of its own. Waiting has a limit (ENGINE_CHILD_MS) and then fails the test.
 */
#ifndef TESTS_LIB_ENGINE_CHILD_H
#define TESTS_LIB_ENGINE_CHILD_H

#include "engine/options.h"
#include "session/proto.h"

#include <sys/types.h>

enum { ENGINE_CHILD_MS = 60000 };

struct engine_child {
    pid_t pid;
    int fd;
    struct buf bytes;
    size_t at;
    bool ended; /* end of stream was read */
};

/* Starts with the command line's words after the program's name (NULL-terminated); "--fd" is added.
 */
void engine_child_start(struct engine_child *c, const char *const *words);

/* The next frame; it lives until the next call. false at the end of the stream. */
bool engine_child_next(struct engine_child *c, struct frame *f);

/* Skips to the next frame of a type and decodes it into msg. false: the stream ended before. */
bool engine_child_until(struct engine_child *c, enum frame_type type, void *msg, size_t size);

void engine_child_command(struct engine_child *c, const struct msg_command *m);
void engine_child_hang_up(struct engine_child *c); /* closes the screen's end */

/* Reads to the end of the stream, then waits: the status of waitpid. Frees the bytes. */
int engine_child_wait(struct engine_child *c);

#endif
