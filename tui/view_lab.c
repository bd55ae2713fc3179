/*
 * Lab: experiments of this session, and the form that starts one. The bar comes first: nothing is
 * measured before it stands in the recording.
 *
 * Two states: the list with the chosen experiment below it, and the form. In a field that was just
 * entered the first key typed replaces the text; arrows and backspace edit it. To add a field: a
 * row in `fields` and a use of its text in start().
 */
#include "tui/view.h"

#include "tui/lab_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FIELD_BAR, FIELD_A, FIELD_B, FIELD_HYPOTHESIS, FIELD_CLAIM, FIELDS, FIELD_SIZE = 160 };

static const struct {
    const char *name, *help;
} fields[FIELDS] = {
    {"bar", "what B must gain: >= +4% prefill, >= 1% decode, >= 2% kernel, >= -0.5% (no loss)"},
    {"A", "the incumbent, VARIANT:KD"},
    {"B", "the challenger, VARIANT:KD"},
    {"hypothesis", "one sentence: why B should gain"},
    {"claim", "about the machine code: LDS.32 in loop 32 -> 16, schedule only, none"},
};

struct lab_view {
    struct pane pane;
    bool form;
    unsigned at;
    bool whole;   /* the field's text is chosen whole: what is typed replaces it */
    size_t caret; /* in the field's text */
    char text[FIELDS][FIELD_SIZE];
};

static void lab_init(void *data)
{
    struct lab_view *v = data;
    pane_init(&v->pane, "experiments");
    v->pane.follow = true;
}

static void lab_done(void *data)
{
    pane_free(&((struct lab_view *)data)->pane);
}

static struct pane *lab_pane(void *data)
{
    struct lab_view *v = data;
    return v->form ? NULL : &v->pane;
}

static void lab_update(struct app *a, void *data)
{
    pane_update(&((struct lab_view *)data)->pane, app_session(a));
}

/* ---- the form ---- */

static void enter_field(struct lab_view *v, unsigned field)
{
    v->at = field % FIELDS;
    v->caret = strlen(v->text[v->at]);
    v->whole = v->caret > 0;
}

static void open_form(struct app *a, struct lab_view *v)
{
    const struct session *s = app_session(a);
    const char *variant = "";
    uint32_t kd = 0;
    if (a->feed->replay) {
        app_say(a, ROLE_WARN, "a recording can't be measured again; Esc goes back to the live one");
        return;
    }
    if (lab_job_runs(a)) {
        app_say(a, ROLE_WARN, "an experiment is running; Esc stops it");
        return;
    }
    v->form = true;
    if (!v->text[FIELD_A][0] && session_selected(s, "q4k_gemm", &variant, &kd))
        snprintf(v->text[FIELD_A], FIELD_SIZE, "%s:%u", variant, kd);
    if (!v->text[FIELD_CLAIM][0]) snprintf(v->text[FIELD_CLAIM], FIELD_SIZE, "none");
    enter_field(v, FIELD_BAR);
}

static void start(struct app *a, struct lab_view *v)
{
    struct lab_wish w = {.bar = v->text[FIELD_BAR],
                         .a = v->text[FIELD_A],
                         .b = v->text[FIELD_B],
                         .hypothesis = v->text[FIELD_HYPOTHESIS],
                         .claim = v->text[FIELD_CLAIM]};
    char metric[16] = "";
    double gain;
    for (unsigned i = 0; i < FIELDS; i++)
        if (!v->text[i][0]) {
            enter_field(v, i);
            app_say(a, ROLE_WARN, "%s is missing: %s", fields[i].name, fields[i].help);
            return;
        }
    if (lab_parse_bar(w.bar, metric, &gain) != OK) {
        enter_field(v, FIELD_BAR);
        v->whole = false; /* what wasn't understood is mended, not typed anew */
        app_say(a, ROLE_WARN, "%s", err_msg());
        return;
    }
    if (lab_job_start(a, &w) != OK) {
        app_say(a, ROLE_BAD, "%s", err_msg());
        return;
    }
    v->form = false;
    app_say(a, ROLE_GOOD, "the bar stands; gates first, then pairs. Esc stops it");
}

static void insert(struct lab_view *v, char c)
{
    char *text = v->text[v->at];
    if (v->whole) text[v->caret = 0] = '\0';
    size_t n = strlen(text);
    if (n + 1 >= FIELD_SIZE) return;
    memmove(text + v->caret + 1, text + v->caret, n - v->caret + 1);
    text[v->caret++] = c;
}

static void edit(struct lab_view *v, int key)
{
    char *text = v->text[v->at];
    size_t n = strlen(text);
    if (key >= ' ' && key < KEY_RUBOUT)
        insert(v, (char)key);
    else if (key == KEY_ARROW_LEFT)
        v->caret -= v->caret > 0;
    else if (key == KEY_ARROW_RIGHT)
        v->caret += v->caret < n;
    else if (key == KEY_GO_HOME)
        v->caret = 0;
    else if (key == KEY_GO_END)
        v->caret = n;
    else if (key == KEY_RUBOUT && v->caret) {
        memmove(text + v->caret - 1, text + v->caret, n - v->caret + 1);
        v->caret--;
    } else
        return;
    v->whole = false;
}

