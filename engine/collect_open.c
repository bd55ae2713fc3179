/*
 * Opening counter sources: which are wanted, which work here and why not, and the order that PC
 * sampling asks for: it is primed before anything else counts.
 *
 * To add a source: its name in check_list(); the rest follows from its role.
 */
#include "engine/collect_priv.h"

#include "cupti/lib.h"
#include "cupti/pc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counter_config collect_config(const struct engine *e, bool products)
{
    unsigned sets = metric_sets_parse(e->opt->exact ? e->opt->exact : getenv("SASSTOP_EXACT"));
    return (struct counter_config){.pm_interval_ns = COLLECT_PM_NS,
                                   .pm_window_ns = COLLECT_WINDOW_NS,
                                   .range_sets = METRIC_SET_LIVE | sets,
                                   .range_max = collect_room(e, products)};
}

static void send_metrics(struct collect *c)
{
    for (size_t i = 0; i < metric_count(); i++) {
        const struct metric *m = metric_at(i);
        struct msg_metric_def d = {.metric = m->id};
        snprintf(d.key, sizeof d.key, "%s", m->key);
        snprintf(d.label, sizeof d.label, "%s", m->label);
        if (*m->range)
            metric_candidate(m->range, 0, d.ncu, sizeof d.ncu);
        else
            metric_candidate(m->pm, 0, d.ncu, sizeof d.ncu);
        snprintf(d.unit, sizeof d.unit, "%s", m->unit);
        snprintf(d.source, sizeof d.source, "%s", m->sets & METRIC_SET_PM ? "pm" : "range");
        snprintf(d.meaning, sizeof d.meaning, "%s", m->meaning);
        emit_send(c->e->emit, FRAME_METRIC_DEF, &d);
    }
}

/* Is `name` in the comma list? */
bool collect_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == ',' || p[n] == '\0')) return true;
    return false;
}

