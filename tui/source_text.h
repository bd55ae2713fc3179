/*
 * Lines of source files for the listing, read once and kept: the newest few files. Owned by the
 * view; one thread. A file that isn't there gives NULL.
 */
#ifndef TUI_SOURCE_TEXT_H
#define TUI_SOURCE_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { SOURCE_FILES_KEPT = 8, SOURCE_FILE_MAX = 4 << 20 };

struct source_text {
    struct source_file {
        char *path, *text; /* text NULL: can't be read */
        char **lines;
        uint32_t nlines;
    } files[SOURCE_FILES_KEPT];
    unsigned n;
};

/* Line `line` (from 1) without its newline, valid until the next call for another file; NULL when
 * the file or the line isn't there. Regular files up to SOURCE_FILE_MAX bytes only. */
const char *source_text_line(struct source_text *s, const char *path, uint32_t line);
void source_text_free(struct source_text *s);

#endif
