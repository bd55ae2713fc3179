/*
 * The engine as a source: a child process over a socket pair, watched, restarted.
 *
 * Invariants: at most one child; only its own pid is ever signalled, and only before it is reaped.
 * A child that dies is first drained to its last whole frame, then a FAULT frame is made here and
 * handed out like any other, so that recordings hold it. Restart: with the last good variant after
 * 0.2, 1 and 3 s; three deaths with no three whole rounds between them stop it. Hang: no progress
 * of the token loop for max(5 s, 20 x the median round): TERM, a second later KILL.
 */
#include "tui/source.h"

#include "base/clock.h"
#include "session/stats.h"
#include "tui/engine_child.h"
#include "tui/restart.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DEATHS_MAX = 3,
    STDERR_LINES_MAX = 200,
    OUT_MAX = 1 << 20, /* bytes of commands that may wait */
};
static const uint64_t SECOND = 1000000000ull;
static const uint64_t delays_ns[DEATHS_MAX] = {200000000ull, 1000000000ull, 3000000000ull};
static const uint64_t hang_min_ns = 5000000000ull, load_max_ns = 60000000000ull;

enum engine_state { ENGINE_RUNS, ENGINE_DOWN, ENGINE_ENDED };

struct engine_source {
    struct frame_source base;
    const struct run_options *options;
    const struct session *session;
    uint64_t epoch_ns;
    char id[40], program[512];
    enum engine_state state;
    struct engine_child child;
    uint32_t instance;
    int epoll_fd;
    struct buf in, out, made; /* from the child, to it, and frames made here */
    size_t in_pos, out_pos, made_pos;
    char line[400]; /* of stderr */
    size_t line_len;
    unsigned lines;
    bool eof, reaped, quitting, saw_fault, saw_bye, worked, hanging, killed;
    int wait_status, bye_status, exit_status;
    unsigned deaths;
    uint32_t rounds; /* of this instance */
    struct series rounds_ns;
    uint64_t progress_ns, term_ns, eof_ns, restart_ns, now_ns;
    char load_phase[12]; /* of the last PROGRESS outside prefill and decode, and how far it was */
    uint32_t load_done;
    bool busy;                /* parity, load or counters: allowed to take longer */
    char variant[48], kd[12]; /* for the next start; "" = as asked on the command line */
    struct msg_command flip;  /* taken by the child and not answered yet; verb "" = none */
    char words[320];
};

static struct engine_source *self(const struct frame_source *src)
{
    return (struct engine_source *)(uintptr_t)src;
}

static void make_frame(struct engine_source *e, enum frame_type type, const void *msg)
{
    uint64_t t = clock_mono_ns();
    t = t > e->epoch_ns ? t - e->epoch_ns : 0;
    if (t < e->session->t_ns) t = e->session->t_ns;
    proto_encode(&e->made, type, t, msg);
}

static void make_log(struct engine_source *e, unsigned level, const char *text)
{
    struct msg_log m = {.level = (uint8_t)level};
    snprintf(m.text, sizeof m.text, "%s", text);
    make_frame(e, FRAME_LOG, &m);
}

static enum status start(struct engine_source *e)
{
    struct engine_spawn how = {
        .program = e->program,
        .options = e->options,
        .epoch_ns = e->epoch_ns,
        .instance = e->instance + 1,
        .session_id = e->id,
        .generation_base =
            e->session->ngenerations
                ? e->session->generations[e->session->ngenerations - 1].def.generation
                : 0,
        .variant = e->variant[0] ? e->variant : NULL,
        .kd = e->kd[0] ? e->kd : NULL,
    };
    enum status st = engine_spawn(&how, &e->child);

    if (st != OK) return st;
    e->instance++;
    e->state = ENGINE_RUNS;
    e->eof = e->reaped = e->saw_fault = e->saw_bye = e->worked = e->hanging = e->killed = false;
    e->rounds = 0;
    e->rounds_ns = (struct series){0};
    e->flip.verb[0] = 0;
    e->lines = 0;
    e->in_pos = e->out_pos = e->line_len = 0;
    buf_reset(&e->in);
    buf_reset(&e->out);
    e->progress_ns = clock_mono_ns();
    e->busy = true;
    struct epoll_event ev = {.events = EPOLLIN};
    epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->child.fd, &ev);
    epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->child.err_fd, &ev);
    return OK;
}

