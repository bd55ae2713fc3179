/*
 * The thread pool. Invariant, under `lock`: `turn` counts the jobs; a worker that has seen a new
 * turn takes part in it once and counts itself out of `working`; the job's fields change only while
 * nobody works.
 */
#include "engine/cpu/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* Below this many multiply-adds waking the others costs more than it saves (about 20 us). */
static const double SERIAL_BELOW = 100e3;

struct worker {
    struct pool *pool;
    pthread_t thread;
    unsigned number;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t go, done;
    struct worker workers[POOL_MAX_THREADS];
    unsigned threads; /* the caller included */
    unsigned working;
    uint64_t turn;
    bool ending;
    pool_fn *fn;
    void *ctx;
    uint32_t items, grain;
    _Atomic uint32_t next;
};

static void take_part(struct pool *p, unsigned thread)
{
    for (;;) {
        uint32_t first = atomic_fetch_add(&p->next, p->grain);
        if (first >= p->items) return;
        uint32_t end = p->items - first < p->grain ? p->items : first + p->grain;
        p->fn(p->ctx, first, end, thread);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->turn == seen && !p->ending) pthread_cond_wait(&p->go, &p->lock);
        if (p->ending) break;
        seen = p->turn;
        pthread_mutex_unlock(&p->lock);
        take_part(p, w->number);
        pthread_mutex_lock(&p->lock);
        if (--p->working == 0) pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

enum status pool_open(unsigned threads, struct pool **out)
{
    struct pool *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p) return err_set(ERR_NOMEM, "out of memory for the thread pool");
    if (!threads) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        threads = n < 1 ? 1 : (unsigned)n;
    }
    if (threads > POOL_MAX_THREADS) threads = POOL_MAX_THREADS;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->go, NULL);
    pthread_cond_init(&p->done, NULL);
    for (p->threads = 1; p->threads < threads; p->threads++) {
        struct worker *w = &p->workers[p->threads];
        w->pool = p;
        w->number = p->threads;
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
    }
    *out = p;
    return OK;
}

void pool_close(struct pool *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_broadcast(&p->go);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 1; i < p->threads; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->go);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

unsigned pool_threads(const struct pool *p)
{
    return p->threads;
}

void pool_run(struct pool *p, uint32_t items, double cost, pool_fn *fn, void *ctx)
{
    if (p->threads == 1 || items < 2 || items * cost < SERIAL_BELOW) {
        if (items) fn(ctx, 0, items, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->ctx = ctx;
    p->items = items;
    p->grain = items / (p->threads * 8) + 1;
    atomic_store(&p->next, 0);
    p->working = p->threads - 1;
    p->turn++;
    pthread_cond_broadcast(&p->go);
    pthread_mutex_unlock(&p->lock);
    take_part(p, 0);
    pthread_mutex_lock(&p->lock);
    while (p->working) pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
