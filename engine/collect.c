/*
 * The schedule of rounds, and the hooks around launches; see collect.h.
 *
 * Invariant: a launch's tag is its place in the running pass + 1, so a repeated pass gives the same
 * launch the same tag.
 */
#include "engine/collect_priv.h"

#include "base/clock.h"
#include "cupti/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DECODE_POLL_NS = 5000000, MAX_PASSES = 64, PC_EVERY = 4, PM_WINDOWS = 3, TIMED_ROUNDS = 4 };

/* ---- hooks ---- */

static uint32_t note_launch(struct collect *c, const struct launch_info *info)
{
    uint32_t row = rows_find(c->e->rows, info, c->phase);
    if (c->nlaunches < COLLECT_LAUNCHES)
        c->launches[c->nlaunches++] = (struct launch_note){row, info->kernel};
    return row;
}

/* Counted exactly: the whole prefill and one decode step, which is over when its first row comes
 * again. */
static bool choose(struct collect *c, const struct launch_info *info, uint32_t row)
{
    if (c->now.kind == TURNS_EXEC) return exec_choose(c, info, row);
    if (c->now.kind != TURNS_RANGE) return false;
    if (strcmp(c->phase, "decode")) return true;
    if (!c->step_row)
        c->step_row = row;
    else if (row == c->step_row)
        c->step_over = true;
    return !c->step_over;
}

static struct counter_launch counter_launch(struct collect *c, const struct launch_info *info)
{
    return (struct counter_launch){
        .tag = c->nlaunches, .kernel = c->kernels[info->kernel].name, .macs = info->macs};
}

static void on_launch(void *ctx, const struct launch_info *info)
{
    struct collect *c = ((struct engine *)ctx)->collect;
    if (!c || info->kernel >= c->nkernels) return;
    uint32_t row = note_launch(c, info);
    if (!c->turns || c->nlaunches == COLLECT_LAUNCHES) return;
    struct counter_launch l = counter_launch(c, info);
    l.chosen = choose(c, info, row);
    turns_launch_begin(c->turns, &l);
}

static void on_launched(void *ctx, const struct launch_info *info)
{
    struct collect *c = ((struct engine *)ctx)->collect;
    if (!c || !c->turns || info->kernel >= c->nkernels || c->nlaunches == COLLECT_LAUNCHES) return;
    struct counter_launch l = counter_launch(c, info);
    turns_launch_end(c->turns, &l);
}

static void on_time(void *ctx, const struct launch_info *info, uint64_t start_ns, uint64_t dur_ns)
{
    struct collect *c = ((struct engine *)ctx)->collect;
    (void)start_ns;
    if (c) rows_add(c->e->rows, rows_find(c->e->rows, info, c->phase), dur_ns);
}

struct backend_hooks collect_hooks(struct engine *e)
{
    return (struct backend_hooks){
        .ctx = e, .on_launch = on_launch, .on_launched = on_launched, .on_time = on_time};
}

/* ---- the decode thread ---- */

