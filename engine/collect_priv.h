/* Shared by collect*.c: the state, and what each file does of it. */
#ifndef ENGINE_COLLECT_PRIV_H
#define ENGINE_COLLECT_PRIV_H

#include "cupti/counter.h"
#include "cupti/turns.h"
#include "engine/collect.h"
#include "engine/engine.h"
#include "session/pack.h"

#include <pthread.h>

enum {
    COLLECT_LAUNCHES = 65536,      /* of one round that get a tag */
    COLLECT_WINDOW_SAMPLES = 8000, /* kept of one window; the reader's limit is a little higher */
    COLLECT_WINDOW_SPANS = 60000,
    COLLECT_EXACTS = 16384, /* (row, metric) pairs of one range round: 55 metrics of 297 rows */
    COLLECT_STALL_KERNELS = 64,
    COLLECT_REASONS = 48,
    COLLECT_HEAT_INSNS = 64 << 10,  /* instructions of one PC window, over all kernels */
    COLLECT_EXEC_ROWS = 128,        /* counted in one round of executed counts */
    COLLECT_EXEC_INSNS = 512 << 10, /* instructions of one such round, over all rows */
    COLLECT_FRAME_BYTES = 60000,    /* of spans or samples in one frame */
    COLLECT_WINDOW_NS = 24000000,   /* of a PM window at most */
    COLLECT_REST_NS = 1000000000,   /* between turns */
    COLLECT_PM_NS = 20000,          /* PM sampling period */
};

/* A launch of the running pass; its tag is its index + 1. */
struct launch_note {
    uint32_t row, kernel;
};

struct exact_sum {
    uint32_t row, n;
    uint16_t metric;
    bool missing; /* the chip gave none */
    double sum;
};

/* PC samples of one instruction in a window; by[] goes with the kernel's reasons. */
struct heat_pc {
    uint64_t samples, not_issued;
    uint32_t by[COLLECT_REASONS];
};

struct stall_kernel {
    uint32_t kernel;
    uint64_t samples;
    uint32_t nreasons;
    struct stall_item reasons[COLLECT_REASONS];
    struct heat_pc *pcs; /* by offset / 16; NULL until one has samples */
    uint32_t npcs;
};

/* Which launches are to be counted by instruction; "" and 0 = any. */
struct exec_want {
    char kernel[64], role[32], phase[8];
    uint32_t m, n, k;
};

struct exec_count {
    uint64_t inst, threads, pred_on;
    bool there;
};

/* A row whose launch was chosen, and what came of it. */
struct exec_row {
    uint32_t row, kernel, launches, lost;
    uint8_t has;           /* enum exec_has */
    struct exec_count *at; /* by offset / 16 */
    uint32_t n;
};

struct window_sample {
    uint64_t start, end;
    float v[PM_METRICS_MAX];
};

/* The PM window under way. Under `lock`: samples come from the decode thread. */
struct window {
    uint32_t number, round, period_ns;
    bool open, spans_done, samples_done;
    uint16_t ids[PM_METRICS_MAX];
    unsigned nids;
    struct window_sample *samples;
    uint32_t nsamples;
    struct span_item *spans; /* start in CUPTI's clock */
    uint32_t nspans;
    uint64_t cut, lost; /* samples past the limit; lost by the source */
    bool overflow;
    struct buf bytes;
};

/* Of the newest window that was aligned; at 0: none. */
struct clock_offset {
    uint64_t at; /* CUPTI's clock */
    int64_t ns;
    uint32_t bound_ns;
};

struct clocks;

struct collect {
    struct engine *e;
    struct counter_source *src[COUNTER_ROLES];
    struct turns_config duty; /* as given to turns */
    struct turns *turns;      /* NULL: no source, the backend's clock */
    bool synthetic, opening;  /* opening: states are sent together, once they are settled */
    uint32_t rounds, counted_rounds;
    uint64_t opened_ns;
    const char *phase;
    const struct kernel_info *kernels;
    uint32_t nkernels;

    struct turns_round now;
    uint32_t round, at; /* at: place in the own schedule */
    enum timing timing;
    const char *span_source;
    struct launch_note *launches;
    uint32_t nlaunches;
    uint64_t tagless, mismatched; /* spans of this round without a row */
    uint32_t step_row;            /* first row of the pass's first decode step; 0: none yet */
    bool step_over;               /* that step has ended */
    bool quick;                   /* the next range pass is of one layer's products alone */
    uint64_t quick_ns;            /* monotonic time at which it was asked for */
    uint64_t quick_spent[TURNS_ACTIONS]; /* on each action until then */
    bool sets_once;      /* the next range pass counts more, the one after does not */
    uint32_t pm_windows; /* that pm had started before this round */