/* In the form every key is text, but those that move. */
static bool lab_key(struct app *a, void *data, int key)
{
    struct lab_view *v = data;
    if (!v->form) return false;
    if (key == '\r') key = KEY_RETURN;
    if (key == KEY_ESCAPE)
        v->form = false;
    else if (key == KEY_RETURN && v->at + 1 == FIELDS)
        start(a, v);
    else if (key == KEY_RETURN || key == KEY_TAB || key == KEY_ARROW_DOWN)
        enter_field(v, v->at + 1);
    else if (key == KEY_ARROW_UP || key == KEY_BACK_TAB)
        enter_field(v, v->at + FIELDS - 1);
    else
        edit(v, key);
    return true;
}

/* The field that is edited: its text, reversed where typing replaces it, and where typing goes. A
 * text longer than the line shows the end that the caret is in. */
static void draw_field(struct canvas *c, const struct lab_view *v, int x, int y, int w)
{
    const char *text = v->text[v->at];
    int at = (int)v->caret, from = at >= w ? at - w + 1 : 0;
    int n = canvas_text(c, x, y, w, ROLE_TEXT | STYLE_BOLD, text + from);
    if (v->whole) canvas_restyle(c, x, y, n, -1, STYLE_REVERSE);
    if (text[at])
        canvas_restyle(c, x + at - from, y, 1, ROLE_ACCENT, STYLE_BOLD | STYLE_UNDER);
    else
        canvas_text(c, x + at - from, y, 1, ROLE_TEXT | STYLE_BOLD, "_");
}

static void draw_form(struct app *a, const struct lab_view *v, struct area r)
{
    struct canvas *c = &a->canvas;
    canvas_rule(c, r.x, r.y, r.w, "new experiment");
    for (unsigned i = 0; i < FIELDS; i++) {
        bool here = i == v->at;
        int y = r.y + 2 + 2 * (int)i;
        if (r.h < 14) y = r.y + 1 + (int)i;
        if (y >= r.y + r.h) break;
        canvas_text(c, 2, y, 11, here ? ROLE_ACCENT | STYLE_BOLD : ROLE_HEAD, fields[i].name);
        if (here)
            draw_field(c, v, 14, y, r.w - 16);
        else
            canvas_text(c, 14, y, r.w - 16, ROLE_TEXT, v->text[i]);
    }
    canvas_text(c, 2, r.y + r.h - 2, r.w - 4, ROLE_DIM, fields[v->at].help);
    canvas_text(c, 2, r.y + r.h - 1, r.w - 4, ROLE_DIM,
                v->whole
                    ? "Typing replaces, arrows edit. Enter: next field, the last starts; Esc leaves"
                    : "Enter: next field, in the last one it starts; Esc leaves the form");
}

/* ---- one experiment ---- */

static enum role verdict_role(const struct lab_experiment *x)
{
    if (!x->closed) return ROLE_ACCENT;
    return !strcmp(x->verdict.verdict, "LAND")    ? ROLE_GOOD
           : !strcmp(x->verdict.verdict, "NOISE") ? ROLE_WARN
                                                  : ROLE_BAD;
}

static double gain_of(const struct msg_pair *p)
{
    return p->a_us > 0 && p->b_us > 0 ? 100 * (p->a_us / p->b_us - 1) : (double)NAN;
}

/* The newest pairs as dots between the lowest and the highest gain; A against A as points. */
static void draw_pairs(struct canvas *c, const struct lab_experiment *x, struct area r)
{
    uint32_t room = r.w > 12 ? (uint32_t)r.w - 12 : 1;
    uint32_t from = x->npairs > room ? x->npairs - room : 0;
    double lo = 0, hi = 100 * x->def.gain;
    for (uint32_t i = from; i < x->npairs; i++) {
        double g = gain_of(&x->pairs[i]);
        if (x->pairs[i].dropped[0] || !isfinite(g)) continue;
        lo = fmin(lo, g);
        hi = fmax(hi, g);
    }
    if (!(hi > lo) || r.h < 3) return;
    double step = (hi - lo) / (r.h - 1);
    canvas_printf(c, r.x, r.y, 10, ROLE_DIM, "%+8.2f%%", hi);
    canvas_printf(c, r.x, r.y + r.h - 1, 10, ROLE_DIM, "%+8.2f%%", lo);
    int zero = r.y + (int)lround(hi / step),
        bar = r.y + (int)lround((hi - 100 * x->def.gain) / step);
    for (int k = 0; k < (int)room; k++) {
        canvas_text(c, r.x + 11 + k, zero, 1, ROLE_DIM, c->ascii ? "-" : "─");
        if (bar != zero) canvas_text(c, r.x + 11 + k, bar, 1, ROLE_WARN, c->ascii ? "=" : "╌");
    }
    for (uint32_t i = from; i < x->npairs; i++) {
        const struct msg_pair *p = &x->pairs[i];
        double g = gain_of(p);
        if (!isfinite(g)) continue;
        bool ab = p->kind[1] == 'B';
        int y = r.y + (int)lround(fmin(fmax((hi - g) / step, 0), r.h - 1));
        canvas_text(c, r.x + 11 + (int)(i - from), y, 1,
                    p->dropped[0] ? ROLE_BAD
                    : ab          ? ROLE_BAR
                                  : ROLE_DIM,
                    c->ascii            ? (ab ? "o" : ".")
                    : ab                ? "●"
                    : p->kind[1] == 'A' ? "·"
                                        : "○");
    }
}

