/*
 * The fold's part for what a user is told: log, sources, faults, commands and their answers.
 *
 * Invariant: each of these frames leaves one line in the ring of events, but for repetitions.
 */
#include <stdio.h>
#include <string.h>

#include "session/model_priv.h"

enum status fold_log(struct session *s, const struct frame *f, const union msg_any *m)
{
    fold_event(s, f->t_ns, "log", m->log.level, "%s", m->log.text);
    return OK;
}

enum status fold_source(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_source *d = &m->source;
    uint32_t at = 0;

    while (at < s->nsources && strcmp(s->sources[at].name, d->name) != 0) at++;
    if (at == MAX_SOURCES) {
        s->overflowed++;
        return OK;
    }
    bool same = at < s->nsources && strcmp(s->sources[at].state, d->state) == 0 &&
                strcmp(s->sources[at].why, d->why) == 0;
    s->sources[at] = *d;
    if (at == s->nsources) s->nsources++;
    if (same) return OK;
    bool bad = strcmp(d->state, "failed") == 0 || strcmp(d->state, "unavailable") == 0;
    fold_event(s, f->t_ns, "source", bad, "%s: %s%s%s%s%s", d->name, d->state,
               d->why[0] ? ": " : "", d->why, d->remedy[0] ? "; " : "", d->remedy);
    return OK;
}

enum status fold_tally(struct session *s, const struct frame *f, const union msg_any *m)
{
    uint32_t at = 0;

    (void)f;
    while (at < s->ntallies && strcmp(s->tallies[at].name, m->tally.name) != 0) at++;
    if (at == MAX_SOURCES) {
        s->overflowed++;
        return OK;
    }
    s->tallies[at] = m->tally;
    if (at == s->ntallies) s->ntallies++;
    return OK;
}

static bool same_variant(const char *family, const char *variant, uint32_t kd,
                         const struct msg_fault *d)
{
    return kd == d->kd && strcmp(family, d->family) == 0 && strcmp(variant, d->variant) == 0;
}

static void mark_faulted(struct session *s, const struct msg_fault *d)
{
    struct generation *g = s->ngenerations ? &s->generations[s->ngenerations - 1] : NULL;

    for (uint32_t i = 0; i < s->nvariants; i++) {
        const struct msg_variant_def *v = &s->variants[i];
        if (same_variant(v->family, v->variant, v->kd, d)) s->variant_faulted[i] = true;
    }
    for (uint32_t i = 0; i < s->nkernels; i++) {
        const struct msg_kernel_def *k = &s->kernels[i].def;
        if (same_variant(k->family, k->variant, k->kd, d)) s->kernels[i].faulted = true;
    }
    if (g && same_variant(g->def.family, g->def.variant, g->def.kd, d)) g->faulted = true;
}

enum status fold_fault(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_fault *d = &m->fault;

    if (d->blames) mark_faulted(s, d);
    s->ended = true; /* until a frame of a running engine comes */
    snprintf(s->end_text, sizeof s->end_text, "%s", d->text);
    if (d->variant[0])
        fold_event(s, f->t_ns, "fault", 2, "%s in %s %s KD %u: %s", d->kind, d->family, d->variant,
                   d->kd, d->text);
    else
        fold_event(s, f->t_ns, "fault", 2, "%s: %s", d->kind, d->text);
    return OK;
}

enum status fold_command(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_command *d = &m->command;
    char kd[16] = ""; /* none: auto */

    if (d->kd) snprintf(kd, sizeof kd, " KD %u", d->kd);
    if (strcmp(d->verb, "pause") == 0) s->paused = true;
    if (strcmp(d->verb, "resume") == 0) s->paused = false;
    if (d->variant[0])
        fold_event(s, f->t_ns, "command", 0, "%s %s %s%s%s (%s)", d->verb, d->family, d->variant, kd,
                   d->force ? " by force" : "", d->origin);
    else
        fold_event(s, f->t_ns, "command", 0, "%s%s%s (%s)", d->verb, d->arg[0] ? " " : "", d->arg,
                   d->origin);
    return OK;
}

enum status fold_reply(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_reply *d = &m->reply;

    fold_event(s, f->t_ns, "reply", d->ok ? 0 : 1, "%s: %s", d->verb,
               d->text[0] ? d->text
               : d->ok    ? "done"
                          : "refused");
    return OK;
}

/* One entry a variant, KD and shape: the last check of it. */
enum status fold_parity(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_parity *d = &m->parity;
    uint32_t at = 0;

    for (; at < s->nparities; at++) {
        const struct msg_parity *p = &s->parities[at];
        if (p->kd == d->kd && p->m == d->m && p->n == d->n && p->k == d->k &&
            strcmp(p->family, d->family) == 0 && strcmp(p->variant, d->variant) == 0)
            break;
    }
    if (at == MAX_PARITIES) {
        s->overflowed++;
        return OK;
    }
    if (at == s->nparities) {
        enum status st = fold_grow(&s->parities, s->nparities, sizeof *s->parities);
        if (st != OK) return st;
        s->nparities++;
    }
    s->parities[at] = *d;
    if (strcmp(d->state, "ok") != 0)
        fold_event(s, f->t_ns, "parity", 2, "%s %s KD %u on %u x %u x %u: %s: %s", d->family,
                   d->variant, d->kd, d->m, d->n, d->k, d->state, d->text);
    return OK;
}

enum status fold_mark(struct session *s, const struct frame *f, const union msg_any *m)
{
    fold_event(s, f->t_ns, m->mark.kind[0] ? m->mark.kind : "note", 0, "%s", m->mark.text);
    return OK;
}

enum status fold_bye(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_bye *d = &m->bye;

    s->ended = true;
    snprintf(s->end_text, sizeof s->end_text, "%s", d->text);
    fold_event(s, f->t_ns, "end", d->status ? 1 : 0, "the engine left with status %u%s%s",
               d->status, d->text[0] ? ": " : "", d->text);
    return OK;
}
