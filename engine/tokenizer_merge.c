/*
 * Joining adjacent spans by priority, for both families of tokenizers.
 *
 * Job: a linked list of spans and a heap of candidate pairs. Invariants: a span is a stretch of the
 * text that starts where it started; a pair in the heap is stale when either side was joined since,
 * which shows in the length. O(n log n). The heap holds at most 3n pairs: n - 1 at first, two for
 * each of n - 1 joins.
 */
#include "engine/tokenizer_priv.h"

#include <stdlib.h>
#include <string.h>

struct span {
    uint32_t at, len; /* len 0: joined to the one before */
    int32_t prev, next;
};

struct pair {
    double priority;
    int32_t left, right;
    uint32_t len;
};

struct merger {
    const struct tokenizer *t;
    const struct merge_ops *ops;
    const char *text;
    struct span *spans;
    struct pair *heap;
    size_t n_spans, n_heap;
};

static bool before(const struct pair *a, const struct pair *b)
{
    return a->priority > b->priority || (a->priority == b->priority && a->left < b->left);
}

static void heap_push(struct merger *m, struct pair p)
{
    size_t i = m->n_heap++;
    while (i && before(&p, &m->heap[(i - 1) / 2])) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = p;
}

static struct pair heap_pop(struct merger *m)
{
    struct pair top = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->n_heap; i = child) {
        if (child + 1 < m->n_heap && before(&m->heap[child + 1], &m->heap[child])) child++;
        if (!before(&m->heap[child], &last)) break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = last;
    return top;
}

static void offer(struct merger *m, int32_t left, int32_t right)
{
    if (left < 0 || right < 0) return;
    const struct span *l = &m->spans[left], *r = &m->spans[right];
    struct pair p = {.left = left, .right = right, .len = l->len + r->len};
    if (m->ops->priority(m->t, m->text + l->at, l->len, r->len, &p.priority)) heap_push(m, p);
}

static void join_all(struct merger *m)
{
    for (size_t i = 1; i < m->n_spans; i++) offer(m, (int32_t)i - 1, (int32_t)i);
    while (m->n_heap) {
        struct pair p = heap_pop(m);
        struct span *l = &m->spans[p.left], *r = &m->spans[p.right];
        if (!l->len || !r->len || l->len + r->len != p.len) continue;
        l->len = p.len;
        r->len = 0;
        l->next = r->next;
        if (r->next >= 0) m->spans[r->next].prev = p.left;
        offer(m, l->prev, p.left);
        offer(m, p.left, l->next);
    }
}

static void cut_characters(struct merger *m, size_t len)
{
    for (size_t at = 0; at < len; m->n_spans++) {
        size_t n = token_char_len(m->text + at, len - at);
        int32_t i = (int32_t)m->n_spans;
        m->spans[i] = (struct span){(uint32_t)at, (uint32_t)n, i - 1, at + n < len ? i + 1 : -1};
        at += n;
    }
}

enum status token_merge(const struct tokenizer *t, const struct merge_ops *ops, const char *text,
                        size_t len, struct token_list *out)
{
    struct merger m = {.t = t, .ops = ops, .text = text};
    enum status st = OK;

    if (len == 0) return OK;
    m.spans = malloc(len * sizeof *m.spans);
    m.heap = malloc(3 * len * sizeof *m.heap);
    if (!m.spans || !m.heap) {
        st = err_set(ERR_NOMEM, "no memory to encode a text of %zu bytes", len);
        goto out;
    }
    cut_characters(&m, len);
    join_all(&m);
    for (int32_t i = 0; i >= 0; i = m.spans[i].next)
        ops->emit(t, text + m.spans[i].at, m.spans[i].len, out);
out:
    free(m.spans);
    free(m.heap);
    return st;
}
