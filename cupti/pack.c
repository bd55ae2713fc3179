/*
 * Packing of metrics into passes (see pack.h). Invariant: a set's host object has accepted every
 * name that it ever saw, all in one call.
 */
#include "cupti/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void host_close(const struct cupti_lib *lib, void *host)
{
    if (!host) return;
    struct cupti_host_params p = {.size = sizeof p, .host = host};
    lib->host_deinit(&p);
}

static cupti_result host_open(const struct cupti_lib *lib, const char *chip, int type, void **host)
{
    struct cupti_host_init_params p = {.size = sizeof p, .type = type, .chip = chip};
    cupti_result r = lib->host_init(&p);
    *host = r == CUPTI_R_SUCCESS ? p.host : NULL;
    return r;
}

static cupti_result host_add(const struct cupti_lib *lib, void *host, const char **names, size_t n)
{
    struct cupti_host_add_params p = {.size = sizeof p, .host = host, .names = names, .n = n};
    return lib->host_add(&p);
}

bool pack_knows(const struct cupti_lib *lib, const char *chip, int type, const char *name)
{
    void *host;
    if (host_open(lib, chip, type, &host) != CUPTI_R_SUCCESS) return false;
    cupti_result r = host_add(lib, host, &name, 1);
    host_close(lib, host);
    return r == CUPTI_R_SUCCESS;
}

const char *const *pack_chips(const struct cupti_lib *lib, size_t *n)
{
    struct cupti_host_chips_params p = {.size = sizeof p};
    cupti_result r = lib->host_chips(&p);
    *n = r == CUPTI_R_SUCCESS ? p.n : 0;
    return r == CUPTI_R_SUCCESS ? p.names : NULL;
}

/* Makes host object, configuration image and pass count of the names in the set. */
static enum status build(const struct cupti_lib *lib, const char *chip, struct pack_set *s)
{
    enum status st = cupti_check(lib, host_open(lib, chip, s->type, &s->host), chip);
    if (st != OK) return st;
    st = cupti_check(lib, host_add(lib, s->host, s->names, s->n), "adding metrics");
    if (st != OK) goto out;
    struct cupti_host_image_size_params z = {.size = sizeof z, .host = s->host};
    st = cupti_check(lib, lib->host_image_size(&z), "sizing the counter configuration");
    if (st != OK) goto out;
    s->config_size = z.image_size;
    s->config = malloc(z.image_size ? z.image_size : 1);
    if (!s->config) {
        st = err_set(ERR_NOMEM, "out of memory: %zu bytes of counter configuration", z.image_size);
        goto out;
    }
    struct cupti_host_image_params g = {
        .size = sizeof g, .host = s->host, .image_size = s->config_size, .image = s->config};
    st = cupti_check(lib, lib->host_image(&g), "making the counter configuration");
    if (st != OK) goto out;
    struct cupti_host_passes_params n = {
        .size = sizeof n, .image_size = s->config_size, .image = s->config};
    st = cupti_check(lib, lib->host_passes(&n), "counting passes");
    s->passes = n.passes;
out:
    return st;
}

static void unbuild(const struct cupti_lib *lib, struct pack_set *s)
{
    host_close(lib, s->host);
    free(s->config);
    s->host = NULL;
    s->config = NULL;
    s->config_size = s->passes = 0;
}

void pack_free(const struct cupti_lib *lib, struct pack_set *set)
{
    unbuild(lib, set);
    set->n = 0;
}

static void append(struct pack_set *s, uint16_t id, const char *name)
{
    snprintf(s->text[s->n], PACK_NAME, "%s", name);
    s->ids[s->n] = id;
    s->names[s->n] = s->text[s->n];
    s->n++;
}

static void refuse(struct pack_set *s, const char *key)
{
    size_t len = strlen(s->refused_keys);
    s->refused++;
    snprintf(s->refused_keys + len, sizeof s->refused_keys - len, "%s%s", len ? " " : "", key);
}

static enum status check_chip(const struct cupti_lib *lib, const char *chip, int type)
{
    void *host;
    cupti_result r = host_open(lib, chip, type, &host);
    host_close(lib, host);
    if (r == CUPTI_R_SUCCESS) return OK;
    char what[64];
    snprintf(what, sizeof what, "chip %s", chip[0] ? chip : "(no name)");
    return cupti_check(lib, r, what);
}

