/*
 * pm: PM sampling, a time series of whole-GPU metrics inside running kernels, in windows.
 *
 * The metrics that share one pass are chosen once a chip (pack_pm_set): SM% by the chip's triage
 * metric where it has one. A window is start -> stop on either thread; decoding is poll() on the
 * decode thread, in one call into one counter image that is used again and again. The image is
 * sized for a whole window: what one DecodeData call has no room for is lost, a second call into an
 * emptied image gives nothing (H200: windows of 385 samples gave 63 each from an image of 64). So
 * poll() also ends a window that has been open for pm_window_ns, and a full image is a loss that is
 * counted by the clock.
 *
 * Invariant: `stage` passes IDLE -> OPEN -> FULL -> IDLE; start and stop own the sampler in IDLE
 * and OPEN, poll() owns it in FULL, so no lock is needed and no two threads call CUPTI on it at
 * once. disarm is refused (ERR_AGAIN) in FULL: what is not decoded before Disable is lost.
 *
 * The first sample after a start covers the gap before it and is dropped (counted in `other`).
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cupti/pack.h"
#include "cupti/sources.h"

enum stage { IDLE, OPEN, STOPPING, FULL };

struct pm {
    struct counter_source src;
    struct counter_config cfg;
    char keys[256];
    struct pack_set set;
    bool packed;
    void *object;
    uint8_t *image;
    size_t image_size;
    uint64_t interval;
    int trigger;
    _Atomic int stage;
    struct counter_window w; /* the open or undecoded window */
    _Atomic uint64_t opened; /* monotonic */
    uint64_t limit;
    size_t room; /* samples of the image */
    double *values;
};

static void probe(struct counter_source *src)
{
    if (!counter_has_lib(src, "pm_") || !counter_supported(src, CUPTI_API_PM)) return;
    counter_set_state(src, COUNTER_READY, NULL, NULL);
}

static enum status pack(struct pm *p)
{
    const char *chip = p->src.env.lib->chip;
    enum status st = pack_pm_set(p->src.env.lib, chip, p->keys[0] ? p->keys : NULL, &p->set);
    if (st != OK) return st;
    p->packed = true;
    snprintf(p->src.state.detail, sizeof p->src.state.detail,
             "%s: %s, %zu metrics in one pass%s%.100s", chip,
             p->set.ids[0] == METRIC_SM ? "SM% by the chip's triage metric"
                                        : "no one-pass SM%: proxies under their own names",
             p->set.n, p->set.refused ? "; not here: " : "", p->set.refused_keys);
    return OK;
}

static enum status configure(struct counter_source *src, const struct counter_config *cfg)
{
    struct pm *p = (struct pm *)src;
    if (p->packed) pack_free(src->env.lib, &p->set);
    p->packed = false;
    p->cfg = *cfg;
    if (cfg->pm_keys &&
        snprintf(p->keys, sizeof p->keys, "%s", cfg->pm_keys) >= (int)sizeof p->keys)
        return err_set(ERR_USAGE, "pm: the list of metrics is too long");
    p->interval = counter_pick(cfg->pm_interval_ns, PM_INTERVAL_NS, PM_INTERVAL_MIN_NS, 1000000000);
    p->limit = counter_pick(cfg->pm_window_ns, PM_WINDOW_NS, 1000000, 10000000000ull);
    p->trigger = CUPTI_PM_TRIGGER_TIME;
    if (!p->values && !(p->values = calloc(PACK_MAX, sizeof *p->values)))
        return err_set(ERR_NOMEM, "out of memory: PM values");
    return pack(p);
}

