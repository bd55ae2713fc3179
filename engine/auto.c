/* See auto.h. Measuring is in auto_bench.c, what is kept in auto_file.c. */
#include "engine/auto.h"

#include "engine/auto_bench.h"
#include "engine/timer.h"

#include <stdio.h>
#include <string.h>

enum { CANDIDATES = 96, GEMV_MAX = 8 }; /* up to 8 tokens are a matrix by vectors: no GEMM */

static const struct {
    const char *family;
    int type;
} FAMILIES[] = {{"q4k_gemm", QUANT_Q4_K}, {"q6k_gemm", QUANT_Q6_K}};
enum { NFAMILIES = sizeof FAMILIES / sizeof FAMILIES[0] };

bool auto_is(const char *variant)
{
    return !strcmp(variant, "auto") || !strcmp(variant, "auto:any");
}

static void add_shapes(struct auto_plan *p, const struct forward *f, int type)
{
    for (uint32_t i = 0; i < f->nops; i++) {
        const struct op *op = &f->ops[i];
        if (op->kind == OP_MATMUL && op->w->type == type && op->n > GEMV_MAX)
            auto_plan_shape(p, op->w->m, op->n, op->w->k);
    }
}

/* The class of what the family starts with; "" when that isn't known. */
static const char *start_class(const struct kernel_info *list, uint32_t n, const char *family)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(list[i].family, family) && list[i].standing & KERNEL_START) return list[i].cls;
    return "";
}

/* Those of the class that run here: each is selected for a moment. */
static uint32_t candidates(struct engine *e, const char *family, bool any,
                           struct auto_candidate out[CANDIDATES])
{
    const struct kernel_info *list;
    uint32_t n = e->bo->kernels(e->b, &list), found = 0;
    const char *cls = start_class(list, n, family);
    for (uint32_t i = 0; i < n && found < CANDIDATES; i++) {
        const struct kernel_info *k = &list[i];
        if (strcmp(k->family, family) || k->standing & KERNEL_BROKEN || k->copies) continue;
        if ((!any && strcmp(k->cls, cls)) || e->bo->select(e->b, family, k->variant, k->kd) != OK)
            continue;
        struct auto_candidate *c = &out[found++];
        *c = (struct auto_candidate){.kd = k->kd, .code_hash = k->code_hash};
        snprintf(c->kernel, sizeof c->kernel, "%s", k->name);
        snprintf(c->variant, sizeof c->variant, "%s", k->variant);
    }
    return found;
}

static bool go_on(void *ctx, uint32_t done, uint32_t total)
{
    struct engine *e = ctx;
    engine_progress(e, "auto", done, total);
    return !rounds_interrupted(e);
}

/* Hands the choices over; *kernels counts different ones. */
static enum status choose(struct engine *e, const struct auto_file *f, const struct auto_plan *p,
                          uint32_t *shapes, uint32_t *kernels)
{
    bool used[CANDIDATES] = {false};
    enum status st = e->bo->choose(e->b, p->family, NULL, "", 0);
    timer_note_choice(e, p->family, NULL, "", 0);
    for (uint32_t s = 0; st == OK && s < p->n_shapes; s++) {
        const struct auto_row *row;
        const struct auto_candidate *c = auto_best(f, p, s, &row);
        const uint32_t *m = p->shapes[s];
        if (!c) {
            emit_log(e->emit, 1, "auto: no kernel of %s was sound on %ux%ux%u: what it starts with",
                     p->family, m[0], m[1], m[2]);
            continue;
        }
        st = e->bo->choose(e->b, p->family, m, c->variant, c->kd);
        timer_note_choice(e, p->family, m, c->variant, c->kd);
        emit_log(e->emit, 0, "auto: %s %ux%ux%u runs %s, %.1f us with cold weights", p->family,
                 m[0], m[1], m[2], c->kernel, row->us);
        used[c - p->of] = true;
        ++*shapes;
    }
    for (uint32_t i = 0; i < p->n; i++) *kernels += used[i];
    return st;
}

/* One family: measured, chosen, selected. What ran before comes back on an error. */
static enum status take_family(struct engine *e, struct auto_file *f, int which, const char *name,
                               uint32_t *shapes, uint32_t *kernels)
{
    static struct auto_candidate of[CANDIDATES];
    struct auto_plan p = {.family = FAMILIES[which].family, .of = of};
    const char *now;
    char before[48];
    uint32_t kd = 0, had = *shapes;
    add_shapes(&p, &e->chunk, FAMILIES[which].type);
    add_shapes(&p, &e->rest, FAMILIES[which].type);
    if (!p.n_shapes || !e->bo->selected(e->b, p.family, &now, &kd)) return OK;
    snprintf(before, sizeof before, "%s", now);
    p.n = candidates(e, p.family, !strcmp(name, "auto:any"), of);
    enum status st = e->bo->select(e->b, p.family, before, kd);
    if (st == OK) st = auto_measure(f, &p, go_on, e);
    if (st == OK) st = choose(e, f, &p, shapes, kernels);
    if (st == OK && *shapes > had) st = e->bo->select(e->b, p.family, name, 0);
    return st;
}

enum status auto_take(struct engine *e, const char *family, const char *name, char *text,
                      size_t size)
{
    struct auto_file f;
    uint32_t shapes = 0, kernels = 0;
    if (!e->bo->choose)
        return err_set(ERR_UNAVAILABLE,
                       "%s chooses among GPU kernels by time; the %s backend has none to choose "
                       "from",
                       name, e->bo->name);
    enum status st = auto_file_open(&f, e->limits.device, e->limits.driver);
    if (*f.note) emit_log(e->emit, 1, "auto: %s", f.note);
    *f.note = '\0';
    for (int i = 0; st == OK && i < NFAMILIES; i++)
        if (!family || !strcmp(family, FAMILIES[i].family))
            st = take_family(e, &f, i, name, &shapes, &kernels);
    if (*f.note) emit_log(e->emit, 1, "auto: %s", f.note);
    if (st == OK && !shapes)
        st = err_set(ERR_UNAVAILABLE, "%s: no product here has kernels to choose from", name);
    if (st == OK)
        snprintf(text, size,
                 "%u shapes run %u kernels, each sound there and the fastest; times in %s", shapes,
                 kernels, *f.path ? f.path : "memory");
    auto_file_free(&f);
    return st;
}

enum status auto_refresh(struct engine *e)
{
    enum status st = OK;
    for (int i = 0; st == OK && i < NFAMILIES; i++) {
        const char *now;
        char name[48], text[300];
        uint32_t kd;
        if (!e->bo->selected(e->b, FAMILIES[i].family, &now, &kd) || !auto_is(now)) continue;
        snprintf(name, sizeof name, "%s", now);
        st = auto_take(e, FAMILIES[i].family, name, text, sizeof text);
    }
    return st;
}
