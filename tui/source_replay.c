/*
 * Recordings as a source: a virtual clock, seek, speed. Invariant: every frame up to `position` has
 * been handed out once next() gives ERR_AGAIN; a frame read too early waits in `held`.
 */
#include "tui/source.h"

#include "session/record.h"

#include <stdlib.h>
#include <string.h>

struct times {
    uint64_t *t;
    size_t n, cap;
};

struct replay_source {
    struct frame_source base;
    struct reader *reader;
    uint64_t first, duration; /* t_ns of the first frame; length */
    uint64_t position;        /* ns after the first frame */
    struct frame held;
    bool has_held, at_end, playing;
    double speed;
    struct times flips, rounds, experiments;
    char damage[200];
};

static struct replay_source *self(const struct frame_source *src)
{
    return (struct replay_source *)(uintptr_t)src;
}

static bool times_add(struct times *a, uint64_t t)
{
    if (a->n == a->cap) {
        size_t cap = a->cap ? a->cap * 2 : 64;
        uint64_t *p = realloc(a->t, cap * sizeof *p);
        if (!p) return false;
        a->t = p;
        a->cap = cap;
    }
    a->t[a->n++] = t;
    return true;
}

static enum status scan(struct replay_source *r)
{
    struct frame f;
    enum status st;
    bool any = false;

    while ((st = reader_next(r->reader, &f)) == OK) {
        if (!any) r->first = f.t_ns;
        any = true;
        uint64_t t = f.t_ns > r->first ? f.t_ns - r->first : 0;
        if (t > r->duration) r->duration = t;
        bool kept = true;
        if (f.type == FRAME_GENERATION) kept = times_add(&r->flips, t);
        if (f.type == FRAME_ROUND) kept = times_add(&r->rounds, t);
        if (f.type == FRAME_EXPERIMENT) kept = times_add(&r->experiments, t);
        if (!kept) return err_set(ERR_NOMEM, "no memory for the index of the recording");
    }
    if (st != ERR_END) return st;
    const char *damage = reader_damage(r->reader);
    if (damage) strncpy(r->damage, damage, sizeof r->damage - 1);
    if (!any)
        return err_set(ERR_FORMAT, "the recording holds no whole frame%s%s", damage ? ": " : "",
                       damage ? damage : "");
    return reader_rewind(r->reader);
}

static int replay_fd(struct frame_source *src)
{
    (void)src;
    return -1;
}

static enum status replay_next(struct frame_source *src, uint64_t now_ns, struct raw_frame *out)
{
    struct replay_source *r = self(src);
    (void)now_ns;

    if (!r->has_held && !r->at_end) {
        enum status st = reader_next(r->reader, &r->held);
        if (st == ERR_END)
            r->at_end = true;
        else if (st != OK)
            return st;
        else
            r->has_held = true;
    }
    if (r->at_end) return ERR_AGAIN;
    if (r->held.t_ns > r->first && r->held.t_ns - r->first > r->position) return ERR_AGAIN;
    *out = (struct raw_frame){.frame = r->held};
    r->has_held = false;
    return OK;
}

static void replay_close(struct frame_source *src)
{
    struct replay_source *r = self(src);
    reader_close(r->reader);
    free(r->flips.t);
    free(r->rounds.t);
    free(r->experiments.t);
    free(r);
}

uint64_t replay_position(const struct frame_source *src)
{
    return self(src)->position;
}

uint64_t replay_duration(const struct frame_source *src)
{
    return self(src)->duration;
}

uint64_t replay_place(const struct frame_source *src, uint64_t t_ns)
{
    return t_ns > self(src)->first ? t_ns - self(src)->first : 0;
}

bool replay_seek(struct frame_source *src, uint64_t position)
{
    struct replay_source *r = self(src);
    bool back = position < r->position;

    r->position = position > r->duration ? r->duration : position;
    if (!back) return false;
    r->has_held = r->at_end = false;
    return reader_rewind(r->reader) == OK;
}

void replay_pass(struct frame_source *src, uint64_t ns)
{
    struct replay_source *r = self(src);
    if (!r->playing) return;
    uint64_t step = (uint64_t)((double)ns * r->speed), left = r->duration - r->position;
    r->position += step < left ? step : left;
    if (step >= left) r->playing = false;
}

void replay_play(struct frame_source *src, bool on)
{
    struct replay_source *r = self(src);
    r->playing = on && r->position < r->duration;
}

bool replay_playing(const struct frame_source *src)
{
    return self(src)->playing;
}

double replay_speed(const struct frame_source *src)
{
    return self(src)->speed;
}

void replay_set_speed(struct frame_source *src, double speed)
{
    if (speed >= 0.1 && speed <= 64) self(src)->speed = speed;
}

static uint64_t nearest(const struct replay_source *r, const struct times *a, int direction)
{
    uint64_t best = direction < 0 ? 0 : r->duration;
    for (size_t i = 0; i < a->n; i++) {
        if (direction < 0 && a->t[i] < r->position) best = a->t[i];
        if (direction > 0 && a->t[i] > r->position) return a->t[i];
    }
    return best;
}

/* Where generation i has the figures that it ever gets: its last round, else its start. What comes
 * next is the flip. */
static uint64_t settled(const struct replay_source *r, size_t i)
{
    uint64_t start = r->flips.t[i], at = start;
    uint64_t end = i + 1 < r->flips.n ? r->flips.t[i + 1] : UINT64_MAX;
    for (size_t k = 0; k < r->rounds.n && r->rounds.t[k] < end; k++)
        if (r->rounds.t[k] > start) at = r->rounds.t[k];
    return at;
}

uint64_t replay_generation(const struct frame_source *src, int direction)
{
    const struct replay_source *r = self(src);
    size_t i = 0;
    if (!r->flips.n) return direction < 0 ? 0 : r->duration;
    while (i + 1 < r->flips.n && r->flips.t[i + 1] <= r->position) i++;
    if (direction > 0 && r->position >= r->flips.t[0])
        return i + 1 < r->flips.n ? settled(r, i + 1) : r->duration;
    if (direction < 0 && i > 0 && settled(r, i) >= r->position) i--;
    return settled(r, i);
}

uint64_t replay_flip(const struct frame_source *src, int direction)
{
    return nearest(self(src), &self(src)->flips, direction);
}

uint64_t replay_round(const struct frame_source *src, int direction)
{
    return nearest(self(src), &self(src)->rounds, direction);
}

bool replay_is_lab(const struct frame_source *src)
{
    return !self(src)->flips.n && self(src)->experiments.n;
}

const char *replay_damage(const struct frame_source *src)
{
    return self(src)->damage[0] ? self(src)->damage : NULL;
}

static const struct frame_source_ops replay_ops = {
    .name = "replay",
    .fd = replay_fd,
    .next = replay_next,
    .close = replay_close,
};

enum status replay_source_open(const char *path, struct frame_source **out)
{
    struct replay_source *r = calloc(1, sizeof *r);
    enum status st;

    *out = NULL;
    if (!r) return err_set(ERR_NOMEM, "no memory for a recording");
    r->base.ops = &replay_ops;
    r->speed = 1;
    if ((st = reader_open(path, &r->reader)) != OK) goto out;
    if ((st = scan(r)) != OK) goto out;
    r->position = r->flips.n ? r->flips.t[0] : r->experiments.n ? r->experiments.t[0] : 0;
    *out = &r->base;
    return OK;
out:
    replay_close(&r->base);
    return st;
}