/* What runs now, and what to go back to. */
static void choose_good(struct engine_source *e, struct msg_fault *f)
{
    const struct session *s = e->session;
    const struct generation *g = session_current(s);

    if (!g) return;
    /* Amid a flip it is the new one that failed its check: what ran is still good. */
    bool amid = e->flip.verb[0] && e->flip.variant[0] && e->flip.kd;
    uint32_t kd = g->def.kd;
    snprintf(f->family, sizeof f->family, "%s", amid ? e->flip.family : g->def.family);
    snprintf(f->variant, sizeof f->variant, "%s", amid ? e->flip.variant : g->def.variant);
    f->kd = amid ? e->flip.kd : kd;
    if (amid && !strcmp(g->def.family, "q4k_gemm")) /* --variant names one of q4k_gemm */
        snprintf(e->variant, sizeof e->variant, "%s", g->def.variant);
    else if (amid || !restart_choose(s, e->variant, sizeof e->variant, &kd))
        return;
    snprintf(e->kd, sizeof e->kd, "%.0u", kd); /* 0, auto: none */
}

static const char *death_kind(struct engine_source *e, struct msg_fault *f, char *how, size_t size)
{
    if (e->hanging) {
        snprintf(how, size, "made no progress and was ended");
        return "hang";
    }
    if (WIFSIGNALED(e->wait_status)) {
        f->signal = WTERMSIG(e->wait_status);
        snprintf(how, size, "was killed by signal %d (%s)", f->signal, strsignal(f->signal));
        return "killed";
    }
    snprintf(how, size, "left with status %d", WEXITSTATUS(e->wait_status));
    return "exit";
}

/* The child is gone without a word of farewell. */
static void on_death(struct engine_source *e)
{
    struct msg_fault f = {.blames = e->worked};
    char how[120];

    choose_good(e, &f);
    snprintf(f.kind, sizeof f.kind, "%s", death_kind(e, &f, how, sizeof how));
    e->deaths++;
    bool stop = e->deaths >= DEATHS_MAX;
    if (stop)
        snprintf(f.text, sizeof f.text,
                 "the engine %s; three deaths in a row: it is not started again. All so far is "
                 "kept; e exports it, q leaves",
                 how);
    else
        snprintf(f.text, sizeof f.text, "the engine %s; starting again with %s in %.1f s", how,
                 e->variant[0] ? e->variant : "the same variant",
                 (double)delays_ns[e->deaths - 1] / 1e9);
    snprintf(e->words, sizeof e->words, "%s", f.text);
    if (!e->saw_fault || e->hanging || stop)
        make_frame(e, FRAME_FAULT, &f);
    else
        make_log(e, 1, f.text);
    e->exit_status = EXIT_FAILED;
    e->state = stop ? ENGINE_ENDED : ENGINE_DOWN;
    e->restart_ns = e->now_ns + delays_ns[e->deaths - 1];
}

static void on_exit_child(struct engine_source *e)
{
    bool exited = WIFEXITED(e->wait_status);
    int code = exited ? WEXITSTATUS(e->wait_status) : -1;
    bool orderly = exited && !e->saw_fault && !e->hanging &&
                   (code == EXIT_OK || code == EXIT_USAGE || code == EXIT_UNAVAILABLE ||
                    code == 127 || (e->saw_bye && e->bye_status == code && !e->worked));

    engine_child_close(&e->child);
    if (!e->quitting && !orderly) {
        on_death(e);
        return;
    }
    e->exit_status = e->quitting ? EXIT_OK : code == 127 ? EXIT_FAILED : code;
    e->state = ENGINE_ENDED;
}

static void watch_hang(struct engine_source *e)
{
    uint64_t limit = e->rounds ? (uint64_t)(20 * stat_quantile(&e->rounds_ns, 0.5)) : 0;

    if (limit < hang_min_ns) limit = hang_min_ns;
    /* Before the first whole round nobody knows how long a step takes here. */
    if ((e->busy || e->rounds == 0) && limit < load_max_ns) limit = load_max_ns;
    if (e->session->paused) e->progress_ns = e->now_ns;
    if (!e->hanging && !e->quitting && !e->eof && e->now_ns > e->progress_ns + limit) {
        e->hanging = true;
        e->term_ns = e->now_ns;
        make_log(e, 2, "the engine makes no progress: it is told to end");
        kill(e->child.pid, SIGTERM);
    } else if (e->hanging && !e->killed && e->now_ns > e->term_ns + SECOND) {
        e->killed = true;
        kill(e->child.pid, SIGKILL);
    } else if (e->eof && !e->killed && e->now_ns > e->eof_ns + 2 * SECOND) {
        e->killed = true; /* closed its socket but doesn't leave */
        kill(e->child.pid, SIGKILL);
    }
}

