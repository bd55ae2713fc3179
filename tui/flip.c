/* Flips: from a key to a COMMAND, and what came of it. The next target is counted from the one that
 * was asked for last, so that a refused variant doesn't bar the way to the one behind it. */
#include "tui/app.h"

#include <stdio.h>
#include <string.h>

static enum status send_command(struct app *a, struct msg_command *c, const char *verb)
{
    struct frame_source *src = a->live.src;

    if (!src || !src->ops->command)
        return err_set(ERR_UNAVAILABLE, "no engine runs here; `sasstop` alone starts one");
    snprintf(c->verb, sizeof c->verb, "%s", verb);
    snprintf(c->origin, sizeof c->origin, "%s", a->options->script ? "script" : "key");
    return src->ops->command(src, c);
}

enum status app_command(struct app *a, const char *verb, const char *family, const char *variant,
                        uint32_t kd, bool force)
{
    struct msg_command c = {.kd = kd, .force = force};

    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.variant, sizeof c.variant, "%s", variant);
    return send_command(a, &c, verb);
}

enum status app_command_arg(struct app *a, const char *verb, const char *arg)
{
    struct msg_command c = {.kd = 0};

    snprintf(c.arg, sizeof c.arg, "%s", arg);
    return send_command(a, &c, verb);
}

static bool same_flip(const struct msg_variant_def *v, const struct flip *f)
{
    return !strcmp(v->variant, f->variant) && v->kd == f->kd;
}

/* The variants of a family in the engine's order, each name once. */
static uint32_t list_names(const struct session *s, const char *family, const char *names[],
                           uint32_t max)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nvariants; i++) {
        const struct msg_variant_def *v = &s->variants[i];
        if (strcmp(v->family, family)) continue;
        bool known = false;
        for (uint32_t j = 0; j < n; j++) known |= !strcmp(names[j], v->variant);
        if (!known && n < max) names[n++] = v->variant;
    }
    return n;
}

static uint32_t list_kds(const struct session *s, const struct flip *f, uint32_t kds[],
                         uint32_t max)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nvariants; i++) {
        const struct msg_variant_def *v = &s->variants[i];
        if (!strcmp(v->family, f->family) && !strcmp(v->variant, f->variant) && n < max)
            kds[n++] = v->kd;
    }
    return n;
}

static bool next_variant(const struct session *s, struct flip *f, int step)
{
    const char *names[MAX_VARIANTS];
    uint32_t n = list_names(s, f->family, names, MAX_VARIANTS), at = 0, kds[64];

    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(names[i], f->variant)) at = i;
    if (n < 2) return false;
    at = (at + (step > 0 ? 1 : n - 1)) % n;
    snprintf(f->variant, sizeof f->variant, "%s", names[at]);
    uint32_t nk = list_kds(s, f, kds, 64);
    bool same_kd = false;
    for (uint32_t i = 0; i < nk; i++) same_kd |= kds[i] == f->kd;
    if (!same_kd && nk) f->kd = kds[0];
    return true;
}

static bool next_kd(const struct session *s, struct flip *f, int step)
{
    uint32_t kds[64], n = list_kds(s, f, kds, 64), at = 0;

    for (uint32_t i = 0; i < n; i++)
        if (kds[i] == f->kd) at = i;
    if (n < 2) return false;
    f->kd = kds[(at + (step > 0 ? 1 : n - 1)) % n];
    return true;
}

static const char *target_name(const struct flip *f, char *text, size_t size)
{
    if (f->kd)
        snprintf(text, size, "%s KD %u", f->variant, f->kd);
    else
        snprintf(text, size, "%s", f->variant);
    return text;
}

static void ask(struct app *a, bool force)
{
    struct flip *f = &a->flip;
    const struct session *s = app_session(a);
    char name[80];

    target_name(f, name, sizeof name);
    for (uint32_t i = 0; i < s->nvariants && !force; i++) {
        const struct msg_variant_def *v = &s->variants[i];
        if (strcmp(v->family, f->family) || !same_flip(v, f)) continue;
        if (v->ok && !s->variant_faulted[i]) continue;
        f->state = FLIP_REFUSED;
        app_say(a, ROLE_WARN, "%s %s: F forces it, v goes past it", name,
                v->ok       ? "has faulted here"
                : v->why[0] ? v->why
                            : "can't run here");
        return;
    }
    if (app_command(a, "flip", f->family, f->variant, f->kd, force) != OK) {
        app_say(a, ROLE_WARN, "%s", err_msg());
        return;
    }
    f->state = FLIP_ASKED;
    app_say(a, ROLE_ACCENT, "%s %s: checked against the reference first, then flipped",
            force ? "forcing" : "flip to", name);
}

