/*
 * PC samples on the listing: how hot each instruction is, what its warps waited for, which loop has
 * the most samples. A session without samples of the kernel gives nothing at all: unknown isn't 0.
 * Points into the session: found anew before each use. One thread.
 */
#ifndef TUI_LISTING_HEAT_H
#define TUI_LISTING_HEAT_H

#include "sass_view/flow.h"
#include "session/model.h"
#include "tui/canvas.h"

enum { HEAT_W = 9 }; /* columns: per cent, letter */

struct listing_heat {
    const struct kernel_heat *of; /* NULL: no samples */
    int32_t hot;                  /* hot loop: by samples, else by structure; -1: none */
    bool hot_by_samples;
    double hot_pct;   /* its own share of the samples; when by samples */
    bool elsewhere;   /* no samples in this generation, but in others */
    bool kernel_only; /* samples came, of the kernel as a whole: an older recording */
    bool gone;        /* they came, and made room for those of newer generations */
    int32_t hottest;  /* instruction with the most samples, -1: none */
};

/* `r` may be NULL; `f` is the flow of its kernel. */
struct listing_heat heat_find(const struct session *s, const struct row *r, const struct flow *f);

/* Per cent of the kernel's samples at instruction `i`; NAN when there are none of the kernel. */
double heat_pct(const struct listing_heat *h, uint32_t i);

/* One letter a stall reason, as in the legend; '?' for a reason that has none. */
char heat_letter(const char *reason);

/* Where the samples come from and what the letters mean, the reasons of most samples first. */
void heat_line(const struct listing_heat *h, char *out, size_t size);

/* "12.3 % of samples, most of them L long_scoreboard"; "" without samples there. */
void heat_words(const struct listing_heat *h, uint32_t i, char *out, size_t size);

/* Instruction `i`'s per cent and letter at (x, y), HEAT_W columns wide. */
void heat_draw(struct canvas *c, int x, int y, int w, const struct listing_heat *h, uint32_t i);

#endif
