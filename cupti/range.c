/*
 * range: exact counters of launches, one range a launch, by auto ranges and user replay.
 *
 * One group: arm (enable, configure) -> { start, the work, stop } until stop says OK instead of
 * ERR_AGAIN -> disarm (decode, deliver, disable). The work must be the same each time; the engine
 * restores its state.
 *
 * Every launch between the start of a pass and its end is a range, in launch order, so a range's
 * place finds its launch; if the two differ in number nothing is guessed and all is thrown away. A
 * pass ends at the first launch that is not chosen, or when the ranges are used up, and the rest of
 * the work runs uncounted. User ranges around single launches were tried first: the gaps before and
 * after a launch lie inside them, and a 0.5 ms kernel of 67.7% SM read 57.9%.
 *
 * A round that is given up runs its remaining passes empty; its counters are dropped in silence.
 *
 * A second group on the same object gave NaN or a crash (CUDA 13.0): so an object lives for one
 * group. targetNestingLevel is 1. pm and pc must be disarmed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/driver.h"
#include "cupti/pack.h"
#include "cupti/sources.h"

enum { CACHE = 4 }; /* packings kept: one takes up to 0.2 s of the launching thread */

struct packing {
    unsigned sets; /* 0: free */
    struct pack_set set;
};

struct range {
    struct counter_source src;
    struct counter_config cfg;
    struct packing cache[CACHE];
    unsigned next;        /* to be given up next */
    struct pack_set *set; /* of the cache; NULL before the first configure */
    void *object;
    uint8_t *image;
    size_t image_size;
    size_t max;
    struct counter_notes notes; /* launches of the first pass */
    size_t seen;                /* launches of this pass */
    size_t passes;
    bool running, all_passes;         /* the pass is open; CUPTI has all that it needs */
    cupti_result ended;               /* what ending the pass answered */
    bool complete, differs, given_up; /* given_up: a pass came with no launch at all */
    struct counter_window w;
};

static void probe(struct counter_source *src)
{
    if (!counter_has_lib(src, "range_") || !counter_supported(src, CUPTI_API_RANGE)) return;
    counter_set_state(src, COUNTER_READY, NULL, NULL);
}

/* From the cache, or packed anew in the place of the oldest. */
static enum status find_set(struct range *r, unsigned sets)
{
    const struct cupti_lib *lib = r->src.env.lib;
    for (unsigned i = 0; i < CACHE; i++)
        if (r->cache[i].sets == sets) {
            r->set = &r->cache[i].set;
            return OK;
        }
    struct packing *p = &r->cache[r->next];
    if (p->sets) pack_free(lib, &p->set);
    p->sets = 0;
    if (r->set == &p->set) r->set = NULL;
    enum status st = pack_range_set(lib, lib->chip, sets, &p->set);
    if (st != OK) return st;
    p->sets = sets;
    r->next = (r->next + 1) % CACHE;
    r->set = &p->set;
    return OK;
}

static enum status configure(struct counter_source *src, const struct counter_config *cfg)
{
    struct range *r = (struct range *)src;
    r->cfg = *cfg;
    r->max = counter_pick(cfg->range_max, RANGE_MAX, 1, RANGE_MAX_LIMIT);
    counter_notes_free(&r->notes);
    enum status st = counter_notes_init(&r->notes, r->max);
    if (st == OK) st = find_set(r, cfg->range_sets ? cfg->range_sets : METRIC_SET_LIVE);
    if (st != OK) return st;
    snprintf(src->state.detail, sizeof src->state.detail, "%s: %zu metrics in %zu pass%s%s%.100s",
             src->env.lib->chip, r->set->n, r->set->passes, r->set->passes == 1 ? "" : "es",
             r->set->refused ? "; not here: " : "", r->set->refused_keys);
    return OK;
}

static enum status make_image(struct range *r)
{
    const struct cupti_lib *lib = r->src.env.lib;
    struct cupti_range_size_params z = {.size = sizeof z,
                                        .object = r->object,
                                        .names = r->set->names,
                                        .n = r->set->n,
                                        .max_ranges = r->max,
                                        .max_nodes = (uint32_t)r->max};
    enum status st = cupti_check(lib, lib->range_size(&z), "sizing range counters");
    if (st != OK) return st;
    uint8_t *image = realloc(r->image, z.image_size ? z.image_size : 1);
    if (!image) return err_set(ERR_NOMEM, "out of memory: %zu bytes of counters", z.image_size);
    r->image = image;
    r->image_size = z.image_size;
    struct cupti_range_image_params i = {
        .size = sizeof i, .object = r->object, .image_size = r->image_size, .image = r->image};
    return cupti_check(lib, lib->range_image(&i), "emptying range counters");
}

