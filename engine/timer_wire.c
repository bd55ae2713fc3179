/* See timer_wire.h. posix_spawn, not fork: an engine has gigabytes mapped and several threads. */
#include "engine/timer_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_BYTES = 16 << 10, LEAVE_MS = 200 };

extern char **environ;

static pid_t spawn(char *const argv[], int fd)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none;
    pid_t pid = -1;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, fd, TIMER_WIRE_FD);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attr, &none);
    int rc = posix_spawn(&pid, argv[0], &fa, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    errno = rc;
    return rc ? -1 : pid;
}

enum status timer_wire_start(struct timer_wire *w, char *const argv[])
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return err_set(ERR_FAILED, "no socket for it: %s", strerror(errno));
    /* Moved out of the way: dup2 onto itself would leave close-on-exec as it is. */
    int fd = fcntl(pair[1], F_DUPFD_CLOEXEC, TIMER_WIRE_FD + 1);
    pid_t pid = fd < 0 ? -1 : spawn(argv, fd);
    int why = errno;
    close(pair[1]);
    if (fd >= 0) close(fd);
    if (pid < 0) {
        close(pair[0]);
        return err_set(ERR_FAILED, "%s can't be started: %s", argv[0], strerror(why));
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    buf_reset(&w->in);
    *w = (struct timer_wire){.pid = pid, .fd = pair[0], .in = w->in};
    return OK;
}

/* Takes what has come; ERR_END: nothing will come any more. */
static enum status read_more(struct timer_wire *w)
{
    uint8_t bytes[READ_BYTES];
    if (w->at) {
        memmove(w->in.data, w->in.data + w->at, w->in.len - w->at);
        w->in.len -= w->at;
        w->at = 0;
    }
    ssize_t n = recv(w->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return ERR_END;
    if (n < 0) return ERR_AGAIN;
    buf_put(&w->in, bytes, (size_t)n);
    return w->in.failed ? err_set(ERR_NOMEM, "out of memory for frames") : OK;
}

enum status timer_wire_next(struct timer_wire *w, int ms, struct frame *f)
{
    size_t used = 0;
    if (!w->pid) return ERR_END;
    for (;;) {
        enum status st = w->at < w->in.len
                             ? proto_next(w->in.data + w->at, w->in.len - w->at, f, &used)
                             : ERR_AGAIN;
        w->at += used;
        if (st != ERR_AGAIN) return st;
        if ((st = read_more(w)) == OK) continue;
        if (st != ERR_AGAIN || ms <= 0) return st;
        struct pollfd p = {.fd = w->fd, .events = POLLIN};
        poll(&p, 1, ms);
        ms = 0;
    }
}

enum status timer_wire_send(struct timer_wire *w, const struct msg_command *c)
{
    struct buf b = {0};
    enum status st = w->pid ? proto_encode(&b, FRAME_COMMAND, 0, c) : ERR_END;
    /* A command is far smaller than the socket's room, which the child keeps empty. */
    if (st == OK && send(w->fd, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)b.len)
        st = ERR_END;
    buf_free(&b);
    return st;
}

/* Whether it leaves by itself, now that its socket is closed or it has closed its own. */
static bool leaves(pid_t pid, int *status)
{
    for (int ms = 0; ms <= LEAVE_MS; ms += 5) {
        pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid) return true;
        if (got < 0 && errno != EINTR) break;
        poll(NULL, 0, 5);
    }
    return false;
}

void timer_wire_end(struct timer_wire *w)
{
    int status = 0;
    if (!w->pid) return;
    close(w->fd);
    if (!leaves(w->pid, &status)) {
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) continue;
    }
    if (WIFSIGNALED(status))
        snprintf(w->how, sizeof w->how, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(w->how, sizeof w->how, "left with status %d", WEXITSTATUS(status));
    w->pid = 0;
    w->fd = -1;
    buf_free(&w->in);
    w->in = (struct buf){0};
    w->at = 0;
}
