/*
 * The process for timed rounds: started, loaded, asked for rounds, given up; see timer.h.
 *
 * Invariants: a frame of it is looked at only while this engine waits for it, so nothing of it gets
 * between the frames of a counted round; what it may keep saying meanwhile waits in its own queue.
 */
#include "engine/timer_priv.h"

#include "base/clock.h"
#include "base/driver.h"
#include "base/program.h"
#include "engine/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAIT_MS = 20,     /* between looks at what waits here */
    STILL_S = 30,     /* loading has not gone on for so long: it is given up. The screen
                         takes a minute of that for a hang of this engine */
    DEATHS_MAX = 2,   /* after as many it isn't started again */
    MARGIN_MIB = 512, /* its context, and what a flip may add */
    ARGS_MAX = 40,
};

static void tell(struct engine *e, const char *state, const char *why)
{
    struct msg_source m = {.name = "timer"};
    snprintf(m.state, sizeof m.state, "%s", state);
    snprintf(m.why, sizeof m.why, "%.299s", why);
    if (!strcmp(state, "failed") || !strcmp(state, "unavailable"))
        snprintf(m.remedy, sizeof m.remedy,
                 "clean times without counters: --sources none; --timer here from the start");
    emit_send(e->emit, FRAME_SOURCE, &m);
}

static const char *cost_here(const struct engine *e)
{
    return e->cupti ? "rounds are timed in the process that counts, where kernel activity leaves "
                      "about 0.4 us on each launch"
                    : "rounds are timed in this process";
}

bool timer_runs(const struct engine *e)
{
    return e->timer && e->timer->state != TIMER_GONE;
}

/* GPU memory that is free now; 0 = not known. */
static size_t free_memory(const struct engine *e)
{
    const struct driver *d = e->bo->driver ? e->bo->driver(e->b) : NULL;
    size_t free_bytes = 0, total = 0;
    if (!d || d->MemGetInfo(&free_bytes, &total) != DRV_SUCCESS) return 0;
    return free_bytes;
}

/* ---- starting ---- */

struct args {
    char *v[ARGS_MAX + 1], numbers[8][24], bench[48];
    unsigned n, nnumbers;
};

/* argv's type, not a promise to write: nobody does. */
static void add(struct args *a, const char *option, const char *value)
{
    if (!value || a->n + 2 > ARGS_MAX) return;
    a->v[a->n++] = (char *)(uintptr_t)option;
    a->v[a->n++] = (char *)(uintptr_t)value;
}

static void add_number(struct args *a, const char *option, uint64_t v)
{
    if (a->nnumbers == sizeof a->numbers / sizeof a->numbers[0]) return;
    char *text = a->numbers[a->nnumbers++];
    snprintf(text, sizeof a->numbers[0], "%llu", (unsigned long long)v);
    add(a, option, text);
}

/* The options that say what work is and how it runs; variants and blocks are told before rounds. */
static void make_args(const struct engine *e, const char *program, struct args *a)
{
    const struct options *o = e->opt;
    char prefill[24] = "", decode[24] = "";
    a->v[a->n++] = (char *)(uintptr_t)program;
    add_number(a, "--timer-of", (uint64_t)getpid());
    add_number(a, "--fd", TIMER_WIRE_FD);
    add(a, "--sources", "none");
    add(a, "--model", o->model);
    add(a, "--backend", o->backend);
    add(a, "--prompt", o->prompt);
    add_number(a, "--tokens", o->tokens); /* a command may bring a prompt */
    if (o->prefill) snprintf(prefill, sizeof prefill, "pp%u", o->prefill);
    if (o->decode) snprintf(decode, sizeof decode, "tg%u", o->decode);
    snprintf(a->bench, sizeof a->bench, "%s%s%s", prefill, *prefill && *decode ? "," : "", decode);
    if (*a->bench) add(a, "--bench", a->bench);
    add_number(a, "--seed", o->seed);
    if (o->context) add_number(a, "--context", o->context);
    if (o->threads) add_number(a, "--threads", o->threads);
    /* Of the first one alone: the second has to live. */
    if (!e->timer->deaths) add(a, "--script-fault", o->timer_fault);
    a->v[a->n++] = (char *)(uintptr_t) "--no-parity";
    if (!o->graphs) a->v[a->n++] = (char *)(uintptr_t) "--no-graphs";
    a->v[a->n] = NULL;
}