static enum status set_config(struct range *r)
{
    struct cupti_range_config_params c = {
        .size = CUPTI_SIZE(struct cupti_range_config_params, target_nesting),
        .object = r->object,
        .config_size = r->set->config_size,
        .config = r->set->config,
        .image_size = r->image_size,
        .image = r->image,
        .range = CUPTI_AUTO_RANGE,
        .replay = CUPTI_USER_REPLAY,
        .max_ranges = r->max,
        .nesting_levels = 1,
        .min_nesting = 1,
        .target_nesting = 1,
    };
    return cupti_check(r->src.env.lib, r->src.env.lib->range_config(&c),
                       "configuring the range profiler");
}

static enum status arm(struct counter_source *src)
{
    struct range *r = (struct range *)src;
    if (!r->set) return err_set(ERR_UNAVAILABLE, "range: no set of metrics is chosen");
    struct cupti_range_enable_params e = {.size = sizeof e, .ctx = src->env.ctx};
    enum status st =
        cupti_check(src->env.lib, src->env.lib->range_enable(&e), "enabling the range profiler");
    if (st != OK) return st;
    r->object = e.object;
    st = make_image(r);
    if (st == OK) st = set_config(r);
    if (st != OK) {
        struct cupti_range_params d = {.size = sizeof d, .object = r->object};
        src->env.lib->range_disable(&d); /* the first message stays */
        r->object = NULL;
        return st;
    }
    r->notes.n = r->seen = r->passes = 0;
    r->notes.lost = 0;
    r->running = r->complete = r->differs = r->given_up = false;
    r->w = (struct counter_window){
        .role = COUNTER_RANGE, .window = src->windows + 1, .start_ns = clock_wall_ns()};
    return OK;
}

/* At a group's first start CUPTI asks the GPU which counters it has, in a session of its own of
 * 80 ms, and if all of the group's are there it chooses a mode in which each of the driver's calls
 * takes three times as long as in the other (CUDA 13.0, seen in its system calls; the figures are
 * the same, docs/MEASUREMENTS.md). It asks about the current context: while there is none it
 * doesn't. */
static cupti_result start_unasked(struct range *r)
{
    const struct counter_env *env = &r->src.env;
    struct cupti_range_params s = {.size = sizeof s, .object = r->object};
    env->driver->CtxSetCurrent(NULL);
    cupti_result result = env->lib->range_start(&s);
    env->driver->CtxSetCurrent(env->ctx);
    if (result == CUPTI_R_SUCCESS) return result;
    /* As usual, then. Where that is only "out of order" now, the first answer says why. */
    cupti_result again = env->lib->range_start(&s);
    return again == CUPTI_R_INVALID_OPERATION ? result : again;
}

static enum status start(struct counter_source *src)
{
    struct range *r = (struct range *)src;
    if (r->complete) return err_set(ERR_USAGE, "range: this group has all its passes");
    r->seen = 0;
    struct cupti_range_params s = {.size = sizeof s, .object = r->object};
    cupti_result result =
        r->passes == 0 && src->env.driver ? start_unasked(r) : src->env.lib->range_start(&s);
    enum status st = cupti_check(src->env.lib, result, "starting a pass");
    r->running = st == OK;
    return st;
}

/* Also in the middle of the work: what was launched has to be through first. */
static void end_pass(struct range *r)
{
    const struct counter_env *env = &r->src.env;
    if (!r->running) return;
    if (env->driver) env->driver->StreamSynchronize(env->stream);
    struct cupti_range_stop_params s = {
        .size = CUPTI_SIZE(struct cupti_range_stop_params, all_passes), .object = r->object};
    r->ended = env->lib->range_stop(&s);
    r->all_passes = s.all_passes != 0;
    r->running = false;
}

