/*
 * The schedule of rounds (see turns.h).
 *
 * Invariant: at most one of pm, pc, range, sassexec is armed. Every step that arms one goes through
 * clear(), which disarms the others and says "not yet" while pm is being decoded; the round is then
 * a timed one.
 */
#include "cupti/turns.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cupti/synth.h"

enum { TIMED_ROUNDS = 4, PM_WINDOWS = 3 };
#define PC_WINDOW_NS 50000000ull
#define REST_NS      1000000000ull
#define RETRY_NS     5000000000ull
#define RETRY_MAX_NS 60000000000ull

struct retry {
    uint64_t at, delay;
};

struct turns {
    struct counter_source *src[COUNTER_ROLES];
    struct turns_config cfg;
    struct retry retry[COUNTER_ROLES];
    struct turns_cost cost[TURNS_ACTIONS];
    _Atomic unsigned want;
    enum turns_kind open; /* what the current round has open; TIMED = nothing */
    uint32_t turn;
    unsigned owed;               /* timed rounds still to come before anything is counted */
    unsigned windows;            /* spans rounds left in this turn */
    unsigned spans_rounds, part; /* so far; the part that this round's pm window is for */
    bool window;                 /* it is open, or waits for its part */
    unsigned pass;
    bool pc_due, range_due, exec_due, resting, paused;
    bool now_due, range_kept; /* a range pass before all else; whether another is due after it */
    uint64_t rest_until, pc_since;
    uint64_t virtual_ns;
};

static const char *const action_names[TURNS_ACTIONS] = {
    [TURNS_PM_ARM] = "pm arm",
    [TURNS_PM_START] = "pm start",
    [TURNS_PM_STOP] = "pm stop",
    [TURNS_PM_DISARM] = "pm disarm",
    [TURNS_ACTIVITY_START] = "activity start",
    [TURNS_ACTIVITY_STOP] = "activity stop",
    [TURNS_PC_ARM] = "pc arm",
    [TURNS_PC_START] = "pc start",
    [TURNS_PC_STOP] = "pc stop",
    [TURNS_PC_DISARM] = "pc disarm",
    [TURNS_RANGE_ARM] = "range arm",
    [TURNS_RANGE_START] = "range start",
    [TURNS_RANGE_STOP] = "range stop",
    [TURNS_RANGE_DISARM] = "range disarm",
    [TURNS_EXEC_ARM] = "sassexec arm",
    [TURNS_EXEC_START] = "sassexec start",
    [TURNS_EXEC_STOP] = "sassexec stop",
    [TURNS_EXEC_DISARM] = "sassexec disarm",
};

const char *turns_action_name(enum turns_action a)
{
    return (unsigned)a < TURNS_ACTIONS ? action_names[a] : "?";
}

struct turns_cost turns_cost(const struct turns *t, enum turns_action a)
{
    return (unsigned)a < TURNS_ACTIONS ? t->cost[a] : (struct turns_cost){0};
}

/* ---- timed calls into sources ---- */

static enum status act(struct turns *t, enum turns_action a,
                       enum status (*call)(struct counter_source *), enum counter_role role)
{
    uint64_t t0 = clock_mono_ns();
    enum status st = call(t->src[role]);
    if (st == ERR_AGAIN && call != counter_stop) return st; /* not done yet: at no cost */
    struct turns_cost *c = &t->cost[a];
    c->last_ns = clock_mono_ns() - t0;
    c->sum_ns += c->last_ns;
    if (c->last_ns > c->max_ns) c->max_ns = c->last_ns;
    c->n++;
    if (st != OK && st != ERR_AGAIN) { /* keep away from it for a while */
        struct retry *r = &t->retry[role];
        r->delay =
            r->delay ? (r->delay * 2 < RETRY_MAX_NS ? r->delay * 2 : RETRY_MAX_NS) : RETRY_NS;
        r->at = t->cfg.now() + r->delay;
    } else if (st == OK && call == counter_stop) {
        t->retry[role].delay = 0;
    }
    return st;
}

static bool usable(const struct turns *t, enum counter_role role)
{
    const struct counter_source *s = t->src[role];
    if (!s || s->state.health == COUNTER_UNAVAILABLE || s->state.health == COUNTER_OFF)
        return false;
    return t->retry[role].delay == 0 || t->cfg.now() >= t->retry[role].at;
}

static bool armed(const struct turns *t, enum counter_role role)
{
    return t->src[role] && t->src[role]->armed;
}

