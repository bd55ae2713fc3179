/* How often counters take their turn: set at the start, on a command, told in DUTY frames. */
#include "engine/collect_priv.h"

#include <stdio.h>

void collect_tell_duty(struct collect *c)
{
    struct msg_duty m = {.rest_ns = c->duty.rest_ns,
                         .windows = c->duty.pm_windows,
                         .window_ns = COLLECT_WINDOW_NS,
                         .timed_rounds = c->duty.timed_rounds};
    if (c->turns) emit_send(c->e->emit, FRAME_DUTY, &m);
}

enum status collect_rest(struct collect *c, const char *seconds, char *text, size_t size)
{
    uint64_t ns;
    enum status st = options_rest(seconds, &ns);
    if (st != OK) return st;
    if (!c->turns)
        return err_set(ERR_UNAVAILABLE, "no counter takes turns here: there is no rest to set");
    c->duty.rest_ns = ns;
    turns_set_rest(c->turns, ns);
    collect_tell_duty(c);
    snprintf(text, size, "counters rest for %g s between their turns", (double)ns * 1e-9);
    return OK;
}
