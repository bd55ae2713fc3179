/* Text: what the model writes, with the last token's top-2 gap. */
#include "tui/view.h"

#include <stdio.h>

static void text_draw(struct app *a, void *data, struct area area)
{
    const struct session *s = app_session(a);
    struct canvas *c = &a->canvas;
    char title[120];
    (void)data;

    int n = snprintf(title, sizeof title, "generated text%s",
                     session_random_weights(s) ? " (random weights)" : "");
    if (s->text_len && s->last_gap >= 0)
        snprintf(title + n, sizeof title - (size_t)n, ": position %u, token %u, top-2 gap %.3f",
                 s->last_pos, s->last_token, s->last_gap);
    canvas_rule(c, area.x, area.y, area.w, title);
    struct area in = {area.x + 1, area.y + 1, area.w - 2, area.h - 1};
    if (s->text_len)
        canvas_tail(c, in, ROLE_TEXT, s->text);
    else
        canvas_wrap(c, in, ROLE_DIM, "no token has been generated yet");
}

static bool text_request(struct app *a, void *data, enum request r)
{
    (void)data;
    if (r != REQ_ENTER) return false;
    app_say(a, ROLE_TEXT, "a text has nothing to open");
    return true;
}

const struct view_ops text_ops = {
    .name = "text",
    .title = "generated text",
    .draw = text_draw,
    .request = text_request,
};
