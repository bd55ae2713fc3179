/* Look-ups in the model; see model.h. Linear where the lists are short. */
#include <stdio.h>
#include <string.h>

#include "session/model_priv.h"

const struct generation *session_current(const struct session *s)
{
    return s->ngenerations ? &s->generations[s->ngenerations - 1] : NULL;
}

const struct generation *session_previous(const struct session *s)
{
    return s->ngenerations > 1 ? &s->generations[s->ngenerations - 2] : NULL;
}

const struct generation *session_generation(const struct session *s, uint32_t generation)
{
    /* Mostly the newest one is asked for. */
    for (uint32_t i = s->ngenerations; i > 0; i--)
        if (s->generations[i - 1].def.generation == generation) return &s->generations[i - 1];
    return NULL;
}

const struct msg_metric_def *session_metric(const struct session *s, const char *key)
{
    for (uint32_t i = 0; i < s->nmetrics; i++)
        if (strcmp(s->metrics[i].key, key) == 0) return &s->metrics[i];
    return NULL;
}

const struct kernel_stalls *session_stalls(const struct session *s, uint32_t kernel,
                                           uint32_t generation)
{
    for (uint32_t i = s->nstalls; i > 0; i--)
        if (s->stalls[i - 1].kernel == kernel && s->stalls[i - 1].generation == generation)
            return &s->stalls[i - 1];
    return NULL;
}

const struct module *session_module(const struct session *s, uint64_t cubin_hash)
{
    for (uint32_t i = 0; i < s->nmodules; i++)
        if (s->modules[i].hash == cubin_hash && s->modules[i].whole) return &s->modules[i];
    return NULL;
}

const struct msg_source *session_source(const struct session *s, const char *name)
{
    for (uint32_t i = 0; i < s->nsources; i++)
        if (strcmp(s->sources[i].name, name) == 0) return &s->sources[i];
    return NULL;
}

/* What the current generation's rows run, for a family that no generation has selected yet. */
static bool selected_by_rows(const struct session *s, const char *family, const char **variant,
                             uint32_t *kd)
{
    const struct generation *g = session_current(s);

    for (uint32_t i = s->nrows; g && i > 0; i--) {
        const struct row *r = &s->rows[i - 1];
        const struct msg_kernel_def *k = &s->kernels[r->def.kernel].def;
        if (r->def.generation != g->def.generation) continue;
        if (k->variant[0] == '\0' || strcmp(k->family, family) != 0) continue;
        *variant = k->variant;
        *kd = k->kd;
        return true;
    }
    return false;
}

bool session_selected(const struct session *s, const char *family, const char **variant,
                      uint32_t *kd)
{
    for (uint32_t i = s->ngenerations; i > 0; i--) {
        const struct msg_generation *g = &s->generations[i - 1].def;
        if (g->variant[0] == '\0' || strcmp(g->family, family) != 0) continue;
        *variant = g->variant;
        *kd = g->kd;
        return true;
    }
    return selected_by_rows(s, family, variant, kd);
}

bool session_same_work(const struct session *s, const struct row *x, const struct row *y)
{
    return x->def.m == y->def.m && x->def.n == y->def.n && x->def.k == y->def.k &&
           !strcmp(x->def.role, y->def.role) && !strcmp(x->def.phase, y->def.phase) &&
           x->def.kernel < s->nkernels && y->def.kernel < s->nkernels &&
           !strcmp(s->kernels[x->def.kernel].def.family, s->kernels[y->def.kernel].def.family);
}

uint32_t session_counterpart(const struct session *s, const struct row *r, uint32_t than)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *o = &s->rows[i];
        if (o->def.generation >= than || o->def.kernel == r->def.kernel ||
            !session_same_work(s, r, o))
            continue;
        if (best == UINT32_MAX || o->def.generation > s->rows[best].def.generation) best = i;
    }
    return best;
}

bool session_random_weights(const struct session *s)
{
    return !strncmp(s->model.name, "synth:", 6) || !strncmp(s->model.name, "synthetic ", 10);
}

uint32_t session_costliest(const struct session *s, const struct generation *g)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->nrows; i++) {
        const struct row *r = &s->rows[i];
        if (r->def.generation != g->def.generation || !r->calls) continue;
        if (r->def.kernel >= s->nkernels ||
            strcmp(s->kernels[r->def.kernel].def.family, g->def.family) != 0)
            continue;
        if (best == UINT32_MAX || r->total_ns > s->rows[best].total_ns) best = i;
    }
    return best;
}

void row_title(const struct session *s, const struct row *r, char *out, size_t size)
{
    const struct msg_row_def *d = &r->def;
    const char *kernel = s->kernels[d->kernel].def.name;
    if (d->m && d->n && d->k)
        snprintf(out, size, "%s, %s %u x %u x %u, generation %u", kernel, d->role, d->m, d->n, d->k,
                 d->generation);
    else
        snprintf(out, size, "%s, %s (%s), generation %u", kernel, d->role, d->phase, d->generation);
}
