/*
 * Counter sources: what every way of measuring a kernel looks like to the engine.
 *
 * A source plays one role (enum counter_role). The engine opens one source a role, real or
 * synthetic, and drives them through cupti/turns.h; it never calls CUPTI itself. A source hands its
 * findings to the engine's sink. All times are nanoseconds of CUPTI's clock, which is
 * CLOCK_REALTIME.
 *
 * Life of a source:   counter_open -> probe -> configure -> { arm -> { start -> stop -> poll* }*
 * -> disarm }* -> close. "Armed" = the hardware is claimed (CUPTI enabled); "started" = a window is
 * open. pm and pc can't both be armed (CUPTI answers 26 and the object stays dead), nor range or
 * sassexec with either, nor sassexec with kernel activity on: cupti/turns.c keeps that order.
 *
 * Threads. "Launching thread" = the one that launches kernels, its CUDA context current, with the
 * stream drained wherever arm, start, stop or disarm are called; "decode thread" = any one other
 * thread.
 *
 *              probe, configure, close   arm, disarm   start, stop   launch_*    poll
 *   events     launching                 launching     launching     launching   launching
 *   activity   launching                 launching     launching     launching   launching
 *   pm         launching                 either        either        -           decode
 *   pc         launching                 LAUNCHING     LAUNCHING     -           launching
 *   range      launching                 launching     launching     launching   -
 *   sassexec   launching                 launching     launching     launching   -
 *   synth      as the role it plays
 *
 * PC sampling's start from another thread while kernels are being launched never returned (H200,
 * driver 580): that row is a rule, not advice. pm's stop and poll may overlap with launches; a
 * start while the last window is not yet decoded gives ERR_AGAIN. Sink functions run on the thread
 * that called the operation, inside that call: they must not call back into the source.
 *
 * Memory: everything a sink function is given is valid during that call only; copy what is kept.
 * Kernel names handed in with struct counter_launch must live until the window's spans were
 * delivered.
 */
#ifndef CUPTI_COUNTER_H
#define CUPTI_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "cupti/metrics.h"

struct cupti_lib;
struct driver;

enum counter_role {
    COUNTER_EVENTS,
    COUNTER_ACTIVITY,
    COUNTER_PM,
    COUNTER_PC,
    COUNTER_RANGE,
    COUNTER_EXEC,
    COUNTER_ROLES,
};

/* ---- what a source finds ---- */

/* One kernel launch seen on the GPU (activity, synth) or timed around (events). */
struct counter_span {
    uint64_t tag;       /* the launch's own tag; 0 when it could not be told which launch it was */
    const char *kernel; /* symbol name; "" when unknown */
    uint64_t start_ns, end_ns; /* events: start_ns is the host's, end - start is exact */
    uint32_t grid[3], block[3];
    uint32_t regs, smem_static, smem_dynamic;
    uint32_t correlation, stream, graph;
    uint64_t graph_node;
};

/* One sample of the whole GPU. values[i] belongs to ids[i]; a NaN is a value that was not
 * available. */
struct counter_pm_sample {
    uint32_t window; /* counts from 1 within the source */
    uint64_t start_ns, end_ns;
    unsigned n;
    const uint16_t *ids; /* enum metric_id */
    const double *values;
};

/* One exact counter of one launch. */
struct counter_exact {
    uint64_t tag;
    uint32_t range; /* index within the group */
    uint16_t id;    /* enum metric_id */
    double value;   /* NaN: the chip gave none */
};

struct counter_stall {
    const char *reason;  /* normalised: "long_scoreboard"; lives as long as the source */
    uint32_t samples;    /* of the plain reason, as CUPTI counts it */
    uint32_t not_issued; /* of its "_not_issued" twin */
};

/* PC samples of one instruction. */
struct counter_pc {
    uint32_t window;
    const char *function; /* symbol name */
    uint64_t cubin_crc;   /* cuptiGetCubinCrc of the module: see pc_cubin_crc() */
    uint64_t pc;          /* byte offset inside the function */
    unsigned n;
    const struct counter_stall *stalls;
};

