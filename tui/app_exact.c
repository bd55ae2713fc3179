/* Exact counters on a key: which sets, of everything or of one layer's products at once. */
#include "cupti/metrics.h"
#include "tui/app.h"

#include <stdio.h>
#include <string.h>

/* "" for the live set alone, which every pass counts. */
static const char *exact_set(const struct app *a)
{
    return a->exact_set ? metric_set_name(a->exact_set) : "";
}

static void range_request(struct app *a, const char *arg, const char *what, const char *set)
{
    if (a->feed->replay)
        app_say(a, ROLE_WARN, "a recording can't be measured again");
    else if (app_command_arg(a, "range", arg) != OK)
        app_say(a, ROLE_WARN, "%s", err_msg());
    else
        app_say(a, ROLE_TEXT, "%s: live%s%s", what, *set ? " and " : "", set);
}

void app_exact(struct app *a)
{
    range_request(a, exact_set(a), "an exact counting pass was asked for", exact_set(a));
}

/* Few launches, and no waiting for timed rounds: SpeedOfLight, unless y chose a set. */
void app_exact_now(struct app *a)
{
    char arg[32];
    const char *set = a->exact_set ? exact_set(a) : "sol";
    snprintf(arg, sizeof arg, "products:%s", set);
    range_request(a, arg, "one layer's products are counted", set);
}

/* The passes that it takes are the chip's: the engine says them when x is pressed. */
void app_exact_set(struct app *a)
{
    if (a->feed->replay || !strcmp(app_session(a)->hello.backend, "cpu")) {
        app_say(a, ROLE_WARN,
                a->feed->replay ? "a recording can't be measured again"
                                : "the CPU engine has no counters to choose from");
        return;
    }
    a->exact_set = (a->exact_set + 1) % METRIC_SETS;
    unsigned sets = METRIC_SET_LIVE | metric_sets_parse(metric_set_name(a->exact_set)), n = 0;
    for (size_t i = 0; i < metric_count(); i++)
        n += metric_at(i)->sets & sets && metric_at(i)->range[0];
    app_say(a, ROLE_TEXT, "x counts live%s%s: %u metrics", a->exact_set ? " and " : "",
            exact_set(a), n);
}