static void *decode_thread(void *arg)
{
    struct collect *c = arg;
    pthread_setname_np(pthread_self(), "counters"); /* tests/gpu/soak.sh finds it by that */
    pthread_mutex_lock(&c->lock);
    while (!c->ending) {
        pthread_mutex_unlock(&c->lock);
        while (turns_poll(c->turns) == OK) continue;
        pthread_mutex_lock(&c->lock);
        if (c->ending) break;
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        ts.tv_nsec += DECODE_POLL_NS;
        if (ts.tv_nsec >= 1000000000) ts.tv_sec++, ts.tv_nsec -= 1000000000;
        pthread_cond_timedwait(&c->wake, &c->lock, &ts);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- opening ---- */

static bool any_ready(const struct collect *c)
{
    for (int r = 0; r < COUNTER_ROLES; r++)
        if (c->src[r] && c->src[r]->state.health == COUNTER_READY) return true;
    return false;
}

static enum status start_turns(struct collect *c)
{
    const struct options *o = c->e->opt;
    struct turns_config cfg = {
        .timed_rounds = o->counted ? (o->timed + o->counted - 1) / o->counted : TIMED_ROUNDS,
        .pc_every = PC_EVERY,
        .parts = c->synthetic ? 1 : 2, /* prefill, decode */
        .pm_windows = PM_WINDOWS,
        .rest_ns = o->rest_ns ? o->rest_ns : (uint64_t)COLLECT_REST_NS,
    };
    if (!any_ready(c) || !o->counted) return OK;
    enum status st = turns_open(c->src, &cfg, &c->turns);
    if (st != OK) return st;
    c->duty = cfg;
    collect_tell_duty(c);
    turns_request(c->turns, TURNS_WANT_SPANS | TURNS_WANT_PC | TURNS_WANT_RANGE);
    if (c->synthetic) return OK; /* polled between rounds: the order of frames is fixed */
    c->decoding = pthread_create(&c->decoder, NULL, decode_thread, c) == 0;
    return c->decoding ? OK : err_set(ERR_FAILED, "can't start the counters' decode thread");
}

/* Without sources the schedule begins with its last timed round, so that the second round counts:
 * where rounds take seconds the first figures don't wait for a cycle. */
static void plain_restart(struct collect *c)
{
    c->at = c->e->opt->timed ? c->e->opt->timed - 1 : 0;
}

/* --executed: once a generation. Where it can't be done it is said, and the rest goes on. */
static void ask_executed(struct collect *c)
{
    char text[200];
    if (c->e->opt->executed &&
        collect_request(c, "sassexec", c->e->opt->executed, text, sizeof text) != OK)
        emit_log(c->e->emit, 1, "no executed counts: %s", err_msg());
}

enum status collect_open(struct engine *e, struct collect **out)
{
    struct collect *c = calloc(1, sizeof *c);
    pthread_condattr_t attr;
    *out = NULL;
    if (!c) return err_set(ERR_NOMEM, "out of memory for counter sources");
    c->e = e;
    c->phase = "prefill";
    c->span_source = "";
    c->opened_ns = clock_mono_ns();
    c->nkernels = e->bo->kernels(e->b, &c->kernels);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->wake, &attr);
    pthread_condattr_destroy(&attr);
    enum status st = collect_alloc(c);
    if (st == OK) st = collect_open_sources(c);
    if (st == OK) st = start_turns(c);
    plain_restart(c);
    if (st == OK && !e->opt->timer_of) collect_clocks_start(c);
    if (st != OK) {
        collect_close(c);
        return st;
    }
    *out = c;
    ask_executed(c);
    return OK;
}

/* What counting cost the launching thread, beside the rounds that it made no timed ones. */
static void tell_cost(struct collect *c)
{
    uint64_t sum = 0, all = clock_mono_ns() - c->opened_ns;
    if (!c->turns || c->synthetic) return;
    for (int a = 0; a < TURNS_ACTIONS; a++)
        sum += turns_cost(c->turns, (enum turns_action)a).sum_ns;
    emit_log(c->e->emit, 0,
             "counters: %u of %u rounds were counted; switching them took %.2f s of %.1f s",
             c->counted_rounds, c->rounds, (double)sum * 1e-9, (double)all * 1e-9);
}

void collect_close(struct collect *c)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->decoding) pthread_join(c->decoder, NULL);
    collect_clocks_stop(c);
    tell_cost(c);
    tally_send(c);
    turns_close(c->turns);
    for (int r = 0; r < COUNTER_ROLES; r++) counter_close(c->src[r]);
    cupti_close(c->e->cupti);
    c->e->cupti = NULL;
    free(c->launches);
    free(c->exacts);
    free(c->exact_slots);
    heat_drop(c);
    exec_drop(c);
    free(c->stalls);
    free(c->w.samples);
    free(c->w.spans);
    buf_free(&c->w.bytes);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- rounds ---- */

static void new_pass(struct collect *c)
{
    c->nlaunches = 0;
    c->step_row = 0;
    c->step_over = false;
}

/* Without sources: --schedule, timed by the backend. */
static void begin_plain(struct collect *c, struct collect_plan *out)
{
    const struct options *o = c->e->opt;
    uint32_t place = c->at++ % (o->timed + o->counted);
    bool off = o->sources && collect_listed(o->sources, "none");
    if (place < o->timed || off) return;
    c->span_source = c->e->bo->context(c->e->b) ? "events" : "clock";
    *out =
        (struct collect_plan){.counted = true, .timing = TIMING_LAUNCH, .source = c->span_source};
}

