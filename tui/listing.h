/*
 * Drawing of machine code, shared by the listing and the diff view: an instruction's text and
 * colour, and the arrows of jumps in the margin. Pure drawing; one thread.
 */
#ifndef TUI_LISTING_H
#define TUI_LISTING_H

#include "sass_view/flow.h"
#include "tui/canvas.h"

/* What an instruction's class looks like. No meaning rests on it alone: the opcode says it. */
enum role insn_role(const struct insn *in, bool padding);

/* "@P0 LDS.32 R4, [R2]" */
char *insn_text(const struct insn *in, char *out, size_t size);

/* "st4 y w0 r1 b=012": stall, yield, scoreboards set and waited for; what isn't there is blank. */
char *control_text(const struct insn *in, char *out, size_t size);
enum { CONTROL_W = 20 };

/* A row of the screen that holds an instruction, or -1. */
struct listing_rows {
    const int32_t *insn; /* by row of the text, not of the screen */
    uint32_t n;
};

/* Draws the jumps that cross the rows [top, top + h) into `w` columns from (x, y). The jump of
 * instruction `at` (-1: none) is drawn last and stands out. */
void draw_arrows(struct canvas *c, int x, int y, int w, int h, const struct flow *f,
                 const struct listing_rows *rows, uint32_t top, int32_t at);

#endif
