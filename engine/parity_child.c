/*
 * Running kcheck and reading its answer. The child gets a clean signal mask and its own process
 * group; it is ended by its pid when it takes too long, or when the engine is asked to leave.
 */
#include "engine/parity_child.h"

#include "base/clock.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20, POLL_MS = 250 };

extern char **environ;

static void all(struct msg_parity *p, unsigned n, const char *state, const char *text)
{
    for (unsigned i = 0; i < n; i++) {
        snprintf(p[i].state, sizeof p[i].state, "%s", state);
        snprintf(p[i].text, sizeof p[i].text, "%s", text);
    }
}

/* kcheck beside this program. */
static bool kcheck_path(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n <= 0) return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash || (size_t)(slash - out) + sizeof "/kcheck" > size) return false;
    strcpy(slash, "/kcheck");
    return access(out, X_OK) == 0;
}

static pid_t spawn(const char *path, char *const argv[], int *out)
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
    if (posix_spawn(&pid, path, &fa, &attr, argv, environ) != 0) pid = -1;
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    close(fds[1]);
    if (pid < 0)
        close(fds[0]);
    else
        *out = fds[0];
    return pid;
}

/* Reads until the child closes its end; false when it had to be killed. */
static bool collect_answer(struct engine *e, pid_t pid, int fd, struct buf *answer)
{
    uint64_t end = clock_mono_ns() + (uint64_t)PARITY_CHILD_S * 1000000000u;
    char bytes[4096];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, POLL_MS);
        if (ready > 0) {
            ssize_t n = read(fd, bytes, sizeof bytes);
            if (n == 0) return true;
            if (n > 0 && answer->len < ANSWER_MAX) buf_put(answer, bytes, (size_t)n);
            continue;
        }
        engine_progress(e, "parity", 0, 1);
        if (clock_mono_ns() < end && !commands_stopping(e->cmds)) continue;
        kill(pid, SIGKILL);
        return false;
    }
}

static const char *string(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* NAN when kcheck has no figure. */
static double figure(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

/* The outcome of one shape among kcheck's results. */
static void take_result(const cJSON *results, struct msg_parity *p)
{
    const cJSON *r;
    cJSON_ArrayForEach(r, results)
    {
        const char *state = string(r, "disposition");
        if (figure(r, "m") != p->m || figure(r, "n") != p->n || figure(r, "k") != p->k) continue;
        /* Not tried, since another shape had ended the child: nothing is known of this one. */
        if (!strcmp(state, "skipped")) state = "unavailable";
        snprintf(p->state, sizeof p->state, "%s", state);
        snprintf(p->text, sizeof p->text, "%s", string(r, "why"));
        p->nmse = figure(r, "nmse");
        p->worst = (double)NAN; /* kcheck gives it as a share of its limit */
        if (!strcmp(state, "ok"))
            snprintf(p->text, sizeof p->text, "worst element at %.2g of its limit",
                     figure(r, "worst"));
        return;
    }
    all(p, 1, "failed", "kcheck said nothing about this shape");
}

static void read_answer(const struct buf *answer, int wstatus, struct msg_parity *p, unsigned n)
{
    char text[200];
    cJSON *root = cJSON_ParseWithLength((const char *)answer->data, answer->len);
    const cJSON *results = cJSON_GetObjectItemCaseSensitive(root, "results");
    if (WIFSIGNALED(wstatus)) {
        snprintf(text, sizeof text, "the check was ended by signal %d", WTERMSIG(wstatus));
        all(p, n, "fault", text);
    } else if (!cJSON_IsArray(results)) {
        snprintf(text, sizeof text, "kcheck gave no answer (exit status %d)", WEXITSTATUS(wstatus));
        all(p, n, WEXITSTATUS(wstatus) == EXIT_UNAVAILABLE ? "unavailable" : "fault", text);
    } else {
        for (unsigned i = 0; i < n; i++) take_result(results, &p[i]);
    }
    cJSON_Delete(root);
}

void parity_child(struct engine *e, struct msg_parity *p, unsigned n)
{
    char path[4096], kernel[80], shapes[PARITY_CHILD_SHAPES * 36];
    char *argv[] = {path, "--variant", kernel, "--shapes", shapes, "--json", NULL};
    struct buf answer = {0};
    size_t at = 0;
    int fd = -1, wstatus = 0;
    snprintf(kernel, sizeof kernel, "%s_kd%u", p[0].variant, p[0].kd);
    for (unsigned i = 0; i < n && at < sizeof shapes; i++)
        at += (size_t)snprintf(shapes + at, sizeof shapes - at, "%s%u,%u,%u", i ? ";" : "", p[i].m,
                               p[i].n, p[i].k);
    if (!kcheck_path(path, sizeof path)) {
        all(p, n, "unavailable", "kcheck is not beside this program: run make");
        return;
    }
    pid_t pid = spawn(path, argv, &fd);
    if (pid < 0) {
        all(p, n, "unavailable", "kcheck can't be started");
        return;
    }
    bool done = collect_answer(e, pid, fd, &answer);
    close(fd);
    while (waitpid(pid, &wstatus, 0) < 0 && errno == EINTR) continue;
    if (done)
        read_answer(&answer, wstatus, p, n);
    else
        all(p, n, "hang", "the check did not end in time and was killed");
    buf_free(&answer);
}
