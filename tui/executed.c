/* The request for executed counts: the row under the cursor, by what names it in the engine. */
#include "tui/app.h"

#include <stdio.h>

void executed_ask(struct app *a)
{
    app_follow_row(a); /* a flip may have come since the last draw */
    const struct row *r = app_row(a);
    const struct kernel *k = app_kernel(a);
    char arg[200];
    if (!r || !k) {
        app_say(a, ROLE_DIM, "no kernel has run yet");
        return;
    }
    snprintf(arg, sizeof arg, "%s %s %s %u %u %u", k->def.name, r->def.role, r->def.phase, r->def.m,
             r->def.n, r->def.k);
    if (a->feed->replay)
        app_say(a, ROLE_WARN, "a recording can't be measured again");
    else if (app_command_arg(a, "sassexec", arg) != OK)
        app_say(a, ROLE_WARN, "%s", err_msg());
    else
        app_say(a, ROLE_TEXT, "executed instructions of %s (%s) are counted in the next round",
                k->def.name, r->def.role);
}
