/* Shared by expect.c and expect_parse.c only: the names of figures, NULL at the end. */
#ifndef SASS_VIEW_EXPECT_PRIV_H
#define SASS_VIEW_EXPECT_PRIV_H

extern const char *const expect_figures[];

#endif
