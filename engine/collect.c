/*
 * Opening sources, the schedule of rounds, and the hooks around launches; see collect.h.
 *
 * Invariant: a launch's tag is its place in the running pass + 1, so a repeated pass gives the same
 * launch the same tag. To add a source: its name in wanted(); the rest follows from its role.
 */
#include "engine/collect_priv.h"

#include "cupti/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PM_INTERVAL_NS = 20000, DECODE_POLL_NS = 5000000, MAX_PASSES = 64 };

/* ---- hooks ---- */

static uint32_t note_launch(struct collect *c, const struct launch_info *info)
{
    uint32_t row = rows_find(c->e->rows, info, c->phase);
    if (c->nlaunches < COLLECT_LAUNCHES)
        c->launches[c->nlaunches++] = (struct launch_note){row, info->kernel};
    return row;
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
    /* Exact counters: the first launch of each row. */
    l.chosen = row && !c->chosen[row % ROWS_MAX];
    if (l.chosen) c->chosen[row % ROWS_MAX] = 1;
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

static void send_metrics(struct collect *c)
{
    for (size_t i = 0; i < metric_count(); i++) {
        const struct metric *m = metric_at(i);
        struct msg_metric_def d = {.metric = m->id};
        snprintf(d.key, sizeof d.key, "%s", m->key);
        snprintf(d.label, sizeof d.label, "%s", m->label);
        if (*m->range)
            snprintf(d.ncu, sizeof d.ncu, "%s", m->range);
        else
            metric_candidate(m->pm, 0, d.ncu, sizeof d.ncu);
        snprintf(d.unit, sizeof d.unit, "%s", m->unit);
        snprintf(d.source, sizeof d.source, "%s", m->sets & METRIC_SET_PM ? "pm" : "range");
        snprintf(d.meaning, sizeof d.meaning, "%s", m->meaning);
        emit_send(c->e->emit, FRAME_METRIC_DEF, &d);
    }
}

/* Is `name` in the comma list? */
static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == ',' || p[n] == '\0')) return true;
    return false;
}

static enum status check_list(const char *list)
{
    static const char *const names[] = {"none", "events", "activity", "pm", "pc", "range", "synth"};
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        size_t n = strcspn(p, ","), i = 0;
        while (i < 7 && (strlen(names[i]) != n || strncmp(p, names[i], n))) i++;
        if (i == 7)
            return err_set(ERR_USAGE,
                           "--sources takes none, or a list of events,activity,pm,pc,range,synth; "
                           "\"%.*s\" is none of them",
                           (int)n, p);
    }
    return OK;
}

static void send_plain(struct collect *c, const char *name, const char *state, const char *why,
                       const char *remedy)
{
    struct msg_source m = {.name = ""};
    snprintf(m.name, sizeof m.name, "%s", name);
    snprintf(m.state, sizeof m.state, "%s", state);
    snprintf(m.why, sizeof m.why, "%s", why);
    snprintf(m.remedy, sizeof m.remedy, "%s", remedy);
    emit_send(c->e->emit, FRAME_SOURCE, &m);
}

/* Every role that isn't opened says why. */
static void send_absent(struct collect *c, const char *why, const char *remedy, const char *state)
{
    for (int r = 0; r < COUNTER_ROLES; r++)
        if (!c->src[r]) send_plain(c, counter_role_name((enum counter_role)r), state, why, remedy);
}

static enum status open_role(struct collect *c, enum counter_role role, bool synthetic)
{
    struct counter_env env = {.lib = c->lib,
                              .driver = c->e->bo->driver ? c->e->bo->driver(c->e->b) : NULL,
                              .ctx = c->e->bo->context(c->e->b),
                              .stream = c->e->bo->stream(c->e->b),
                              .script = getenv("SASSTOP_SYNTH_SCRIPT"),
                              .seed = c->e->opt->seed,
                              .sink = collect_sink(c)};
    struct counter_config cfg = {.pm_interval_ns = PM_INTERVAL_NS};
    enum status st = counter_open(role, synthetic, &env, &c->src[role]);
    if (st == OK && c->src[role]->state.health == COUNTER_READY)
        st = counter_configure(c->src[role], &cfg);
    if (st == ERR_NOMEM || st == ERR_USAGE) return st;
    return OK;
}

