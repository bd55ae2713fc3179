/*
 * The model: everything that screens and reports know, folded from frames.
 *
 * session_apply() is a pure fold: no I/O, no clock, bounded memory (limits below; what does not fit
 * is counted in `overflowed`, never lost silently). The session owns all it holds; pointers into
 * it are valid until the next session_apply() or session_free(). One thread at a time.
 *
 * Ids: kernels and rows are numbered by the engine within one instance. After a restart (HELLO with
 * a higher instance) the fold maps the new numbers: a kernel of the same name and code hash is the
 * same kernel; a row is always new, since generations are.
 */
#ifndef SESSION_MODEL_H
#define SESSION_MODEL_H

#include "session/lab_experiment.h"
#include "session/levels.h"
#include "session/pack.h"
#include "session/regime.h"
#include "session/stats.h"

enum {
    MAX_KERNELS = 512,
    MAX_ROWS = 16384,
    MAX_ROW_METRICS = 65536, /* over all rows */
    MAX_CENSUS_ITEMS = 1024, /* a kernel */
    MAX_STALLS = 4096,
    MAX_HEATS = 1024,           /* (kernel, generation) pairs with samples by instruction */
    MAX_HEAT_INSNS = 256 << 10, /* over all of them */
    HEAT_REASONS = 4,           /* told apart at one instruction; later ones are counted */
    MAX_EXECUTED = 512,         /* rows with executed counts */
    MAX_EXEC_INSNS = 512 << 10, /* over all of them */
    MAX_EXEC_CLASSES = 32,      /* told apart in one kernel; later ones are counted */
    MAX_PARITIES = 1024,
    MAX_MODULES = 256,
    MAX_MODULE_BYTES = 64 << 20, /* over all modules */
    MAX_GENERATIONS = 512,
    MAX_METRICS = 128,
    MAX_SOURCES = 16,
    MAX_VARIANTS = 256,
    MAX_REASONS = 48,
    MAX_CEILINGS = 16,
    MAX_EVENTS = 1024, /* ring: the oldest leave, counted */
    MAX_TEXT = 16384,  /* bytes of generated text kept */
    MAX_SPARK = 512,   /* points a series keeps for drawing */
    MAX_WINDOW_SAMPLES = 8192,
    MAX_WINDOW_SPANS = 65536,
    MAX_TRACE_SPANS = 65536, /* launches kept for timelines and traces; the oldest windows leave */
    MAX_TRACE_SAMPLES = 65536,
    MAX_TRACE_WINDOWS = 256,
    MIN_STEADY_SAMPLES = 30, /* whole samples before a live figure counts as ok */
};

struct stall_sum {
    char reason[40];
    uint64_t samples, not_issued;
};

struct kernel {
    struct msg_kernel_def def;
    bool faulted;
    /* Census, when one came: items are owned. */
    bool has_census, has_hot;
    struct msg_census census; /* .items and .hot unused here */
    struct census_item *items;
    uint32_t nitems;
};

/* PC-sampling sums of one kernel in one generation. */
struct kernel_stalls {
    uint32_t kernel, generation; /* index into kernels[], number of generation */
    char source[16];
    uint64_t samples, dropped, t_ns; /* t_ns: of the last window */
    struct stall_sum reasons[MAX_REASONS];
    uint32_t nreasons;
};

/* PC samples of one instruction; reason[i] is an index into the kernel's reasons. Each window gives
 * the instruction's top reason alone, so by[] is a lower bound. */
struct heat_insn {
    uint64_t samples, not_issued;
    uint64_t by[HEAT_REASONS];
    uint8_t reason[HEAT_REASONS], nreasons;
};

/* Of one kernel in one generation, summed over windows. insns[] is by offset / 16 and reaches to
 * the last instruction that had a sample. */
struct kernel_heat {
    uint32_t kernel, generation; /* index into kernels[], number of generation */
    char source[16];
    uint64_t samples; /* of the whole kernel */
    char reasons[MAX_REASONS][40];
    uint32_t nreasons;
    struct heat_insn *insns;
    uint32_t ninsns, cap;
};

/* One instruction of a counted kernel. */
struct exec_insn {
    uint64_t inst, threads, pred_on;
    uint16_t key;  /* index into keys */
    uint8_t flags; /* enum exec_flags */
    bool there;    /* false: none was told of this offset */
};

