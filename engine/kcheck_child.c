/* See kcheck_child.h. An answer is bounded: what comes after ANSWER_MAX is read and dropped. */
#include "engine/kcheck_child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20, POLL_MS = 250, REAP_MS = 5 };

extern char **environ;

static pid_t spawn(char *const argv[], int *out)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none;
    int fds[2];
    pid_t pid = -1;
    if (pipe2(fds, O_CLOEXEC) != 0) return -1;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, fds[1], 1);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attr, &none);
    if (posix_spawn(&pid, argv[0], &fa, &attr, argv, environ) != 0) pid = -1;
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    close(fds[1]);
    if (pid < 0)
        close(fds[0]);
    else
        *out = fds[0];
    return pid;
}

/* Whether the child may go on: asked every POLL_MS, also while it talks without end. */
struct watch {
    bool (*go_on)(void *ctx);
    void *ctx;
    uint64_t asked_ns, end_ns;
    enum kcheck_end end; /* KCHECK_DONE while it may */
};

static bool may_go_on(struct watch *w)
{
    uint64_t now = clock_mono_ns();
    if (now < w->asked_ns + POLL_MS * 1000000ull) return true;
    w->asked_ns = now;
    if (!w->go_on(w->ctx))
        w->end = KCHECK_GIVEN_UP;
    else if (now >= w->end_ns)
        w->end = KCHECK_LATE;
    return w->end == KCHECK_DONE;
}

/* Reads until the child closes its end or may not go on. */
static void read_all(struct watch *w, int fd, struct buf *answer)
{
    char bytes[4096];
    while (may_go_on(w)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, POLL_MS) <= 0) continue;
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n == 0) return;
        if (n > 0 && answer->len < ANSWER_MAX) buf_put(answer, bytes, (size_t)n);
    }
}

/* Reaps it; one that has closed its end and stays, or may not go on, is killed. */
static void reap(struct watch *w, pid_t pid, int *wstatus)
{
    pid_t got = 0;
    while (w->end == KCHECK_DONE && (got = waitpid(pid, wstatus, WNOHANG)) == 0 && may_go_on(w))
        poll(NULL, 0, REAP_MS);
    if (got == pid) return;
    kill(pid, SIGKILL);
    while (waitpid(pid, wstatus, 0) < 0 && errno == EINTR) continue;
}

enum status kcheck_run(char *const argv[], int seconds, bool (*go_on)(void *ctx), void *ctx,
                       struct buf *answer, enum kcheck_end *end, int *wstatus)
{
    int fd = -1;
    pid_t pid = spawn(argv, &fd);
    if (pid < 0) return err_set(ERR_UNAVAILABLE, "%s can't be started", argv[0]);
    uint64_t now = clock_mono_ns();
    struct watch w = {go_on, ctx, now, now + (uint64_t)seconds * 1000000000u, KCHECK_DONE};
    read_all(&w, fd, answer);
    close(fd);
    reap(&w, pid, wstatus);
    *end = w.end;
    return OK;
}
