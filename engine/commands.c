/*
 * The thread that listens; see commands.h. Invariant: only this thread touches `in`; the queue and
 * the flags are under `lock`.
 */
#include "engine/commands.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct commands {
    struct emit *emit;
    int fd, signals, wake; /* fd -1: nothing to read */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct msg_command queue[COMMANDS_MAX];
    unsigned first, count;
    bool stopping;
    uint64_t leave_at; /* 0: not asked to */
    struct buf in;
};

static void signal_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

void commands_block_signals(void)
{
    sigset_t set;
    signal_set(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void push(struct commands *c, const struct msg_command *m)
{
    bool full;
    pthread_mutex_lock(&c->lock);
    full = c->count == COMMANDS_MAX;
    if (!full) c->queue[(c->first + c->count++) % COMMANDS_MAX] = *m;
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->lock);
    if (full) {
        struct msg_reply r = {.ok = 0, .text = "too many commands wait; this one was left out"};
        memcpy(r.verb, m->verb, sizeof r.verb);
        emit_send(c->emit, FRAME_REPLY, &r);
    }
}

/* Takes whole frames out of `in`; bytes that are no frame are skipped. */
static void parse(struct commands *c)
{
    size_t at = 0, used = 0;
    struct frame f;
    struct msg_command m;
    while (at < c->in.len) {
        enum status st = proto_next(c->in.data + at, c->in.len - at, &f, &used);
        if (st == ERR_AGAIN) break;
        at += used;
        if (st == OK && f.type == FRAME_COMMAND && proto_decode(&f, &m, sizeof m) == OK)
            push(c, &m);
    }
    memmove(c->in.data, c->in.data + at, c->in.len - at);
    c->in.len -= at;
}

static void read_socket(struct commands *c)
{
    uint8_t bytes[4096];
    ssize_t n = read(c->fd, bytes, sizeof bytes);
    if (n > 0) {
        buf_put(&c->in, bytes, (size_t)n);
        parse(c);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        _exit(EXIT_OK); /* the screen is gone: nobody is left to tell anything */
    }
}

static void read_signal(struct commands *c)
{
    struct signalfd_siginfo info;
    if (read(c->signals, &info, sizeof info) != sizeof info) return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
    if (!c->leave_at) c->leave_at = clock_mono_ns() + COMMANDS_GRACE_NS;
}

static void leave(struct commands *c)
{
    struct msg_bye bye = {.status = EXIT_OK, .text = "asked to leave while a step was running"};
    emit_send(c->emit, FRAME_BYE, &bye);
    emit_flush(c->emit, 500000000);
    _exit(EXIT_OK);
}

static void *listen_thread(void *arg)
{
    struct commands *c = arg;
    pthread_setname_np(pthread_self(), "commands");
    struct pollfd p[3] = {{.fd = c->wake, .events = POLLIN},
                          {.fd = c->signals, .events = POLLIN},
                          {.fd = c->fd, .events = POLLIN}};
    for (;;) {
        uint64_t now = clock_mono_ns();
        if (c->leave_at && now >= c->leave_at) leave(c);
        int wait = c->leave_at ? (int)((c->leave_at - now) / 1000000) + 1 : -1;
        if (poll(p, c->fd < 0 ? 2 : 3, wait) < 0) continue;
        if (p[0].revents) return NULL;
        if (p[1].revents) read_signal(c);
        if (c->fd >= 0 && p[2].revents) read_socket(c);
    }
}

static bool is_socket(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

enum status commands_open(int fd, struct emit *emit, struct commands **out)
{
    struct commands *c = calloc(1, sizeof *c);
    pthread_condattr_t attr;
    sigset_t set;
    *out = NULL;
    if (!c) return err_set(ERR_NOMEM, "out of memory for the command queue");
    signal_set(&set);
    c->emit = emit;
    c->fd = is_socket(fd) ? fd : -1;
    c->signals = signalfd(-1, &set, SFD_CLOEXEC);
    c->wake = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->news, &attr);
    pthread_condattr_destroy(&attr);
    if (c->signals < 0 || c->wake < 0 || pthread_create(&c->thread, NULL, listen_thread, c) != 0) {
        err_set(ERR_FAILED, "can't start listening for commands: %s", strerror(errno));
        if (c->signals >= 0) close(c->signals);
        if (c->wake >= 0) close(c->wake);
        free(c);
        return ERR_FAILED;
    }
    *out = c;
    return OK;
}

void commands_close(struct commands *c)
{
    uint64_t one = 1;
    if (!c) return;
    while (write(c->wake, &one, sizeof one) < 0 && errno == EINTR) continue;
    pthread_join(c->thread, NULL);
    close(c->signals);
    close(c->wake);
    buf_free(&c->in);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

bool commands_take(struct commands *c, struct msg_command *out)
{
    pthread_mutex_lock(&c->lock);
    bool there = c->count > 0;
    if (there) {
        *out = c->queue[c->first];
        c->first = (c->first + 1) % COMMANDS_MAX;
        c->count--;
    }
    pthread_mutex_unlock(&c->lock);
    return there;
}

void commands_wait(struct commands *c, uint64_t timeout_ns)
{
    uint64_t end = clock_mono_ns() + timeout_ns;
    struct timespec ts = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    pthread_mutex_lock(&c->lock);
    while (!c->count && !c->stopping)
        if (pthread_cond_timedwait(&c->news, &c->lock, &ts) == ETIMEDOUT) break;
    pthread_mutex_unlock(&c->lock);
}

bool commands_waiting(struct commands *c)
{
    pthread_mutex_lock(&c->lock);
    bool w = c->count > 0;
    pthread_mutex_unlock(&c->lock);
    return w;
}

bool commands_stopping(struct commands *c)
{
    pthread_mutex_lock(&c->lock);
    bool s = c->stopping;
    pthread_mutex_unlock(&c->lock);
    return s;
}