static enum status start(struct engine *e)
{
    struct timer *t = e->timer;
    struct args a = {.n = 0};
    char program[4096];
    if (!program_find("SASSTOP_TIMER_ENGINE", NULL, program, sizeof program))
        return err_set(ERR_UNAVAILABLE, "the program for it, %.300s, is not there", program);
    make_args(e, program, &a);
    t->state = TIMER_OPENING;
    t->wait_ns = 0;
    t->nfamilies = t->blocks = t->prompt = 0;
    memset(t->families, 0, sizeof t->families);
    t->replied = t->has_round = t->has_fault = t->has_bye = false;
    return timer_wire_start(&t->wire, a.v);
}

void timer_open(struct engine *e)
{
    const struct options *o = e->opt;
    bool own = !strcmp(o->timer, "own");
    if (o->timer_of || o->logits) return;
    if (!strcmp(o->timer, "here") && e->cupti) tell(e, "off", cost_here(e));
    if (!own && (strcmp(o->timer, "auto") || !e->cupti)) return;
    e->timer = calloc(1, sizeof *e->timer);
    if (!e->timer) return;
    e->timer->free_before = free_memory(e);
    if (start(e) != OK) timer_drop(e, err_msg());
}

/* Lets it load, where that fits. */
static void let_load(struct engine *e)
{
    struct timer *t = e->timer;
    struct msg_command c = {.verb = "load", .origin = "engine"};
    size_t now = free_memory(e), margin = (size_t)MARGIN_MIB << 20;
    char why[160];
    if (now && now < t->need + margin) {
        snprintf(why, sizeof why,
                 "a second copy of the weights takes %zu MiB, the GPU has %zu free",
                 (t->need + margin) >> 20, now >> 20);
        timer_drop(e, why);
        return;
    }
    (void)timer_wire_send(&t->wire, &c); /* one that has died is noticed at the next round */
}

void timer_load(struct engine *e)
{
    if (!timer_runs(e)) return;
    size_t now = free_memory(e);
    e->timer->need = e->timer->free_before > now ? e->timer->free_before - now : 0;
    let_load(e);
}

void timer_close(struct engine *e)
{
    if (!e->timer) return;
    timer_wire_end(&e->timer->wire);
    free(e->timer);
    e->timer = NULL;
}

void timer_drop(struct engine *e, const char *why)
{
    struct timer *t = e->timer;
    char reason[200], text[300];
    if (!timer_runs(e)) return;
    snprintf(reason, sizeof reason, "%s", why); /* it may be err_msg() */
    timer_wire_end(&t->wire);
    t->state = TIMER_GONE;
    snprintf(text, sizeof text, "%s: %.160s", cost_here(e), reason);
    tell(e, "unavailable", text);
    if (t->generation != e->generation || !e->generation) return;
    generation_begin(e, e->family, "timer", "unchecked", text);
    collect_after_flip(e->collect);
}

/* ---- listening ---- */

static void take_progress(struct engine *e, const struct msg_progress *p)
{
    if (p->done != e->timer->done) e->timer->wait_ns = clock_mono_ns();
    e->timer->done = p->done;
    engine_progress(e, p->phase, p->done, p->total);
}

static enum status take_hello(struct engine *e, const struct msg_hello *h)
{
    if (!strcmp(h->backend, e->bo->name)) return OK;
    return err_set(ERR_UNAVAILABLE, "its process came up with the %s backend, this one has %s",
                   h->backend, e->bo->name);
}

static enum status take_frame(struct engine *e, const struct frame *f)
{
    static union msg_any m; /* launching thread alone */
    struct timer *t = e->timer;
    if (proto_decode(f, &m, sizeof m) != OK) return OK; /* of a newer kind */
    switch (f->type) {
    case FRAME_HELLO:
        return take_hello(e, &m.hello);
    case FRAME_PROGRESS:
        take_progress(e, &m.progress);
        break;
    case FRAME_TEXT:
        m.text.round = e->round;
        if (m.text.gap >= 0) emit_send(e->emit, FRAME_TEXT, &m.text); /* else the prompt's */
        break;
    case FRAME_LOG:
        if (m.log.level) emit_log(e->emit, m.log.level, "timing process: %.350s", m.log.text);
        break;
    case FRAME_ROUND:
        t->round = m.round;
        t->has_round = true;
        break;
    case FRAME_REPLY:
        t->reply = m.reply;
        t->replied = true;
        break;
    case FRAME_FAULT:
        t->fault = m.fault;
        t->has_fault = true;
        break;
    case FRAME_BYE:
        t->bye = m.bye;
        t->has_bye = true;
        break;
    default:
        break;
    }
    return OK;
}

/* One frame, waited for; a fault of it is told at once, since a process whose driver is stuck may
 * never get to leave. */