static enum status check_list(const char *list)
{
    static const char *const names[] = {"none", "events", "activity", "pm",
                                        "pc",   "range",  "sassexec", "synth"};
    enum { NAMES = sizeof names / sizeof names[0] };
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        size_t n = strcspn(p, ","), i = 0;
        while (i < NAMES && (strlen(names[i]) != n || strncmp(p, names[i], n))) i++;
        if (i == NAMES)
            return err_set(ERR_USAGE,
                           "--sources takes none, or a list of "
                           "events,activity,pm,pc,range,sassexec,synth; "
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

static enum status open_role(struct collect *c, enum counter_role role, bool synthetic,
                             const struct counter_config *cfg)
{
    struct counter_env env = {.lib = c->e->cupti,
                              .driver = c->e->bo->driver ? c->e->bo->driver(c->e->b) : NULL,
                              .ctx = c->e->bo->context(c->e->b),
                              .stream = c->e->bo->stream(c->e->b),
                              .script = getenv("SASSTOP_SYNTH_SCRIPT"),
                              .seed = c->e->opt->seed,
                              .sink = collect_sink(c)};
    struct counter_config key = *cfg;
    enum status st = counter_open(role, synthetic, &env, &c->src[role]);
    bool ready = st == OK && c->src[role]->state.health == COUNTER_READY;
    key.range_sets |= METRIC_SET_SOL;
    /* Packed now, so that who presses the key first doesn't wait for it. */
    if (ready && role == COUNTER_RANGE && !synthetic) st = counter_configure(c->src[role], &key);
    if (ready && st == OK) st = counter_configure(c->src[role], cfg);
    if (st == ERR_NOMEM || st == ERR_USAGE) return st;
    return OK;
}

/* Is any source of libcupti wanted? */
static bool wants_library(const struct engine *e)
{
    const char *list = e->opt->sources;
    if (!e->bo->context(e->b)) return false;
    return !list || collect_listed(list, "activity") || collect_listed(list, "pm") ||
           collect_listed(list, "pc") || collect_listed(list, "range") ||
           collect_listed(list, "sassexec");
}

void collect_library(struct engine *e)
{
    if (!wants_library(e)) return;
    if (cupti_open(&e->cupti) == OK && cupti_attach(e->cupti, 0) == OK) return;
    snprintf(e->cupti_why, sizeof e->cupti_why, "%s", err_msg());
}

/* Each list of the workload once: every kernel that runs from here on. */
static enum status prime_work(void *ctx)
{
    struct engine *e = ctx;
    const struct forward *lists[] = {&e->chunk, &e->rest, &e->decode};
    struct step_result r = {0};
    enum status st = OK;
    for (int i = 0; i < 3 && st == OK; i++)
        if (lists[i]->ops)
            st = e->bo->run(e->b, lists[i]->ops, lists[i]->nops, e->work.tokens, lists[i]->n, 0,
                            false, TIMING_NONE, &r);
    return st == OK ? e->bo->sync(e->b) : st;
}

void collect_prime(struct collect *c)
{
    struct counter_source *pc = c->src[COUNTER_PC];
    if (!pc || pc->state.synthetic) return;
    if (pc_prime(pc, prime_work, c->e) != OK)
        emit_log(c->e->emit, 1, "PC sampling could not be primed: %s", err_msg());
}

static void send_states(struct collect *c)
{
    c->opening = false;
    for (int r = 0; r < COUNTER_ROLES; r++)
        if (c->src[r]) collect_send_state(c, &c->src[r]->state);
}

static enum status open_sources(struct collect *c)
{
    c->opening = true;
    const char *list = c->e->opt->sources;
    bool gpu = c->e->bo->context(c->e->b) != NULL;
    enum status st = OK;
    c->synthetic = list && collect_listed(list, "synth");
    if (list && collect_listed(list, "none")) {
        send_absent(c, "switched off by --sources none", "leave --sources out", "off");
        return OK;
    }
    if (!gpu && !c->synthetic) {
        send_plain(c, "clock", "ok", "wall clock of each CPU operator, in counted rounds", "");
        send_absent(c, "the CPU backend has no GPU to count on; operators are timed by the clock",
                    "run on an NVIDIA GPU, or open a recording", "unavailable");
        return OK;
    }
    const struct counter_config cfg = collect_config(c->e, false);
    if (c->synthetic) {
        for (int r = 0; r < COUNTER_ROLES && st == OK; r++)
            if (r != COUNTER_EVENTS) st = open_role(c, (enum counter_role)r, true, &cfg);
        send_states(c);
        send_plain(c, "synth", "ok", "synthetic figures from a formula: nothing was measured", "");
        send_absent(c, "spans come from the synthetic activity", "", "off");
        return st;
    }
    if (*c->e->cupti_why) emit_log(c->e->emit, 1, "no GPU counters: %s", c->e->cupti_why);
    for (int r = 0; r < COUNTER_ROLES && st == OK; r++)
        if (!list || collect_listed(list, counter_role_name((enum counter_role)r)))
            st = open_role(c, (enum counter_role)r, false, &cfg);
    if (st == OK) collect_prime(c);
    send_states(c);
    send_absent(c, "not named by --sources", "name it, or leave --sources out", "off");
    return st;
}

enum status collect_alloc(struct collect *c)
{
    c->launches = calloc(COLLECT_LAUNCHES, sizeof *c->launches);
    c->exacts = calloc(COLLECT_EXACTS, sizeof *c->exacts);
    c->stalls = calloc(COLLECT_STALL_KERNELS, sizeof *c->stalls);
    c->w.samples = calloc(COLLECT_WINDOW_SAMPLES, sizeof *c->w.samples);
    c->w.spans = calloc(COLLECT_WINDOW_SPANS, sizeof *c->w.spans);
    c->exact_slots = calloc(2 * COLLECT_EXACTS, sizeof *c->exact_slots);
    if (c->launches && c->exacts && c->exact_slots && c->stalls && c->w.samples && c->w.spans)
        return OK;
    return err_set(ERR_NOMEM, "out of memory for counter tables");
}

enum status collect_open_sources(struct collect *c)
{
    enum status st = check_list(c->e->opt->sources);
    if (st != OK) return st;
    send_metrics(c);
    return open_sources(c);
}
