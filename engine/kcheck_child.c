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
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20, POLL_MS = 250 };

extern char **environ;

bool kcheck_path(char *out, size_t size)
{
    const char *own = getenv("SASSTOP_KCHECK");
    if (own && *own) {
        snprintf(out, size, "%s", own);
        return access(out, X_OK) == 0;
    }
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n <= 0) return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash || (size_t)(slash - out) + sizeof "/kcheck" > size) return false;
    strcpy(slash, "/kcheck");
    return access(out, X_OK) == 0;
}

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

/* Reads until the child closes its end, or has to be killed. */
static enum kcheck_end read_all(pid_t pid, int fd, int seconds, bool (*go_on)(void *ctx), void *ctx,
                                struct buf *answer)
{
    uint64_t end = clock_mono_ns() + (uint64_t)seconds * 1000000000u;
    char bytes[4096];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, POLL_MS);
        if (ready > 0) {
            ssize_t n = read(fd, bytes, sizeof bytes);
            if (n == 0) return KCHECK_DONE;
            if (n > 0 && answer->len < ANSWER_MAX) buf_put(answer, bytes, (size_t)n);
            continue;
        }
        bool wanted = go_on(ctx);
        if (wanted && clock_mono_ns() < end) continue;
        kill(pid, SIGKILL);
        return wanted ? KCHECK_LATE : KCHECK_GIVEN_UP;
    }
}

enum status kcheck_run(char *const argv[], int seconds, bool (*go_on)(void *ctx), void *ctx,
                       struct buf *answer, enum kcheck_end *end, int *wstatus)
{
    int fd = -1;
    pid_t pid = spawn(argv, &fd);
    if (pid < 0) return err_set(ERR_UNAVAILABLE, "%s can't be started", argv[0]);
    *end = read_all(pid, fd, seconds, go_on, ctx, answer);
    close(fd);
    while (waitpid(pid, wstatus, 0) < 0 && errno == EINTR) continue;
    return OK;
}
