/*
 * What the screen asks for, and when to leave: one thread reads the socket and the signals.
 *
 * commands_open() needs SIGTERM, SIGINT and SIGHUP blocked in every thread
 * (commands_block_signals(), first thing in main). On a socket, COMMAND frames are queued for the
 * launching thread, which takes them at token boundaries; end of file means that the screen is
 * gone, and ends the process at once, whatever the launching thread does. On a pipe or file nothing
 * is read. After a signal the launching thread has COMMANDS_GRACE_NS to leave; then the thread
 * sends BYE itself and exits 0.
 */
#ifndef ENGINE_COMMANDS_H
#define ENGINE_COMMANDS_H

#include "engine/emit.h"

enum {
    COMMANDS_MAX = 64, /* waiting ones; more are refused */
    COMMANDS_GRACE_NS = 1000000000,
};

struct commands;

void commands_block_signals(void);

enum status commands_open(int fd, struct emit *emit, struct commands **out);
void commands_close(struct commands *c); /* NULL is fine */

/* Takes the oldest waiting command; false when there is none. Never waits. */
bool commands_take(struct commands *c, struct msg_command *out);
/* Waits until a command waits or it is time to leave, at most `timeout_ns`. */
void commands_wait(struct commands *c, uint64_t timeout_ns);
bool commands_waiting(struct commands *c);  /* is there one? */
bool commands_stopping(struct commands *c); /* a signal asked to leave */

#endif
