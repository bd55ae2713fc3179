/*
 * Turns: which round is timed, which is counted by what, and the hand-over between sources that
 * can't be on together. Pure scheduling over struct counter_source; knows nothing about CUPTI or
 * kernels.
 *
 * The engine's loop, on the launching thread:
 *
 *     struct turns_round r;
 *     turns_begin(t, &r);                 stream drained, between rounds
 *     do {
 *         (on a repeat: put the state back)
 *         run the round; around each launch: turns_launch_begin(), turns_launch_end()
 *         drain the stream
 *     } while (turns_end(t) == ERR_AGAIN);
 *     if (r.kind == TURNS_TIMED) its time counts
 *
 * and on the decode thread, every few milliseconds: turns_poll(t).
 *
 * A round may have parts (prefill, decode): turns_part(t, 1) says that the second begins. A pm
 * window holds 24 ms, so windows take the parts in turn.
 *
 * A turn:  pm armed -> { spans round (activity and pm window open), timed rounds } x pm_windows
 *          -> pm decoded, disarmed -> pc window if due -> pc disarmed -> range passes if due
 *          -> timed rounds with nothing armed until rest_ns have passed -> next turn.
 * After every counted round come at least `timed_rounds` timed ones. A timed round never has a
 * window open; `armed` tells that a source stood by. The launching thread never waits for decoding:
 * until it is done, rounds are timed ones.
 *
 * Order kept: pm is disarmed before pc or range is armed, pc before pm or range, range before pm or
 * pc, and all of them before sassexec, kernel activity included: it is asked for by a person who
 * waits, so it comes before any other and owes no timed rounds before it, only after it. A source
 * that is refused drops out with its reason (its state went to the sink); one that failed is tried
 * again after 5, 10, ... 60 s. Without pm the spans rounds go on with activity, without activity
 * with events.
 *
 * Memory: the caller owns the sources and outlives them with struct turns. Threads: turns_poll() on
 * the decode thread, turns_request() on any, all else on the launching thread.
 */
#ifndef CUPTI_TURNS_H
#define CUPTI_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cupti/counter.h"

enum turns_kind {
    TURNS_TIMED, /* nothing is collected: its time counts */
    TURNS_SPANS, /* activity (or events) and a pm window */
    TURNS_PC,    /* a pc window is open; may span several rounds */
    TURNS_RANGE, /* a pass of exact counters: repeated while turns_end() says ERR_AGAIN */
    TURNS_EXEC,  /* executed counts of chosen launches; on request only */
};

struct turns_round {
    enum turns_kind kind;
    bool armed;    /* timed: a source is armed, no window open */
    bool window;   /* spans: a pm window is open or will be, at the part it is for */
    uint32_t turn; /* from 1 */
    unsigned pass; /* range: from 0 */
};

/* For turns_request(). */
enum {
    TURNS_WANT_PC = 1,
    TURNS_WANT_RANGE = 2,
    TURNS_WANT_SPANS = 4,
    TURNS_WANT_NOW = 8,   /* a range pass before all else, also before timed rounds that are owed */
    TURNS_WANT_EXEC = 16, /* executed counts, before even that */
};

/* 0 = default. */
struct turns_config {
    unsigned timed_rounds; /* 4 */
    unsigned pm_windows;   /* a turn: 3 */
    unsigned parts;        /* of a round: 1 */
    uint64_t pc_window_ns; /* at least this long: 50 ms; rounds are added until it is reached */
    unsigned pc_every;     /* turns between pc windows; 0 = on request only */
    unsigned range_every;  /* turns between range passes; 0 = on request only */
    uint64_t rest_ns;      /* nothing armed between turns for this long: 1 s */
    uint64_t (*now)(void); /* clock_mono_ns; tests give their own */
};

enum turns_action {
    TURNS_PM_ARM,
    TURNS_PM_START,
    TURNS_PM_STOP,
    TURNS_PM_DISARM,
    TURNS_ACTIVITY_START,
    TURNS_ACTIVITY_STOP,
    TURNS_PC_ARM,
    TURNS_PC_START,
    TURNS_PC_STOP,
    TURNS_PC_DISARM,
    TURNS_RANGE_ARM,
    TURNS_RANGE_START,
    TURNS_RANGE_STOP,
    TURNS_RANGE_DISARM,
    TURNS_EXEC_ARM,
    TURNS_EXEC_START,
    TURNS_EXEC_STOP,
    TURNS_EXEC_DISARM,
    TURNS_ACTIONS,
};

/* Time of the launching thread that an action took. */
struct turns_cost {
    uint32_t n;
    uint64_t sum_ns, max_ns, last_ns;
};

struct turns;

/* sources[role] may be NULL. Copies cfg (NULL = defaults). */
enum status turns_open(struct counter_source *const sources[COUNTER_ROLES],
                       const struct turns_config *cfg, struct turns **out);
/* Ends what is open; the decode thread must have stopped. The sources stay open. NULL is fine. */
void turns_close(struct turns *t);

/* Never fails: what can't be counted makes the round a timed one. */
void turns_begin(struct turns *t, struct turns_round *round);
/* ERR_AGAIN: run the same work again, counters of the next pass are on already. */
enum status turns_end(struct turns *t);

/* Part `part` (from 0) of the round begins; the stream is drained. Need not be said of part 0. */
void turns_part(struct turns *t, unsigned part);

/* Around every launch of a round, also of timed ones; cheap when nothing is open. */
void turns_launch_begin(struct turns *t, const struct counter_launch *l);
void turns_launch_end(struct turns *t, const struct counter_launch *l);

/* ERR_AGAIN: nothing to decode. */
enum status turns_poll(struct turns *t);

/* Asks for executed counts, a window of pc, a range pass or a spans round as soon as possible:
 * after a flip, on a key. TURNS_WANT_NOW leaves what else was due as it was. Spans rounds, one for
 * each part, go before pc and range; of others in the turn one is left. */
void turns_request(struct turns *t, unsigned want);

/* How long nothing is armed between turns, from now on; a rest under way ends by it too. */
void turns_set_rest(struct turns *t, uint64_t rest_ns);

/* Brings everything to a stop between rounds: OK when nothing is armed, ERR_AGAIN while a pm window
 * is still being decoded. Rounds are timed until turns_resume(). */
enum status turns_pause(struct turns *t);
void turns_resume(struct turns *t);

struct turns_cost turns_cost(const struct turns *t, enum turns_action a);
const char *turns_action_name(enum turns_action a); /* "pm arm", ... */

#endif
