/*
 * synth: all roles on a virtual clock (see synth.h).
 *
 * Invariant: no clock, no rand(): everything comes from hashes of seed, kernel name and counters,
 * so that a recording of a synthetic session is reproducible. To add a fault: one row in faults[],
 * one place that asks faulty().
 */
#include "cupti/synth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/pack.h"
#include "cupti/sources.h"

enum { SYNTH_SMS = 132 };

enum fault { NO_PRIVILEGE, BUSY, OVERFLOW_, DROP_BURST, INVALID_TIME, ABSENT, FAIL, FAULTS };
static const char *const faults[FAULTS] = {
    [NO_PRIVILEGE] = "no-privilege",
    [BUSY] = "busy",
    [OVERFLOW_] = "overflow",
    [DROP_BURST] = "drop-burst",
    [ABSENT] = "absent",
    [INVALID_TIME] = "invalid-time",
    [FAIL] = "fail",
};

struct synth {
    struct counter_source src;
    struct counter_config cfg;
    struct counter_notes notes;
    struct {
        double macs;
        uint64_t start_ns;
    } * more;     /* of each note */
    uint64_t now; /* end of the last launch seen */
    uint32_t arms;
    _Atomic bool full; /* a pm window waits for poll, on the decode thread */
    size_t pass;
    struct counter_window w;
};

/* ---- numbers from hashes ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static uint64_t hash(const char *s, uint64_t seed)
{
    uint64_t h = mix(seed);
    for (; *s; s++) h = mix(h ^ (unsigned char)*s);
    return h;
}

static double unit(uint64_t h)
{
    return (double)(h >> 11) * 0x1p-53;
}

double synth_sm_pct(const char *kernel, uint64_t seed)
{
    return 5 + 90 * unit(hash(kernel, seed));
}

uint64_t synth_duration_ns(const char *kernel, double macs, uint64_t seed)
{
    /* A part of its own, so that kernels of small models are still seen by a 20 us sampler. */
    uint64_t own = 20000 + hash(kernel, seed ^ 1) % 100000;
    double work = macs > 0 && macs < 1e16 ? macs / (1e5 * synth_sm_pct(kernel, seed)) : 0;
    return own + (uint64_t)work;
}

/* ---- script ---- */

static bool match(const char **p, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0) return false;
    *p += n;
    return true;
}

/* Reads one entry; returns its end, NULL when it is wrong. role -1 = every role; n 0 = always. */
static const char *entry(const char *p, int *fault, int *role, unsigned *n)
{
    *role = -1;
    *n = 0;
    for (*fault = 0; *fault < FAULTS; ++*fault)
        if (match(&p, faults[*fault])) break;
    if (*fault == FAULTS) return NULL;
    if (match(&p, "@")) {
        for (*role = 0; *role < COUNTER_ROLES; ++*role)
            if (match(&p, counter_role_name((enum counter_role) * role))) break;
        if (*role == COUNTER_ROLES) return NULL;
    }
    if (match(&p, ":")) {
        char *end;
        unsigned long v = strtoul(p, &end, 10);
        if (end == p || v == 0 || v > 1000000) return NULL;
        *n = (unsigned)v;
        p = end;
    }
    return *p == ',' || *p == '\0' ? p : NULL;
}

enum status synth_check(const char *script)
{
    for (const char *p = script; p && *p;) {
        int fault, role;
        unsigned n;
        const char *end = entry(p, &fault, &role, &n);
        if (!end)
            return err_set(ERR_USAGE, "no such scripted fault: '%.*s' (see --help)",
                           (int)strcspn(p, ","), p);
        p = *end ? end + 1 : end;
    }
    return OK;
}

