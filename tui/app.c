/* The application's core: feeds, requests, drawing order; see app.h. Requests that a view or a pane
 * doesn't take are served here, by one switch over keys.def's rows. */
#include "tui/app.h"

#include "base/clock.h"
#include "tui/lab_job.h"
#include "tui/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PULL_MAX = 8192 };
static const uint64_t MESSAGE_NS = 8000000000ull, SEEK_NS = 5000000000ull;

const struct session *app_session(const struct app *a)
{
    return &a->feed->session;
}

const struct row *app_row(const struct app *a)
{
    const struct session *s = app_session(a);
    return a->row < s->nrows ? &s->rows[a->row] : NULL;
}

const struct kernel *app_kernel(const struct app *a)
{
    const struct row *r = app_row(a);
    const struct session *s = app_session(a);
    return r && r->def.kernel < s->nkernels ? &s->kernels[r->def.kernel] : NULL;
}

const struct kernel *app_kernel_before(const struct app *a)
{
    const struct session *s = app_session(a);
    const struct row *r = app_row(a);
    uint32_t i = r ? session_counterpart(s, r, r->def.generation) : TABLE_NONE;
    return i == TABLE_NONE ? NULL : &s->kernels[s->rows[i].def.kernel];
}

void app_say(struct app *a, enum role role, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->message, sizeof a->message, fmt, ap);
    va_end(ap);
    a->message_role = role;
    a->message_until = a->now_ns ? a->now_ns + MESSAGE_NS : 0;
    a->dirty = true;
}

static void make_id(char *id, size_t size)
{
    time_t t = (time_t)(clock_wall_ns() / 1000000000u);
    struct tm tm;
    char day[32];
    gmtime_r(&t, &tm);
    strftime(day, sizeof day, "%Y%m%d-%H%M%S", &tm);
    snprintf(id, size, "%s-%04x", day,
             (unsigned)(clock_mono_ns() / 1000 ^ (unsigned)getpid()) & 0xffff);
}

enum status app_init(struct app *a, const struct run_options *o)
{
    *a = (struct app){.options = o, .row = TABLE_NONE, .dirty = true};
    make_id(a->id, sizeof a->id);
    enum status st = session_init(&a->live.session);
    if (st != OK) return st;
    if ((st = canvas_resize(&a->canvas, 80, 24)) != OK) return st;
    a->feed = &a->live;
    for (int v = 0; v < VIEWS; v++) {
        a->view_data[v] = calloc(1, views[v]->size ? views[v]->size : 1);
        if (!a->view_data[v]) return err_set(ERR_NOMEM, "no memory for the views");
        if (views[v]->init) views[v]->init(a->view_data[v]);
    }
    return OK;
}

static void close_feed(struct feed *f)
{
    if (f->src) f->src->ops->close(f->src);
    f->src = NULL;
    session_free(&f->session);
}

void app_free(struct app *a)
{
    lab_job_end(a);
    record_stop(a);
    for (int v = 0; v < VIEWS; v++) {
        if (a->view_data[v] && views[v]->done) views[v]->done(a->view_data[v]);
        free(a->view_data[v]);
    }
    close_feed(&a->live);
    if (a->recorded.src) close_feed(&a->recorded);
    buf_free(&a->backlog);
    canvas_free(&a->canvas);
}

enum status app_open_engine(struct app *a, uint64_t now_ns)
{
    a->epoch_ns = now_ns;
    enum status st =
        engine_source_open(a->options, &a->live.session, a->epoch_ns, a->id, &a->live.src);
    if (st == OK && a->options->record) st = record_start(a, a->options->record);
    return st;
}

void app_close_recording(struct app *a)
{
    if (a->recorded.src) close_feed(&a->recorded);
    a->recorded = (struct feed){.replay = true};
    a->feed = &a->live;
    a->row = TABLE_NONE;
}

