/*
 * A round for exact counters: not the whole work, which would take a millisecond and more for each
 * of a thousand launches, but lists of operators in which every kernel and shape of the workload
 * comes at least twice, where the model has it that often: embedding, some whole layers, output.
 *
 * Invariants: the same launches in every pass; each pass starts at position 0, so it overwrites
 * what it reads; what counted passes make (tokens and their logits) equals that of an uncounted run
 * of the same lists, and whether it did is told.
 */
#include "engine/collect_priv.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { TIMES = 2 }; /* launches of a kernel and shape to count */

/* Do two operators make the same row? */
static bool same(const struct op *a, const struct op *b)
{
    if (a->kind != b->kind || strcmp(a->role, b->role) || a->window != b->window) return false;
    if (!a->w || !b->w) return a->w == b->w;
    return a->w->type == b->w->type && a->w->m == b->w->m && a->w->k == b->w->k;
}

static bool taken(const uint8_t *layers, int layer)
{
    return layer < 0 || layers[layer];
}

/* Is there an operator of this layer that the taken layers have fewer than TIMES times? */
static bool adds(const struct forward *f, const uint8_t *layers, int layer)
{
    for (uint32_t i = 0; i < f->nops; i++) {
        unsigned times = 0;
        if (f->ops[i].layer != layer) continue;
        for (uint32_t j = 0; j < f->nops; j++)
            times += taken(layers, f->ops[j].layer) && same(&f->ops[i], &f->ops[j]);
        if (times < TIMES) return true;
    }
    return false;
}

enum status collect_shorten(const struct forward *f, struct forward *out)
{
    uint8_t layers[MODEL_MAX_LAYERS] = {0};
    int last = -1;
    *out = (struct forward){.n = f->n, .ops = calloc(f->nops, sizeof *out->ops)};
    if (!out->ops) return err_set(ERR_NOMEM, "out of memory for a list of operators");
    for (uint32_t i = 0; i < f->nops; i++) {
        int layer = f->ops[i].layer;
        if (layer >= MODEL_MAX_LAYERS) continue;
        if (layer > last && adds(f, layers, layer)) layers[layer] = 1;
        if (layer > last) last = layer;
        if (taken(layers, layer)) out->ops[out->nops++] = f->ops[i];
    }
    return OK;
}

/* Moves op i behind the last one before it that reads as many activations, and lets it read the
 * same: each k is converted once a class of weights. Not for one token: its products are fused with
 * their neighbours (cuda_fuse.c), which then would be others than the model's. */
static void group(struct op *ops, uint32_t i)
{
    uint32_t to = i;
    while (to > 0 && !(ops[to - 1].w->type == ops[i].w->type && ops[to - 1].w->k == ops[i].w->k))
        to--;
    if (to == 0) return;
    struct op moved = ops[i];
    moved.x = ops[to - 1].x;
    memmove(ops + to + 1, ops + to, (i - to) * sizeof *ops);
    ops[to] = moved;
}

enum status collect_products(const struct forward *f, struct forward *out)
{
    int layer = -1;
    *out = (struct forward){.n = f->n, .ops = calloc(f->nops + 1, sizeof *out->ops)};
    if (!out->ops) return err_set(ERR_NOMEM, "out of memory for a list of operators");
    for (uint32_t i = 0; i < f->nops; i++) {
        if (f->ops[i].kind != OP_MATMUL || f->ops[i].layer < 0) continue;
        if (layer < 0) layer = f->ops[i].layer;
        if (f->ops[i].layer != layer) continue;
        out->ops[out->nops] = f->ops[i];
        if (f->n > 1) group(out->ops, out->nops);
        out->nops++;
    }
    return OK;
}

struct lists {
    struct forward prefill, decode;
};

static void lists_free(struct lists *l)
{
    forward_free(&l->prefill);
    forward_free(&l->decode);
}

/* One layer's products alone: asked of range passes only. */
static bool quick(const struct engine *e)
{
    return e->collect->quick && e->collect->now.kind == TURNS_RANGE;
}

static enum status lists_make(const struct engine *e, bool products, struct lists *l)
{
    const struct forward *first = e->work.n >= e->max_step ? &e->chunk : &e->rest;
    *l = (struct lists){0};
    if (products) return first->ops ? collect_products(first, &l->prefill) : OK;
    enum status st = first->ops ? collect_shorten(first, &l->prefill) : OK;
    return st == OK && e->decode.ops ? collect_shorten(&e->decode, &l->decode) : st;
}

