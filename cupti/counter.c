/*
 * What all counter sources share: opening by role, the order of calls, state changes.
 *
 * Invariant: a source's own function runs only in an order that counter.h allows, so sources don't
 * check it again. To add a source: one file with an ops table, one row in real_ops[], its role in
 * counter.h.
 */
#include "cupti/counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/sources.h"

static const struct counter_source_ops *const real_ops[COUNTER_ROLES] = {
    [COUNTER_EVENTS] = &counter_events_ops, [COUNTER_ACTIVITY] = &counter_activity_ops,
    [COUNTER_PM] = &counter_pm_ops,         [COUNTER_PC] = &counter_pc_ops,
    [COUNTER_RANGE] = &counter_range_ops,   [COUNTER_EXEC] = &counter_sassexec_ops,
};

const char *counter_role_name(enum counter_role role)
{
    return (unsigned)role < COUNTER_ROLES ? real_ops[role]->name : "?";
}

const char *counter_health_name(enum counter_health h)
{
    static const char *const names[] = {"off", "ready", "unavailable", "failed"};
    return (unsigned)h < sizeof names / sizeof names[0] ? names[h] : "?";
}

uint64_t counter_pick(uint64_t wish, uint64_t dflt, uint64_t lo, uint64_t hi)
{
    uint64_t v = wish ? wish : dflt;
    return v < lo ? lo : v > hi ? hi : v;
}

void counter_set_state(struct counter_source *src, enum counter_health h, const char *why,
                       const char *remedy)
{
    src->state.health = h;
    snprintf(src->state.why, sizeof src->state.why, "%s", why ? why : "");
    snprintf(src->state.remedy, sizeof src->state.remedy, "%s", remedy ? remedy : "");
    if (src->env.sink.state) src->env.sink.state(src->env.sink.user, &src->state);
}

/* Turns this thread's error message into the source's state. A remedy that closes the message
 * becomes the state's own. */
static enum status fail(struct counter_source *src, enum status st)
{
    char why[sizeof src->state.why], remedy[sizeof src->state.remedy] = "";
    snprintf(why, sizeof why, "%s", err_msg());
    const char *semi = strstr(err_msg(), "; ");
    if (semi) {
        snprintf(remedy, sizeof remedy, "%s", semi + 2);
        size_t n = (size_t)(semi - err_msg());
        if (n < sizeof why) why[n] = '\0';
    }
    counter_set_state(src, st == ERR_UNAVAILABLE ? COUNTER_UNAVAILABLE : COUNTER_FAILED, why,
                      remedy);
    return st;
}

bool counter_has_lib(struct counter_source *src, const char *prefix)
{
    if (!src->env.lib) {
        counter_set_state(src, COUNTER_UNAVAILABLE, "no CUPTI library is loaded",
                          "install the CUDA 13 toolkit, or set SASSTOP_CUPTI to libcupti.so.13");
        return false;
    }
    if (src->env.lib->other[0]) {
        char why[160];
        snprintf(why, sizeof why, "another profiler holds CUPTI in this process: %s",
                 src->env.lib->other);
        counter_set_state(src, COUNTER_UNAVAILABLE, why,
                          cupti_explain(CUPTI_R_MULTIPLE_SUBSCRIBERS).remedy);
        return false;
    }
    if (cupti_has(src->env.lib, prefix)) return true;
    counter_set_state(src, COUNTER_UNAVAILABLE, "this CUPTI lacks the interface",
                      "install the CUDA 13 toolkit");
    return false;
}

bool counter_supported(struct counter_source *src, int api)
{
    struct cupti_support_params p = {.size = CUPTI_SIZE(struct cupti_support_params, api),
                                     .device = src->env.device,
                                     .api = api};
    if (!src->env.lib->profiler_supported) return true;
    if (src->env.lib->profiler_supported(&p) != CUPTI_R_SUCCESS) return true;
    if (p.supported == CUPTI_SUPPORT_YES || p.supported == CUPTI_SUPPORT_UNKNOWN) return true;
    const struct {
        int level;
        const char *why, *remedy;
    } causes[] = {
        {p.architecture, "this GPU's architecture is not supported", ""},
        {p.vgpu, "a virtual GPU gives no counters here",
         "the hypervisor must enable profiling for this vGPU"},
        {p.confidential, "no counters in confidential computing mode", ""},
        {p.cmp, "this mining GPU gives no counters", ""},
        {p.wsl, "no counters under WSL with this driver", "use a newer Windows driver, or Linux"},
        {p.sli, "no counters with SLI", "switch SLI off"},
    };
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (causes[i].level == CUPTI_SUPPORT_NO || causes[i].level == CUPTI_SUPPORT_DISABLED) {
            counter_set_state(src, COUNTER_UNAVAILABLE, causes[i].why, causes[i].remedy);
            return false;
        }
    counter_set_state(src, COUNTER_UNAVAILABLE, "CUPTI says that this device is not supported", "");
    return false;
}