/* Disarms everything but `keep`. false: pm is still being decoded. */
static bool clear(struct turns *t, enum counter_role keep)
{
    static const struct {
        enum counter_role role;
        enum turns_action action;
    } order[] = {{COUNTER_PM, TURNS_PM_DISARM},
                 {COUNTER_PC, TURNS_PC_DISARM},
                 {COUNTER_RANGE, TURNS_RANGE_DISARM},
                 {COUNTER_EXEC, TURNS_EXEC_DISARM}};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (order[i].role == keep || !armed(t, order[i].role)) continue;
        if (act(t, order[i].action, counter_disarm, order[i].role) == ERR_AGAIN) return false;
    }
    return true;
}

static bool ready(struct turns *t, enum counter_role role, enum turns_action arm)
{
    if (armed(t, role)) return true;
    return act(t, arm, counter_arm, role) == OK;
}

/* ---- beginning a round ---- */

/* The one that gives spans: activity, else events. COUNTER_ROLES: none. */
static enum counter_role spans_role(const struct turns *t)
{
    if (usable(t, COUNTER_ACTIVITY)) return COUNTER_ACTIVITY;
    if (usable(t, COUNTER_EVENTS)) return COUNTER_EVENTS;
    return COUNTER_ROLES;
}

static bool open_pm(struct turns *t)
{
    return act(t, TURNS_PM_START, counter_start, COUNTER_PM) == OK;
}

/* pm first: while its last window is decoded there is no new one, and the round stays clean. A
 * window for a later part waits for turns_part(). false: not yet. */
static bool begin_pm(struct turns *t)
{
    if (!ready(t, COUNTER_PM, TURNS_PM_ARM)) return true;
    if (counter_busy(t->src[COUNTER_PM])) return false;
    t->part = t->spans_rounds % t->cfg.parts;
    t->window = t->part > 0 || open_pm(t);
    return true;
}

static bool begin_spans(struct turns *t)
{
    bool pm = usable(t, COUNTER_PM);
    enum counter_role spans = spans_role(t);
    if (!pm && spans == COUNTER_ROLES) {
        t->windows = 0;
        return false;
    }
    if (!clear(t, COUNTER_PM)) return false;
    t->window = false;
    if (pm && !begin_pm(t)) return false;
    bool open = t->window;
    if (spans != COUNTER_ROLES && counter_arm(t->src[spans]) == OK)
        open |= act(t, TURNS_ACTIVITY_START, counter_start, spans) == OK;
    if (!open) {
        t->windows = 0;
        return false;
    }
    t->open = TURNS_SPANS;
    t->spans_rounds++;
    if (t->windows) t->windows--;
    return true;
}

static bool begin_pc(struct turns *t)
{
    if (!usable(t, COUNTER_PC)) {
        t->pc_due = false;
        return false;
    }
    if (!clear(t, COUNTER_PC)) return false;
    t->pc_due = false;
    if (!ready(t, COUNTER_PC, TURNS_PC_ARM)) return false;
    if (act(t, TURNS_PC_START, counter_start, COUNTER_PC) != OK) {
        act(t, TURNS_PC_DISARM, counter_disarm, COUNTER_PC);
        return false;
    }
    t->pc_since = t->cfg.now();
    t->open = TURNS_PC;
    return true;
}

static bool begin_range(struct turns *t)
{
    if (!usable(t, COUNTER_RANGE)) {
        t->range_due = false;
        return false;
    }
    if (!clear(t, COUNTER_RANGE)) return false;
    t->range_due = false;
    if (!ready(t, COUNTER_RANGE, TURNS_RANGE_ARM)) return false;
    if (act(t, TURNS_RANGE_START, counter_start, COUNTER_RANGE) != OK) {
        act(t, TURNS_RANGE_DISARM, counter_disarm, COUNTER_RANGE);
        return false;
    }
    t->pass = 0;
    t->open = TURNS_RANGE;
    return true;
}

/* false while pm is still being decoded: then it is the next round's. */
static bool begin_now(struct turns *t)
{
    bool open = begin_range(t);
    if (!open && t->range_due) return false;
    t->now_due = false;
    t->range_due = t->range_kept;
    return open;
}

/* Kernel activity beside it hung on other chips: it is off whenever nothing is started, and
 * disarmed all the same, so that no kind is left on by a source that keeps it between windows. */