/* A product may convert what it reads and add a bias; attention and argmax have parts and a merge.
 * Expanding weights isn't in it: a pass that does is unlike the next, and thrown away. */
static uint32_t launches_at_most(const struct forward *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nops; i++) {
        const struct op *op = &f->ops[i];
        n += 1 + (op->kind == OP_MATMUL || op->kind == OP_ATTENTION || op->kind == OP_ARGMAX);
        n += op->kind == OP_MATMUL && op->bias;
    }
    return n;
}

uint32_t collect_room(const struct engine *e, bool products)
{
    struct lists l;
    uint32_t room = 0; /* no memory: the source's own */
    if (lists_make(e, products, &l) == OK)
        room = launches_at_most(&l.prefill) + launches_at_most(&l.decode);
    lists_free(&l);
    return room;
}

/* What prefill and decode made: tokens, and the two highest logits bit for bit. */
static enum status run(struct engine *e, const struct lists *l, enum timing timing, uint64_t *hash)
{
    struct step_result r = {0}, made[2];
    enum status st = OK;
    collect_phase(e->collect, "prefill");
    if (l->prefill.ops)
        st = e->bo->run(e->b, l->prefill.ops, l->prefill.nops, e->work.tokens, l->prefill.n, 0,
                        false, timing, &r);
    made[0] = r;
    collect_phase(e->collect, "decode");
    if (st == OK && l->decode.ops)
        st = e->bo->run(e->b, l->decode.ops, l->decode.nops, &made[0].token, 1, l->prefill.n, false,
                        timing, &r);
    made[1] = r;
    *hash = XXH64(made, sizeof made, 0);
    return st == OK ? e->bo->sync(e->b) : st;
}

/* Adds the beginning of what the products left, where two write one buffer the later's: without a
 * token that is all there is to compare. */
static enum status hash_outputs(struct engine *e, const struct forward *f, uint64_t *hash)
{
    enum { PART = 256 << 10 };
    uint8_t *part = malloc(PART);
    enum status st = part ? OK : err_set(ERR_NOMEM, "out of memory for a comparison");
    for (uint32_t i = 0; i < f->nops && st == OK; i++) {
        size_t n = f->ops[i].y.bytes < PART ? f->ops[i].y.bytes : PART;
        st = e->bo->download(e->b, &f->ops[i].y, 0, part, n);
        if (st == OK) *hash = XXH64(part, n, *hash);
    }
    free(part);
    return st;
}

/* The same work uncounted, held against the counted passes, of which `others` differed among
 * themselves and the last made `counted`. */
static enum status compare_uncounted(struct engine *e, const struct lists *l, bool products,
                                     uint64_t counted, unsigned others)
{
    uint64_t hash;
    enum status st = run(e, l, TIMING_NONE, &hash);
    if (st == OK && products) st = hash_outputs(e, &l->prefill, &hash);
    if (st != OK) return st;
    bool equal = !others && hash == counted;
    collect_output(e->collect, equal, hash);
    if (!equal)
        emit_log(e->emit, 1,
                 "round %u: a pass of exact counters made something else than the same "
                 "work uncounted",
                 e->round);
    return OK;
}

enum status exact_round(struct engine *e)
{
    struct lists l;
    uint64_t first = 0, hash = 0;
    unsigned passes = 0, others = 0;
    bool products = quick(e);
    enum status st = lists_make(e, products, &l), more = ERR_AGAIN;
    while (st == OK && more == ERR_AGAIN && !rounds_interrupted(e)) {
        engine_progress(e, "exact", passes, 0);
        st = run(e, &l, TIMING_EXTERNAL, &hash);
        if (st == OK) more = collect_end_pass(e->collect);
        if (passes++ == 0) first = hash;
        others += hash != first;
    }
    bool whole = st == OK && more == OK;
    collect_end(e->collect, whole); /* first of all: somebody may wait for the figures */
    if (whole && products) st = hash_outputs(e, &l.prefill, &hash);
    if (whole && st == OK) st = compare_uncounted(e, &l, products, hash, others);
    lists_free(&l);
    return st != OK ? st : whole ? OK : ERR_AGAIN;
}
