/* The duty cycle of the counters, as far as a key sets it. What holds is what the engine told last.
 */
#include "tui/app.h"

#include <stdio.h>

void duty_request(struct app *a)
{
    static const double rests[] = {0.25, 1, 4, 15, 60};
    const struct session *s = app_session(a);
    double now = (double)s->duty.rest_ns / 1e9, next = rests[0];
    char arg[24];

    if (a->feed->replay) {
        app_say(a, ROLE_WARN, "a recording can't be measured again");
        return;
    }
    if (!s->has_duty) {
        app_say(a, ROLE_WARN, "no counter takes turns here: there is no rest to set");
        return;
    }
    for (size_t i = 0; i < sizeof rests / sizeof *rests && next <= now; i++)
        if (rests[i] > now) next = rests[i];
    snprintf(arg, sizeof arg, "%g", next);
    if (app_command_arg(a, "rest", arg) != OK) app_say(a, ROLE_WARN, "%s", err_msg());
}
