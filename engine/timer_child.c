/* See timer_child.h. To add a command: a function and a row in VERBS, its sender in timer_sync.c.
 */
#include "engine/timer_child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WAKE_NS = 500000000 };

enum status timer_child_bind(uint32_t parent)
{
    /* The order matters: a parent that ends between the two is seen by the second. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == (pid_t)parent) return OK;
    return err_set(ERR_UNAVAILABLE, "engine %u, whose rounds were to be timed, is gone", parent);
}

static void answer(struct engine *e, const char *verb, enum status st)
{
    struct msg_reply r = {.ok = st == OK};
    snprintf(r.verb, sizeof r.verb, "%s", verb);
    if (st != OK) snprintf(r.text, sizeof r.text, "%.299s", st == ERR_AGAIN ? "" : err_msg());
    emit_send(e->emit, FRAME_REPLY, &r);
}

static bool leaving(struct engine *e)
{
    return commands_stopping(e->cmds) || emit_broken(e->emit);
}

/* The next command; false: it is time to leave. */
static bool next(struct engine *e, struct msg_command *c)
{
    while (!leaving(e)) {
        if (commands_take(e->cmds, c)) return true;
        commands_wait(e->cmds, WAKE_NS);
    }
    return false;
}

enum status timer_child_wait(struct engine *e)
{
    struct msg_command c;
    while (next(e, &c)) {
        if (!strcmp(c.verb, "load")) return OK;
        answer(e, c.verb, err_set(ERR_USAGE, "nothing is loaded yet"));
    }
    return err_set(ERR_FAILED, "asked to leave before anything was loaded");
}

static enum status do_select(struct engine *e, const struct msg_command *c)
{
    snprintf(e->family, sizeof e->family, "%s", c->family);
    return e->bo->select(e->b, c->family, c->variant, c->kd);
}

static enum status do_choose(struct engine *e, const struct msg_command *c)
{
    uint32_t mnk[3];
    if (!e->bo->choose) return err_set(ERR_UNAVAILABLE, "there is nothing to choose from");
    if (!*c->arg) return e->bo->choose(e->b, c->family, NULL, "", 0);
    if (sscanf(c->arg, "%u,%u,%u", &mnk[0], &mnk[1], &mnk[2]) != 3)
        return err_set(ERR_USAGE, "\"%s\" is no shape", c->arg);
    return e->bo->choose(e->b, c->family, mnk, c->variant, c->kd);
}

static enum status do_blocks(struct engine *e, const struct msg_command *c)
{
    char text[200];
    if (!e->bo->force_blocks) return err_set(ERR_UNAVAILABLE, "no blocks to force here");
    return e->bo->force_blocks(e->b, c->kd, text, sizeof text);
}

static enum status do_prompt(struct engine *e, const struct msg_command *c)
{
    return engine_prompt(e, c->arg);
}

static enum status do_stop(struct engine *e, const struct msg_command *c)
{
    (void)e;
    (void)c;
    return OK; /* that it came has ended the round */
}

static const struct {
    const char *verb;
    enum status (*run)(struct engine *e, const struct msg_command *c);
} VERBS[] = {{"select", do_select},
             {"choose", do_choose},
             {"blocks", do_blocks},
             {"prompt", do_prompt},
             {"stop", do_stop}};
enum { NVERBS = sizeof VERBS / sizeof VERBS[0] };

/* A token that enters no time: the GPU has served the engine's context since the last round here,
 * and comes back to this one with the first launch. */
static enum status warm(struct engine *e)
{
    struct step_result r;
    uint32_t token = e->work.tokens[0];
    if (!e->decode.ops || getenv("SASSTOP_TIMER_COLD")) return OK; /* tests/gpu/timer.sh asks */
    enum status st =
        e->bo->run(e->b, e->decode.ops, e->decode.nops, &token, 1, 0, true, TIMING_NONE, &r);
    return st == OK ? e->bo->sync(e->b) : st;
}

/* Told with its figures, or not at all when a command has come meanwhile. */
static enum status one_round(struct engine *e)
{
    enum status st = warm(e);
    e->hash_generation = 0; /* the parent compares: it knows what was flipped */
    if (st == OK) st = rounds_run(e);
    if (st == OK || st == ERR_AGAIN) answer(e, "round", st);
    return st == ERR_AGAIN ? OK : st;
}

enum status timer_child_run(struct engine *e)
{
    struct msg_command c;
    answer(e, "ready", OK);
    while (next(e, &c)) {
        int i = 0;
        if (!strcmp(c.verb, "round")) {
            enum status st = one_round(e);
            if (st == OK) continue;
            engine_tell_fault(e, st);
            return st;
        }
        while (i < NVERBS && strcmp(VERBS[i].verb, c.verb)) i++;
        answer(e, c.verb, i < NVERBS ? VERBS[i].run(e, &c) : err_set(ERR_USAGE, "no such command"));
    }
    return OK;
}