static enum status listen(struct engine *e)
{
    struct timer *t = e->timer;
    struct frame f;
    enum status st = timer_wire_next(&t->wire, WAIT_MS, &f);
    if (st == ERR_FORMAT) return err_set(ERR_UNAVAILABLE, "its process does not speak in frames");
    if (st == OK) st = take_frame(e, &f);
    if (st != OK || !t->has_fault) return st;
    return err_set(t->fault.blames ? ERR_FAILED : ERR_UNAVAILABLE, "%.299s", t->fault.text);
}

static bool answered(struct timer *t, const char *verb)
{
    bool yes = t->replied && !strcmp(t->reply.verb, verb);
    t->replied = false;
    return yes;
}

/* A command waits here: the round there ends at its next token. OK when it was whole by then. */
static enum status give_way(struct engine *e)
{
    struct msg_command c = {.verb = "stop", .origin = "engine"};
    enum status st = timer_ask(e, &c);
    return st == OK && !e->timer->has_round ? ERR_AGAIN : st;
}

enum status timer_until(struct engine *e, const char *verb, bool gives_way)
{
    struct timer *t = e->timer;
    for (;;) {
        enum status st = listen(e);
        if (st != OK && st != ERR_AGAIN) return st;
        if (answered(t, verb))
            return t->reply.ok ? OK : err_set(ERR_UNAVAILABLE, "%s: %.250s", verb, t->reply.text);
        if (commands_stopping(e->cmds) || emit_broken(e->emit)) return ERR_AGAIN;
        if (gives_way && rounds_interrupted(e)) return give_way(e);
    }
}

enum status timer_ask(struct engine *e, const struct msg_command *c)
{
    e->timer->replied = false;
    enum status st = timer_wire_send(&e->timer->wire, c);
    return st == OK ? timer_until(e, c->verb, false) : st;
}

/* ---- rounds ---- */

/* How long loading may not go on, in ns; tests shorten it ($SASSTOP_TIMER_PATIENCE_MS, with
 * SASSTOP_TEST=1). */
static uint64_t patience(void)
{
    const char *test = getenv("SASSTOP_TEST"), *ms = getenv("SASSTOP_TIMER_PATIENCE_MS");
    if (test && !strcmp(test, "1") && ms && atoi(ms) > 0) return (uint64_t)atoi(ms) * 1000000u;
    return STILL_S * 1000000000ull;
}

static enum status wait_ready(struct engine *e)
{
    struct timer *t = e->timer;
    if (!t->wait_ns) t->wait_ns = clock_mono_ns();
    while (t->state == TIMER_OPENING) {
        enum status st = listen(e);
        if (answered(t, "ready")) {
            t->state = TIMER_READY;
            tell(e, "ok", "timed rounds run in a process of their own that never opened CUPTI");
        }
        if (st != OK && st != ERR_AGAIN) return st;
        if (rounds_interrupted(e)) {
            t->wait_ns = 0;
            return ERR_AGAIN;
        }
        if (clock_mono_ns() - t->wait_ns > patience())
            return err_set(ERR_UNAVAILABLE, "its process did not go on loading for too long");
    }
    return OK;
}

/* The socket has ended. What it said last decides; one that said nothing is started once more. */
static enum status lost(struct engine *e)
{
    struct timer *t = e->timer;
    char why[400];
    timer_wire_end(&t->wire);
    if (t->has_bye)
        snprintf(why, sizeof why, "its process %s: %.199s", t->wire.how, t->bye.text);
    else
        snprintf(why, sizeof why, "its process %s", t->wire.how);
    if (t->has_bye || ++t->deaths >= DEATHS_MAX) {
        timer_drop(e, why);
        return ERR_AGAIN;
    }
    emit_log(e->emit, 1, "timed rounds: %s; it is started once more", why);
    if (start(e) == OK)
        let_load(e);
    else
        timer_drop(e, err_msg());
    return ERR_AGAIN;
}

static enum status ask_round(struct engine *e)
{
    struct msg_command c = {.verb = "round", .origin = "engine"};
    struct timer *t = e->timer;
    t->has_round = t->replied = false;
    enum status st = timer_wire_send(&t->wire, &c);
    if (st == OK) st = timer_until(e, "round", true);
    if (st == OK && (!t->has_round || t->round.prefill_tokens != e->work.n))
        return err_set(ERR_UNAVAILABLE, "its process ran other work");
    return st;
}

enum status timer_round(struct engine *e, struct msg_round *out)
{
    enum status st = wait_ready(e);
    if (st == OK) st = timer_sync(e);
    if (st == OK) st = ask_round(e);
    if (st == OK) {
        *out = e->timer->round;
        e->timer->generation = e->generation;
    } else if (st == ERR_END) {
        st = lost(e);
    } else if (st != ERR_AGAIN && st != ERR_FAILED) {
        timer_drop(e, err_msg());
        st = ERR_AGAIN;
    }
    return st;
}
