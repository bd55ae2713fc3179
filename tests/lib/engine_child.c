/* An engine in a forked child; see engine_child.h. */
#include "tests/lib/engine_child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 40 };

static void run_child(int fd, const char *const *words)
{
    char number[16], *argv[MAX_WORDS + 4] = {"sasstop-engine", "--fd", number};
    struct options opt;
    int argc = 3;
    snprintf(number, sizeof number, "%d", fd);
    for (; *words && argc < MAX_WORDS; words++) argv[argc++] = (char *)(uintptr_t)*words;
    commands_block_signals();
    enum status st = options_parse(argc, argv, &opt);
    _exit(st == OK ? engine_run(&opt) : err_exit_code(st));
}

void engine_child_start(struct engine_child *c, const char *const *words)
{
    int fds[2];
    *c = (struct engine_child){.fd = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    fflush(NULL);
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        close(fds[0]);
        run_child(fds[1], words);
    }
    close(fds[1]);
    c->fd = fds[0];
}

/* More bytes; false at the end of the stream. */
static bool read_more(struct engine_child *c)
{
    uint8_t bytes[65536];
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    if (c->ended || c->fd < 0) return false;
    assert_int_equal(poll(&p, 1, ENGINE_CHILD_MS), 1); /* else: it said nothing for too long */
    ssize_t n = read(c->fd, bytes, sizeof bytes);
    if (n <= 0) {
        c->ended = true;
        return false;
    }
    if (c->at > 1 << 20) {
        memmove(c->bytes.data, c->bytes.data + c->at, c->bytes.len - c->at);
        c->bytes.len -= c->at;
        c->at = 0;
    }
    buf_put(&c->bytes, bytes, (size_t)n);
    assert_false(c->bytes.failed);
    return true;
}

bool engine_child_next(struct engine_child *c, struct frame *f)
{
    size_t used = 0;
    for (;;) {
        enum status st = c->at < c->bytes.len
                             ? proto_next(c->bytes.data + c->at, c->bytes.len - c->at, f, &used)
                             : ERR_AGAIN;
        if (st == OK) {
            c->at += used;
            return true;
        }
        assert_int_equal(st, ERR_AGAIN); /* else: the stream is garbled */
        if (!read_more(c)) return false;
    }
}

bool engine_child_until(struct engine_child *c, enum frame_type type, void *msg, size_t size)
{
    struct frame f;
    while (engine_child_next(c, &f)) {
        if (f.type != type) continue;
        assert_int_equal(proto_decode(&f, msg, size), OK);
        return true;
    }
    return false;
}

void engine_child_command(struct engine_child *c, const struct msg_command *m)
{
    struct buf b = {0};
    assert_int_equal(proto_encode(&b, FRAME_COMMAND, 0, m), OK);
    assert_int_equal(send(c->fd, b.data, b.len, MSG_NOSIGNAL), (ssize_t)b.len);
    buf_free(&b);
}

void engine_child_hang_up(struct engine_child *c)
{
    close(c->fd);
    c->fd = -1;
}

int engine_child_wait(struct engine_child *c)
{
    struct frame f;
    int status = 0;
    while (c->fd >= 0 && engine_child_next(c, &f)) continue;
    while (waitpid(c->pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
    if (c->fd >= 0) close(c->fd);
    buf_free(&c->bytes);
    return status;
}