void collect_begin(struct collect *c, uint32_t round, struct collect_plan *out)
{
    *out = (struct collect_plan){.timing = TIMING_NONE, .source = ""};
    c->round = round;
    new_pass(c);
    c->tagless = c->mismatched = 0;
    c->rounds++;
    c->now = (struct turns_round){.kind = TURNS_TIMED};
    if (!c->turns) {
        begin_plain(c, out);
        c->timing = out->timing;
        return;
    }
    turns_begin(c->turns, &c->now);
    exec_drop(c); /* what a run after the counted one chose */
    if (c->now.kind != TURNS_TIMED) {
        static const enum counter_role roles[] = {[TURNS_SPANS] = COUNTER_PM,
                                                  [TURNS_PC] = COUNTER_PC,
                                                  [TURNS_RANGE] = COUNTER_RANGE,
                                                  [TURNS_EXEC] = COUNTER_EXEC};
        bool exact = c->now.kind == TURNS_RANGE || c->now.kind == TURNS_EXEC;
        struct counter_source *act = c->src[COUNTER_ACTIVITY];
        bool window = c->now.window;
        c->counted_rounds++;
        c->span_source = collect_label(c, act && act->started ? COUNTER_ACTIVITY : COUNTER_EVENTS);
        out->counted = true;
        out->exact = exact && !c->synthetic;
        out->timing = TIMING_EXTERNAL;
        out->source = c->now.kind == TURNS_SPANS && !window ? c->span_source
                                                            : collect_label(c, roles[c->now.kind]);
        if (window) window_begin(c, COLLECT_PM_NS);
        c->pm_windows = c->src[COUNTER_PM] ? c->src[COUNTER_PM]->windows : 0;
        if (window && c->src[COUNTER_PM]->started) c->pm_windows--;
    }
    c->timing = out->timing;
}

void collect_phase(struct collect *c, const char *phase)
{
    c->phase = phase;
    if (c->turns) turns_part(c->turns, strcmp(phase, "decode") == 0);
}

enum status collect_end_pass(struct collect *c)
{
    enum status st = c->turns ? turns_end(c->turns) : OK;
    new_pass(c);
    return st;
}

static void tell_lost_spans(struct collect *c)
{
    if (c->tagless || c->mismatched)
        emit_log(c->e->emit, 1,
                 "round %u: %llu records without their launch and %llu of another kernel than was "
                 "launched are left unattributed",
                 c->round, (unsigned long long)c->tagless, (unsigned long long)c->mismatched);
}

static void poll_synthetic(struct collect *c)
{
    while (c->synthetic && c->turns && turns_poll(c->turns) == OK) continue;
}

/* Other sets were asked for once. */
static void sets_done(struct collect *c)
{
    if (!c->sets_once) return;
    struct counter_config cfg = collect_config(c->e, false);
    if (counter_configure(c->src[COUNTER_RANGE], &cfg) == OK) c->sets_once = false;
}

static double quick_ms(const struct collect *c, enum turns_action a)
{
    return (double)(turns_cost(c->turns, a).sum_ns - c->quick_spent[a]) * 1e-6;
}

/* A round that a command broke into; what nothing else would bring again is still owed. A key's
 * stays a key's: its sets and its room are configured. */
static void end_broken(struct collect *c)
{
    /* Passes that would come are run empty: it is their turn that has to end. */
    for (int pass = 0; c->turns && pass < MAX_PASSES; pass++)
        if (turns_end(c->turns) != ERR_AGAIN) break;
    poll_synthetic(c);
    rows_discard(c->e->rows);
    window_abandon(c);
    collect_drop_exacts(c);
    tally_send(c);
    exec_drop(c);
    if (c->now.kind == TURNS_RANGE)
        turns_request(c->turns, c->quick ? TURNS_WANT_NOW : TURNS_WANT_RANGE);
    if (c->now.kind == TURNS_EXEC) turns_request(c->turns, TURNS_WANT_EXEC);
}

/* Says how long the key was waited for, and on what. */
static void quick_done(struct collect *c)
{
    if (!c->quick) return;
    c->quick = false;
    collect_send_exacts(c);
    emit_log(c->e->emit, 0,
             "exact figures of one layer's products came %.0f ms after the key; PM sampling off "
             "%.0f, passes armed %.0f, begun %.0f, ended %.0f, read %.0f",
             (double)(clock_mono_ns() - c->quick_ns) * 1e-6, quick_ms(c, TURNS_PM_DISARM),
             quick_ms(c, TURNS_RANGE_ARM), quick_ms(c, TURNS_RANGE_START),
             quick_ms(c, TURNS_RANGE_STOP), quick_ms(c, TURNS_RANGE_DISARM));
}

