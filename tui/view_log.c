/* Log: events of the session, the newest last; the cursor follows until it is moved. The selected
 * event is written out below, since its text is often longer than its row. */
#include "tui/view.h"

#include <stdio.h>
#include <string.h>

static void log_init(void *data)
{
    pane_init(data, "events");
    ((struct pane *)data)->follow = true;
}

static void log_done(void *data)
{
    pane_free(data);
}

static struct pane *log_pane(void *data)
{
    return data;
}

static void log_update(struct app *a, void *data)
{
    pane_update(data, app_session(a));
}

static const struct event *selected(const struct session *s, const struct pane *p)
{
    if (p->selected == TABLE_NONE || p->selected >= s->nevents) return NULL;
    return &s->events[(s->first_event + p->selected) % MAX_EVENTS];
}

static void log_draw(struct app *a, void *data, struct area area)
{
    struct pane *p = data;
    const struct event *e = selected(app_session(a), p);
    int below = area.h >= 10 && e && text_columns(e->text) > area.w / 2 ? 3 : 0;

    pane_draw(p, &a->canvas, (struct area){area.x, area.y, area.w, area.h - below}, true);
    if (below)
        canvas_wrap(&a->canvas, (struct area){1, area.y + area.h - below, area.w - 2, below},
                    e->level == 2 ? ROLE_BAD
                    : e->level    ? ROLE_WARN
                                  : ROLE_TEXT,
                    e->text);
}

/* In a recording: to the event's time. */
static void go_to(struct app *a, const struct pane *p)
{
    const struct event *e = selected(app_session(a), p);
    if (!a->feed->replay)
        app_say(a, ROLE_TEXT, "in a recording Enter goes to the event's time");
    else if (e) {
        double s = (double)e->t_ns / 1e9;
        app_seek(a, replay_place(a->feed->src, e->t_ns));
        app_say(a, ROLE_TEXT, "at the event's time, %.3f s", s);
    }
}

static bool log_request(struct app *a, void *data, enum request r)
{
    struct pane *p = data;
    if (r == REQ_ENTER) {
        go_to(a, p);
        return true;
    }
    if (r != REQ_END) return false;
    pane_request(p, r);
    p->follow = true;
    return true;
}

const struct view_ops log_ops = {
    .name = "log",
    .title = "events: flips, faults, sources, exports",
    .size = sizeof(struct pane),
    .init = log_init,
    .done = log_done,
    .update = log_update,
    .draw = log_draw,
    .request = log_request,
    .pane = log_pane,
};