static enum status set_config(struct pm *p)
{
    struct cupti_pm_config_params c = {
        .size = sizeof c,
        .object = p->object,
        .config_size = p->set.config_size,
        .config = p->set.config,
        .buffer = counter_pick(p->cfg.pm_buffer, COUNTER_BUFFER, 1 << 20, 1ull << 30),
        .interval = p->interval,
        .trigger = p->trigger,
        .append = CUPTI_PM_KEEP_OLDEST,
    };
    cupti_result r = p->src.env.lib->pm_config(&c);
    if (r == CUPTI_R_NOT_SUPPORTED || r == CUPTI_R_INVALID_PARAMETER) {
        /* Turing and GA100 have no time trigger: count system clock cycles, about 1.6 a ns. */
        c.trigger = p->trigger = CUPTI_PM_TRIGGER_SYSCLK;
        c.interval = p->interval + p->interval / 2;
        cupti_result again = p->src.env.lib->pm_config(&c);
        if (again == CUPTI_R_SUCCESS) r = again;
    }
    return cupti_check(p->src.env.lib, r, "configuring PM sampling");
}

/* Samples of the longest window. The decode thread may be late in ending it. */
static size_t window_samples(const struct pm *p)
{
    enum { LATE_NS = 10000000, SPARE = 16 };
    uint64_t n = (p->limit + LATE_NS) / p->interval + SPARE;
    return counter_pick(p->cfg.pm_max_samples, n, 16, PM_MAX_SAMPLES_LIMIT);
}

/* Sizes the image and keeps it for all windows and turns. */
static enum status size_image(struct pm *p)
{
    p->room = window_samples(p);
    struct cupti_pm_size_params z = {.size = sizeof z,
                                     .object = p->object,
                                     .names = p->set.names,
                                     .n = p->set.n,
                                     .max_samples = (uint32_t)p->room};
    enum status st = cupti_check(p->src.env.lib, p->src.env.lib->pm_size(&z), "sizing PM samples");
    if (st != OK || z.image_size == p->image_size) return st;
    uint8_t *image = realloc(p->image, z.image_size);
    if (!image) return err_set(ERR_NOMEM, "out of memory: %zu bytes of PM samples", z.image_size);
    p->image = image;
    p->image_size = z.image_size;
    return OK;
}

static enum status arm(struct counter_source *src)
{
    struct pm *p = (struct pm *)src;
    struct cupti_pm_enable_params e = {.size = sizeof e, .device = (size_t)src->env.device};
    enum status st = cupti_check(src->env.lib, src->env.lib->pm_enable(&e), "enabling PM sampling");
    if (st != OK) return st;
    p->object = e.object;
    st = set_config(p);
    if (st == OK) st = size_image(p);
    if (st != OK) {
        /* A refused object must be disabled at once, or the next enable fails. The first message
         * stays. */
        struct cupti_pm_params d = {.size = sizeof d, .object = p->object};
        src->env.lib->pm_disable(&d);
        p->object = NULL;
    }
    return st;
}

static enum status start(struct counter_source *src)
{
    struct pm *p = (struct pm *)src;
    if (atomic_load(&p->stage) != IDLE) return ERR_AGAIN;
    struct cupti_pm_params s = {.size = sizeof s, .object = p->object};
    p->w = (struct counter_window){
        .role = COUNTER_PM, .window = src->windows, .start_ns = clock_wall_ns()};
    enum status st = cupti_check(src->env.lib, src->env.lib->pm_start(&s), "starting PM sampling");
    atomic_store(&p->opened, clock_mono_ns());
    if (st == OK) atomic_store(&p->stage, OPEN);
    return st;
}

static enum status stop(struct counter_source *src)
{
    struct pm *p = (struct pm *)src;
    int open = OPEN;
    if (!atomic_compare_exchange_strong(&p->stage, &open, STOPPING))
        return OK; /* poll() was first */
    struct cupti_pm_params s = {.size = sizeof s, .object = p->object};
    p->w.end_ns = clock_wall_ns(); /* stopping takes 1.8 ms, without samples */
    cupti_result r = src->env.lib->pm_stop(&s);
    atomic_store(&p->stage, r == CUPTI_R_SUCCESS ? FULL : IDLE);
    return cupti_check(src->env.lib, r, "stopping PM sampling");
}

/* ---- decoding ---- */

static enum status empty_image(struct pm *p)
{
    struct cupti_pm_image_params i = {
        .size = sizeof i, .object = p->object, .image_size = p->image_size, .image = p->image};
    return cupti_check(p->src.env.lib, p->src.env.lib->pm_image(&i), "emptying the PM image");
}

