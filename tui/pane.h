/*
 * A pane: one session table on the screen, with sort, filter, scroll, a cursor on a row and on a
 * column. Columns that the width leaves out are told in the rule above and stand behind the last
 * one shown: Right goes there, and the first column stays. Views own their panes (zero-initialised,
 * then pane_init), pane_free() releases. The cursor stays on its item when the order changes. One
 * thread.
 */
#ifndef TUI_PANE_H
#define TUI_PANE_H

#include "session/table.h"
#include "tui/canvas.h"
#include "tui/keys.h"

enum { PANE_COLUMNS_MAX = 48, PANE_FILTER_MAX = 64 };

struct pane {
    const struct table_def *def; /* NULL when the table doesn't exist */
    struct table table;
    struct table_query query;
    char filter[PANE_FILTER_MAX];
    uint32_t selected; /* item under the cursor; TABLE_NONE = none */
    uint32_t position; /* its place in the table */
    uint32_t top, column;
    /* Columns as the last draw ordered them: those that it had room for first. */
    uint8_t order[PANE_COLUMNS_MAX];
    uint32_t ordered;
    bool follow;   /* the cursor stays on the last row until it is moved */
    int page;      /* rows shown at the last draw */
    bool untitled; /* no rule with the title above */
};

void pane_init(struct pane *p, const char *table);
void pane_free(struct pane *p);
/* Builds the table anew for what the session holds now. */
void pane_update(struct pane *p, const struct session *s);
void pane_draw(struct pane *p, struct canvas *c, struct area a, bool focused);
/* One above the other: the upper one as high as it needs to be, at most half of the area. */
void pane_draw_both(struct pane *upper, struct pane *lower, struct canvas *c, struct area a,
                    bool lower_focused);
/* Moves, sorts; false when the request is not a pane's. */
bool pane_request(struct pane *p, enum request r);
/* True when a move down (or a page) from the last row, or up from the first, leaves the table: a
 * view with several tables then goes on in the next. pane_enter() puts the cursor where such a move
 * comes in. */
bool pane_leaves(const struct pane *p, enum request r);
void pane_enter(struct pane *p, enum request r);
/* Puts the cursor on an item, when the table holds it. */
void pane_select(struct pane *p, uint32_t item);
/* Puts the cursor on a column, when the table has it. */
void pane_column(struct pane *p, const char *id);
/* The cell under the cursor in words: figure, spread, source, state and reason, meaning. */
void pane_explain(const struct pane *p, char *text, size_t size);

/* "12345.6 +-45" in a figure's natural digits; the state's sign when there is no figure. */
void figure_text(const struct value *v, bool spread, bool ascii, char *text, size_t size);

#endif