static bool begin_exec(struct turns *t)
{
    const struct counter_source *s = t->src[COUNTER_EXEC];
    bool can = s && s->state.health != COUNTER_UNAVAILABLE && s->state.health != COUNTER_OFF;
    if (can && !clear(t, COUNTER_EXEC)) return false;
    t->exec_due = false;
    if (!can) return false; /* one that failed is tried again at once: somebody asked */
    if (armed(t, COUNTER_ACTIVITY)) counter_disarm(t->src[COUNTER_ACTIVITY]);
    if (!ready(t, COUNTER_EXEC, TURNS_EXEC_ARM)) return false;
    if (act(t, TURNS_EXEC_START, counter_start, COUNTER_EXEC) != OK) {
        act(t, TURNS_EXEC_DISARM, counter_disarm, COUNTER_EXEC);
        return false;
    }
    t->open = TURNS_EXEC;
    return true;
}

static bool due(unsigned every, uint32_t turn)
{
    return every && turn % every == 0;
}

static void next_turn(struct turns *t)
{
    t->turn++;
    t->resting = false;
    t->windows = t->cfg.pm_windows;
    if (due(t->cfg.pc_every, t->turn)) t->pc_due = true;
    /* Where SM% can't be sampled the exact counters are what is left. */
    bool no_pm = !t->src[COUNTER_PM] || t->src[COUNTER_PM]->state.health == COUNTER_UNAVAILABLE;
    if (due(t->cfg.range_every, t->turn) || (no_pm && t->turn == 1)) t->range_due = true;
}

/* Opens what is due. false: a timed round. */
static bool advance(struct turns *t)
{
    unsigned want = atomic_exchange(&t->want, 0) & ~(unsigned)TURNS_WANT_EXEC;
    if (want & TURNS_WANT_PC) t->pc_due = true;
    if (want & TURNS_WANT_RANGE) t->range_due = true;
    if (t->turn == 0 || (t->resting && t->cfg.now() >= t->rest_until)) next_turn(t);
    if (want & TURNS_WANT_NOW && !t->now_due) {
        t->now_due = true;
        t->range_kept = t->range_due;
        t->range_due = true;
    }
    want &= ~(unsigned)TURNS_WANT_NOW;
    if (want & TURNS_WANT_SPANS) { /* one for each part, from the first on */
        t->windows = t->cfg.parts;
        t->spans_rounds = 0;
    } else if (want && t->windows) {
        t->windows = 1;
    }
    if (t->now_due) return begin_now(t);
    if (t->windows) return begin_spans(t);
    if (t->pc_due) return begin_pc(t);
    if (t->range_due) return begin_range(t);
    if (!clear(t, COUNTER_ROLES)) return false;
    if (!t->resting) t->rest_until = t->cfg.now() + t->cfg.rest_ns;
    t->resting = true; /* a request may break into the rest but does not make it longer */
    return false;
}

void turns_begin(struct turns *t, struct turns_round *round)
{
    if (atomic_fetch_and(&t->want, ~(unsigned)TURNS_WANT_EXEC) & TURNS_WANT_EXEC)
        t->exec_due = true;
    if (t->open == TURNS_TIMED && !t->paused) {
        bool begun = t->exec_due && begin_exec(t);
        bool now = t->now_due || (atomic_load(&t->want) & TURNS_WANT_NOW);
        if (!begun && t->owed && !now)
            t->owed--;
        else if (!begun && !t->exec_due)
            advance(t);
    }
    *round = (struct turns_round){
        .kind = t->open,
        .turn = t->turn,
        .pass = t->pass,
        .window = t->open == TURNS_SPANS && t->window,
        .armed = armed(t, COUNTER_PM) || armed(t, COUNTER_PC) || armed(t, COUNTER_RANGE) ||
                 armed(t, COUNTER_EXEC),
    };
}

/* ---- ending a round ---- */

static void stop_if_started(struct turns *t, enum counter_role role, enum turns_action a)
{
    if (t->src[role] && t->src[role]->started) act(t, a, counter_stop, role);
}

static void end_spans(struct turns *t)
{
    stop_if_started(t, COUNTER_PM, TURNS_PM_STOP);
    stop_if_started(t, COUNTER_ACTIVITY, TURNS_ACTIVITY_STOP);
    stop_if_started(t, COUNTER_EVENTS, TURNS_ACTIVITY_STOP);
}

static bool end_pc(struct turns *t)
{
    if (t->cfg.now() - t->pc_since < t->cfg.pc_window_ns)
        return false; /* goes on in the next round */
    act(t, TURNS_PC_STOP, counter_stop, COUNTER_PC);
    act(t, TURNS_PC_DISARM, counter_disarm, COUNTER_PC);
    return true;
}

