/*
 * The list of backends, best first. To add one: a row in BACKENDS.
 */
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

static const struct backend_ops *const BACKENDS[] = {&cuda_backend, &cpu_backend};
enum { NBACKENDS = sizeof BACKENDS / sizeof BACKENDS[0] };

enum status backends_open(struct engine *e, const struct backend_options *o)
{
    bool any = !strcmp(e->opt->backend, "auto");
    enum status st = ERR_UNAVAILABLE;
    err_set(st, "this program was built without the %s backend", e->opt->backend);
    for (int i = 0; i < NBACKENDS; i++) {
        if (!any && strcmp(BACKENDS[i]->name, e->opt->backend)) continue;
        st = BACKENDS[i]->open(o, &e->b);
        if (st == OK) {
            e->bo = BACKENDS[i];
            return e->bo->limits(e->b, &e->limits);
        }
        if (!any || st != ERR_UNAVAILABLE) return st;
        snprintf(e->fallback, sizeof e->fallback, "no %s backend: %.300s", BACKENDS[i]->name,
                 err_msg());
    }
    return st;
}
