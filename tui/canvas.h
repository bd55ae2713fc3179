/*
 * The canvas: a grid of cells that views draw on. It knows nothing about terminals: screen_curses.c
 * shows it, scripts dump it as text, tests compare it.
 *
 * The caller owns the canvas; canvas_free() releases the grid. Coordinates are columns and rows
 * from 0; everything drawn outside is clipped, so no caller has to check. One thread.
 */
#ifndef TUI_CANVAS_H
#define TUI_CANVAS_H

#include "base/buf.h"
#include "base/status.h"

/* What a colour means. The terminal decides the colours; without colours only the attributes
 * below remain, so no meaning may rest on a role alone. */
enum role {
    ROLE_TEXT,
    ROLE_DIM,    /* unknown values, units, frames */
    ROLE_HEAD,   /* column heads, titles of blocks */
    ROLE_ACCENT, /* keys, names the eye looks for */
    ROLE_GOOD,
    ROLE_WARN,
    ROLE_BAD,
    ROLE_BAR, /* bars and sparklines */
    ROLES
};

/* A style is a role with attributes. */
enum { STYLE_BOLD = 0x100, STYLE_REVERSE = 0x200, STYLE_UNDER = 0x400, STYLE_ROLE = 0xff };

struct glyph {
    uint32_t rune; /* Unicode; 0 = right half of a wide character */
    uint16_t style;
};

struct area {
    int x, y, w, h;
};

struct canvas {
    int w, h;
    bool ascii; /* draw bars, lines and marks with ASCII only */
    struct glyph *cells;
};

enum { CANVAS_MAX_W = 1000, CANVAS_MAX_H = 400 };

/* Sets the size (clamped to 1..CANVAS_MAX) and clears. ERR_NOMEM leaves the old grid. */
enum status canvas_resize(struct canvas *c, int w, int h);
void canvas_free(struct canvas *c);
void canvas_clear(struct canvas *c);

/* Writes UTF-8 text into at most `w` columns from (x, y); what doesn't fit is cut and its last
 * column shows an ellipsis. Control characters become '?', broken UTF-8 U+FFFD. Returns the number
 * of columns used. */
int canvas_text(struct canvas *c, int x, int y, int w, unsigned style, const char *text);
/* The same, right-aligned in exactly `w` columns. */
void canvas_right(struct canvas *c, int x, int y, int w, unsigned style, const char *text);
int canvas_printf(struct canvas *c, int x, int y, int w, unsigned style, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* Writes text over several lines, broken at spaces and newlines; what doesn't fit ends in an
 * ellipsis. Returns the rows used (<= a.h). */
int canvas_wrap(struct canvas *c, struct area a, unsigned style, const char *text);
/* Writes the last rows of a text that fit into the area. */
void canvas_tail(struct canvas *c, struct area a, unsigned style, const char *text);

void canvas_fill(struct canvas *c, struct area a, uint32_t rune, unsigned style);
/* Changes the style of cells that are there already: role replaced when `role` >= 0. */
void canvas_restyle(struct canvas *c, int x, int y, int w, int role, unsigned attributes);

/* A line with a title in it: "-- title ----". */
void canvas_rule(struct canvas *c, int x, int y, int w, const char *title);
/* A horizontal bar of `share` (0..1) of w columns, in eighths. */
void canvas_bar(struct canvas *c, int x, int y, int w, double share, unsigned style);
/* A column of h cells up from (x, y), filled to `share` (0..1) in eighths; a share of 0 shows as a
 * line at the foot, so that it differs from nothing. */
void canvas_column(struct canvas *c, int x, int y, int h, double share, unsigned style);
/* A sparkline of the last w values; scaled from 0 or, when the values are close together, from
 * below their minimum. NaN leaves a gap. */
void canvas_spark(struct canvas *c, int x, int y, int w, const float *v, unsigned n,
                  unsigned style);

/* Columns that a text takes. */
int text_columns(const char *text);

/* The grid as plain text: one line a row, trailing spaces removed. */
void canvas_dump(const struct canvas *c, struct buf *out);
/* Whether some row holds the text. */
bool canvas_holds(const struct canvas *c, const char *text);

#endif