static bool faulty(const struct synth *s, enum fault want, unsigned now)
{
    for (const char *p = s->src.env.script; p && *p;) {
        int fault, role;
        unsigned n;
        const char *end = entry(p, &fault, &role, &n);
        if (!end) return false;
        if (fault == (int)want && (role < 0 || role == (int)s->src.state.role) &&
            (n == 0 || n == now))
            return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

/* ---- life ---- */

static void probe(struct counter_source *src)
{
    struct synth *s = (struct synth *)src;
    s->now = SYNTH_EPOCH_NS;
    if (faulty(s, ABSENT, 0)) {
        counter_set_state(src, COUNTER_UNAVAILABLE, "no CUPTI library is loaded (scripted)",
                          "install the CUDA 13 toolkit, or set SASSTOP_CUPTI to libcupti.so.13");
        return;
    }
    snprintf(src->state.detail, sizeof src->state.detail, "synthetic: numbers from a formula");
    counter_set_state(src, COUNTER_READY, NULL, NULL);
}

static enum status configure(struct counter_source *src, const struct counter_config *cfg)
{
    struct synth *s = (struct synth *)src;
    enum status st = synth_check(src->env.script);
    if (st != OK) return st;
    size_t cap = counter_pick(cfg->spans_max, SPANS_MAX, 256, SPANS_MAX_LIMIT);
    s->cfg = *cfg;
    counter_notes_free(&s->notes);
    free(s->more);
    s->more = calloc(cap, sizeof *s->more);
    if (!s->more) return err_set(ERR_NOMEM, "out of memory: synthetic launches");
    return counter_notes_init(&s->notes, cap);
}

static enum status arm(struct counter_source *src)
{
    struct synth *s = (struct synth *)src;
    s->arms++;
    s->pass = 0;
    cupti_result r = CUPTI_R_SUCCESS;
    if (faulty(s, BUSY, s->arms)) r = CUPTI_R_HARDWARE_BUSY;
    if (faulty(s, NO_PRIVILEGE, s->arms)) r = CUPTI_R_INSUFFICIENT_PRIVILEGES;
    return cupti_check(&(struct cupti_lib){0}, r, "enabling (scripted)");
}

static enum status start(struct counter_source *src)
{
    struct synth *s = (struct synth *)src;
    if (s->full) return ERR_AGAIN;
    if (faulty(s, FAIL, src->windows))
        return cupti_check(&(struct cupti_lib){0}, CUPTI_R_INVALID_OPERATION,
                           "starting (scripted)");
    s->notes.n = 0;
    s->notes.lost = 0;
    s->w = (struct counter_window){
        .role = src->state.role, .window = src->windows, .start_ns = s->now};
    return OK;
}

static void launch_begin(struct counter_source *src, const struct counter_launch *l)
{
    struct synth *s = (struct synth *)src;
    bool some = src->state.role == COUNTER_RANGE || src->state.role == COUNTER_EXEC;
    if (some && !l->chosen) return;
    uint64_t start = l->virtual_ns ? l->virtual_ns : s->now + SYNTH_GAP_NS;
    s->now = start + synth_duration_ns(l->kernel, l->macs, src->env.seed);
    if (s->notes.n == 0) s->w.start_ns = start - SYNTH_GAP_NS;
    if (s->notes.n < s->notes.cap) {
        s->more[s->notes.n].macs = l->macs;
        s->more[s->notes.n].start_ns = start;
    }
    counter_notes_put(&s->notes, l);
}

/* ---- what each role sees ---- */

/* Does fault or burst lose item i of n? Counts it. */
static bool lost(struct synth *s, size_t i, size_t n)
{
    bool over = s->w.overflow && i >= n / 2;
    if (!over && !(faulty(s, DROP_BURST, s->w.window) && i % 2 == 1)) return false;
    s->w.dropped++;
    return true;
}

static struct counter_span span_of(const struct synth *s, size_t i)
{
    const char *k = s->notes.v[i].kernel;
    uint64_t start = s->more[i].start_ns;
    uint64_t end = start + synth_duration_ns(k, s->more[i].macs, s->src.env.seed);
    return (struct counter_span){.tag = s->notes.v[i].tag,
                                 .kernel = k,
                                 .start_ns = start,
                                 .end_ns = end,
                                 .grid = {SYNTH_SMS, 1, 1},
                                 .block = {256, 1, 1},
                                 .regs = 32 + (uint32_t)(hash(k, 3) % 96),
                                 .correlation = (uint32_t)i + 1};
}

static void spans(struct synth *s)
{
    bool invalid = faulty(s, INVALID_TIME, s->w.window);
    for (size_t i = 0; i < s->notes.n; i++) {
        struct counter_span p = span_of(s, i);
        if (lost(s, i, s->notes.n)) continue;
        if (invalid) {
            s->w.invalid++;
            continue;
        }
        s->w.items++;
        if (s->src.env.sink.span) s->src.env.sink.span(s->src.env.sink.user, &p);
    }
}

/* A slow wave of a few per cent around the kernel's own level. */
static double level(const struct synth *s, const char *kernel, unsigned metric, uint64_t t)
{
    double base = metric == METRIC_SM
                      ? synth_sm_pct(kernel, s->src.env.seed)
                      : 2 + 95 * unit(hash(kernel, s->src.env.seed ^ metric * 977u));
    if (metric == METRIC_IPC_ELAPSED) base = base / 25;
    double phase = (double)(t % 400000) / 400000.0 * 6.283185307179586;
    return base * (1 + 0.02 * sin(phase));
}

static void samples(struct synth *s)
{
    uint64_t step = s->cfg.pm_interval_ns ? s->cfg.pm_interval_ns : PM_INTERVAL_NS;
    uint16_t ids[PACK_MAX];
    double v[PACK_MAX];
    unsigned n = 0;
    for (size_t i = 0; i < metric_count() && n < PACK_MAX; i++)
        if (metric_at(i)->sets & METRIC_SET_PM) ids[n++] = metric_at(i)->id;
    if (s->notes.n == 0) return;
    /* Windows begin at any phase of the sampling period, so that short kernels are met too. */
    uint64_t t = s->w.start_ns - mix(s->src.env.seed ^ s->w.window) % step, first = t;
    size_t k = 0, total = (size_t)((span_of(s, s->notes.n - 1).end_ns - t) / step);
    for (size_t i = 0; i < s->notes.n; i++) {
        struct counter_span p = span_of(s, i);
        for (; t + step <= p.end_ns; t += step, k++) {
            bool inside = t >= p.start_ns;
            for (unsigned m = 0; m < n; m++)
                v[m] = inside ? level(s, p.kernel, ids[m], t - first) : 1;
            if (lost(s, k, total)) continue;
            struct counter_pm_sample o = {.window = s->w.window,
                                          .start_ns = t,
                                          .end_ns = t + step,
                                          .n = n,
                                          .ids = ids,
                                          .values = v};
            s->w.items++;
            if (s->src.env.sink.pm) s->src.env.sink.pm(s->src.env.sink.user, &o);
        }
    }
}

static void stalls(struct synth *s)
{
    static const char *const reasons[] = {"long_scoreboard", "short_scoreboard",   "wait",
                                          "barrier",         "math_pipe_throttle", "not_selected",
                                          "selected"};
    enum { REASONS = sizeof reasons / sizeof reasons[0], PCS = 24 };
    for (size_t i = 0; i < s->notes.n; i++) {
        struct counter_span p = span_of(s, i);
        for (unsigned pc = 0; pc < PCS; pc++) {
            struct counter_stall st[REASONS];
            for (unsigned r = 0; r < REASONS; r++) {
                uint64_t h = hash(p.kernel, s->src.env.seed ^ (pc * 131u + r));
                uint32_t some = (uint32_t)(h % 7) * (uint32_t)((p.end_ns - p.start_ns) / 20000 + 1);
                st[r] = (struct counter_stall){reasons[r], some, some / 2};
                s->w.items += some + some / 2;
            }
            if (lost(s, pc, PCS)) continue;
            struct counter_pc o = {.window = s->w.window,
                                   .function = p.kernel,
                                   .cubin_crc = hash(p.kernel, 5),
                                   .pc = pc * 16,
                                   .n = REASONS,
                                   .stalls = st};
            if (s->src.env.sink.pc) s->src.env.sink.pc(s->src.env.sink.user, &o);
        }
    }
    s->w.reported = s->w.items;
}

/* Of METRIC_INST, and the sum of all executed counts. */
static double instructions(const struct synth *s, const struct counter_span *p)
{
    double cycles = (double)(p->end_ns - p->start_ns) * 1.7;
    double u = unit(hash(p->kernel, s->src.env.seed ^ (METRIC_INST * 31u)));
    return floor(cycles * SYNTH_SMS * (0.3 + 2 * u));
}

static double exact_value(const struct synth *s, const struct metric *m,
                          const struct counter_span *p)
{
    double ns = (double)(p->end_ns - p->start_ns), cycles = ns * 1.7;
    double u = unit(hash(p->kernel, s->src.env.seed ^ (m->id * 31u)));
    switch (m->id) {
    case METRIC_DURATION:
        return ns;
    case METRIC_CYCLES_ELAPSED:
        return floor(cycles);
    case METRIC_CYCLES_ACTIVE:
        return floor(cycles * (0.8 + 0.19 * u));
    case METRIC_INST:
        return instructions(s, p);
    case METRIC_THREAD_INST:
        return floor(cycles * SYNTH_SMS * (0.3 + 2 * u) * 32);
    case METRIC_SM_LAUNCH:
        return 0.97 * synth_sm_pct(p->kernel, s->src.env.seed);
    default:
        break;
    }
    if (strcmp(m->unit, "%") == 0) return 2 + 95 * u;
    if (strcmp(m->unit, "/cycle") == 0) return 4 * u;
    if (strcmp(m->unit, "/issue") == 0) return 6 * u * u;
    return floor(u * ns * 1000);
}

static void exacts(struct synth *s)
{
    unsigned sets = s->cfg.range_sets ? s->cfg.range_sets : METRIC_SET_LIVE;
    s->w.sets = sets;
    s->w.passes = s->pass;
    for (size_t k = 0; k < metric_count(); k++)
        s->w.metrics += metric_at(k)->sets & sets && metric_at(k)->range[0];
    for (size_t i = 0; i < s->notes.n; i++) {
        struct counter_span p = span_of(s, i);
        if (lost(s, i, s->notes.n)) continue;
        s->w.items++;
        for (size_t k = 0; k < metric_count(); k++) {
            const struct metric *m = metric_at(k);
            if (!(m->sets & sets) || !m->range[0]) continue;
            struct counter_exact e = {
                .tag = p.tag, .range = (uint32_t)i, .id = m->id, .value = exact_value(s, m, &p)};
            if (s->src.env.sink.exact) s->src.env.sink.exact(s->src.env.sink.user, &e);
        }
    }
}

/* Every eighth instruction or so never runs; the last one takes what is left of the sum. */
static void executed(struct synth *s)
{
    enum { PCS = 24 };
    for (size_t i = 0; i < s->notes.n; i++) {
        struct counter_span p = span_of(s, i);
        uint64_t left = (uint64_t)instructions(s, &p);
        for (unsigned pc = 0; pc < PCS; pc++) {
            uint64_t h = hash(p.kernel, s->src.env.seed ^ (pc * 193u));
            uint64_t inst = pc + 1 == PCS ? left : h % 8 ? left / (PCS / 2) / (1 + h % 3) : 0;
            left -= inst;
            if (lost(s, pc, PCS)) continue;
            struct counter_executed x = {.tag = p.tag,
                                         .function = p.kernel,
                                         .pc = pc * 16,
                                         .inst = inst,
                                         .threads = inst * (32 - h / 8 % 4),
                                         .pred_on = inst * (24 - h / 32 % 8)};
            s->w.items++;
            if (s->src.env.sink.executed) s->src.env.sink.executed(s->src.env.sink.user, &x);
        }
    }
}

static enum status finish(struct synth *s)
{
    s->w.overflow = faulty(s, OVERFLOW_, s->w.window);
    switch (s->src.state.role) {
    case COUNTER_PM:
        samples(s);
        break;
    case COUNTER_PC:
        stalls(s);
        break;
    case COUNTER_RANGE:
        exacts(s);
        break;
    case COUNTER_EXEC:
        executed(s);
        break;
    default:
        spans(s);
        break;
    }
    s->w.dropped += s->notes.lost;
    s->w.end_ns = s->now;
    if (s->src.env.sink.window) s->src.env.sink.window(s->src.env.sink.user, &s->w);
    return OK;
}

static enum status stop(struct counter_source *src)
{
    struct synth *s = (struct synth *)src;
    if (src->state.role == COUNTER_PM) {
        s->full = true;
        return OK;
    }
    unsigned sets = s->cfg.range_sets ? s->cfg.range_sets : METRIC_SET_LIVE;
    size_t passes = sets == METRIC_SET_LIVE ? 1 : 3;
    if (src->state.role == COUNTER_RANGE && ++s->pass < passes) return ERR_AGAIN;
    return finish(s);
}

static enum status poll(struct counter_source *src)
{
    struct synth *s = (struct synth *)src;
    if (!s->full) return ERR_AGAIN;
    enum status st = finish(s);
    s->full = false;
    return st;
}

static bool busy(struct counter_source *src)
{
    return ((struct synth *)src)->full;
}

static enum status disarm(struct counter_source *src)
{
    return busy(src) ? ERR_AGAIN : OK;
}

static void close_(struct counter_source *src)
{
    struct synth *s = (struct synth *)src;
    counter_notes_free(&s->notes);
    free(s->more);
}

#define OPS(ROLE)                                                                                  \
    [ROLE] = {                                                                                     \
        .name = "synth",                                                                           \
        .role = ROLE,                                                                              \
        .synthetic = true,                                                                         \
        .size = sizeof(struct synth),                                                              \
        .probe = probe,                                                                            \
        .configure = configure,                                                                    \
        .arm = arm,                                                                                \
        .start = start,                                                                            \
        .launch_begin = launch_begin,                                                              \
        .stop = stop,                                                                              \
        .poll = poll,                                                                              \
        .busy = busy,                                                                              \
        .disarm = disarm,                                                                          \
        .close = close_,                                                                           \
    }

const struct counter_source_ops counter_synth_ops[COUNTER_ROLES] = {
    OPS(COUNTER_EVENTS), OPS(COUNTER_ACTIVITY), OPS(COUNTER_PM),
    OPS(COUNTER_PC),     OPS(COUNTER_RANGE),    OPS(COUNTER_EXEC),
};
