/*
 * The fold's part for experiments: definition, gates, pairs, figures, verdict; see
 * lab_experiment.h. Invariant: a definition is taken once; a frame for an experiment that isn't
 * open is garbled.
 */
#include <stdlib.h>
#include <string.h>

#include "session/lab_experiment.h"
#include "session/model_priv.h"

struct lab_experiment *session_experiment(const struct session *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->nexperiments; i++)
        if (s->experiments[i].def.experiment == number) return &s->experiments[i];
    return NULL;
}

static struct lab_experiment *open_one(struct session *s, uint32_t number)
{
    struct lab_experiment *x = session_experiment(s, number);
    return x && !x->closed ? x : NULL;
}

enum status fold_experiment(struct session *s, const struct frame *f, const union msg_any *m)
{
    const struct msg_experiment *d = &m->experiment;

    if (session_experiment(s, d->experiment)) return fold_garbled(s);
    if (s->nexperiments == LAB_EXPERIMENTS_MAX) {
        s->overflowed++;
        return OK;
    }
    enum status st = fold_grow(&s->experiments, s->nexperiments, sizeof *s->experiments);
    if (st != OK) return st;
    struct lab_experiment *x = &s->experiments[s->nexperiments++];
    memset(x, 0, sizeof *x);
    x->def = *d;
    x->t_ns = f->t_ns;
    fold_event(s, f->t_ns, "experiment", 0, "%u: %s against %s, bar %s", d->experiment, d->b, d->a,
               d->bar);
    return OK;
}

enum status fold_gate(struct session *s, const struct frame *f, const union msg_any *m)
{
    struct lab_experiment *x = open_one(s, m->gate.experiment);

    if (!x) return fold_garbled(s);
    if (x->ngates == LAB_GATES_MAX) {
        s->overflowed++;
        return OK;
    }
    x->gates[x->ngates++] = m->gate;
    bool bad = !strcmp(m->gate.state, "failed") || !strcmp(m->gate.state, "identical");
    fold_event(s, f->t_ns, "gate", bad ? 2 : !strcmp(m->gate.state, "forced"), "%s: %s%s%s",
               m->gate.gate, m->gate.state, m->gate.text[0] ? ": " : "", m->gate.text);
    return OK;
}

enum status fold_pair(struct session *s, const struct frame *f, const union msg_any *m)
{
    struct lab_experiment *x = open_one(s, m->pair.experiment);

    (void)f;
    if (!x) return fold_garbled(s);
    if (x->npairs == LAB_ALL_PAIRS) {
        s->overflowed++;
        return OK;
    }
    enum status st = fold_grow(&x->pairs, x->npairs, sizeof *x->pairs);
    if (st == OK) x->pairs[x->npairs++] = m->pair;
    return st;
}

enum status fold_mechanism(struct session *s, const struct frame *f, const union msg_any *m)
{
    struct lab_experiment *x = open_one(s, m->mechanism.experiment);

    (void)f;
    if (!x) return fold_garbled(s);
    if (x->nfigures == LAB_FIGURES_MAX)
        s->overflowed++;
    else
        x->figures[x->nfigures++] = m->mechanism;
    return OK;
}

enum status fold_verdict(struct session *s, const struct frame *f, const union msg_any *m)
{
    struct lab_experiment *x = open_one(s, m->verdict.experiment);

    if (!x) return fold_garbled(s);
    x->closed = true;
    x->verdict = m->verdict;
    fold_event(s, f->t_ns, "verdict", !strcmp(m->verdict.verdict, "INVALID"), "%s: %s",
               m->verdict.verdict, m->verdict.why);
    return OK;
}

void lab_free(struct session *s)
{
    for (uint32_t i = 0; i < s->nexperiments; i++) free(s->experiments[i].pairs);
    free(s->experiments);
}
