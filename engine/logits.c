/* Logits of a whole prompt into a file; see logits.h. */
#include "engine/logits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status logits_write(struct engine *e)
{
    size_t row = (size_t)model_hparams(e->model)->vocab * sizeof(float);
    const struct forward *f = e->rest.ops ? &e->rest : &e->chunk;
    enum status st = OK;
    if (f->n != e->work.n)
        return err_set(ERR_LIMIT, "a prompt of %u tokens takes several steps", e->work.n);
    /* First of all: what is there already may be what this run is to be compared with. */
    FILE *out = fopen(e->opt->logits, "wbx");
    if (!out)
        return err_set(ERR_IO, "can't write %s: %s%s", e->opt->logits, strerror(errno),
                       errno == EEXIST ? "; it is left as it is: remove it, or name another" : "");
    float *bytes = malloc(row);
    if (!bytes) st = err_set(ERR_NOMEM, "out of memory for a row of logits");
    if (st == OK)
        st = e->bo->run(e->b, f->ops, f->nops, e->work.tokens, f->n, 0, false, TIMING_NONE, NULL);
    if (st == OK) st = e->bo->sync(e->b);
    for (uint32_t t = 0; st == OK && t < f->n; t++) {
        st = e->bo->download(e->b, &e->bufs.logits, t * row, bytes, row);
        if (st == OK && fwrite(bytes, 1, row, out) != row)
            st = err_set(ERR_IO, "can't write %s: %s", e->opt->logits, strerror(errno));
    }
    if (fclose(out) != 0 && st == OK)
        st = err_set(ERR_IO, "can't write %s: %s", e->opt->logits, strerror(errno));
    if (st != OK) remove(e->opt->logits); /* half a file compares with nothing */
    free(bytes);
    return st;
}