static void deliver(struct pm *p, size_t i)
{
    struct cupti_pm_sample_params t = {.size = sizeof t,
                                       .object = p->object,
                                       .image = p->image,
                                       .image_size = p->image_size,
                                       .index = i};
    if (p->src.env.lib->pm_sample(&t) != CUPTI_R_SUCCESS || t.end <= t.start ||
        pack_evaluate(p->src.env.lib, &p->set, p->image, p->image_size, i, p->values) != OK) {
        p->w.invalid++;
        return;
    }
    struct counter_pm_sample s = {.window = p->w.window,
                                  .start_ns = t.start,
                                  .end_ns = t.end,
                                  .n = (unsigned)p->set.n,
                                  .ids = p->set.ids,
                                  .values = p->values};
    p->w.items++;
    if (p->src.env.sink.pm) p->src.env.sink.pm(p->src.env.sink.user, &s);
}

static enum status decode(struct pm *p)
{
    enum status st = empty_image(p);
    if (st != OK) return st;
    struct cupti_pm_decode_params d = {.size = CUPTI_SIZE(struct cupti_pm_decode_params, overflow),
                                       .object = p->object,
                                       .image = p->image,
                                       .image_size = p->image_size};
    cupti_result r = p->src.env.lib->pm_decode(&d);
    /* 8 by the header, 999 as seen on some drivers: the buffer ran over. What was decoded is kept.
     */
    if (d.overflow || r == CUPTI_R_OUT_OF_MEMORY || r == CUPTI_R_UNKNOWN) {
        p->w.overflow = true;
        p->w.dropped++;
    } else if (r != CUPTI_R_SUCCESS) {
        return cupti_check(p->src.env.lib, r, "decoding PM samples");
    }
    struct cupti_pm_info_params n = {
        .size = sizeof n, .image = p->image, .image_size = p->image_size};
    st = cupti_check(p->src.env.lib, p->src.env.lib->pm_info(&n), "reading the PM image");
    if (st != OK) return st;
    if (n.completed > 0) p->w.other++; /* the first */
    for (size_t i = 1; i < n.completed; i++) deliver(p, i);
    /* The image is full: the window's tail has no place in it. */
    uint64_t due = (p->w.end_ns - p->w.start_ns) / p->interval;
    if (n.completed >= p->room) p->w.dropped += due > n.completed ? due - n.completed : 1;
    return OK;
}

static enum status poll(struct counter_source *src)
{
    struct pm *p = (struct pm *)src;
    if (atomic_load(&p->stage) == OPEN && clock_mono_ns() - p->opened > p->limit) {
        enum status st = stop(src);
        if (st != OK) return st;
    }
    if (atomic_load(&p->stage) != FULL) return ERR_AGAIN;
    uint64_t t0 = clock_mono_ns();
    enum status st = decode(p);
    p->w.decode_ns = clock_mono_ns() - t0;
    if (src->env.sink.window) src->env.sink.window(src->env.sink.user, &p->w);
    atomic_store(&p->stage, IDLE);
    return st;
}

static bool busy(struct counter_source *src)
{
    return atomic_load(&((struct pm *)src)->stage) != IDLE;
}

static enum status disarm(struct counter_source *src)
{
    struct pm *p = (struct pm *)src;
    if (busy(src)) return ERR_AGAIN;
    struct cupti_pm_params d = {.size = sizeof d, .object = p->object};
    p->object = NULL;
    return cupti_check(src->env.lib, src->env.lib->pm_disable(&d), "disabling PM sampling");
}

static void close_(struct counter_source *src)
{
    struct pm *p = (struct pm *)src;
    if (p->packed) pack_free(src->env.lib, &p->set);
    free(p->image);
    free(p->values);
}

const struct counter_source_ops counter_pm_ops = {
    .name = "pm",
    .role = COUNTER_PM,
    .size = sizeof(struct pm),
    .probe = probe,
    .configure = configure,
    .arm = arm,
    .start = start,
    .stop = stop,
    .poll = poll,
    .busy = busy,
    .disarm = disarm,
    .close = close_,
};
