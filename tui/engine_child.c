/* Starting and ending the engine process; see engine_child.h. The child gets its socket as
 * descriptor 3 and nothing else of ours; it exits by itself when we die, since its socket ends. */
#include "tui/engine_child.h"

#include "base/clock.h"
#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_FD = 3, ARGS_MAX = 64 };

struct args {
    const char *v[ARGS_MAX];
    unsigned n;
    char numbers[4][24];
};

static void add(struct args *a, const char *option, const char *value)
{
    if (a->n + 3 > ARGS_MAX) return;
    a->v[a->n++] = option;
    if (value) a->v[a->n++] = value;
}

static void add_if(struct args *a, const char *option, const char *value)
{
    if (value) add(a, option, value);
}

static void make_args(const struct engine_spawn *how, struct args *a)
{
    const struct run_options *o = how->options;

    add(a, how->program, NULL);
    snprintf(a->numbers[0], sizeof a->numbers[0], "%d", CHILD_FD);
    snprintf(a->numbers[1], sizeof a->numbers[1], "%llu", (unsigned long long)how->epoch_ns);
    snprintf(a->numbers[2], sizeof a->numbers[2], "%u", how->instance);
    snprintf(a->numbers[3], sizeof a->numbers[3], "%u", how->generation_base);
    add(a, "--fd", a->numbers[0]);
    add(a, "--epoch-ns", a->numbers[1]);
    add(a, "--instance", a->numbers[2]);
    add(a, "--generation-base", a->numbers[3]);
    add(a, "--session", how->session_id);
    if (o->command[0]) add(a, "--command", o->command);
    add_if(a, "--model", o->model);
    add_if(a, "--backend", o->backend);
    add_if(a, "--prompt", o->prompt);
    add_if(a, "--tokens", o->tokens);
    add_if(a, "--bench", o->bench);
    add_if(a, "--sources", o->sources);
    add_if(a, "--exact", o->exact);
    add_if(a, "--schedule", o->schedule);
    add_if(a, "--rest", o->rest);
    add_if(a, "--timer", o->timer);
    add_if(a, "--blocks", o->blocks);
    add_if(a, "--variants", o->variants);
    add_if(a, "--executed", o->executed);
    add_if(a, "--threads", o->threads);
    add_if(a, "--seed", o->seed);
    add_if(a, "--context", o->context);
    add_if(a, "--variant", how->variant ? how->variant : o->variant);
    add_if(a, "--kd", how->variant ? how->kd : o->kd);
    /* A scripted fault is for the first instance: the restart has to survive. */
    if (how->instance == 1) add_if(a, "--script-fault", o->script_fault);
    if (o->no_graphs) add(a, "--no-graphs", NULL);
    if (o->no_parity) add(a, "--no-parity", NULL);
    a->v[a->n] = NULL;
}

/* In the child: only async-signal-safe calls from here on. */
static void become_engine(const struct args *a, int fd, int err_fd)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR);

    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    dup2(null, 0);
    dup2(err_fd, 1);
    dup2(err_fd, 2);
    if (fd == CHILD_FD)
        fcntl(fd, F_SETFD, 0);
    else
        dup2(fd, CHILD_FD);
    execv(a->v[0], (char *const *)(uintptr_t)a->v);
    static const char words[] = "the engine program can't be started\n";
    ssize_t n = write(2, words, sizeof words - 1);
    (void)n;
    _exit(127);
}

enum status engine_spawn(const struct engine_spawn *how, struct engine_child *child)
{
    int pair[2] = {-1, -1}, err[2] = {-1, -1};
    struct args a = {.n = 0};

    make_args(how, &a);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) || pipe2(err, O_CLOEXEC))
        goto fail;
    pid_t pid = fork();
    if (pid < 0) goto fail;
    if (pid == 0) {
        /* Keep both clear of 0..3 before they are moved there. */
        int fd = fcntl(pair[1], F_DUPFD_CLOEXEC, 10), err_fd = fcntl(err[1], F_DUPFD_CLOEXEC, 10);
        become_engine(&a, fd, err_fd);
    }
    setpgid(pid, pid);
    close(pair[1]);
    close(err[1]);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    *child = (struct engine_child){.pid = pid, .fd = pair[0], .err_fd = err[0]};
    return OK;
fail:
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0) close(pair[i]);
        if (err[i] >= 0) close(err[i]);
    }
    return err_set(ERR_FAILED, "the engine can't be started: %s", strerror(errno));
}

static bool reaped_within(pid_t pid, int fd, uint64_t ns)
{
    uint64_t end = clock_mono_ns() + ns;
    char bytes[4096];

    for (;;) {
        pid_t got = waitpid(pid, NULL, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR)) return true;
        if (clock_mono_ns() >= end) return false;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        /* Its end of file wakes us; until then take what it still writes, so that it can leave. */
        if (poll(&p, 1, 20) > 0 && read(fd, bytes, sizeof bytes) <= 0) poll(NULL, 0, 5);
    }
}

void engine_child_end(struct engine_child *child)
{
    kill(child->pid, SIGTERM);
    if (!reaped_within(child->pid, child->fd, 1000000000ull)) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    child->pid = 0;
}

void engine_child_close(struct engine_child *child)
{
    if (child->fd >= 0) close(child->fd);
    if (child->err_fd >= 0) close(child->err_fd);
    *child = (struct engine_child){.fd = -1, .err_fd = -1};
}

enum status engine_program(char *path, size_t size)
{
    if (program_find("SASSTOP_ENGINE", "sasstop-engine", path, size)) return OK;
    if (!*path) return err_set(ERR_IO, "can't find where this program lies");
    return err_set(ERR_FAILED,
                   "no engine program at %s; build it with `make`, or name it in $SASSTOP_ENGINE",
                   path);
}
