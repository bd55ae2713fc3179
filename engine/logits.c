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
    float *bytes = NULL;
    FILE *out = NULL;
    if (f->n != e->work.n)
        return err_set(ERR_LIMIT, "a prompt of %u tokens takes several steps", e->work.n);
    enum status st =
        e->bo->run(e->b, f->ops, f->nops, e->work.tokens, f->n, 0, false, TIMING_NONE, NULL);
    if (st == OK) st = e->bo->sync(e->b);
    if (st != OK) return st;
    bytes = malloc(row);
    out = fopen(e->opt->logits, "wbx");
    if (!bytes || !out) st = err_set(ERR_IO, "can't write %s: %s", e->opt->logits, strerror(errno));
    for (uint32_t t = 0; st == OK && t < f->n; t++) {
        st = e->bo->download(e->b, &e->bufs.logits, t * row, bytes, row);
        if (st == OK && fwrite(bytes, 1, row, out) != row)
            st = err_set(ERR_IO, "can't write %s: %s", e->opt->logits, strerror(errno));
    }
    if (out && fclose(out) != 0 && st == OK)
        st = err_set(ERR_IO, "can't write %s: %s", e->opt->logits, strerror(errno));
    free(bytes);
    return st;
}