    struct exact_sum *exacts;
    uint32_t nexacts, *exact_slots; /* slots: a hash table of indexes + 1, twice as many */
    struct stall_kernel *stalls;
    uint32_t nstalls, heat_insns; /* heat_insns: sum of the kernels' npcs */
    uint64_t stall_other, stall_dropped, stall_unnamed;

    struct exec_want exec_want;
    struct exec_row exec[COLLECT_EXEC_ROWS];
    uint32_t nexec, exec_insns, exec_left; /* exec_left: rows past the limit */

    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t decoder;
    bool decoding, ending;
    struct window w;
    uint32_t windows;
    struct clock_offset offset;
    struct clocks *clocks; /* NULL: no NVML */

    struct msg_tally tallies[COUNTER_ROLES]; /* under `lock` */
    unsigned tally_news;                     /* bit r: role r changed since it was told */
};

/* collect_open.c */
bool collect_listed(const char *list, const char *name); /* is it in the comma list? */
enum status collect_alloc(struct collect *c);
enum status collect_open_sources(struct collect *c);
/* What sources are configured with. range_sets: live, and what --exact or $SASSTOP_EXACT names. */
struct counter_config collect_config(const struct engine *e, bool products);

/* PC sampling names a kernel only if the first time that it ever runs lies in a window of it:
 * pc_prime() with the workload's lists. Nothing else may be armed. */
void collect_prime(struct collect *c);

/* collect_duty.c: sends a DUTY frame, where counters take turns. */
void collect_tell_duty(struct collect *c);

/* collect_exact.c: a list in which what makes a row comes at least twice, or as often as in `f`:
 * operators outside layers and whole layers, in order. forward_free() it. ERR_NOMEM. */
enum status collect_shorten(const struct forward *f, struct forward *out);

/* The products of the first layer that has some, alone: what a key waits for. Those of one k and
 * type of weights stand together and read the same activations, so that few launches besides theirs
 * are counted. forward_free() it. */
enum status collect_products(const struct forward *f, struct forward *out);

/* Launches of a pass over those lists, at most: beginning one takes a millisecond and more for each
 * that there might be. */
uint32_t collect_room(const struct engine *e, bool products);

/* collect_clocks.c: CLOCKS frames from a thread of its own, where NVML is there. */
void collect_clocks_start(struct collect *c);
void collect_clocks_stop(struct collect *c);

/* collect_sink.c: what sources find. */
struct counter_sink collect_sink(struct collect *c);
void collect_send_state(struct collect *c, const struct counter_state *s);
void collect_send_exacts(struct collect *c);
void collect_drop_exacts(struct collect *c);
void collect_send_stalls(struct collect *c);
/* collect_heat.c: samples by instruction. The launching thread's, like the rest of PC sampling. */
struct heat_pc *heat_at(struct collect *c, struct stall_kernel *k, uint64_t pc); /* NULL: no room */
void collect_send_heat(struct collect *c, const struct stall_kernel *k);    /* a PC_HEAT frame */
void heat_drop(struct collect *c);                                          /* all kernels' */
const char *collect_label(const struct collect *c, enum counter_role role); /* "synth" or its own */

/* collect_tally.c: what sources found, lost and cost. */
void tally_window(struct collect *c, const struct counter_window *w); /* any thread */
void tally_send(struct collect *c);                                   /* those that changed */

/* collect_executed.c: executed counts by instruction. The launching thread's. */
enum status exec_ask(struct collect *c, const char *arg); /* what the next such round counts */
bool exec_choose(struct collect *c, const struct launch_info *info, uint32_t row);
void exec_found(struct collect *c, const struct counter_executed *x);
void collect_send_executed(struct collect *c); /* EXECUTED frames; what was found is gone then */
void exec_drop(struct collect *c);

/* collect_window.c: PM windows. */
void window_begin(struct collect *c, uint32_t period_ns);
void window_span(struct collect *c, const struct span_item *s);
void window_sample(struct collect *c, const struct counter_pm_sample *s);
void window_samples_done(struct collect *c, const struct counter_window *w);
void window_spans_done(struct collect *c);
void window_abandon(struct collect *c);

#endif