/* The first name of a '|' list that the chip's range profiler knows. */
static bool first_known(const struct cupti_lib *lib, const char *chip, const char *list, char *name)
{
    for (unsigned c = 0; metric_candidate(list, c, name, PACK_NAME); c++)
        if (pack_knows(lib, chip, CUPTI_TYPE_RANGE, name)) return true;
    return false;
}

/* Appends every metric of `sets`: by the first name that the chip knows if it is to be asked for
 * each, else by its first name. What has no place or no name is refused. */
static void append_all(const struct cupti_lib *lib, const char *chip, unsigned sets, bool ask,
                       struct pack_set *out)
{
    char name[PACK_NAME];
    *out = (struct pack_set){.type = CUPTI_TYPE_RANGE};
    for (size_t i = 0; i < metric_count(); i++) {
        const struct metric *m = metric_at(i);
        if (!(m->sets & sets) || !m->range[0]) continue;
        bool named = ask ? first_known(lib, chip, m->range, name)
                         : metric_candidate(m->range, 0, name, sizeof name) > 0;
        if (out->n < PACK_MAX && named)
            append(out, m->id, name);
        else
            refuse(out, m->key);
    }
}

enum status pack_range_set(const struct cupti_lib *lib, const char *chip, unsigned sets,
                           struct pack_set *out)
{
    *out = (struct pack_set){.type = CUPTI_TYPE_RANGE};
    enum status st = check_chip(lib, chip, out->type);
    if (st != OK) return st;
    /* Most chips know every first name: one question then, where somebody may wait, and not one a
     * name. */
    append_all(lib, chip, sets, false, out);
    if (out->n > 0 && out->refused == 0 && build(lib, chip, out) == OK) return OK;
    pack_free(lib, out);
    append_all(lib, chip, sets, true, out);
    if (out->n == 0)
        return err_set(ERR_UNAVAILABLE, "chip %s knows none of the metrics asked for", chip);
    st = build(lib, chip, out);
    if (st != OK) pack_free(lib, out);
    return st;
}

static bool wanted(const char *keys, const char *key)
{
    if (!keys) return true;
    size_t n = strlen(key);
    for (const char *p = keys; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && memcmp(p, key, n) == 0) return true;
    return false;
}

static enum status check_keys(const char *keys)
{
    for (const char *p = keys; p && *p; p += strcspn(p, ","), p += *p == ',') {
        char key[40];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(p, ","), p);
        const struct metric *m = metric_by_key(key);
        if (!m || !(m->sets & METRIC_SET_PM))
            return err_set(ERR_USAGE, "no live metric is called '%s'", key);
    }
    return OK;
}

/* Takes the first name of m that is known and leaves the set at one pass. */
static bool grow(const struct cupti_lib *lib, const char *chip, const struct metric *m,
                 struct pack_set *s)
{
    char name[PACK_NAME];
    for (unsigned c = 0; metric_candidate(m->pm, c, name, sizeof name); c++) {
        if (s->n == PACK_MAX || !pack_knows(lib, chip, s->type, name)) continue;
        append(s, m->id, name);
        enum status st = build(lib, chip, s);
        size_t passes = s->passes;
        unbuild(lib, s);
        if (st == OK && passes == 1) return true;
        s->n--;
    }
    return false;
}

enum status pack_pm_set(const struct cupti_lib *lib, const char *chip, const char *keys,
                        struct pack_set *out)
{
    *out = (struct pack_set){.type = CUPTI_TYPE_PM};
    enum status st = check_keys(keys);
    if (st == OK) st = check_chip(lib, chip, out->type);
    if (st != OK) return st;
    for (size_t i = 0; i < metric_count(); i++) {
        const struct metric *m = metric_at(i);
        if (!(m->sets & METRIC_SET_PM) || !wanted(keys, m->key)) continue;
        if (!grow(lib, chip, m, out)) refuse(out, m->key);
    }
    if (out->n == 0)
        return err_set(ERR_UNAVAILABLE, "chip %s knows none of the live metrics", chip);
    st = build(lib, chip, out);
    if (st != OK) pack_free(lib, out);
    return st;
}

enum status pack_evaluate(const struct cupti_lib *lib, const struct pack_set *set,
                          const uint8_t *image, size_t image_size, size_t index, double *values)
{
    struct cupti_host_eval_params p = {
        .size = sizeof p,
        .host = set->host,
        .image = image,
        .image_size = image_size,
        .range = index,
        .names = (const char **)set->names,
        .n = set->n,
        .values = values,
    };
    return cupti_check(lib, lib->host_eval(&p), "evaluating counters");
}
