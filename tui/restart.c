/*
 * Choosing what to go back to; see restart.h. Only q4k_gemm has a variant on the engine's command
 * line: when another family's variant failed, q4k_gemm keeps its last one and the other family
 * starts with its own default.
 */
#include "tui/restart.h"

#include <stdio.h>
#include <string.h>

static const char FAMILY[] = "q4k_gemm";

/* VARIANT_DEF's standing. */
enum { STARTS = 1, FALLBACK = 2, BROKEN = 4 };

static bool same(const struct msg_generation *g, const char *variant, uint32_t kd)
{
    return g->kd == kd && !strcmp(g->family, FAMILY) && !strcmp(g->variant, variant);
}

static bool is_bad(const struct session *s, const char *variant, uint32_t kd)
{
    for (uint32_t i = 0; i < s->nvariants; i++) {
        const struct msg_variant_def *d = &s->variants[i];
        if (d->kd == kd && !strcmp(d->family, FAMILY) && !strcmp(d->variant, variant))
            return s->variant_faulted[i] || (d->standing & BROKEN);
    }
    return false;
}

static const struct msg_generation *ran_before(const struct session *s,
                                               const struct msg_generation *failed)
{
    for (uint32_t i = s->ngenerations; i-- > 0;) {
        const struct msg_generation *d = &s->generations[i].def;
        if (strcmp(d->family, FAMILY) || same(failed, d->variant, d->kd)) continue;
        if (s->generations[i].faulted || !strcmp(d->parity, "forced")) continue;
        if (!is_bad(s, d->variant, d->kd)) return d;
    }
    return NULL;
}

static int rank(const struct msg_variant_def *d, uint32_t kd)
{
    if (d->standing & STARTS) return 4;
    if (d->standing & FALLBACK) return d->kd == kd ? 3 : 2;
    return d->kd == kd ? 1 : 0;
}

static const struct msg_variant_def *never_ran(const struct session *s,
                                               const struct msg_generation *failed)
{
    const struct msg_variant_def *best = NULL;
    for (uint32_t i = 0; i < s->nvariants; i++) {
        const struct msg_variant_def *d = &s->variants[i];
        if (!d->ok || strcmp(d->family, FAMILY) || same(failed, d->variant, d->kd)) continue;
        if (is_bad(s, d->variant, d->kd)) continue;
        if (!best || rank(d, failed->kd) > rank(best, failed->kd)) best = d;
    }
    return best;
}

bool restart_choose(const struct session *s, char *variant, size_t size, uint32_t *kd)
{
    const struct generation *g = session_current(s);

    if (!g) return false;
    const struct msg_generation *before = ran_before(s, &g->def);
    const struct msg_variant_def *other =
        before || strcmp(g->def.family, FAMILY) ? NULL : never_ran(s, &g->def);
    if (!before && !other) return false;
    snprintf(variant, size, "%s", before ? before->variant : other->variant);
    *kd = before ? before->kd : other->kd;
    return true;
}
