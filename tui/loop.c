/*
 * The one poll of the program: terminal, source, signals, and a timeout for what time moves. It
 * draws at most 20 times a second and only when something changed. Signals come through a
 * signalfd, so that nothing runs inside a handler.
 */
#include "tui/loop.h"

#include "base/clock.h"
#include "tui/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { TICK_MS = 50 };
static const uint64_t FRAME_NS = 50000000ull, FINISH_NS = 2000000000ull;

static int signals = -1;
static bool resized;

enum status loop_signals(void)
{
    sigset_t set;
    if (signals >= 0) return OK;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) return err_set(ERR_FAILED, "no signalfd: the kernel is too old");
    return OK;
}

static void read_signals(struct app *a)
{
    struct signalfd_siginfo s;
    while (read(signals, &s, sizeof s) == (ssize_t)sizeof s) {
        if (s.ssi_signo == SIGWINCH)
            resized = true;
        else if (s.ssi_signo != SIGCHLD)
            a->quit = true;
    }
}

enum status loop_wait(struct app *a, int ms, bool tty)
{
    struct pollfd p[3] = {
        {.fd = signals, .events = POLLIN},
        {.fd = a->live.src && !a->live.ended ? a->live.src->ops->fd(a->live.src) : -1,
         .events = POLLIN},
        {.fd = tty ? 0 : -1, .events = POLLIN},
    };
    uint64_t before = clock_mono_ns();

    if (poll(p, 3, ms) < 0 && errno != EINTR)
        return err_set(ERR_FAILED, "waiting for input failed");
    if (p[2].revents & (POLLHUP | POLLERR | POLLNVAL)) a->quit = true;
    read_signals(a);
    uint64_t now = clock_mono_ns();
    if (a->recorded.src && tty) replay_pass(a->recorded.src, now - before);
    return app_pull(a, now);
}

static enum status resize(struct app *a)
{
    int w, h;
    screen_size(&w, &h);
    resized = false;
    a->dirty = true;
    return canvas_resize(&a->canvas, w, h);
}

void loop_finish(struct app *a)
{
    uint64_t end = clock_mono_ns() + FINISH_NS;
    if (!a->live.src || a->live.ended) return;
    if (app_command(a, "quit", "", "", 0, false) != OK) return;
    while (!a->live.ended && clock_mono_ns() < end)
        if (loop_wait(a, TICK_MS, false) != OK) return;
}

static void show(struct app *a, uint64_t *drawn)
{
    bool all = a->redraw;
    *drawn = clock_mono_ns();
    a->redraw = false;
    app_draw(a);
    screen_show(&a->canvas, all);
}

/* An engine that never came to work is an error of the command, not something to look at. */
static bool failed_to_start(const struct app *a)
{
    return a->live.src && a->live.ended && !a->recorded.src && a->live.session.ngenerations == 0;
}

enum status loop_terminal(struct app *a)
{
    uint64_t drawn = 0;
    enum status st = loop_signals();

    if (st != OK || (st = screen_open()) != OK) return st;
    a->canvas.ascii = screen_ascii();
    st = resize(a);
    while (st == OK && !a->quit && !failed_to_start(a)) {
        uint64_t now = clock_mono_ns();
        bool due = now - drawn >= FRAME_NS;
        if (a->dirty && due) show(a, &drawn);
        int ms = a->dirty
                     ? (int)((FRAME_NS - (now - drawn < FRAME_NS ? now - drawn : 0)) / 1000000) + 1
                     : TICK_MS;
        st = loop_wait(a, ms, true);
        /* The position of a recording moves on the screen by itself. */
        if (a->recorded.src && replay_playing(a->recorded.src)) a->dirty = true;
        for (int key; st == OK && !a->quit && (key = screen_key()) != KEY_NONE;) app_key(a, key);
        if (st == OK && resized) st = resize(a);
    }
    screen_close();
    if (st == OK) loop_finish(a);
    return st;
}

/* Whether the newest generation has what a summary is for. */
static bool has_figures(const struct session *s)
{
    const struct generation *g = session_current(s);
    return g && g->prefill.n && g->decode.n;
}

enum status loop_headless(struct app *a, double seconds, double patience)
{
    enum status st = loop_signals();
    uint64_t start = clock_mono_ns(), end = start + (uint64_t)(seconds * 1e9);
    uint64_t last = start + (uint64_t)(patience * 1e9);

    while (st == OK && !a->quit && !a->live.ended) {
        uint64_t now = clock_mono_ns();
        if (now >= end && (now >= last || has_figures(&a->live.session))) break;
        st = loop_wait(a, TICK_MS, false);
    }
    if (st == OK) loop_finish(a);
    return st;
}