/* libcupti, unless only events are wanted. Without it the sources say why. */
static void open_library(struct collect *c, const char *list)
{
    if (list && !listed(list, "activity") && !listed(list, "pm") && !listed(list, "pc") &&
        !listed(list, "range"))
        return;
    if (cupti_open(&c->lib) == OK && cupti_attach(c->lib, 0) == OK) return;
    emit_log(c->e->emit, 1, "no GPU counters: %s", err_msg());
}

static enum status open_sources(struct collect *c)
{
    const char *list = c->e->opt->sources;
    bool gpu = c->e->bo->context(c->e->b) != NULL;
    enum status st = OK;
    c->synthetic = list && listed(list, "synth");
    if (list && listed(list, "none")) {
        send_absent(c, "switched off by --sources none", "leave --sources out", "off");
        return OK;
    }
    if (c->synthetic) {
        for (int r = 0; r < COUNTER_ROLES && st == OK; r++)
            if (r != COUNTER_EVENTS) st = open_role(c, (enum counter_role)r, true);
        send_plain(c, "synth", "ok", "synthetic figures from a formula: nothing was measured", "");
        send_absent(c, "spans come from the synthetic activity", "", "off");
        return st;
    }
    if (!gpu) {
        send_plain(c, "clock", "ok", "wall clock of each CPU operator, in counted rounds", "");
        send_absent(c, "the CPU backend has no GPU to count on; operators are timed by the clock",
                    "run on an NVIDIA GPU, or open a recording", "unavailable");
        return OK;
    }
    open_library(c, list);
    for (int r = 0; r < COUNTER_ROLES && st == OK; r++)
        if (!list || listed(list, counter_role_name((enum counter_role)r)))
            st = open_role(c, (enum counter_role)r, false);
    send_absent(c, "not named by --sources", "name it, or leave --sources out", "off");
    return st;
}

static bool any_ready(const struct collect *c)
{
    for (int r = 0; r < COUNTER_ROLES; r++)
        if (c->src[r] && c->src[r]->state.health == COUNTER_READY) return true;
    return false;
}

static enum status start_turns(struct collect *c)
{
    const struct options *o = c->e->opt;
    struct turns_config cfg = {.timed_rounds =
                                   o->counted ? (o->timed + o->counted - 1) / o->counted : 0};
    if (!any_ready(c) || !o->counted) return OK;
    enum status st = turns_open(c->src, &cfg, &c->turns);
    if (st != OK) return st;
    turns_request(c->turns, TURNS_WANT_SPANS | TURNS_WANT_PC | TURNS_WANT_RANGE);
    if (c->synthetic) return OK; /* polled between rounds: the order of frames is fixed */
    c->decoding = pthread_create(&c->decoder, NULL, decode_thread, c) == 0;
    return c->decoding ? OK : err_set(ERR_FAILED, "can't start the counters' decode thread");
}

static bool alloc_tables(struct collect *c)
{
    c->launches = calloc(COLLECT_LAUNCHES, sizeof *c->launches);
    c->chosen = calloc(ROWS_MAX, 1);
    c->exacts = calloc(COLLECT_EXACTS, sizeof *c->exacts);
    c->stalls = calloc(COLLECT_STALL_KERNELS, sizeof *c->stalls);
    c->w.samples = calloc(COLLECT_WINDOW_SAMPLES, sizeof *c->w.samples);
    c->w.spans = calloc(COLLECT_WINDOW_SPANS, sizeof *c->w.spans);
    return c->launches && c->chosen && c->exacts && c->stalls && c->w.samples && c->w.spans;
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
    c->nkernels = e->bo->kernels(e->b, &c->kernels);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->wake, &attr);
    pthread_condattr_destroy(&attr);
    enum status st = alloc_tables(c) ? check_list(e->opt->sources)
                                     : err_set(ERR_NOMEM, "out of memory for counter tables");
    if (st == OK) {
        send_metrics(c);
        st = open_sources(c);
    }
    if (st == OK) st = start_turns(c);
    if (st != OK) {
        collect_close(c);
        return st;
    }
    *out = c;
    return OK;
}