/* Learns from a frame of the child what the watch needs. */
static void observe(struct engine_source *e, const struct frame *f)
{
    struct msg_round round;
    struct msg_progress progress;
    struct msg_command command;
    struct msg_reply reply;
    struct msg_bye bye;

    switch (f->type) {
    case FRAME_CLOCKS:
    case FRAME_LOG:
    case FRAME_DROPS:
    case FRAME_SOURCE:
        return;
    case FRAME_FAULT:
        e->saw_fault = true;
        break;
    case FRAME_BYE:
        if (proto_decode(f, &bye, sizeof bye) != OK) break;
        e->saw_bye = true;
        e->bye_status = (int)bye.status;
        snprintf(e->words, sizeof e->words, "%s", bye.text);
        break;
    case FRAME_PROGRESS:
        if (proto_decode(f, &progress, sizeof progress) != OK) break;
        e->busy = strcmp(progress.phase, "prefill") && strcmp(progress.phase, "decode");
        e->worked |= !e->busy;
        /* A sign of life with nothing done since the last one is no progress. */
        if (e->busy && progress.done == e->load_done && !strcmp(progress.phase, e->load_phase))
            return;
        e->load_done = progress.done;
        snprintf(e->load_phase, sizeof e->load_phase, "%s", progress.phase);
        break;
    case FRAME_COMMAND:
        if (proto_decode(f, &command, sizeof command) == OK && !strcmp(command.verb, "flip"))
            e->flip = command;
        break;
    case FRAME_REPLY:
        if (proto_decode(f, &reply, sizeof reply) == OK && !strcmp(reply.verb, "flip"))
            e->flip.verb[0] = 0;
        break;
    case FRAME_GENERATION: /* the flip has taken place: what runs now is the new variant's work */
        e->flip.verb[0] = 0;
        e->busy = false;
        break;
    case FRAME_ROUND:
        if (proto_decode(f, &round, sizeof round) != OK) break;
        stat_add(&e->rounds_ns, (double)(round.prefill_ns + round.decode_ns));
        e->rounds++;
        e->worked = true;
        if (e->rounds >= 3) e->deaths = 0;
        break;
    default:
        break;
    }
    e->progress_ns = e->now_ns;
}

static void take_stderr(struct engine_source *e, const char *bytes, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++) {
        bool full = e->line_len + 1 >= sizeof e->line;
        if (bytes[i] != '\n' && !full) {
            e->line[e->line_len++] = bytes[i];
            continue;
        }
        e->line[e->line_len] = 0;
        if (e->line_len && e->lines++ < STDERR_LINES_MAX) {
            make_log(e, 1, e->line);
            if (!e->saw_bye) snprintf(e->words, sizeof e->words, "%.319s", e->line);
        }
        e->line_len = 0;
    }
}

/* Lines of the child's stderr become LOG frames. At its end the pipe is closed, since a pipe that
 * has ended would wake the loop again and again until the child is reaped. */
static void read_stderr(struct engine_source *e)
{
    char bytes[1024];
    ssize_t n = -1;

    while (e->child.err_fd >= 0 && (n = read(e->child.err_fd, bytes, sizeof bytes)) > 0)
        take_stderr(e, bytes, n);
    if (e->child.err_fd < 0 || n != 0) return;
    close(e->child.err_fd);
    e->child.err_fd = -1;
}

static void read_socket(struct engine_source *e)
{
    uint8_t bytes[65536];
    ssize_t n;

    if (e->in_pos) {
        memmove(e->in.data, e->in.data + e->in_pos, e->in.len - e->in_pos);
        e->in.len -= e->in_pos;
        e->in_pos = 0;
    }
    if (e->eof || e->in.len > 2u * FRAME_MAX) return;
    n = recv(e->child.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0)
        buf_put(&e->in, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        e->eof = true;
        e->eof_ns = e->now_ns;
        epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, e->child.fd, NULL);
    }
}

static void flush_commands(struct engine_source *e)
{
    while (e->out_pos < e->out.len && !e->eof) {
        ssize_t n = send(e->child.fd, e->out.data + e->out_pos, e->out.len - e->out_pos,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0) return;
        e->out_pos += (size_t)n;
    }
    e->out_pos = 0;
    buf_reset(&e->out);
}

/* Takes one frame out of a buffer; false when there is none. */
static bool take(const struct buf *b, size_t *pos, struct raw_frame *out)
{
    while (*pos < b->len) {
        size_t used;
        enum status st = proto_next(b->data + *pos, b->len - *pos, &out->frame, &used);
        if (st == ERR_AGAIN) return false;
        out->bytes = b->data + *pos;
        out->len = used;
        *pos += used;
        if (st == OK) return true;
    }
    return false;
}

