/* See lab_job.h. Invariants: the child is reaped before its struct goes; the engine is resumed if
 * it was paused here. */
#include "tui/lab_job.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRAMES_FD = 3, ARGS_MAX = 32 };

struct lab_job {
    pid_t pid;
    int frames, words; /* its frames; its stderr */
    struct buf in;
    char last[400]; /* line of stderr */
    bool paused_engine, saw_verdict;
};

static void become(const char *const *argv, int frames, int words)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, 0);
    dup2(null, 1);
    dup2(words, 2);
    if (frames == FRAMES_FD)
        fcntl(frames, F_SETFD, 0);
    else
        dup2(frames, FRAMES_FD);
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* The engine's own model, backend and threads go with it, so that it measures what is shown. */
static void make_args(const struct app *a, const struct lab_wish *w, const char *number,
                      const char **v)
{
    const struct run_options *o = a->options;
    const struct session *s = &a->live.session;
    bool cpu = s->started && !strcmp(s->hello.backend, "cpu");
    const struct {
        const char *option, *value;
    } some[] = {{"--hypothesis", w->hypothesis},
                {"--claim", w->claim},
                {"--bar", w->bar},
                {"--frames-fd", "3"},
                {"--number", number},
                {"--workload", cpu || !strstr(w->bar, "kernel") ? "engine" : "kernel"},
                {"--backend", cpu ? "cpu" : NULL},
                {"--model", o->model},
                {"--bench", o->bench},
                {"--threads", o->threads}};
    unsigned n = 0;
    v[n++] = "sasstop";
    v[n++] = "ab";
    v[n++] = w->a;
    v[n++] = w->b;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (some[i].value) v[n++] = some[i].option, v[n++] = some[i].value;
    v[n++] = "--quiet";
    v[n] = NULL;
}

bool lab_job_runs(const struct app *a)
{
    return a->job != NULL;
}

enum status lab_job_start(struct app *a, const struct lab_wish *w)
{
    const char *argv[ARGS_MAX];
    char number[16];
    int frames[2] = {-1, -1}, words[2] = {-1, -1};
    if (a->job) return err_set(ERR_USAGE, "an experiment is running; Esc stops it");
    struct lab_job *j = calloc(1, sizeof *j);
    if (!j) return err_set(ERR_NOMEM, "no memory for an experiment");
    snprintf(number, sizeof number, "%u", a->live.session.nexperiments + 1);
    make_args(a, w, number, argv);
    if (pipe2(frames, O_CLOEXEC) || pipe2(words, O_CLOEXEC)) goto fail;
    j->pid = fork();
    if (j->pid < 0) goto fail;
    if (j->pid == 0)
        become(argv, fcntl(frames[1], F_DUPFD_CLOEXEC, 10), fcntl(words[1], F_DUPFD_CLOEXEC, 10));
    setpgid(j->pid, j->pid);
    close(frames[1]);
    close(words[1]);
    fcntl(frames[0], F_SETFL, O_NONBLOCK);
    fcntl(words[0], F_SETFL, O_NONBLOCK);
    j->frames = frames[0];
    j->words = words[0];
    a->job = j;
    if (a->live.src && !a->live.session.paused)
        j->paused_engine = app_command(a, "pause", "", "", 0, false) == OK;
    return OK;
fail:
    for (int i = 0; i < 2; i++) {
        if (frames[i] >= 0) close(frames[i]);
        if (words[i] >= 0) close(words[i]);
    }
    free(j);
    return err_set(ERR_FAILED, "the experiment can't be started: %s", strerror(errno));
}

void lab_job_stop(struct app *a)
{
    if (a->job) kill(a->job->pid, SIGINT);
}

/* A frame of the child joins the session at the present time. */
static enum status join_frame(struct app *a, const struct frame *f)
{
    struct raw_frame raw = {.frame = *f};
    struct buf b = {0};
    size_t used;
    uint64_t t = a->now_ns > a->epoch_ns ? a->now_ns - a->epoch_ns : 0;
    struct frame moved = *f;
    if (f->type < FRAME_EXPERIMENT || f->type > FRAME_VERDICT) return OK;
    moved.t_ns = t < a->live.session.t_ns ? a->live.session.t_ns : t;
    a->job->saw_verdict |= f->type == FRAME_VERDICT;
    enum status st = proto_copy(&b, &moved);
    if (st == OK) st = proto_next(b.data, b.len, &raw.frame, &used);
    if (st == OK) {
        raw.bytes = b.data;
        raw.len = b.len;
        record_frame(a, &raw);
        st = session_apply(&a->live.session, &raw.frame);
    }
    buf_free(&b);
    a->dirty = true;
    return st;
}

static enum status take_frames(struct app *a, bool *ended)
{
    struct lab_job *j = a->job;
    char bytes[8192];
    ssize_t n = read(j->frames, bytes, sizeof bytes);
    *ended = n == 0;
    if (n > 0) buf_put(&j->in, bytes, (size_t)n);
    struct frame f;
    size_t at = 0, used = 0;
    enum status st;
    while ((st = proto_next(j->in.data + at, j->in.len - at, &f, &used)) != ERR_AGAIN) {
        if (st == OK && (st = join_frame(a, &f)) != OK) return st;
        at += used;
    }
    if (at) memmove(j->in.data, j->in.data + at, j->in.len - at);
    j->in.len -= at;
    return OK;
}

static void take_words(struct lab_job *j)
{
    char bytes[400];
    ssize_t n = read(j->words, bytes, sizeof bytes - 1);
    if (n <= 0) return;
    bytes[n] = '\0';
    char *nl = strchr(bytes, '\n');
    if (nl) *nl = '\0';
    for (char *p = bytes; *p; p++)
        if ((unsigned char)*p < ' ') *p = ' ';
    snprintf(j->last, sizeof j->last, "%s", bytes);
}

void lab_job_end(struct app *a)
{
    struct lab_job *j = a->job;
    if (!j) return;
    close(j->frames);
    close(j->words);
    kill(j->pid, SIGTERM);
    uint64_t end = clock_mono_ns() + 3000000000u;
    pid_t got = 0;
    while ((got = waitpid(j->pid, NULL, WNOHANG)) == 0 && clock_mono_ns() < end) usleep(2000);
    if (got == 0) {
        kill(j->pid, SIGKILL);
        while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    buf_free(&j->in);
    free(j);
    a->job = NULL;
}

enum status lab_job_pull(struct app *a)
{
    struct lab_job *j = a->job;
    bool ended = false;
    if (!j) return OK;
    take_words(j);
    enum status st = take_frames(a, &ended);
    if (st != OK || !ended) return st;
    take_words(j);
    bool resume = j->paused_engine, verdict = j->saw_verdict;
    char last[400];
    memcpy(last, j->last, sizeof last);
    lab_job_end(a);
    if (resume) (void)app_command(a, "resume", "", "", 0, false);
    if (!verdict)
        app_say(a, ROLE_BAD, "no experiment: %s", last[0] ? last : "the process ended");
    else
        app_say(a, ROLE_GOOD, "the experiment is through");
    return OK;
}