enum status app_open_recording(struct app *a, const char *path)
{
    struct frame_source *src;
    enum status st = replay_source_open(path, &src);
    if (st != OK) return st;
    app_close_recording(a);
    if ((st = session_init(&a->recorded.session)) != OK) {
        src->ops->close(src);
        return st;
    }
    const char *slash = strrchr(path, '/');
    a->recorded.src = src;
    snprintf(a->recorded.label, sizeof a->recorded.label, "%s", slash ? slash + 1 : path);
    a->feed = &a->recorded;
    a->row = TABLE_NONE;
    a->flip.state = FLIP_NONE;
    a->redraw = true;
    if (replay_is_lab(src)) app_show_view(a, VIEW_LAB);
    if (replay_damage(src)) app_say(a, ROLE_WARN, "%s", replay_damage(src));
    return app_pull(a, a->now_ns);
}

/* What a frame means beyond the session: words in the status line, answers to flips. */
static void notice(struct app *a, const struct frame *f)
{
    struct msg_reply reply;
    struct msg_fault fault;
    struct msg_generation g;

    if (f->type == FRAME_REPLY && proto_decode(f, &reply, sizeof reply) == OK) {
        flip_answered(a, &reply);
        bool asked = !a->feed->replay; /* by the one who reads it: knows to what it answers */
        if (reply.text[0])
            app_say(a, reply.ok ? ROLE_TEXT : ROLE_WARN, "%s%s%s", asked ? "" : reply.verb,
                    asked ? "" : ": ", reply.text);
    } else if (f->type == FRAME_FAULT && proto_decode(f, &fault, sizeof fault) == OK) {
        a->flip.state = FLIP_NONE;
        app_say(a, ROLE_BAD, "%s: %s", fault.kind, fault.text);
    } else if (f->type == FRAME_GENERATION && proto_decode(f, &g, sizeof g) == OK) {
        a->flip.state = FLIP_NONE;
        char kd[24] = "";
        if (g.kd) snprintf(kd, sizeof kd, " KD %u", g.kd);
        app_say(a, ROLE_GOOD, "generation %u (%s): %s %s%s, parity %s", g.generation, g.reason,
                g.family, g.variant, kd, g.parity);
    }
}

/* A recording that is moved in passes over words that were said long before where it stops. */
static bool is_past(const struct feed *f, const struct frame *frame)
{
    return f->replay && replay_place(f->src, frame->t_ns) + MESSAGE_NS < replay_position(f->src);
}

static enum status pull_feed(struct app *a, struct feed *f, uint64_t now_ns)
{
    struct raw_frame raw;

    for (int i = 0; f->src && !f->ended && (f->replay || i < PULL_MAX); i++) {
        enum status st = f->src->ops->next(f->src, now_ns, &raw);
        if (st == ERR_END) f->ended = a->dirty = true;
        if (st == ERR_AGAIN || st == ERR_END) break;
        if (st != OK) return st;
        if (raw.bytes) record_frame(a, &raw);
        if ((st = session_apply(&f->session, &raw.frame)) != OK) return st;
        if (f == a->feed) {
            if (!is_past(f, &raw.frame)) notice(a, &raw.frame);
            a->dirty = true;
        }
    }
    return OK;
}

enum status app_pull(struct app *a, uint64_t now_ns)
{
    a->now_ns = now_ns;
    if (a->message[0] && a->message_until && now_ns >= a->message_until) {
        a->message[0] = 0;
        a->dirty = true;
    }
    enum status st = pull_feed(a, &a->live, now_ns);
    if (st == OK && a->recorded.src) st = pull_feed(a, &a->recorded, now_ns);
    if (st == OK) st = lab_job_pull(a);
    record_tick(a);
    return st;
}

void app_seek(struct app *a, uint64_t position)
{
    struct feed *f = &a->recorded;
    if (!f->src) return;
    a->message[0] = 0;
    if (replay_seek(f->src, position)) {
        session_free(&f->session);
        if (session_init(&f->session) != OK) a->quit = true;
    }
    app_pull(a, a->now_ns);
    a->dirty = true;
}

/* ---- requests ---- */

void app_show_view(struct app *a, enum view_id v)
{
    if (v == a->view) return;
    if (a->view < VIEWS_NUMBERED) a->back = a->view;
    a->view = v;
    a->typing = false;
}

static struct pane *current_pane(struct app *a)
{
    const struct view_ops *v = views[a->view];
    return v->pane ? v->pane(a->view_data[a->view]) : NULL;
}

