/*
 * The parent's side of kcheck: one child per variant, watched through a pipe; see kcheck.h.
 *
 * Whatever a kernel does ends here as a disposition: a child that dies leaves a fault on the shape
 * it was at, one that is silent for too long is killed and leaves a hang, and the shapes after it
 * are skipped. Only the child started here is ever signalled.
 */
#include "kernels/kcheck/kcheck.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct watch {
    const struct check_job *job;
    struct check_report *out;
    int fd;
    pid_t pid;
    int at; /* shape in progress; -1 before the first */
    bool ended, error;
    int error_exit;
    char error_text[CHECK_WHY];
};

static enum status start_child(struct watch *w)
{
    int p[2];
    if (pipe(p) < 0) return err_set(ERR_IO, "pipe: %m");
    fflush(NULL);
    w->pid = fork();
    if (w->pid < 0) {
        close(p[0]);
        close(p[1]);
        return err_set(ERR_FAILED, "fork: %m");
    }
    if (w->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* no orphan on the GPU */
        close(p[0]);
        _exit((w->job->child ? w->job->child : check_child)(w->job, p[1]));
    }
    close(p[1]);
    w->fd = p[0];
    return OK;
}

static void take_shape(struct watch *w, const struct check_record *r)
{
    struct check_result *res = &w->out->results[r->a];
    res->disposition = (enum disposition)r->b;
    res->measured = r->n != 0;
    res->nmse = r->nmse;
    res->worst = r->worst;
    snprintf(res->why, sizeof res->why, "%s", r->text);
}

static void take(struct watch *w, struct check_record *r)
{
    struct check_report *out = w->out;
    r->text[sizeof r->text - 1] = '\0';
    bool indexed = r->a >= 0 && r->a < out->n_results;
    switch ((enum record_type)r->type) {
    case RECORD_DEVICE:
        snprintf(out->device, sizeof out->device, "%s", r->text);
        out->sm = r->a;
        break;
    case RECORD_BEGIN:
        if (indexed) w->at = r->a;
        break;
    case RECORD_SHAPE:
        if (indexed) take_shape(w, r);
        break;
    case RECORD_SYMPTOM:
        snprintf(out->symptom, sizeof out->symptom, "%.31s", r->text);
        break;
    case RECORD_BENCH:
        if (!indexed) break;
        if (r->bench.n == 0) snprintf(out->results[r->a].why, CHECK_WHY, "%s", r->text);
        r->bench.throttle[sizeof r->bench.throttle - 1] = '\0';
        out->results[r->a].bench = r->bench;
        break;
    case RECORD_ERROR:
        w->error = true;
        w->error_exit = r->b;
        snprintf(w->error_text, sizeof w->error_text, "%s", r->text);
        break;
    case RECORD_END:
        w->ended = true;
        break;
    }
}

/* One record, or false at the end of the pipe or at the time limit (*late). */
static bool next_record(struct watch *w, int limit_s, struct check_record *r, bool *late)
{
    uint64_t end = clock_mono_ns() + (uint64_t)limit_s * 1000000000u;
    size_t have = 0;
    while (have < sizeof *r) {
        uint64_t now = clock_mono_ns();
        int ms = now < end ? (int)((end - now) / 1000000u) + 1 : 0;
        struct pollfd pfd = {.fd = w->fd, .events = POLLIN};
        int ready = poll(&pfd, 1, ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) {
            *late = ready == 0;
            return false;
        }
        ssize_t n = read(w->fd, (char *)r + have, sizeof *r - have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        have += (size_t)n;
    }
    return true;
}

static void describe_death(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "the child was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "the child ended early with status %d", WEXITSTATUS(status));
}

/* The shape in progress gets the blame. */
static void blame(struct watch *w, enum disposition d, const char *why)
{
    struct check_report *out = w->out;
    if (w->at < 0) w->at = 0;
    if (w->at >= out->n_results) return;
    struct check_result *r = &out->results[w->at];
    r->disposition = d;
    snprintf(r->why, sizeof r->why, "%s", why);
}

static void finish(struct watch *w, bool late, int limit_s, int status)
{
    char text[CHECK_WHY];
    if (late) {
        snprintf(text, sizeof text, "no sign of life for %d s: killed", limit_s);
        blame(w, CHECK_HANG, text);
        snprintf(w->out->symptom, sizeof w->out->symptom, "hang");
    } else if (!w->ended && !w->error) {
        describe_death(status, text, sizeof text);
        blame(w, CHECK_FAULT, text);
    }
    for (int i = 0; i < w->out->n_results; i++)
        if (w->out->results[i].disposition == CHECK_FAULT)
            snprintf(w->out->symptom, sizeof w->out->symptom, "fault");
}

static void judge(struct check_report *out)
{
    const struct variant *v = out->variant;
    int good = 0, refused = 0;
    if (!v) return;
    for (int i = 0; i < out->n_results; i++) {
        good += out->results[i].disposition == CHECK_OK;
        refused += out->results[i].disposition == CHECK_REFUSED;
    }
    out->refused = refused == out->n_results;
    out->ok = v->broken ? !strcmp(out->symptom, v->desc.expect) : good + refused == out->n_results;
}

enum status check_watch(const struct check_job *job, int limit_s, struct check_report *out)
{
    struct watch w = {.job = job, .out = out, .at = -1};
    *out = (struct check_report){.variant = job->variant, .n_results = job->n_shapes};
    for (int i = 0; i < job->n_shapes; i++) {
        out->results[i].shape = job->shapes[i];
        out->results[i].disposition = CHECK_SKIPPED;
        snprintf(out->results[i].why, CHECK_WHY, "not reached");
    }
    enum status st = start_child(&w);
    if (st != OK) return st;
    struct check_record r;
    bool late = false;
    while (next_record(&w, limit_s, &r, &late)) take(&w, &r);
    if (late) kill(w.pid, SIGKILL);
    int status = 0;
    while (waitpid(w.pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(w.fd);
    if (w.error)
        return err_set(w.error_exit == EXIT_UNAVAILABLE ? ERR_UNAVAILABLE : ERR_FAILED, "%s",
                       w.error_text);
    finish(&w, late, limit_s, status);
    judge(out);
    return OK;
}
