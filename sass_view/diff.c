/*
 * Job: align two instruction streams and judge how they differ.
 *
 * Invariants: every instruction that is no padding stands on exactly one line; lines keep the order
 * of both sides. Between anchors, the middle of the shortest edit script is found first and both
 * halves are solved in turn (E. Myers, "An O(ND) difference algorithm", 1986), so memory stays
 * linear.
 */
#include "sass_view/diff.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct side {
    const struct flow *f;
    uint32_t *insn;  /* the instructions that are no padding */
    uint64_t *token; /* what makes partners */
    uint32_t n;
};

/* A block that may be an anchor: where it starts in `insn`, how long it is, its tokens' hash. */
struct anchor {
    uint64_t hash;
    uint32_t at, len, other;
    bool once;
};

struct work {
    struct side a, b;
    int64_t budget;
    int32_t *v; /* two arrays of furthest points */
    size_t nv;
    struct diff *out;
};

/* Control fields, and everything that names a register or a place to jump to. */
static const uint64_t control_bits = ~UINT64_C(0) << (105 - 64);

static uint64_t guard_kind(const struct insn *in)
{
    if (in->guard == INSN_PT) return in->guard_not ? 1 : 0;
    return in->guard_not ? 3 : 2;
}

static uint64_t token_of(const struct insn *in)
{
    return XXH64(in->key, strlen(in->key), guard_kind(in));
}

static bool make_side(struct side *s, const struct flow *f)
{
    size_t n = f->ninsns ? f->ninsns : 1;
    *s = (struct side){.f = f};
    s->insn = malloc(n * sizeof *s->insn);
    s->token = malloc(n * sizeof *s->token);
    if (!s->insn || !s->token) return false;
    for (uint32_t i = 0; i < f->ninsns; i++) {
        if (f->padding[i]) continue;
        s->insn[s->n] = i;
        s->token[s->n++] = token_of(&f->insns[i]);
    }
    return true;
}

static enum diff_kind compare(const struct insn *x, const struct insn *y)
{
    if (x->lo == y->lo && x->hi == y->hi) return DIFF_SAME;
    if (x->lo == y->lo && !((x->hi ^ y->hi) & ~control_bits)) return DIFF_CONTROL;
    return DIFF_OPERANDS;
}

static void put_pair(struct work *w, uint32_t a, uint32_t b)
{
    int32_t ia = (int32_t)w->a.insn[a], ib = (int32_t)w->b.insn[b];
    enum diff_kind k = compare(&w->a.f->insns[ia], &w->b.f->insns[ib]);
    w->out->lines[w->out->nlines++] = (struct diff_line){ia, ib, k};
    w->out->n[k]++;
}

static void put_only(struct work *w, uint32_t a0, uint32_t a1, uint32_t b0, uint32_t b1)
{
    for (; a0 < a1; a0++, w->out->n[DIFF_ONLY_A]++)
        w->out->lines[w->out->nlines++] =
            (struct diff_line){(int32_t)w->a.insn[a0], -1, DIFF_ONLY_A};
    for (; b0 < b1; b0++, w->out->n[DIFF_ONLY_B]++)
        w->out->lines[w->out->nlines++] =
            (struct diff_line){-1, (int32_t)w->b.insn[b0], DIFF_ONLY_B};
}

struct box {
    uint32_t a0, a1, b0, b1;
};

/* A point on a shortest edit script of the box, which has no common head or tail: *x, *y. False
 * when the budget ran out. */
static bool find_middle(struct work *w, const struct box *q, uint32_t *x, uint32_t *y)
{
    int32_t n = (int32_t)(q->a1 - q->a0), m = (int32_t)(q->b1 - q->b0), delta = n - m;
    int32_t most = (n + m + 1) / 2 + 1;
    int32_t *fwd = w->v + most, *bwd = w->v + 3 * most + 1;
    const uint64_t *ta = w->a.token + q->a0, *tb = w->b.token + q->b0;
    fwd[1] = 0;
    bwd[1] = 0;
    for (int32_t d = 0; d < most; d++) {
        if ((w->budget -= 2 * d + 1) < 0) return false;
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t i =
                k == -d || (k != d && fwd[k - 1] < fwd[k + 1]) ? fwd[k + 1] : fwd[k - 1] + 1;
            int32_t j = i - k;
            while (i < n && j >= 0 && j < m && ta[i] == tb[j]) i++, j++;
            fwd[k] = i;
            int32_t back = delta - k;
            if (!(delta & 1) || back < -(d - 1) || back > d - 1) continue;
            if (i + bwd[back] >= n && i <= n && j >= 0 && j <= m) {
                *x = q->a0 + (uint32_t)i;
                *y = q->b0 + (uint32_t)j;
                return true;
            }
        }
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t i =
                k == -d || (k != d && bwd[k - 1] < bwd[k + 1]) ? bwd[k + 1] : bwd[k - 1] + 1;
            int32_t j = i - k;
            while (i < n && j >= 0 && j < m && ta[n - 1 - i] == tb[m - 1 - j]) i++, j++;
            bwd[k] = i;
            int32_t front = delta - k;
            if (delta & 1 || front < -d || front > d) continue;
            if (i + fwd[front] >= n && i <= n && j >= 0 && j <= m) {
                *x = q->a0 + (uint32_t)(n - i);
                *y = q->b0 + (uint32_t)(m - j);
                return true;
            }
        }
    }
    return false;
}

