/*
 * The machine code of a kernel of the session, decoded: what the listing, diff and rules views
 * draw. It comes from the recording's own cubins, else from the cubins on disk whose hash is the
 * same. The caller owns a code and frees it; it outlives the session. One thread.
 */
#ifndef TUI_CODE_H
#define TUI_CODE_H

#include "sass_view/census.h"
#include "sass_view/lines.h"
#include "session/model.h"

struct code {
    bool ok;
    uint64_t code_hash; /* what was asked for; also when it isn't ok */
    char why[300];      /* why there's none */
    char origin[80];    /* "the recording's cubin" */
    struct cubin cubin;
    const struct cubin_kernel *kernel;
    struct flow flow;
    struct census census;
    struct lines lines; /* empty when the cubin has none */
};

/* Loads the code of kernel `k`, unless `c` holds it already. Never fails: `ok` and `why` tell. */
void code_load(struct code *c, const struct session *s, const struct kernel *k);
void code_free(struct code *c); /* also fine on a zeroed struct */

#endif