static int draw_gates(struct canvas *c, const struct lab_experiment *x, struct area r)
{
    int y = r.y;
    for (uint32_t i = 0; i < x->ngates && y < r.y + r.h; i++) {
        const struct msg_gate *g = &x->gates[i];
        bool bad = !strcmp(g->state, "failed") || !strcmp(g->state, "identical");
        bool odd = !strcmp(g->state, "forced") || !strcmp(g->state, "unmet");
        canvas_text(c, r.x, y, 10, ROLE_HEAD, g->gate);
        canvas_text(c, r.x + 11, y, 9, bad ? ROLE_BAD : odd ? ROLE_WARN : ROLE_GOOD, g->state);
        canvas_text(c, r.x + 21, y++, r.w - 21, ROLE_DIM, g->text);
    }
    return y - r.y;
}

static void draw_experiment(struct app *a, const struct lab_experiment *x, struct area r)
{
    struct canvas *c = &a->canvas;
    struct msg_verdict v = x->verdict;
    struct lab_result res;
    char title[400];
    snprintf(title, sizeof title, "%s against %s, bar %s", x->def.b, x->def.a, x->def.bar);
    canvas_rule(c, r.x, r.y, r.w, title);
    if (!x->closed && lab_evaluate(x, &res) == OK) lab_fill_verdict(x, &res, &v);
    int y = r.y + 1;
    canvas_printf(c, 1, y++, r.w - 2, (unsigned)verdict_role(x) | STYLE_BOLD,
                  "%s%s   %u of %u pairs, %u of A against A, %u left out",
                  x->closed ? v.verdict : "running", x->closed && !v.firm ? " (not firm)" : "",
                  v.pairs, x->def.pairs, v.aa, v.dropped);
    y += canvas_wrap(c, (struct area){1, y, r.w - 2, 2}, ROLE_TEXT, v.why);
    if (v.sentence[0] && r.h > 14)
        y += canvas_wrap(c, (struct area){1, y, r.w - 2, r.h > 20 ? 3 : 2}, ROLE_TEXT, v.sentence);
    int left = r.y + r.h - y, plot = left >= 12 ? left - 7 : left >= 4 ? left : 0;
    if (x->npairs && plot) {
        draw_pairs(c, x, (struct area){1, y, r.w - 2, plot});
        y += plot;
    }
    if (y < r.y + r.h) draw_gates(c, x, (struct area){1, y, r.w - 2, r.y + r.h - y});
}

static void lab_draw(struct app *a, void *data, struct area r)
{
    struct lab_view *v = data;
    const struct session *s = app_session(a);
    if (v->form) {
        draw_form(a, v, r);
        return;
    }
    int top = (int)s->nexperiments + 2;
    if (top > r.h / 3) top = r.h / 3;
    if (top < 4 || !s->nexperiments) top = 4;
    pane_draw(&v->pane, &a->canvas, (struct area){r.x, r.y, r.w, top}, true);
    if (!s->nexperiments) {
        canvas_wrap(&a->canvas, (struct area){2, r.y + 5, r.w - 4, r.h - 5}, ROLE_DIM,
                    "a starts an experiment: a bar that is fixed before the measurement, gates, "
                    "interleaved pairs of A and B in fresh processes, a verdict. In the shell: "
                    "sasstop ab");
        return;
    }
    uint32_t i = v->pane.selected < s->nexperiments ? v->pane.selected : s->nexperiments - 1;
    draw_experiment(a, &s->experiments[i], (struct area){r.x, r.y + top, r.w, r.h - top});
}

static bool lab_request(struct app *a, void *data, enum request r)
{
    if (r == REQ_LAB) {
        open_form(a, data);
        return true;
    }
    if (r == REQ_ENTER) {
        app_say(a, ROLE_TEXT, "the experiment stands below; there is nothing more to open");
        return true;
    }
    if (r == REQ_BACK && lab_job_runs(a)) {
        lab_job_stop(a);
        app_say(a, ROLE_WARN, "the experiment stops and is closed as INVALID");
        return true;
    }
    return false;
}

const struct view_ops lab_ops = {
    .name = "lab",
    .title = "experiments",
    .size = sizeof(struct lab_view),
    .init = lab_init,
    .done = lab_done,
    .update = lab_update,
    .draw = lab_draw,
    .request = lab_request,
    .key = lab_key,
    .pane = lab_pane,
};