/* Aligns a box. The halves are solved by recursion, whose depth is bounded by the budget's halving:
 * a half is at most the box without one row or column, so the depth is capped by hand. */
static void align_box(struct work *w, struct box q, unsigned depth)
{
    while (q.a0 < q.a1 && q.b0 < q.b1 && w->a.token[q.a0] == w->b.token[q.b0])
        put_pair(w, q.a0++, q.b0++);
    uint32_t tail = 0;
    while (q.a0 + tail < q.a1 && q.b0 + tail < q.b1 &&
           w->a.token[q.a1 - 1 - tail] == w->b.token[q.b1 - 1 - tail])
        tail++;
    q.a1 -= tail;
    q.b1 -= tail;
    uint32_t x, y;
    if (q.a0 == q.a1 || q.b0 == q.b1) {
        put_only(w, q.a0, q.a1, q.b0, q.b1);
    } else if (depth < 256 && find_middle(w, &q, &x, &y) && !(x == q.a0 && y == q.b0) &&
               !(x == q.a1 && y == q.b1)) {
        align_box(w, (struct box){q.a0, x, q.b0, y}, depth + 1);
        align_box(w, (struct box){x, q.a1, y, q.b1}, depth + 1);
    } else {
        if (w->budget < 0 || depth == 256) w->out->aligned = false;
        put_only(w, q.a0, q.a1, q.b0, q.b1);
    }
    for (uint32_t i = 0; i < tail; i++) put_pair(w, q.a1 + i, q.b1 + i);
}

static int by_hash(const void *p, const void *q)
{
    const struct anchor *x = p, *y = q;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int by_place(const void *p, const void *q)
{
    const struct anchor *x = p, *y = q;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The blocks of one side by hash; those that stand once are marked. */
static struct anchor *list_blocks(const struct side *s, uint32_t *n)
{
    struct anchor *list = calloc(s->f->nblocks ? s->f->nblocks : 1, sizeof *list);
    uint32_t at = 0;
    *n = 0;
    for (uint32_t i = 0; list && i < s->f->nblocks; i++) {
        uint32_t first = at, end = s->f->blocks[i].first + s->f->blocks[i].count;
        while (at < s->n && s->insn[at] < end) at++;
        if (at == first) continue;
        list[(*n)++] = (struct anchor){
            .hash = XXH64(s->token + first, (at - first) * sizeof *s->token, at - first),
            .at = first,
            .len = at - first};
    }
    if (list) qsort(list, *n, sizeof *list, by_hash);
    for (uint32_t i = 0; list && i < *n; i++)
        list[i].once = (i == 0 || list[i - 1].hash != list[i].hash) &&
                       (i + 1 == *n || list[i + 1].hash != list[i].hash);
    return list;
}

/* Keeps in `list` (by place) the longest run whose partners rise too; its length. */
static uint32_t longest_rise(struct anchor *list, uint32_t n, uint32_t *top, uint32_t *before)
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lo = 0, hi = len;
        while (lo < hi) {
            uint32_t mid = (lo + hi) / 2;
            if (list[top[mid]].other < list[i].other)
                lo = mid + 1;
            else
                hi = mid;
        }
        before[i] = lo ? top[lo - 1] : UINT32_MAX;
        top[lo] = i;
        if (lo == len) len++;
    }
    uint32_t at = len ? top[len - 1] : UINT32_MAX;
    for (uint32_t i = len; i-- > 0; at = before[at]) top[i] = at;
    for (uint32_t i = 0; i < len; i++) list[i] = list[top[i]]; /* top rises: no overlap */
    return len;
}

/* The anchors, in order of place on both sides. NULL without memory. */
static struct anchor *find_anchors(const struct work *w, uint32_t *n)
{
    uint32_t na, nb, pairs = 0;
    struct anchor *a = list_blocks(&w->a, &na), *b = list_blocks(&w->b, &nb);
    uint32_t *tmp = malloc((2 * (size_t)w->a.f->nblocks + 2) * sizeof *tmp);
    if (a && b && tmp) {
        for (uint32_t i = 0, k = 0; i < na; i++) {
            while (k < nb && b[k].hash < a[i].hash) k++;
            if (k == nb) break;
            if (b[k].hash != a[i].hash || !a[i].once || !b[k].once || a[i].len != b[k].len)
                continue;
            struct anchor x = a[i];
            x.other = b[k].at;
            a[pairs++] = x;
        }
        qsort(a, pairs, sizeof *a, by_place);
        *n = longest_rise(a, pairs, tmp, tmp + w->a.f->nblocks + 1);
    } else {
        free(a);
        a = NULL;
    }
    free(b);
    free(tmp);
    return a;
}