static void go_back(struct app *a)
{
    struct pane *p = current_pane(a);
    if (p && p->filter[0])
        p->filter[0] = 0;
    else if (a->view >= VIEWS_NUMBERED)
        app_show_view(a, a->back);
    else if (a->view != VIEW_OVERVIEW)
        app_show_view(a, VIEW_OVERVIEW);
    else if (a->feed->replay && a->live.src) {
        app_close_recording(a);
        app_say(a, ROLE_TEXT, "back to the live session");
    }
}

static void pause_request(struct app *a)
{
    if (a->feed->replay) {
        if (!replay_playing(a->feed->src) &&
            replay_position(a->feed->src) >= replay_duration(a->feed->src))
            app_say(a, ROLE_TEXT, "the end of the recording; [ goes back");
        else
            replay_play(a->feed->src, !replay_playing(a->feed->src));
        return;
    }
    const char *verb = a->live.session.paused ? "resume" : "pause";
    if (app_command(a, verb, "", "", 0, false) != OK) app_say(a, ROLE_WARN, "%s", err_msg());
}

static void replay_request(struct app *a, enum request r)
{
    struct frame_source *src = a->recorded.src;
    if (!a->feed->replay) {
        app_say(a, ROLE_TEXT, "that key moves in a recording; R opens one");
        return;
    }
    uint64_t at = replay_position(src);
    switch (r) {
    case REQ_SEEK_BACK:
        app_seek(a, at > SEEK_NS ? at - SEEK_NS : 0);
        break;
    case REQ_SEEK_ON:
        app_seek(a, at + SEEK_NS);
        break;
    case REQ_FLIP_BACK:
        app_seek(a, replay_generation(src, -1));
        break;
    case REQ_FLIP_ON:
        app_seek(a, replay_generation(src, 1));
        break;
    case REQ_STEP:
        replay_play(src, false);
        app_seek(a, replay_round(src, 1));
        break;
    case REQ_SLOWER:
        replay_set_speed(src, replay_speed(src) / 2);
        break;
    case REQ_FASTER:
        replay_set_speed(src, replay_speed(src) * 2);
        break;
    default:
        break;
    }
}

static void engine_request(struct app *a, const char *verb, const char *words)
{
    if (a->feed->replay)
        app_say(a, ROLE_WARN, "a recording can't be measured again");
    else if (app_command(a, verb, "", "", 0, false) != OK)
        app_say(a, ROLE_WARN, "%s", err_msg());
    else
        app_say(a, ROLE_TEXT, "%s", words);
}

static void quit_request(struct app *a)
{
    if (a->recorder) record_stop(a);
    a->quit = true;
}

/* The view that a key opens, by its digit or by a key of its own; VIEWS: none. */
static enum view_id opened(enum request r)
{
    static const struct {
        enum request request;
        enum view_id view;
    } own[] = {
        {REQ_SASS, VIEW_CENSUS},         {REQ_LISTING, VIEW_LISTING}, {REQ_DIFF, VIEW_DIFF},
        {REQ_FRAGMENTS, VIEW_FRAGMENTS}, {REQ_RULES, VIEW_RULES},     {REQ_TIMELINE, VIEW_TIMELINE},
        {REQ_SURPLUS, VIEW_SURPLUS},     {REQ_LAB, VIEW_LAB},         {REQ_OPEN, VIEW_PICK}};
    if (r >= REQ_VIEW_1 && r <= REQ_VIEW_8) return (enum view_id)(r - REQ_VIEW_1);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i].request == r) return own[i].view;
    return VIEWS;
}