void flip_request(struct app *a, enum request r)
{
    const struct session *s = app_session(a);
    const struct kernel *k = app_kernel(a);
    const struct generation *g = session_current(s);
    struct flip *f = &a->flip;
    const char *variant;
    uint32_t kd;

    if (a->feed->replay) {
        app_say(a, ROLE_WARN, "a recording can't be flipped; { and } go to the flips in it");
        return;
    }
    if (r == REQ_FORCE) {
        if (f->state == FLIP_NONE)
            app_say(a, ROLE_TEXT, "nothing was refused that F could force");
        else
            ask(a, true);
        return;
    }
    if (!k && !g) {
        app_say(a, ROLE_TEXT, "nothing runs yet that could be flipped");
        return;
    }
    /* Before the first counted round no row is known: the newest generation names the family. */
    const char *family = k ? k->def.family : g->def.family;
    if (f->state == FLIP_NONE || strcmp(f->family, family)) {
        if (!session_selected(s, family, &variant, &kd)) {
            variant = k ? k->def.variant : g->def.variant;
            kd = k ? k->def.kd : g->def.kd;
        }
        /* From auto on, v and k go on from what this row runs. */
        if (!strncmp(variant, "auto", 4) && k) {
            variant = k->def.variant;
            kd = k->def.kd;
        }
        *f = (struct flip){.kd = kd, .blocks = f->blocks};
        snprintf(f->family, sizeof f->family, "%s", family);
        snprintf(f->variant, sizeof f->variant, "%s", variant);
    }
    bool by_name = r == REQ_VARIANT_NEXT || r == REQ_VARIANT_PREV;
    int step = r == REQ_VARIANT_NEXT || r == REQ_KD_NEXT ? 1 : -1;
    if (!(by_name ? next_variant(s, f, step) : next_kd(s, f, step))) {
        app_say(a, ROLE_WARN, "%s has one %s only; put the cursor on a row of another family",
                family, by_name ? "variant" : "KD");
        return;
    }
    ask(a, false);
}

void flip_to(struct app *a, const char *family, const char *variant, uint32_t kd)
{
    struct flip *f = &a->flip;
    *f = (struct flip){.kd = kd, .blocks = f->blocks};
    snprintf(f->family, sizeof f->family, "%s", family);
    snprintf(f->variant, sizeof f->variant, "%s", variant);
    ask(a, false);
}

void flip_auto(struct app *a)
{
    const struct kernel *k = app_kernel(a);
    const struct generation *g = session_current(app_session(a));
    if (a->feed->replay) {
        app_say(a, ROLE_WARN, "a recording can't be flipped; { and } go to the flips in it");
        return;
    }
    if (!k && !g) {
        app_say(a, ROLE_TEXT, "nothing runs yet that could be chosen for");
        return;
    }
    a->flip.state = FLIP_NONE; /* the next v counts from what runs then */
    if (app_command(a, "flip", k ? k->def.family : g->def.family, "auto", 0, false) != OK)
        app_say(a, ROLE_WARN, "%s", err_msg());
    else
        app_say(a, ROLE_ACCENT, "auto: what isn't known yet is measured first; a key ends that");
}

/* 0 -> 1 -> 2 -> 3 -> 0 blocks an SM. */
void flip_blocks(struct app *a)
{
    enum { MOST = 3 };
    uint32_t next = (a->flip.blocks + 1) % (MOST + 1);

    if (a->feed->replay) {
        app_say(a, ROLE_WARN, "a recording can't be launched otherwise; { and } go to its flips");
        return;
    }
    if (app_command(a, "blocks", "", "", next, false) != OK) {
        app_say(a, ROLE_WARN, "%s", err_msg());
        return;
    }
    a->flip.blocks = next;
    if (next)
        app_say(a, ROLE_ACCENT, "at most %u block%s an SM from the next generation on", next,
                next == 1 ? "" : "s");
    else
        app_say(a, ROLE_ACCENT, "blocks an SM as the kernels are, from the next generation on");
}

void flip_answered(struct app *a, const struct msg_reply *reply)
{
    if (strcmp(reply->verb, "flip") || a->flip.state != FLIP_ASKED) return;
    if (!reply->ok) a->flip.state = FLIP_REFUSED;
}