void collect_end(struct collect *c, bool whole)
{
    if (!whole) {
        end_broken(c);
        return;
    }
    /* A window that waited for its part and was refused then has no samples to wait for. */
    if (c->now.window && c->src[COUNTER_PM]->windows == c->pm_windows) window_abandon(c);
    if (c->now.kind == TURNS_RANGE) {
        quick_done(c);
        sets_done(c);
    }
    tell_lost_spans(c);
    rows_flush(c->e->rows, c->round, c->span_source);
    collect_send_exacts(c);
    if (c->now.kind == TURNS_EXEC) collect_send_executed(c);
    window_spans_done(c);
    poll_synthetic(c);
    tally_send(c);
    pthread_mutex_lock(&c->lock);
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

/* ---- requests ---- */

/* Ends what is open or armed. false: a closed pm window is still decoded; it stays armed. */
static bool settle(struct collect *c)
{
    bool quiet = turns_pause(c->turns) == OK;
    turns_resume(c->turns);
    return quiet;
}

void collect_settle(struct collect *c)
{
    if (c->turns) (void)settle(c);
}

/* The same, waiting for the decode thread, which takes some tenths of a second for a window;
 * synthetic ones have none. */
static bool settle_wait(struct collect *c)
{
    enum { TRIES = 200 };
    bool quiet = false;
    for (int i = 0; i < TRIES && !c->synthetic && !(quiet = settle(c)); i++)
        nanosleep(&(struct timespec){.tv_nsec = DECODE_POLL_NS}, NULL);
    return quiet;
}

void collect_after_flip(struct collect *c)
{
    plain_restart(c);
    if (!c->turns) return;
    if (settle_wait(c)) collect_prime(c);
    turns_request(c->turns, TURNS_WANT_SPANS | TURNS_WANT_PC | TURNS_WANT_RANGE);
    ask_executed(c);
}

/* The next range pass counts these sets too, of one layer's products or of all; `text` says in how
 * many passes. */
static enum status want_sets(struct collect *c, const char *arg, bool products, char *text,
                             size_t size)
{
    struct counter_config cfg = collect_config(c->e, products);
    unsigned sets = metric_sets_parse(arg);
    if (!sets)
        return err_set(ERR_USAGE,
                       "exact sets are live, sol, stalls, pipes, memory and all, or a comma list "
                       "of them; \"%s\" is none",
                       arg);
    cfg.range_sets |= sets;
    enum status st = counter_configure(c->src[COUNTER_RANGE], &cfg);
    c->sets_once = st == OK;
    if (st == OK) snprintf(text, size, "%s: %s", arg, c->src[COUNTER_RANGE]->state.detail);
    return st;
}

/* A range pass; of one layer's products alone in the very next round, where somebody waits: so
 * nothing else may be armed when that begins. */
static enum status want_exact(struct collect *c, const char *arg, char *text, size_t size)
{
    static const char PRODUCTS[] = "products:";
    bool quick = !strncmp(arg, PRODUCTS, sizeof PRODUCTS - 1);
    enum status st = OK;
    if (quick) arg += sizeof PRODUCTS - 1;
    uint64_t asked_ns = clock_mono_ns();
    if (quick || *arg) st = want_sets(c, arg, quick, text, size);
    if (st != OK) return st;
    if (quick) {
        c->quick = true;
        c->quick_ns = asked_ns;
        for (int a = 0; a < TURNS_ACTIONS; a++)
            c->quick_spent[a] = turns_cost(c->turns, (enum turns_action)a).sum_ns;
        (void)settle_wait(c);
    }
    turns_request(c->turns, quick ? TURNS_WANT_NOW : TURNS_WANT_RANGE);
    return OK;
}

/* Somebody waits for them: the next round is theirs, once nothing else is armed. */
static enum status want_executed(struct collect *c, const char *arg)
{
    enum status st = exec_ask(c, arg);
    if (st != OK) return st;
    (void)settle_wait(c);
    turns_request(c->turns, TURNS_WANT_EXEC);
    return OK;
}

enum status collect_request(struct collect *c, const char *what, const char *arg, char *text,
                            size_t size)
{
    bool pc = !strcmp(what, "pc"), exec = !strcmp(what, "sassexec");
    const struct counter_source *s = c->src[pc ? COUNTER_PC : exec ? COUNTER_EXEC : COUNTER_RANGE];
    snprintf(text, size, "comes with the next counted round");
    if (!c->turns || !s)
        return err_set(ERR_UNAVAILABLE, "no %s source is open here; see the sources", what);
    bool again = exec && s->state.health == COUNTER_FAILED; /* it is on request alone */
    if (s->state.health != COUNTER_READY && !again)
        return err_set(ERR_UNAVAILABLE, "%s: %s", what, s->state.why);
    if (exec) return want_executed(c, arg);
    if (!pc) return want_exact(c, arg, text, size);
    turns_request(c->turns, TURNS_WANT_PC);
    return OK;
}