/* Sums over the instructions of one opcode, one class, or all. */
struct exec_sum {
    uint64_t inst, threads, pred_on;
    uint64_t in_loop, in_hot; /* of inst */
    uint32_t count;           /* instructions in the code */
    uint32_t counted;         /* of those, with a count */
    uint32_t never;           /* counted, and never executed */
    uint32_t guarded;         /* counted, with a guard */
};

/* Executed counts of the newest counted launches of a row. */
struct executed {
    uint32_t row, kernel;    /* indexes */
    struct msg_executed def; /* .row, .kernel, .keys, .items unused here */
    uint64_t t_ns;
    struct exec_key *keys;
    struct exec_sum *of_key; /* one a key */
    uint32_t nkeys;
    char classes[MAX_EXEC_CLASSES][16];
    struct exec_sum of_class[MAX_EXEC_CLASSES];
    uint32_t nclasses;
    struct exec_sum all;
    struct exec_insn *insns; /* by offset / 16 */
    uint32_t ninsns;
};

/* Live figure of a metric on a row: steady = samples wholly inside one launch; whole = samples
 * split by overlap over launches, idle parts counting as 0. */
struct row_metric {
    uint16_t metric; /* index into metrics[] */
    struct series steady;
    double whole_weighted, whole_ns; /* sum of value x overlap, and of launch time covered */
    uint64_t whole_samples;
    struct level estimate; /* of windows that many kernels share a sample in (levels.h) */
    bool has_estimate;
    uint64_t live_t_ns, exact_t_ns; /* when each last changed */
    char live_source[16];           /* of the windows behind both */
    bool has_exact;
    struct value exact; /* from COUNTER: range or sassexec; .why owned by the session */
    char exact_source[16], exact_why[120];
};

struct row {
    struct msg_row_def def; /* def.kernel is an index into kernels[] here */
    uint64_t calls, total_ns, min_ns, max_ns;
    uint32_t rounds; /* rounds that had it */
    char time_source[16];
    struct series us; /* mean us a call, one value a round */
    uint32_t hist[256];
    uint64_t t_ns;         /* when it was timed last */
    uint64_t window_calls; /* launches seen inside PM windows */
    uint64_t window_ns;
    uint64_t shared_samples; /* samples that several kernels share: unattributed */
    struct row_metric *metrics;
    uint32_t nmetrics;
};

struct generation {
    struct msg_generation def;
    uint64_t t_ns;
    uint32_t instance;
    struct series prefill, decode; /* tokens/s of timed rounds */
    struct series prefill_counted, decode_counted;
    uint32_t timed_rounds, counted_rounds; /* the first timed round warms up: not in the stats */
    char timed_in[8]; /* where its rounds were timed (ROUND); "mixed": not all in one place */
    uint64_t rows_ns; /* launch time of all its rows */
    struct series sm_mhz, watts, celsius; /* by NVML, once a second */
    char throttle[96];                    /* reasons seen while it ran; "" = none, or no NVML */
    uint32_t throttled;                   /* readings that had one */
    bool faulted;
};

struct event {
    uint64_t t_ns;
    char kind[16]; /* log, flip, fault, source, parity, reply, export, note, start, end */
    uint8_t level; /* 0 info, 1 warning, 2 error */
    char text[400];
};

struct window_summary {
    uint32_t window, period_ns, samples, spans, whole, shared, idle, dropped;
    bool overflow, offset_ok;
    int64_t offset_ns;
    uint32_t offset_bound_ns;             /* error bound; 0 = not known */
    char offset_how[16], offset_why[120]; /* "" = assumed: a recording of before it was measured */
    char source[16];
};

/* The bytes of a cubin, pieced together from MODULE frames. */
struct module {
    uint64_t hash;
    struct buf bytes;
    uint32_t total;
    bool whole;
};

/* A launch seen inside a window, on the session's time and in the samples' clock. */
struct trace_span {
    uint64_t t_ns;
    uint32_t dur_ns, row; /* row: index + 1, 0 = a kernel nobody knows */
};

struct trace_sample {
    uint64_t t_ns;
    uint32_t dur_ns;
    float v[PM_METRICS_MAX]; /* as the window's metric[]; NAN = missing */
};

/* A window as it was sampled; both lists are in order of time. */
struct trace_window {
    uint32_t window, round, generation, period_ns; /* generation: 0 = none of its rows is known */
    bool used;                                     /* false: overflowed or without an offset */
    uint16_t metric[PM_METRICS_MAX];               /* index into metrics[]; UINT16_MAX = unknown */
    unsigned nmetrics;
    struct trace_sample *samples;
    struct trace_span *spans;
    uint32_t nsamples, nspans;
};