void app_request(struct app *a, enum request r)
{
    const struct view_ops *v = views[a->view];
    struct pane *p = current_pane(a);

    a->dirty = true;
    if (v->request && v->request(a, a->view_data[a->view], r)) return;
    if (p && pane_request(p, r)) return;
    if (opened(r) < VIEWS) {
        app_show_view(a, opened(r));
        return;
    }
    switch (r) {
    case REQ_VARIANT_NEXT:
    case REQ_VARIANT_PREV:
    case REQ_KD_NEXT:
    case REQ_KD_PREV:
    case REQ_FORCE:
        flip_request(a, r);
        break;
    case REQ_AUTO:
        flip_auto(a);
        break;
    case REQ_BLOCKS:
        flip_blocks(a);
        break;
    case REQ_PC_WINDOW:
        engine_request(a, "pc", "a PC sampling window was asked for");
        break;
    case REQ_DUTY:
        duty_request(a);
        break;
    case REQ_CEILINGS:
        engine_request(a, "ceilings", "the ceilings are measured at the next round");
        break;
    case REQ_EXACT:
        app_exact(a);
        break;
    case REQ_EXACT_NOW:
        app_exact_now(a);
        break;
    case REQ_EXACT_SET:
        app_exact_set(a);
        break;
    case REQ_EXECUTED:
    case REQ_EXECUTED_ALL:
        executed_ask(a, r == REQ_EXECUTED_ALL);
        break;
    case REQ_PAUSE:
        pause_request(a);
        break;
    case REQ_EXPORT:
        export_reports(a);
        break;
    case REQ_RECORD:
        if (a->recorder)
            record_stop(a);
        else if (record_start(a, NULL) != OK)
            app_say(a, ROLE_BAD, "%s", err_msg());
        break;
    case REQ_ENTER:
        if (a->view != VIEW_DETAIL) app_show_view(a, VIEW_DETAIL);
        break;
    case REQ_NEXT_VIEW:
        app_show_view(a, a->view + 1 < VIEWS_NUMBERED ? a->view + 1 : VIEW_OVERVIEW);
        break;
    case REQ_PREV_VIEW:
        app_show_view(a, a->view == VIEW_OVERVIEW || a->view >= VIEWS_NUMBERED ? VIEWS_NUMBERED - 1
                                                                               : a->view - 1);
        break;
    case REQ_BACK:
        go_back(a);
        break;
    case REQ_FILTER:
        a->typing = p != NULL;
        break;
    case REQ_SEEK_BACK:
    case REQ_SEEK_ON:
    case REQ_FLIP_BACK:
    case REQ_FLIP_ON:
    case REQ_STEP:
    case REQ_SLOWER:
    case REQ_FASTER:
        replay_request(a, r);
        break;
    case REQ_REDRAW:
        a->redraw = true;
        break;
    case REQ_HELP:
        app_show_view(a, a->view == VIEW_HELP ? a->back : VIEW_HELP);
        break;
    case REQ_QUIT:
        quit_request(a);
        break;
    default:
        break;
    }
}

static void type_filter(struct app *a, int key)
{
    struct pane *p = current_pane(a);
    size_t n = p ? strlen(p->filter) : 0;

    if (!p || key == KEY_RETURN || key == KEY_ESCAPE) {
        if (p && key == KEY_ESCAPE) p->filter[0] = 0;
        a->typing = false;
    } else if (key == KEY_RUBOUT) {
        if (n) p->filter[n - 1] = 0;
    } else if (key >= ' ' && key < 127 && n + 1 < sizeof p->filter) {
        p->filter[n] = (char)key;
        p->filter[n + 1] = 0;
    }
    a->dirty = true;
}

void app_key(struct app *a, int key)
{
    if (a->typing) {
        type_filter(a, key);
        return;
    }
    const struct view_ops *v = views[a->view];
    enum request r = key_request(key);
    a->message[0] = 0;
    a->dirty = true;
    if (v->key && v->key(a, a->view_data[a->view], key)) return;
    if (r != REQ_NONE)
        app_request(a, r);
    else
        app_say(a, ROLE_DIM, "that key does nothing; h lists the keys");
}

void app_draw(struct app *a)
{
    struct area body;
    const struct view_ops *v = views[a->view];

    app_follow_row(a);
    canvas_clear(&a->canvas);
    a->dirty = false;
    if (a->canvas.w < 40 || a->canvas.h < 10) {
        canvas_wrap(&a->canvas, (struct area){0, 0, a->canvas.w, a->canvas.h}, ROLE_WARN,
                    "sasstop needs 40 x 10; make the window larger (q quits)");
        return;
    }
    /* The chrome explains the pane's cell: tables first. */
    if (v->update) v->update(a, a->view_data[a->view]);
    chrome_draw(a, &body);
    v->draw(a, a->view_data[a->view], body);
}