/* ERR_AGAIN: another pass is open. */
static enum status end_range(struct turns *t)
{
    enum status st = act(t, TURNS_RANGE_STOP, counter_stop, COUNTER_RANGE);
    if (st == ERR_AGAIN) {
        t->pass++;
        st = act(t, TURNS_RANGE_START, counter_start, COUNTER_RANGE);
        if (st == OK) return ERR_AGAIN;
    }
    act(t, TURNS_RANGE_DISARM, counter_disarm, COUNTER_RANGE);
    return OK;
}

enum status turns_end(struct turns *t)
{
    switch (t->open) {
    case TURNS_TIMED:
        return OK;
    case TURNS_SPANS:
        end_spans(t);
        break;
    case TURNS_PC:
        if (!end_pc(t)) return OK;
        break;
    case TURNS_RANGE:
        if (end_range(t) == ERR_AGAIN) return ERR_AGAIN;
        break;
    case TURNS_EXEC:
        act(t, TURNS_EXEC_STOP, counter_stop, COUNTER_EXEC);
        act(t, TURNS_EXEC_DISARM, counter_disarm, COUNTER_EXEC);
        break;
    }
    t->open = TURNS_TIMED;
    t->owed = t->cfg.timed_rounds;
    return OK;
}

/* ---- the rest ---- */

void turns_part(struct turns *t, unsigned part)
{
    if (t->open == TURNS_SPANS && t->window && part > 0 && part == t->part) t->window = open_pm(t);
}

void turns_launch_begin(struct turns *t, const struct counter_launch *l)
{
    if (t->open == TURNS_TIMED) return;
    struct counter_launch timed = *l;
    const struct counter_source *any = NULL;
    for (int r = 0; r < COUNTER_ROLES && !any; r++)
        if (t->src[r] && t->src[r]->started && t->src[r]->state.synthetic) any = t->src[r];
    if (any) {
        timed.virtual_ns = t->virtual_ns + SYNTH_GAP_NS;
        t->virtual_ns = timed.virtual_ns + synth_duration_ns(l->kernel, l->macs, any->env.seed);
    }
    for (int r = 0; r < COUNTER_ROLES; r++)
        if (t->src[r]) counter_launch_begin(t->src[r], &timed);
}

void turns_launch_end(struct turns *t, const struct counter_launch *l)
{
    if (t->open == TURNS_TIMED) return;
    for (int r = 0; r < COUNTER_ROLES; r++)
        if (t->src[r]) counter_launch_end(t->src[r], l);
}

enum status turns_poll(struct turns *t)
{
    return t->src[COUNTER_PM] ? counter_poll(t->src[COUNTER_PM]) : ERR_AGAIN;
}

void turns_request(struct turns *t, unsigned want)
{
    atomic_fetch_or(&t->want, want);
}

enum status turns_pause(struct turns *t)
{
    t->paused = true;
    if (t->open == TURNS_SPANS) end_spans(t);
    t->open = TURNS_TIMED;
    return clear(t, COUNTER_ROLES) ? OK : ERR_AGAIN;
}

void turns_set_rest(struct turns *t, uint64_t rest_ns)
{
    t->cfg.rest_ns = rest_ns;
    if (t->resting) t->rest_until = t->cfg.now() + rest_ns;
}

void turns_resume(struct turns *t)
{
    t->paused = false;
}

enum status turns_open(struct counter_source *const sources[COUNTER_ROLES],
                       const struct turns_config *cfg, struct turns **out)
{
    struct turns *t = *out = calloc(1, sizeof *t);
    if (!t) return err_set(ERR_NOMEM, "out of memory: schedule of counters");
    memcpy(t->src, sources, sizeof t->src);
    if (cfg) t->cfg = *cfg;
    if (!t->cfg.timed_rounds) t->cfg.timed_rounds = TIMED_ROUNDS;
    if (!t->cfg.pm_windows) t->cfg.pm_windows = PM_WINDOWS;
    if (!t->cfg.pc_window_ns) t->cfg.pc_window_ns = PC_WINDOW_NS;
    if (!t->cfg.parts) t->cfg.parts = 1;
    if (!t->cfg.rest_ns) t->cfg.rest_ns = REST_NS;
    if (!t->cfg.now) t->cfg.now = clock_mono_ns;
    t->virtual_ns = SYNTH_EPOCH_NS;
    t->owed = t->cfg.timed_rounds;
    return OK;
}

void turns_close(struct turns *t)
{
    if (!t) return;
    if (turns_pause(t) == ERR_AGAIN) {
        turns_poll(t);
        turns_pause(t);
    }
    if (armed(t, COUNTER_ACTIVITY)) counter_disarm(t->src[COUNTER_ACTIVITY]);
    if (armed(t, COUNTER_EVENTS)) counter_disarm(t->src[COUNTER_EVENTS]);
    free(t);
}
