/*
 * Executed counts on the listing: how often each instruction ran. Without counts of the kernel
 * there is nothing at all: unknown isn't 0; an instruction that was counted and never ran is a 0.
 * Points into the session: found anew before each use. One thread.
 */
#ifndef TUI_LISTING_EXEC_H
#define TUI_LISTING_EXEC_H

#include "session/executed.h"
#include "tui/canvas.h"

enum { EXEC_W = 10 }; /* columns */

struct listing_exec {
    const struct session *session;
    const struct executed *of; /* NULL: none */
    bool own;                  /* of this very row, not of another one of the same code */
};

struct listing_exec exec_find(const struct session *s, uint32_t row);

/* What was counted and how it compares, in one line; "" without counts. */
void exec_line(const struct listing_exec *x, char *out, size_t size);

/* "ran 57,344 times a launch, x16 a warp"; "" without a count there. */
void exec_insn_words(const struct listing_exec *x, uint32_t i, char *out, size_t size);

/* Instruction `i`'s count at (x, y), EXEC_W columns wide. */
void exec_draw(struct canvas *c, int x, int y, int w, const struct listing_exec *e, uint32_t i);

#endif
