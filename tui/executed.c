/* The request for executed counts: the row under the cursor, by what names it in the engine, or
 * all. */
#include "tui/app.h"

#include <stdio.h>

/* "nb_kd8 ffn_gate prefill 14336 512 4096" and what to call it; false: no kernel has run yet. */
static bool name_row(struct app *a, char *arg, size_t size, char *title, size_t title_size)
{
    app_follow_row(a); /* a flip may have come since the last draw */
    const struct row *r = app_row(a);
    const struct kernel *k = app_kernel(a);
    if (!r || !k) return false;
    snprintf(arg, size, "%s %s %s %u %u %u", k->def.name, r->def.role, r->def.phase, r->def.m,
             r->def.n, r->def.k);
    snprintf(title, title_size, "%s (%s)", k->def.name, r->def.role);
    return true;
}

void executed_ask(struct app *a, bool all)
{
    char arg[200] = "all", title[120] = "every kernel";
    if (!all && !name_row(a, arg, sizeof arg, title, sizeof title))
        app_say(a, ROLE_DIM, "no kernel has run yet");
    else if (a->feed->replay)
        app_say(a, ROLE_WARN, "a recording can't be measured again");
    else if (app_command_arg(a, "sassexec", arg) != OK)
        app_say(a, ROLE_WARN, "%s", err_msg());
    else
        app_say(a, ROLE_TEXT, "executed instructions of %s are counted in the next round", title);
}