/* How often one instruction of one chosen launch was executed. */
struct counter_executed {
    uint64_t tag;
    const char *function; /* symbol name */
    uint32_t cubin_crc;   /* see pc_cubin_crc() */
    uint64_t pc;          /* byte offset inside the function */
    uint64_t inst;        /* by a warp */
    uint64_t threads;     /* inst times the threads that were active; COUNTER_UNKNOWN */
    uint64_t pred_on;     /* of those, with the guard true; COUNTER_UNKNOWN */
};
#define COUNTER_UNKNOWN UINT64_MAX /* the chip doesn't count it: not 0 */

/* What a window held and what it lost. Sent once a window, also when nothing was lost. */
struct counter_window {
    enum counter_role role;
    uint32_t window;
    uint64_t start_ns, end_ns; /* host clock around start and stop */
    uint64_t items;            /* spans, samples, PC samples, ranges, counted instructions */
    uint64_t dropped;          /* lost by hardware or buffers */
    uint64_t invalid;          /* records without usable timestamps: not used */
    uint64_t other;     /* pc: samples of code that is not the user's; pm: first samples cut;
                         * sassexec: records of functions that were not chosen */
    uint64_t reported;  /* pc: total samples as CUPTI counts them, to compare with items */
    bool overflow;      /* the hardware buffer ran over: the window's figures would lie */
    uint64_t decode_ns; /* host time spent on reading the data */
    uint32_t overheads; /* activity: CUPTI's own records of what it took, and their time in all */
    uint64_t overhead_ns;
    unsigned sets; /* range: METRIC_SET_* of the group, how many metrics, and runs of the work */
    uint32_t metrics, passes;
    bool given_up; /* range: the work did not run in every pass; its counters were dropped */
};

enum counter_health { COUNTER_OFF, COUNTER_READY, COUNTER_UNAVAILABLE, COUNTER_FAILED };

struct counter_state {
    enum counter_role role;
    const char *name; /* "pm", "pc", ... as in sources[].name of the report */
    enum counter_health health;
    bool synthetic;
    char why[256];    /* "" when ready; else what happened and what still works */
    char remedy[256]; /* what to try; "" when nothing helps */
    char detail[256]; /* what it gives here: "SM% by TriageCompute, 9 metrics in one pass" */
};

/* The engine's ear. Any function may be NULL. */
struct counter_sink {
    void *user;
    void (*span)(void *user, const struct counter_span *s);
    void (*pm)(void *user, const struct counter_pm_sample *s);
    void (*exact)(void *user, const struct counter_exact *e);
    void (*pc)(void *user, const struct counter_pc *p);
    void (*executed)(void *user, const struct counter_executed *x);
    void (*window)(void *user, const struct counter_window *w);
    void (*state)(void *user, const struct counter_state *s); /* on every change */
};

/* ---- what the engine gives ---- */

/* Where a source works. Copied by counter_open(); what it points to must outlive the source. */
struct counter_env {
    struct cupti_lib *lib;       /* NULL: only events and synth can work */
    const struct driver *driver; /* base/driver.h; NULL: only synth can work */
    void *ctx;                   /* CUcontext, current on the launching thread */
    void *stream;                /* CUstream of the engine's launches */
    int device;                  /* CUDA ordinal */
    const char *script;          /* synth: faults to play (cupti/synth.h); NULL = none */
    uint64_t seed;               /* synth */
    struct counter_sink sink;
};

/* One launch about to happen. Tags are the engine's: never 0. */
struct counter_launch {
    uint64_t tag;
    const char *kernel;
    bool chosen;         /* range: counted, from the pass's start to the first that isn't;
                          * sassexec: this launch alone is counted */
    double macs;         /* synth: how long it should take; 0 = unknown */
    uint64_t virtual_ns; /* synth: when it starts; turns_launch_begin() fills it in */
};

