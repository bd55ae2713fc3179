/*
 * What runs here has to run there: the state of this engine against what the process was told,
 * compared before each of its rounds. A process that was started again is told all of it by that.
 * To add a knob: what was told of it in struct timer, a command here, a case in timer_child.c.
 */
#include "engine/auto.h"
#include "engine/timer_priv.h"

#include <stdio.h>
#include <string.h>

static struct msg_command command(const char *verb, const char *family, const char *variant,
                                  uint32_t kd)
{
    struct msg_command c = {.kd = kd, .origin = "engine"};
    snprintf(c.verb, sizeof c.verb, "%s", verb);
    snprintf(c.family, sizeof c.family, "%s", family);
    snprintf(c.variant, sizeof c.variant, "%s", variant);
    return c;
}

static enum status sync_prompt(struct engine *e)
{
    struct timer *t = e->timer;
    struct msg_command c = command("prompt", "", "", 0);
    if (t->prompt == e->prompts) return OK;
    snprintf(c.arg, sizeof c.arg, "%s", e->prompt);
    enum status st = timer_ask(e, &c);
    if (st == OK) t->prompt = e->prompts;
    return st;
}

static enum status sync_blocks(struct engine *e)
{
    struct timer *t = e->timer;
    struct msg_command c = command("blocks", "", "", e->blocks);
    if (t->blocks == e->blocks) return OK;
    enum status st = timer_ask(e, &c);
    if (st == OK) t->blocks = e->blocks;
    return st;
}

/* Auto's choices for the family, all of them anew. */
static enum status sync_choices(struct engine *e, struct timer_family *f)
{
    struct msg_command c = command("choose", f->family, "", 0);
    if (f->choices == e->choices.version) return OK;
    enum status st = timer_ask(e, &c); /* no shape: forget what was chosen */
    for (uint32_t i = 0; st == OK && i < e->choices.n; i++) {
        const struct choice *at = &e->choices.of[i];
        if (strcmp(at->family, f->family)) continue;
        c = command("choose", f->family, at->variant, at->kd);
        snprintf(c.arg, sizeof c.arg, "%u,%u,%u", at->mnk[0], at->mnk[1], at->mnk[2]);
        st = timer_ask(e, &c);
    }
    if (st != OK) return st;
    f->choices = e->choices.version;
    f->variant[0] = '\0'; /* select again, since forgetting may have changed what runs */
    return OK;
}

static enum status sync_family(struct engine *e, struct timer_family *f)
{
    const char *variant = "";
    uint32_t kd = 0;
    enum status st = OK;
    if (!e->bo->selected(e->b, f->family, &variant, &kd)) return OK;
    if (auto_is(variant)) st = sync_choices(e, f);
    if (st != OK || (!strcmp(f->variant, variant) && f->kd == kd)) return st;
    struct msg_command c = command("select", f->family, variant, kd);
    if ((st = timer_ask(e, &c)) != OK) return st;
    snprintf(f->variant, sizeof f->variant, "%s", c.variant);
    f->kd = kd;
    return OK;
}

/* The families that have something to select, once. */
static void find_families(struct engine *e)
{
    const struct kernel_info *list;
    struct timer *t = e->timer;
    uint32_t n = e->bo->kernels(e->b, &list), kd;
    const char *variant;
    for (uint32_t i = 0; i < n && t->nfamilies < TIMER_FAMILIES; i++) {
        uint32_t j = 0;
        while (j < t->nfamilies && strcmp(t->families[j].family, list[i].family)) j++;
        if (j < t->nfamilies || !e->bo->selected(e->b, list[i].family, &variant, &kd)) continue;
        snprintf(t->families[t->nfamilies++].family, sizeof t->families[0].family, "%s",
                 list[i].family);
    }
}

enum status timer_sync(struct engine *e)
{
    struct timer *t = e->timer;
    if (!t->nfamilies) find_families(e);
    enum status st = sync_prompt(e);
    for (uint32_t i = 0; st == OK && i < t->nfamilies; i++) st = sync_family(e, &t->families[i]);
    return st == OK ? sync_blocks(e) : st;
}

void timer_note_choice(struct engine *e, const char *family, const uint32_t mnk[3],
                       const char *variant, uint32_t kd)
{
    struct choices *all = &e->choices;
    all->version++;
    if (!mnk) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < all->n; i++)
            if (strcmp(all->of[i].family, family)) all->of[kept++] = all->of[i];
        all->n = kept;
        return;
    }
    /* The backend has less room than this. */
    if (all->n == ENGINE_CHOICES) return;
    struct choice *c = &all->of[all->n++];
    *c = (struct choice){.mnk = {mnk[0], mnk[1], mnk[2]}, .kd = kd};
    snprintf(c->family, sizeof c->family, "%s", family);
    snprintf(c->variant, sizeof c->variant, "%s", variant);
}
