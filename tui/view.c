/* The list of views, from views.def. */
#include "tui/view.h"

#define VIEW(ID, ops) extern const struct view_ops ops;
#include "tui/views.def"
#undef VIEW

const struct view_ops *const views[VIEWS] = {
#define VIEW(ID, ops) [VIEW_##ID] = &ops,
#include "tui/views.def"
#undef VIEW
};
