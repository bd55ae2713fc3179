/* Signs of life; see ticker.h. */
#include "engine/ticker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct ticker {
    struct emit *emit;
    const char *phase;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool stopping;
};

static void *tick(void *arg)
{
    struct ticker *t = arg;
    struct msg_progress p = {.total = 1};
    pthread_setname_np(pthread_self(), "ticker");
    struct timespec at;
    snprintf(p.phase, sizeof p.phase, "%s", t->phase);
    clock_gettime(CLOCK_MONOTONIC, &at);
    pthread_mutex_lock(&t->lock);
    while (!t->stopping) {
        at.tv_sec++;
        while (!t->stopping)
            if (pthread_cond_timedwait(&t->stop, &t->lock, &at) == ETIMEDOUT) break;
        if (!t->stopping) emit_send(t->emit, FRAME_PROGRESS, &p);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

struct ticker *ticker_start(struct emit *emit, const char *phase)
{
    struct ticker *t = calloc(1, sizeof *t);
    pthread_condattr_t attr;
    if (!t) return NULL;
    t->emit = emit;
    t->phase = phase;
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->stop, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&t->thread, NULL, tick, t) == 0) return t;
    free(t);
    return NULL;
}

void ticker_stop(struct ticker *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_cond_signal(&t->stop);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->stop);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
