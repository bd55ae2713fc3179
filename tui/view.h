/*
 * Views: what fills the screen between the tabs and the footer. One file a view, ending in a const
 * struct view_ops; one row in views.def. A view reads the session of app->feed, draws cells, and
 * keeps what it must remember in its own data (allocated by the core, zeroed).
 */
#ifndef TUI_VIEW_H
#define TUI_VIEW_H

#include "tui/app.h"

struct view_ops {
    const char *name;  /* in the tabs: short */
    const char *title; /* in help */
    size_t size;       /* of its data */
    void (*init)(void *data);
    void (*done)(void *data);
    /* (optional) Before each draw: bring tables up to date. */
    void (*update)(struct app *a, void *data);
    void (*draw)(struct app *a, void *data, struct area area);
    /* (optional) True when the request was served here. */
    bool (*request)(struct app *a, void *data, enum request r);
    /* (optional) Sees each key before it becomes a request; true when it was taken (a form). */
    bool (*key)(struct app *a, void *data, int key);
    /* (optional) The pane that moves, sorts, filters and explains; NULL = none. */
    struct pane *(*pane)(void *data);
};

extern const struct view_ops *const views[VIEWS];

/* Shared by views that show kernels' rows. */
void view_follow_row(struct app *a, struct pane *p);     /* after pane_update: cursor <- app->row */
void view_take_row(struct app *a, const struct pane *p); /* after a move: app->row <- cursor */

#endif
