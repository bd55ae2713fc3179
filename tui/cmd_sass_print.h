/*
 * Shared by cmd_sass*.c and cmd_diff.c: what is printed, and the printers.
 *
 * A format gets begin() once, then for each file file(), for each cubin cubin(), for each kernel
 * kernel(), at the end end(); any may be NULL. Output goes to stdout. One thread.
 */
#ifndef TUI_CMD_SASS_PRINT_H
#define TUI_CMD_SASS_PRINT_H

#include "sass_view/census.h"
#include "sass_view/container.h"
#include <cjson/cJSON.h>

struct sass_expect;

struct sass_job {
    const char *file; /* as the user named it */
    const struct container *container;
    size_t part;
    const struct cubin *cubin;
    size_t shown; /* kernels */
    cJSON *json;  /* the array under construction, or NULL */
    const char *expect_path;
    bool narrowed;              /* only some kernels were asked for */
    struct sass_expect *expect; /* of --expect; freed by the command */
};

struct sass_format {
    const char *name;
    enum status (*begin)(struct sass_job *j);
    enum status (*file)(struct sass_job *j);
    enum status (*cubin)(struct sass_job *j);
    enum status (*kernel)(struct sass_job *j, const struct cubin_kernel *k);
    enum status (*end)(struct sass_job *j);
    bool parts_only; /* headers are enough: no cubin is opened */
    bool sealed_too; /* no instruction is decoded: a vendor's library too */
};

extern const struct sass_format sass_census_format, sass_list_format, sass_code_format,
    sass_parts_format, sass_json_format, sass_csv_format, sass_expect_format;

void sass_expect_free(struct sass_expect *x); /* NULL is fine */

/* Before printing: a reader that goes away (head, a pager) ends the program without a complaint. */
void sass_start_output(void);

/* One line on stderr: the message of this thread, in which a file's names may stand, without
 * control characters. */
void sass_complain(const char *command);

/* Sets and returns the error of a vendor's library that may not be disassembled. */
enum status sass_sealed(const char *file);

/* Printable ASCII only, at most 255 characters; the text lives until the next call. */
const char *sass_safe(const char *s);
/* The demangled name, made safe likewise, in a place of its own. */
const char *sass_name(const char *mangled);
/* The number, or "-" when it isn't known. */
const char *sass_number(int v, char buf[16]);
/* Blocks that fit on an SM when a block has the kernel's largest stated size; CUBIN_UNKNOWN. */
int sass_blocks_per_sm(const struct cubin *c, const struct cubin_kernel *k);
int sass_spill_bytes(const struct cubin_kernel *k);
bool sass_add_number(cJSON *o, const char *key, int v); /* null when unknown */
bool sass_add_hash(cJSON *o, const char *key, uint64_t v);
/* Prints an array or object and frees nothing. */
enum status sass_print_json(const cJSON *json);

#endif
