/*
 * Which columns of a pane's table stand in a width, and how wide each is. Pure; one thread.
 */
#ifndef TUI_PANE_LAYOUT_H
#define TUI_PANE_LAYOUT_H

#include "tui/pane.h"

struct pane_layout {
    bool shown[PANE_COLUMNS_MAX];
    int least[PANE_COLUMNS_MAX]; /* width that a column asks for */
    int want[PANE_COLUMNS_MAX];  /* width in which no text of a column is cut */
    int width[PANE_COLUMNS_MAX];
    uint32_t n;
    int gap; /* between columns */
    /* Columns in the order in which the cursor moves: those of the first page, then the `left_out`
     * that it has no room for. */
    uint8_t order[PANE_COLUMNS_MAX];
    uint32_t left_out;
    unsigned page, pages; /* which is shown, from 0: the one that holds the cursor's column */
};

/* The layout of p->def's columns in `w` columns of the screen; p->table is built. */
void pane_lay_out(const struct pane *p, int w, struct pane_layout *l);

#endif