struct window_fold; /* the open window's raw samples and spans; private */

struct session {
    bool started; /* a HELLO came */
    struct msg_hello hello;
    struct msg_model model;
    uint64_t t_ns;   /* time of the last frame */
    uint64_t frames; /* frames applied: an export names this index */
    uint64_t bytes;
    uint64_t unknown_frames, garbled_frames, overflowed;

    struct kernel *kernels;
    uint32_t nkernels;
    struct row *rows;
    uint32_t nrows;
    struct kernel_stalls *stalls;
    uint32_t nstalls;
    struct kernel_heat *heats;
    uint32_t nheats, heat_insns; /* heat_insns: room taken by all of them */
    uint32_t heats_gone; /* generations up to this one made room for newer ones; 0: none did */
    struct executed *executed;
    uint32_t nexecuted, exec_insns; /* exec_insns: sum of all ninsns */
    struct generation *generations; /* [i].def.generation counts up */
    uint32_t ngenerations;
    struct msg_metric_def metrics[MAX_METRICS];
    uint32_t nmetrics;
    struct msg_source sources[MAX_SOURCES];
    uint32_t nsources;
    struct msg_tally tallies[MAX_SOURCES]; /* of the engine that runs */
    uint32_t ntallies;
    struct msg_variant_def variants[MAX_VARIANTS];
    bool variant_faulted[MAX_VARIANTS];
    uint32_t nvariants;
    struct msg_parity *parities;
    uint32_t nparities;

    struct event *events; /* ring of MAX_EVENTS */
    uint32_t first_event, nevents;
    uint64_t lost_events;

    char *text; /* generated text, the last MAX_TEXT bytes, NUL-terminated */
    uint32_t text_len;
    uint32_t last_token, last_pos;
    double last_gap;

    struct msg_progress progress;
    struct msg_round last_round;
    struct msg_clocks clocks;
    bool has_clocks;
    struct msg_duty duty;
    bool has_duty;
    uint64_t open_ns; /* of all windows, from the first sample to the last */
    struct msg_ceiling ceilings[MAX_CEILINGS];
    uint32_t nceilings;
    uint64_t drops[FRAME_TYPE_END];
    struct window_summary last_window;
    float spark_prefill[MAX_SPARK], spark_decode[MAX_SPARK]; /* tokens/s of timed rounds */
    uint32_t nspark;
    bool paused;
    bool ended; /* BYE, or a fault that was not followed by a restart */
    char end_text[300];

    struct window_fold *window;
    uint64_t windows, windows_unused; /* joined; overflowed or without a clock offset */
    struct lab_experiment *experiments;
    uint32_t nexperiments;
    struct trace_window *trace; /* the newest windows, oldest first */
    uint32_t ntrace, trace_spans, trace_samples;
    uint64_t trace_left_out; /* launches in windows that had to leave */
    struct levels *levels;   /* the system of the newest generation that had a window */
    uint32_t levels_generation;
    uint64_t levels_solved; /* samples in it when it was solved last */
    uint16_t levels_metric[LEVELS_METRICS_MAX];
    struct module *modules; /* cubins, by hash, for the SASS view */
    uint32_t nmodules;

    /* Of the fold alone: this instance's numbers -> index + 1, and totals of what is bounded. */
    uint32_t kernel_map[MAX_KERNELS], row_map[MAX_ROWS];
    uint64_t drops_before[FRAME_TYPE_END]; /* of instances that have ended */
    uint64_t module_total;
    uint32_t row_metrics_total;
};

enum status session_init(struct session *s);
void session_free(struct session *s);

/* Folds one frame. A garbled or unknown frame is counted and gives OK: a stream is read to its end.
 * Only ERR_NOMEM is an error. */
enum status session_apply(struct session *s, const struct frame *f);

/* Lookups; NULL or 0 when there is none. */
const struct generation *session_current(const struct session *s);  /* the newest */
const struct generation *session_previous(const struct session *s); /* the one before it */
const struct generation *session_generation(const struct session *s, uint32_t generation);
const struct msg_metric_def *session_metric(const struct session *s, const char *key);
const struct kernel_stalls *session_stalls(const struct session *s, uint32_t kernel,
                                           uint32_t generation);
/* PC samples by instruction; NULL: PC sampling has not seen the kernel in that generation. */
const struct kernel_heat *session_heat(const struct session *s, uint32_t kernel,
                                       uint32_t generation);