static enum status align(struct work *w)
{
    uint32_t n = 0, a = 0, b = 0;
    struct anchor *anchors = find_anchors(w, &n);
    w->nv = 4 * (((size_t)w->a.n + w->b.n) / 2 + 4) + 8;
    w->v = calloc(w->nv, sizeof *w->v);
    w->out->lines = malloc(((size_t)w->a.n + w->b.n + 1) * sizeof *w->out->lines);
    enum status st = OK;
    if (!anchors || !w->v || !w->out->lines) st = err_set(ERR_NOMEM, "out of memory for the diff");
    for (uint32_t i = 0; st == OK && i < n; i++) {
        align_box(w, (struct box){a, anchors[i].at, b, anchors[i].other}, 0);
        for (uint32_t k = 0; k < anchors[i].len; k++)
            put_pair(w, anchors[i].at + k, anchors[i].other + k);
        a = anchors[i].at + anchors[i].len;
        b = anchors[i].other + anchors[i].len;
    }
    if (st == OK) align_box(w, (struct box){a, w->a.n, b, w->b.n}, 0);
    free(anchors);
    free(w->v);
    return st;
}

/* What is left of an instruction when order, registers and control fields are set aside: opcode,
 * modifiers, immediates, offsets, constants. */
static uint64_t fingerprint(const struct insn *in)
{
    unsigned form = (unsigned)(in->lo >> 9 & 7);
    bool immediate = (form == 2 || form == 4) && !(in->hi >> 27 & 1);
    uint64_t lo = in->lo & ~UINT64_C(0xfffff000), hi = in->hi & ~control_bits;
    if (!immediate) lo &= ~(UINT64_C(0xff) << 32);
    hi &= ~UINT64_C(0xff);
    hi &= ~(UINT64_C(0x3ff) << (81 - 64)); /* predicates */
    if (in->target != INSN_NO_TARGET) {
        lo &= UINT64_C(0xfff);
        hi &= ~UINT64_C(0x3ffff);
    }
    uint64_t key[3] = {lo, hi, guard_kind(in)};
    return XXH64(key, sizeof key, in->target != INSN_NO_TARGET);
}

static int by_value(const void *p, const void *q)
{
    uint64_t x = *(const uint64_t *)p, y = *(const uint64_t *)q;
    return x < y ? -1 : x > y;
}

/* Fingerprints of one side, sorted; depth of loops is part of each, so that hoisting shows. */
static bool fill_prints(const struct side *s, uint64_t *out)
{
    for (uint32_t i = 0; i < s->n; i++) {
        int32_t loop = s->f->insn_loop[s->insn[i]];
        uint64_t depth = loop < 0 ? 0 : s->f->loops[loop].depth;
        out[i] = fingerprint(&s->f->insns[s->insn[i]]) * 31 + depth;
    }
    qsort(out, s->n, sizeof *out, by_value);
    return true;
}

static bool same_counts(const struct census *a, const struct census *b)
{
    if (memcmp(a->sum, b->sum, sizeof a->sum) || a->nrows != b->nrows) return false;
    struct diff_row *rows;
    size_t n;
    if (diff_census(a, b, &rows, &n)) return false;
    bool same = true;
    for (size_t i = 0; i < n; i++) same = same && !memcmp(rows[i].a, rows[i].b, sizeof rows[i].a);
    free(rows);
    return same;
}

static enum status judge(struct work *w, const struct census *ca, const struct census *cb)
{
    struct diff *d = w->out;
    if (w->a.n == w->b.n && d->n[DIFF_SAME] == w->a.n && ca->sm == cb->sm) {
        d->verdict = DIFF_IDENTICAL;
        return OK;
    }
    d->verdict = DIFF_DIFFERENT;
    if (!same_counts(ca, cb)) return OK;
    d->verdict = DIFF_CENSUS;
    if (w->a.n != w->b.n || ca->sm != cb->sm) return OK;
    uint64_t *prints = malloc((2 * (size_t)w->a.n + 1) * sizeof *prints);
    if (!prints) return err_set(ERR_NOMEM, "out of memory for the diff");
    fill_prints(&w->a, prints);
    fill_prints(&w->b, prints + w->a.n);
    if (!memcmp(prints, prints + w->a.n, w->a.n * sizeof *prints)) d->verdict = DIFF_SCHEDULE;
    free(prints);
    return OK;
}

enum status diff_make(struct diff *out, const struct flow *a, const struct flow *b,
                      const struct census *ca, const struct census *cb)
{
    struct work w = {.budget = DIFF_WORK_MAX, .out = out};
    *out = (struct diff){.aligned = true};
    bool ok = make_side(&w.a, a);
    ok = make_side(&w.b, b) && ok;
    enum status st = ok ? align(&w) : err_set(ERR_NOMEM, "out of memory for the diff");
    if (st == OK) st = judge(&w, ca, cb);
    free(w.a.insn);
    free(w.a.token);
    free(w.b.insn);
    free(w.b.token);
    if (st) diff_free(out);
    return st;
}

void diff_free(struct diff *d)
{
    free(d->lines);
    *d = (struct diff){0};
}

const char *diff_verdict_name(enum diff_verdict v)
{
    static const char *const names[] = {"identical bytes", "same instructions, other schedule",
                                        "same census", "different"};
    return names[v];
}
