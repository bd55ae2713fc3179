/*
 * Job: find a kernel's cubin by its hash and decode it; see code.h.
 *
 * Invariants: code is shown under a kernel's name only when its hash is the kernel's. A cubin on
 * disk of another build is named in `why`, never shown.
 */
#include "tui/code.h"
#include "kernels/registry.h"
#include <stdio.h>
#include <string.h>

void code_free(struct code *c)
{
    lines_free(&c->lines);
    census_free(&c->census);
    flow_free(&c->flow);
    cubin_close(&c->cubin);
    *c = (struct code){0};
}

/* Opens the bytes and looks for the kernel of that hash. */
static enum status take(struct code *c, const void *bytes, size_t n, const struct kernel *k)
{
    enum status st = cubin_open_memory(&c->cubin, bytes, n, k->def.name);
    if (st) return st;
    c->kernel = cubin_find_kernel(&c->cubin, k->def.name);
    if (!c->kernel || c->kernel->code_hash != k->def.code_hash)
        return err_set(ERR_FAILED, "the cubin at hand holds another build of %s", k->def.name);
    if ((st = flow_make(&c->flow, &c->cubin, c->kernel))) return st;
    if ((st = census_make(&c->census, &c->cubin, c->kernel))) return st;
    return lines_read(&c->lines, &c->cubin, c->kernel);
}

static enum status from_disk(struct code *c, const struct kernel *k)
{
    struct registry_options o = {.sm = (int)k->def.arch};
    struct registry *r;
    enum status st = registry_open(&o, &r);
    if (st) return st;
    const struct variant *v = registry_find(r, k->def.name);
    st = v ? take(c, v->bytes, v->n_bytes, k)
           : err_set(ERR_FAILED, "no cubin on disk holds %s", k->def.name);
    registry_close(r);
    return st;
}

void code_load(struct code *c, const struct session *s, const struct kernel *k)
{
    if (c->code_hash == k->def.code_hash && k->def.code_hash) return;
    code_free(c);
    c->code_hash = k->def.code_hash;
    if (!k->def.code_hash) {
        snprintf(c->why, sizeof c->why, "%s runs on the CPU: it has no GPU code", k->def.name);
        return;
    }
    const struct module *m = session_module(s, k->def.cubin_hash);
    enum status st = m ? take(c, m->bytes.data, m->bytes.len, k) : from_disk(c, k);
    uint64_t hash = c->code_hash;
    if (st) {
        char why[sizeof c->why];
        snprintf(why, sizeof why, "%s (the session holds %s cubin of it)", err_msg(),
                 m ? "a" : "no");
        code_free(c);
        memcpy(c->why, why, sizeof why);
    } else {
        c->ok = true;
        snprintf(c->origin, sizeof c->origin, "%s",
                 m ? "the session's cubin" : "the cubin on disk");
    }
    c->code_hash = hash;
}