enum status counter_notes_init(struct counter_notes *n, size_t cap)
{
    *n = (struct counter_notes){.v = calloc(cap, sizeof *n->v), .cap = cap};
    return n->v ? OK : err_set(ERR_NOMEM, "out of memory: notes of %zu launches", cap);
}

void counter_notes_free(struct counter_notes *n)
{
    free(n->v);
    *n = (struct counter_notes){0};
}

void counter_notes_put(struct counter_notes *n, const struct counter_launch *l)
{
    if (n->n == n->cap) {
        n->lost++;
        return;
    }
    n->v[n->n++] = (struct counter_note){l->tag, l->kernel};
}

enum status counter_open(enum counter_role role, bool synthetic, const struct counter_env *env,
                         struct counter_source **out)
{
    *out = NULL;
    if ((unsigned)role >= COUNTER_ROLES) return err_set(ERR_USAGE, "no such counter source");
    const struct counter_source_ops *ops = synthetic ? &counter_synth_ops[role] : real_ops[role];
    struct counter_source *src = calloc(1, ops->size);
    if (!src) return err_set(ERR_NOMEM, "out of memory: counter source %s", ops->name);
    src->ops = ops;
    src->env = *env;
    src->state = (struct counter_state){
        .role = role, .name = real_ops[role]->name, .synthetic = ops->synthetic};
    ops->probe(src);
    if (src->state.health != COUNTER_UNAVAILABLE) {
        enum status st = ops->configure(src, &(struct counter_config){0});
        if (st != OK) fail(src, st);
    }
    *out = src;
    return OK;
}

void counter_close(struct counter_source *src)
{
    if (!src) return;
    if (src->started) counter_stop(src);
    if (src->armed && counter_disarm(src) == ERR_AGAIN) {
        counter_poll(src);
        counter_disarm(src);
    }
    src->ops->close(src);
    free(src);
}

static enum status usable(struct counter_source *src)
{
    if (src->state.health == COUNTER_READY) return OK;
    return err_set(ERR_UNAVAILABLE, "%s: %s", src->state.name,
                   src->state.why[0] ? src->state.why : "not ready");
}

enum status counter_configure(struct counter_source *src, const struct counter_config *cfg)
{
    if (src->armed)
        return err_set(ERR_USAGE, "%s: can't be configured while armed", src->state.name);
    if (src->state.health == COUNTER_UNAVAILABLE) return usable(src);
    enum status st = src->ops->configure(src, cfg);
    if (st == ERR_USAGE) return st;
    return st == OK ? OK : fail(src, st);
}

enum status counter_arm(struct counter_source *src)
{
    if (src->armed) return OK;
    if (src->state.health == COUNTER_FAILED)
        counter_set_state(src, COUNTER_READY, NULL, NULL); /* another try */
    enum status st = usable(src);
    if (st != OK) return st;
    st = src->ops->arm(src);
    if (st != OK) return fail(src, st);
    src->armed = true;
    return OK;
}

enum status counter_start(struct counter_source *src)
{
    if (!src->armed) return err_set(ERR_USAGE, "%s: started before armed", src->state.name);
    if (src->started) return err_set(ERR_USAGE, "%s: started twice", src->state.name);
    src->windows++;
    enum status st = src->ops->start(src);
    if (st == OK) {
        src->started = true;
        return OK;
    }
    src->windows--;
    return st == ERR_AGAIN ? st : fail(src, st);
}

void counter_launch_begin(struct counter_source *src, const struct counter_launch *l)
{
    if (src->started && src->ops->launch_begin) src->ops->launch_begin(src, l);
}

void counter_launch_end(struct counter_source *src, const struct counter_launch *l)
{
    if (src->started && src->ops->launch_end) src->ops->launch_end(src, l);
}

enum status counter_stop(struct counter_source *src)
{
    if (!src->started) return err_set(ERR_USAGE, "%s: stopped before started", src->state.name);
    src->started = false;
    enum status st = src->ops->stop(src);
    return st == OK || st == ERR_AGAIN ? st : fail(src, st);
}

enum status counter_poll(struct counter_source *src)
{
    if (!src->armed || !src->ops->poll) return ERR_AGAIN;
    enum status st = src->ops->poll(src);
    return st == OK || st == ERR_AGAIN ? st : fail(src, st);
}

bool counter_busy(struct counter_source *src)
{
    return src->armed && src->ops->busy && src->ops->busy(src);
}

enum status counter_disarm(struct counter_source *src)
{
    if (!src->armed) return OK;
    if (src->started) counter_stop(src);
    enum status st = src->ops->disarm(src);
    if (st == ERR_AGAIN) return st;
    src->armed = false;
    return st == OK ? OK : fail(src, st);
}