void collect_close(struct collect *c)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->decoding) pthread_join(c->decoder, NULL);
    turns_close(c->turns);
    for (int r = 0; r < COUNTER_ROLES; r++) counter_close(c->src[r]);
    cupti_close(c->lib);
    free(c->launches);
    free(c->chosen);
    free(c->exacts);
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
    memset(c->chosen, 0, ROWS_MAX);
}

/* Without sources: --schedule, timed by the backend. */
static void begin_plain(struct collect *c, struct collect_plan *out)
{
    const struct options *o = c->e->opt;
    uint32_t place = c->at++ % (o->timed + o->counted);
    bool off = o->sources && listed(o->sources, "none");
    if (place < o->timed || off) return;
    c->span_source = c->e->bo->context(c->e->b) ? "events" : "clock";
    *out = (struct collect_plan){true, TIMING_LAUNCH, c->span_source};
}

void collect_begin(struct collect *c, uint32_t round, struct collect_plan *out)
{
    *out = (struct collect_plan){.timing = TIMING_NONE, .source = ""};
    c->round = round;
    new_pass(c);
    c->tagless = c->mismatched = 0;
    c->now = (struct turns_round){.kind = TURNS_TIMED};
    if (!c->turns) {
        begin_plain(c, out);
        c->timing = out->timing;
        return;
    }
    turns_begin(c->turns, &c->now);
    if (c->now.kind != TURNS_TIMED) {
        static const enum counter_role roles[] = {
            [TURNS_SPANS] = COUNTER_PM, [TURNS_PC] = COUNTER_PC, [TURNS_RANGE] = COUNTER_RANGE};
        struct counter_source *pm = c->src[COUNTER_PM], *act = c->src[COUNTER_ACTIVITY];
        bool window = c->now.kind == TURNS_SPANS && pm && pm->started;
        c->span_source = collect_label(c, act && act->started ? COUNTER_ACTIVITY : COUNTER_EVENTS);
        out->counted = true;
        out->timing = TIMING_EXTERNAL;
        out->source = c->now.kind == TURNS_SPANS && !window ? c->span_source
                                                            : collect_label(c, roles[c->now.kind]);
        if (window) window_begin(c, PM_INTERVAL_NS);
    }
    c->timing = out->timing;
}

void collect_phase(struct collect *c, const char *phase)
{
    c->phase = phase;
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

void collect_end(struct collect *c, bool whole)
{
    if (!whole) {
        /* Passes that would come are run empty: it is their turn that has to end. */
        for (int pass = 0; c->turns && pass < MAX_PASSES; pass++)
            if (turns_end(c->turns) != ERR_AGAIN) break;
        poll_synthetic(c);
        rows_discard(c->e->rows);
        window_abandon(c);
        c->nexacts = 0;
        return;
    }
    tell_lost_spans(c);
    rows_flush(c->e->rows, c->round, c->span_source);
    collect_send_exacts(c);
    window_spans_done(c);
    poll_synthetic(c);
    pthread_mutex_lock(&c->lock);
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

/* ---- requests ---- */

void collect_settle(struct collect *c)
{
    if (!c->turns) return;
    (void)turns_pause(
        c->turns); /* ERR_AGAIN: a closed pm window is still decoded; it stays armed */
    turns_resume(c->turns);
}

void collect_after_flip(struct collect *c)
{
    if (c->turns) turns_request(c->turns, TURNS_WANT_SPANS | TURNS_WANT_PC | TURNS_WANT_RANGE);
}

enum status collect_request(struct collect *c, const char *what)
{
    bool pc = !strcmp(what, "pc");
    const struct counter_source *s = c->src[pc ? COUNTER_PC : COUNTER_RANGE];
    if (!c->turns || !s)
        return err_set(ERR_UNAVAILABLE, "no %s source is open here; see the sources", what);
    if (s->state.health != COUNTER_READY)
        return err_set(ERR_UNAVAILABLE, "%s: %s", what, s->state.why);
    turns_request(c->turns, pc ? TURNS_WANT_PC : TURNS_WANT_RANGE);
    return OK;
}
