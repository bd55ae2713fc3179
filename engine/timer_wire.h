/*
 * The process for timed rounds as its engine sees it: a pid, and a socket of frames.
 *
 * It stays in the engine's process group and ends when the engine does, however that ends: it asks
 * the kernel for that (timer_child.h), and its socket has an end. Only this pid is ever signalled,
 * and only before it is reaped. Launching thread: the kernel's promise is about the thread that
 * starts the child.
 */
#ifndef ENGINE_TIMER_WIRE_H
#define ENGINE_TIMER_WIRE_H

#include "session/proto.h"

#include <sys/types.h>

struct timer_wire {
    pid_t pid; /* 0: none runs */
    int fd;
    struct buf in;
    size_t at;    /* of `in`: what was taken */
    char how[80]; /* how it ended, once timer_wire_end() was called */
};

enum { TIMER_WIRE_FD = 3 }; /* the child's end of the socket, in the child */

/* Starts argv (argv[0] = the path). ERR_FAILED. */
enum status timer_wire_start(struct timer_wire *w, char *const argv[]);

/* The next frame, waited for at most `ms`; it lives until the next call. ERR_AGAIN: none yet;
 * ERR_END: its end of the socket is closed; ERR_FORMAT: what came is no frame. */
enum status timer_wire_next(struct timer_wire *w, int ms, struct frame *f);

/* ERR_END when it can't be sent: the child is gone, or has not read for long. */
enum status timer_wire_send(struct timer_wire *w, const struct msg_command *c);

/* Kills it where it still runs, reaps it, and says in `how` how it ended. Fine when none runs. */
void timer_wire_end(struct timer_wire *w);

#endif