/* Executed counts of exactly this row; NULL: none were asked for. */
const struct executed *session_executed(const struct session *s, uint32_t row);
/* The same, else the newest of the same code on the same work, else of the same code at all. */
const struct executed *session_executed_like(const struct session *s, uint32_t row);
/* The sum of all instructions held against the range profiler's count of the row's launches: their
 * ratio minus 1, in per cent; unavailable with the reason. */
struct value executed_check(const struct session *s, const struct executed *e);
/* Whether two rows do the same: family, role, phase and shape. */
bool session_same_work(const struct session *s, const struct row *x, const struct row *y);
/* The row that does the same in the newest generation before `than` that ran another kernel;
 * UINT32_MAX when there is none. */
uint32_t session_counterpart(const struct session *s, const struct row *r, uint32_t than);
/* A model whose weights are made up (synth:NAME): its text means nothing. */
bool session_random_weights(const struct session *s);
/* Index of the row that took most time in the generation, of the family that it flipped;
 * UINT32_MAX = none of it ran. */
uint32_t session_costliest(const struct session *s, const struct generation *g);
/* The reason that most of an instruction's samples are known to be of, and how many; "" = none. */
const char *heat_top(const struct kernel_heat *h, uint32_t insn, uint64_t *samples);
const struct module *session_module(const struct session *s, uint64_t cubin_hash); /* whole ones */
const struct msg_source *session_source(const struct session *s, const char *name);
struct lab_experiment *session_experiment(const struct session *s, uint32_t number);
/* The variant and KD of `family` that the newest generation runs; false when the family has none.
 */
bool session_selected(const struct session *s, const char *family, const char **variant,
                      uint32_t *kd);

/* Tokens/s of a generation's timed rounds without the one that warms up: median, IQR, rounds. */
struct value generation_prefill(const struct session *s, const struct generation *g);
struct value generation_decode(const struct session *s, const struct generation *g);

/* Where its rounds were timed, in words of a cell and of a sentence ("in ..."); "" = not recorded.
 */
const char *generation_timed_in(const struct generation *g);
const char *generation_timed_in_words(const struct generation *g);

/* Whether decode is a control for a flip: it ran, and the flipped family has no part in it. */
bool generation_controls(const struct session *s, const struct generation *g);
/* Ratios of medians of two generations, with noise as spread (see stat_ratio). Decode as the
 * control of a flip should stay at 1; where it leaves 1 by more than prefill's own noise, something
 * else than the variant changed, and the distance is prefill's noise. */
struct value generation_prefill_ratio(const struct session *s, const struct generation *now,
                                      const struct generation *before);
struct value generation_decode_ratio(const struct generation *now, const struct generation *before);

/* "nb_kd8, ffn_gate 14336 x 512 x 4096, generation 1" */
void row_title(const struct session *s, const struct row *r, char *out, size_t size);
/* Figures of a row, each with its state and reason. `key` is a metric's short key. */
struct value row_time_share(const struct session *s, const struct row *r); /* % of its generation */
struct value row_us(const struct session *s, const struct row *r);         /* us a call */
struct value row_us_per_gmac(const struct session *s, const struct row *r);
struct value row_metric_steady(const struct session *s, const struct row *r, const char *key);
struct value row_metric_whole(const struct session *s, const struct row *r, const char *key);
struct value row_metric_exact(const struct session *s, const struct row *r, const char *key);
/* By least squares over samples that several kernels share: state VALUE_ESTIMATE, spread = the
 * interquartile range that its standard error would give a normal distribution. */
struct value row_metric_estimate(const struct session *s, const struct row *r, const char *key);
/* What a table cell shows: exact when there, else steady, else the estimate, else the reason. */
struct value row_metric_best(const struct session *s, const struct row *r, const char *key);
/* IPC: "ipc" (active cycles, exact) when there, else "ipc_elapsed" inside the kernel, marked in
 * why. */
struct value row_ipc(const struct session *s, const struct row *r);
/* What sets the row's time, and its place under the roofline. */
void row_regime(const struct session *s, const struct row *r, struct regime *out);
/* A measured ceiling of the machine by its key (CEILING frame); unavailable with the reason. */
struct value session_ceiling(const struct session *s, const char *key);
/* Share of the most frequent stall reason of the row's kernel, and its name ("" when none);
 * `selected` (issuing) is not a stall. */
struct value row_top_stall(const struct session *s, const struct row *r, char *name, size_t size);

#endif
