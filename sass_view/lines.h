/*
 * Source lines of a kernel, from the line table that nvcc -lineinfo (or -G) puts into a cubin.
 *
 * .debug_line has source lines; without it .nv_debug_line_sass has lines of the PTX text. Both are
 * DWARF 2 to 4 line programs, one sequence a kernel, bound to its symbol by a relocation; extended
 * opcode 0x90 tells which row an inlined instruction was called from. The reader is our own: it
 * applies those relocations and keeps contexts within a sequence.
 *
 * The caller owns a struct lines; names point into it. A table that breaks a rule is read up to the
 * break (`damage`). Bounds: LINES_ROWS_MAX rows, LINES_FILES_MAX files. Any thread.
 */
#ifndef SASS_VIEW_LINES_H
#define SASS_VIEW_LINES_H

#include "base/status.h"
#include "sass_view/cubin.h"

enum { LINES_ROWS_MAX = 1 << 20, LINES_FILES_MAX = 4096, LINES_NAME_MAX = 512 };

struct line_row {
    uint32_t offset;     /* bytes in .text.K: holds from here to the next row */
    uint32_t file;       /* index into files */
    uint32_t line;       /* from 1; 0: none */
    uint32_t inlined_at; /* 1 + index of the row that it was called from, 0: none */
};

struct lines {
    struct line_row *rows; /* by offset */
    uint32_t nrows;
    char **files;
    uint32_t nfiles;
    bool ptx;     /* lines of the PTX text, not of the source */
    bool damaged; /* read up to a break */
};

/* ERR_NOMEM. A cubin without a line table gives an empty struct. */
enum status lines_read(struct lines *out, const struct cubin *c, const struct cubin_kernel *k);
void lines_free(struct lines *l); /* also fine on a zeroed struct */

/* The row that holds for the instruction at `offset`, NULL when none does. */
const struct line_row *lines_at(const struct lines *l, uint32_t offset);

/* Rows out of the bytes of a line section; `relocs` gives the places (offsets in the section) of
 * addresses that belong to this kernel; NULL takes every sequence. Exported for tests and fuzzing.
 */
enum status lines_parse(struct lines *out, const uint8_t *data, size_t size, const uint64_t *relocs,
                        size_t nrelocs);

#endif