static void launch_begin(struct counter_source *src, const struct counter_launch *l)
{
    struct range *r = (struct range *)src;
    if (!r->running) return;
    size_t room = r->passes == 0 ? r->notes.cap : r->notes.n;
    if (!l->chosen || r->seen == room) {
        if (l->chosen && r->passes == 0) r->w.dropped++;
        end_pass(r);
        return;
    }
    if (r->passes == 0) counter_notes_put(&r->notes, l);
    if (r->notes.v[r->seen].tag != l->tag) r->differs = true;
    r->seen++;
}

static enum status stop(struct counter_source *src)
{
    struct range *r = (struct range *)src;
    end_pass(r);
    enum status st = cupti_check(src->env.lib, r->ended, "ending a pass");
    if (st != OK) return st;
    if (r->seen == 0 && r->notes.n > 0) r->given_up = true;
    if (r->seen != r->notes.n) r->differs = true;
    r->passes++;
    r->complete = r->all_passes;
    if (r->complete) return OK;
    if (r->passes <= 4 * r->set->passes) return ERR_AGAIN;
    r->complete = true;
    return err_set(ERR_FAILED, "range: %zu passes run where %zu were announced, and no end",
                   r->passes, r->set->passes);
}

/* ---- results ---- */

static void deliver(struct range *r, size_t i)
{
    double values[PACK_MAX];
    if (pack_evaluate(r->src.env.lib, r->set, r->image, r->image_size, i, values) != OK) {
        r->w.invalid++;
        return;
    }
    r->w.items++;
    for (size_t m = 0; m < r->set->n; m++) {
        struct counter_exact e = {.tag = r->notes.v[i].tag,
                                  .range = (uint32_t)i,
                                  .id = r->set->ids[m],
                                  .value = values[m]};
        if (r->src.env.sink.exact) r->src.env.sink.exact(r->src.env.sink.user, &e);
    }
}

static enum status decode(struct range *r)
{
    const struct cupti_lib *lib = r->src.env.lib;
    struct cupti_range_decode_params d = {.size = sizeof d, .object = r->object};
    enum status st = cupti_check(lib, lib->range_decode(&d), "decoding range counters");
    if (st != OK) return st;
    struct cupti_range_info_params n = {
        .size = sizeof n, .image = r->image, .image_size = r->image_size};
    st = cupti_check(lib, lib->range_info(&n), "counting ranges");
    if (st != OK) return st;
    r->w.dropped += d.dropped;
    r->w.overflow = d.dropped > 0;
    if (r->differs)
        return err_set(ERR_FAILED, "range: the passes did not launch the same kernels; their "
                                   "counters were thrown away");
    if (n.ranges != r->notes.n)
        return err_set(ERR_FAILED,
                       "range: %zu ranges for %zu launches; their counters were thrown away",
                       n.ranges, r->notes.n);
    for (size_t i = 0; i < n.ranges; i++) deliver(r, i);
    return OK;
}

static enum status disarm(struct counter_source *src)
{
    struct range *r = (struct range *)src;
    uint64_t t0 = clock_wall_ns();
    enum status st = r->complete && !r->given_up ? decode(r) : OK;
    struct cupti_range_params d = {.size = sizeof d, .object = r->object};
    cupti_result off = src->env.lib->range_disable(&d);
    if (st == OK) st = cupti_check(src->env.lib, off, "disabling the range profiler");
    r->object = NULL;
    r->w.end_ns = clock_wall_ns();
    r->w.decode_ns = r->w.end_ns - t0;
    r->w.sets = r->cfg.range_sets ? r->cfg.range_sets : METRIC_SET_LIVE;
    r->w.metrics = (uint32_t)r->set->n;
    r->w.passes = (uint32_t)r->passes;
    r->w.given_up = r->given_up || !r->complete;
    if (src->env.sink.window) src->env.sink.window(src->env.sink.user, &r->w);
    return st;
}

static void close_(struct counter_source *src)
{
    struct range *r = (struct range *)src;
    for (unsigned i = 0; i < CACHE; i++)
        if (r->cache[i].sets) pack_free(src->env.lib, &r->cache[i].set);
    counter_notes_free(&r->notes);
    free(r->image);
}

const struct counter_source_ops counter_range_ops = {
    .name = "range",
    .role = COUNTER_RANGE,
    .size = sizeof(struct range),
    .probe = probe,
    .configure = configure,
    .arm = arm,
    .start = start,
    .launch_begin = launch_begin,
    .stop = stop,
    .disarm = disarm,
    .close = close_,
};