/* Zero = default of the source. */
struct counter_config {
    uint32_t pm_interval_ns; /* 20,000 */
    uint32_t pm_max_samples; /* of one window: as many as fit in it (83 KB each on GH100) */
    uint64_t pm_window_ns;   /* poll() closes a window after this long: 24 ms */
    size_t pm_buffer;        /* hardware buffer: 64 MiB */
    const char
        *pm_keys; /* comma list of metric keys, NULL = every live key the chip fits in one pass */
    uint32_t pc_period_log2; /* cycles between samples of an SM: 15; allowed 5 to 31 */
    size_t pc_buffer;        /* hardware buffer: 64 MiB */
    uint32_t pc_max_pcs;     /* PCs of one read: 4096 */
    unsigned range_sets;     /* METRIC_SET_*: METRIC_SET_LIVE */
    uint32_t range_max;      /* launches of one pass that are counted: 256, at most 2,000 */
    uint32_t exec_insns;     /* instructions of one counted launch: 65,536, at most 262,144 */
    uint32_t spans_max;      /* launches held for one window: 65,536 */
    bool activity_keep;      /* leave the activity kind on between windows */
};

struct counter_source;

struct counter_source_ops {
    const char *name;
    enum counter_role role;
    bool synthetic;
    size_t size; /* bytes of the source's own struct, struct counter_source first */

    /* Can it work here? Fills src->state (READY or UNAVAILABLE) and never fails otherwise. */
    void (*probe)(struct counter_source *src);
    enum status (*configure)(struct counter_source *src, const struct counter_config *cfg);
    enum status (*arm)(struct counter_source *src);
    enum status (*start)(
        struct counter_source *src); /* ERR_AGAIN: the last window is still decoded */
    void (*launch_begin)(struct counter_source *src, const struct counter_launch *l);
    void (*launch_end)(struct counter_source *src, const struct counter_launch *l);
    enum status (*stop)(
        struct counter_source *src); /* range: ERR_AGAIN = run the same work again */
    enum status (*poll)(struct counter_source *src);   /* ERR_AGAIN: nothing to do */
    bool (*busy)(struct counter_source *src);          /* a closed window is not decoded yet */
    enum status (*disarm)(struct counter_source *src); /* ERR_AGAIN: busy */
    void (*close)(struct counter_source *src); /* frees what the source owns, not src itself */
};

struct counter_source {
    const struct counter_source_ops *ops;
    struct counter_env env;
    struct counter_state state;
    uint32_t windows; /* started so far */
    _Atomic bool armed, started;
};

/* ---- calls that work for every source; each checks order and role ---- */

/* Opens the real source of a role, or the synthetic one. On success *out is probed; look at
 * (*out)->state. ERR_NOMEM is the only failure: a source that can't work is opened all the same, so
 * that the reason can be shown. Free with counter_close(). */
enum status counter_open(enum counter_role role, bool synthetic, const struct counter_env *env,
                         struct counter_source **out);
void counter_close(struct counter_source *src); /* stops, polls, disarms first; no other thread may
                                                 * use it any more; NULL is fine */

enum status counter_configure(struct counter_source *src, const struct counter_config *cfg);

/* Each gives ERR_UNAVAILABLE with the source's reason when it is not READY. A failure of arm or
 * start turns the source to UNAVAILABLE or FAILED, tells the sink, and the rest goes on without it.
 */
enum status counter_arm(struct counter_source *src);
enum status counter_start(struct counter_source *src);
void counter_launch_begin(struct counter_source *src, const struct counter_launch *l);
void counter_launch_end(struct counter_source *src, const struct counter_launch *l);
enum status counter_stop(struct counter_source *src);
enum status counter_poll(struct counter_source *src);
bool counter_busy(struct counter_source *src);          /* a start would give ERR_AGAIN */
enum status counter_disarm(struct counter_source *src); /* ERR_AGAIN: still armed, poll first */

/* "events", "activity", "pm", "pc", "range", "sassexec"; "?" for a number that is no role. */
const char *counter_role_name(enum counter_role role);
const char *
counter_health_name(enum counter_health h); /* "off", "ready", "unavailable", "failed" */

/* For sources: sets the state and tells the sink. why and remedy may be NULL. */
void counter_set_state(struct counter_source *src, enum counter_health h, const char *why,
                       const char *remedy);

#endif
