/*
 * Going on with an experiment that was killed: its frames are copied into a new recording, since
 * none is ever written to again, and the pairs that are missing follow.
 *
 * Invariant: only the same experiment goes on. What was frozen, and the code of both sides, must be
 * what it was; a difference is refused and named.
 */
#include "tui/lab_run.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

static enum status differs(const char *what, const char *was, const char *is)
{
    return err_set(ERR_USAGE,
                   "this is another experiment: %s was '%.120s' and is '%.120s'; start it without "
                   "--resume",
                   what, was, is);
}

static enum status same_experiment(const struct msg_experiment *was,
                                   const struct msg_experiment *is)
{
    const struct {
        const char *what, *was, *is;
    } texts[] = {{"A", was->a, is->a},
                 {"B", was->b, is->b},
                 {"the third kernel", was->control, is->control},
                 {"the workload", was->workload, is->workload},
                 {"the shape", was->shape, is->shape},
                 {"the hypothesis", was->hypothesis, is->hypothesis},
                 {"the claim", was->claim, is->claim},
                 {"the bar", was->bar, is->bar}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].was, texts[i].is) != 0)
            return differs(texts[i].what, texts[i].was, texts[i].is);
    if (was->code_a != is->code_a || was->code_b != is->code_b)
        return err_set(ERR_USAGE, "the code of %s was built anew since: its pairs don't mix",
                       was->code_a != is->code_a ? "A" : "B");
    if (was->pairs != is->pairs || was->precision != is->precision || was->seconds != is->seconds)
        return err_set(ERR_USAGE, "the rule of stopping was another: it was frozen with the bar");
    return OK;
}

static enum status fold(const char *path, struct session *s)
{
    struct reader *rd;
    struct frame f;
    enum status st = session_init(s);
    if (st == OK) st = reader_open(path, &rd);
    if (st != OK) return st;
    while ((st = reader_next(rd, &f)) == OK)
        if ((st = session_apply(s, &f)) != OK) break;
    reader_close(rd);
    return st == ERR_END ? OK : st;
}

enum status lab_resume_check(struct lab_run *r, const char *path)
{
    struct session old;
    enum status st = fold(path, &old);
    const struct lab_experiment *x = st == OK && old.nexperiments ? &old.experiments[0] : NULL;
    if (st == OK && !x)
        st = err_set(ERR_USAGE, "%s holds no experiment", path);
    else if (st == OK && x->closed)
        st = err_set(ERR_USAGE, "the experiment of %s has its verdict: %s", path,
                     x->verdict.verdict);
    else if (st == OK && !x->npairs)
        st = err_set(ERR_USAGE, "%s has no finished pair: start the experiment anew", path);
    else if (st == OK)
        st = same_experiment(&x->def, &r->def);
    if (st == OK) {
        r->epoch_ns = clock_mono_ns() - old.t_ns;
        r->npairs = x->pairs[x->npairs - 1].pair;
        r->rng += x->npairs;
        r->def = x->def;
    }
    session_free(&old);
    return st;
}

enum status lab_resume_copy(struct lab_run *r, const char *path)
{
    struct reader *rd;
    struct frame f;
    struct buf b = {0};
    enum status st = reader_open(path, &rd);
    if (st != OK) return st;
    while ((st = reader_next(rd, &f)) == OK) {
        buf_reset(&b);
        if ((st = proto_copy(&b, &f)) == OK) st = lab_emit_bytes(r, &b);
        if (st != OK) break;
    }
    buf_free(&b);
    reader_close(rd);
    return st == ERR_END ? OK : st;
}
