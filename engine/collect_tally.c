/*
 * Tallies: what each source has found, lost and cost, summed over its windows and told as TALLY
 * frames (running totals) after every counted round that changed one.
 *
 * Windows of pm come from the decode thread: the sums are kept under the lock of struct collect;
 * they are sent by the launching thread alone.
 */
#include "engine/collect_priv.h"

#include <stdio.h>
#include <string.h>

void tally_window(struct collect *c, const struct counter_window *w)
{
    pthread_mutex_lock(&c->lock);
    struct msg_tally *t = &c->tallies[w->role];
    t->windows++;
    t->items += w->items;
    t->dropped += w->dropped;
    t->invalid += w->invalid;
    t->other += w->other;
    t->overflows += w->overflow;
    t->decode_ns += w->decode_ns;
    t->overheads += w->overheads;
    t->overhead_ns += w->overhead_ns;
    if (w->role == COUNTER_RANGE && !w->given_up && w->passes) {
        metric_sets_text(w->sets, t->sets);
        t->metrics = w->metrics;
        t->passes = w->passes;
        t->pass_ns = w->end_ns > w->start_ns ? w->end_ns - w->start_ns : 0;
        t->output = 0; /* until its work was run uncounted */
        t->output_hash = 0;
    }
    c->tally_news |= 1u << w->role;
    pthread_mutex_unlock(&c->lock);
}

void collect_output(struct collect *c, bool equal, uint64_t hash)
{
    if (c->now.kind != TURNS_RANGE && c->now.kind != TURNS_EXEC) return;
    enum counter_role role = c->now.kind == TURNS_EXEC ? COUNTER_EXEC : COUNTER_RANGE;
    pthread_mutex_lock(&c->lock);
    c->tallies[role].output = equal ? 1 : 2;
    c->tallies[role].output_hash = hash;
    c->tally_news |= 1u << role;
    pthread_mutex_unlock(&c->lock);
    tally_send(c);
}

/* What switching it has cost the launching thread. A role that is not listed has no such cost. */
static uint64_t switch_ns(const struct collect *c, enum counter_role role)
{
    static const struct {
        enum counter_role role;
        enum turns_action from, to;
    } actions[] = {
        {COUNTER_PM, TURNS_PM_ARM, TURNS_PM_DISARM},
        {COUNTER_PC, TURNS_PC_ARM, TURNS_PC_DISARM},
        {COUNTER_RANGE, TURNS_RANGE_ARM, TURNS_RANGE_DISARM},
        {COUNTER_EXEC, TURNS_EXEC_ARM, TURNS_EXEC_DISARM},
        {COUNTER_ACTIVITY, TURNS_ACTIVITY_START, TURNS_ACTIVITY_STOP},
        {COUNTER_EVENTS, TURNS_ACTIVITY_START, TURNS_ACTIVITY_STOP},
    };
    uint64_t sum = 0;
    if (!c->turns || c->synthetic) return 0; /* a made-up source has no cost worth telling */
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        for (int a = (int)actions[i].from; role == actions[i].role && a <= (int)actions[i].to; a++)
            sum += turns_cost(c->turns, (enum turns_action)a).sum_ns;
    return sum;
}

void tally_send(struct collect *c)
{
    for (int r = 0; r < COUNTER_ROLES; r++) {
        pthread_mutex_lock(&c->lock);
        bool news = c->tally_news >> r & 1;
        struct msg_tally m = c->tallies[r];
        c->tally_news &= ~(1u << r);
        pthread_mutex_unlock(&c->lock);
        if (!news) continue;
        snprintf(m.name, sizeof m.name, "%s", counter_role_name((enum counter_role)r));
        m.switch_ns = switch_ns(c, (enum counter_role)r);
        if (c->synthetic) m.decode_ns = m.pass_ns = 0; /* host time: no two runs agree on it */
        emit_send(c->e->emit, FRAME_TALLY, &m);
    }
}