static bool take_made(struct engine_source *e, struct raw_frame *out)
{
    if (take(&e->made, &e->made_pos, out)) return true;
    e->made_pos = 0;
    buf_reset(&e->made);
    return false;
}

static enum status engine_next(struct frame_source *src, uint64_t now_ns, struct raw_frame *out)
{
    struct engine_source *e = self(src);

    e->now_ns = now_ns;
    if (take_made(e, out)) return OK;
    if (e->state == ENGINE_DOWN && now_ns >= e->restart_ns && !e->quitting) {
        enum status st = start(e);
        if (st != OK) {
            e->state = ENGINE_ENDED;
            make_log(e, 2, err_msg());
            return take_made(e, out) ? OK : ERR_END;
        }
    }
    if (e->state == ENGINE_ENDED || (e->state == ENGINE_DOWN && e->quitting)) return ERR_END;
    if (e->state == ENGINE_DOWN) return ERR_AGAIN;

    flush_commands(e);
    read_stderr(e);
    for (int tries = 0; tries < 2; tries++) {
        if (take(&e->in, &e->in_pos, out)) {
            observe(e, &out->frame);
            return OK;
        }
        read_socket(e);
    }
    if (!e->reaped && waitpid(e->child.pid, &e->wait_status, WNOHANG) == e->child.pid)
        e->reaped = e->eof = true;
    if (e->reaped) {
        read_stderr(e);
        on_exit_child(e);
    } else {
        watch_hang(e);
    }
    return take_made(e, out) ? OK : e->state == ENGINE_ENDED ? ERR_END : ERR_AGAIN;
}

static int engine_fd(struct frame_source *src)
{
    return self(src)->epoll_fd;
}

static enum status engine_command(struct frame_source *src, const struct msg_command *c)
{
    struct engine_source *e = self(src);

    if (!strcmp(c->verb, "quit")) e->quitting = true;
    if (e->state == ENGINE_DOWN)
        return err_set(ERR_UNAVAILABLE, "the engine is being started again; try in a moment");
    if (e->state == ENGINE_ENDED)
        return err_set(ERR_UNAVAILABLE, "the engine has ended; e exports what was seen");
    if (e->out.len > OUT_MAX) return err_set(ERR_LIMIT, "the engine doesn't read its commands");
    enum status st = proto_encode(&e->out, FRAME_COMMAND, 0, c);
    if (st == OK) flush_commands(e);
    return st;
}

static void engine_close(struct frame_source *src)
{
    struct engine_source *e = self(src);

    if (e->state == ENGINE_RUNS) {
        if (!e->reaped) engine_child_end(&e->child);
        engine_child_close(&e->child);
    }
    if (e->epoll_fd >= 0) close(e->epoll_fd);
    buf_free(&e->in);
    buf_free(&e->out);
    buf_free(&e->made);
    free(e);
}

int engine_source_status(const struct frame_source *src, char *text, size_t size)
{
    const struct engine_source *e = self(src);
    static const char own[] = "sasstop-engine: ";
    const char *words = e->words;
    if (!strncmp(words, own, sizeof own - 1)) words += sizeof own - 1;
    snprintf(text, size, "%s", words[0] ? words : "the engine ended without a word");
    return e->exit_status;
}

int engine_source_pid(const struct frame_source *src)
{
    const struct engine_source *e = self(src);
    return e->state == ENGINE_RUNS ? e->child.pid : 0;
}

static const struct frame_source_ops engine_ops = {
    .name = "engine",
    .fd = engine_fd,
    .next = engine_next,
    .command = engine_command,
    .close = engine_close,
};

enum status engine_source_open(const struct run_options *o, const struct session *s,
                               uint64_t epoch_ns, const char *id, struct frame_source **out)
{
    struct engine_source *e = calloc(1, sizeof *e);
    enum status st;

    *out = NULL;
    if (!e) return err_set(ERR_NOMEM, "no memory for the engine's source");
    *e = (struct engine_source){.base.ops = &engine_ops,
                                .options = o,
                                .session = s,
                                .epoch_ns = epoch_ns,
                                .state = ENGINE_ENDED};
    snprintf(e->id, sizeof e->id, "%s", id);
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if ((st = engine_program(e->program, sizeof e->program)) == OK) st = start(e);
    if (st == OK)
        *out = &e->base;
    else
        engine_close(&e->base);
    return st;
}
