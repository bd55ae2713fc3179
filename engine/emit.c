/*
 * The queue of outgoing frames and its writer; see emit.h.
 *
 * Invariants, under `lock`: the list holds whole encoded frames in the order they were sent;
 * sample_bytes and control_bytes are the sums of their sizes; `oldest_sample` is the first SAMPLE
 * frame of the list, and SAMPLE frames are linked among themselves, so that dropping one costs the
 * same however long the list is. The writer takes frames out under the lock and writes without it.
 */
#include "engine/emit.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
    struct node *prev, *next, *next_sample;
    uint32_t len;
    uint16_t type;
    bool sample;
    uint8_t bytes[];
};

struct emit {
    struct emit_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, idle; /* something to write; all is written */
    struct node *first, *last, *oldest_sample, *newest_sample;
    size_t sample_bytes, control_bytes;
    uint64_t frames, written;
    uint64_t drops[FRAME_TYPE_END], told[FRAME_TYPE_END];
    struct buf scratch; /* encoder's, under the lock */
    bool busy, ending, broken;
};

uint64_t emit_now(const struct emit *e)
{
    uint64_t now = clock_mono_ns();
    return now > e->o.epoch_ns ? now - e->o.epoch_ns : 0;
}

static void unlink_node(struct emit *e, struct node *n)
{
    *(n->prev ? &n->prev->next : &e->first) = n->next;
    *(n->next ? &n->next->prev : &e->last) = n->prev;
    if (!n->sample) {
        e->control_bytes -= n->len;
        return;
    }
    /* Samples leave oldest first, whether written or dropped. */
    e->sample_bytes -= n->len;
    e->oldest_sample = n->next_sample;
    if (!e->oldest_sample) e->newest_sample = NULL;
}

static void append_node(struct emit *e, struct node *n)
{
    n->prev = e->last;
    n->next = n->next_sample = NULL;
    *(e->last ? &e->last->next : &e->first) = n;
    e->last = n;
    if (!n->sample) {
        e->control_bytes += n->len;
        return;
    }
    e->sample_bytes += n->len;
    *(e->newest_sample ? &e->newest_sample->next_sample : &e->oldest_sample) = n;
    e->newest_sample = n;
}

static void drop_oldest(struct emit *e)
{
    struct node *n = e->oldest_sample;
    e->drops[n->type]++;
    unlink_node(e, n);
    free(n);
}

static void clear(struct emit *e)
{
    for (struct node *n = e->first, *next; n; n = next) {
        next = n->next;
        free(n);
    }
    e->first = e->last = e->oldest_sample = e->newest_sample = NULL;
    e->sample_bytes = e->control_bytes = 0;
}

static void set_broken(struct emit *e)
{
    e->broken = true;
    clear(e);
    pthread_cond_broadcast(&e->idle);
    pthread_cond_broadcast(&e->work);
}

/* Encodes into a node; NULL when it can't be. Under the lock, so that t_ns rises. */
static struct node *make_node(struct emit *e, enum frame_type type, const void *msg)
{
    buf_reset(&e->scratch);
    e->scratch.failed = false;
    if (proto_encode(&e->scratch, type, emit_now(e), msg) != OK) return NULL;
    struct node *n = malloc(sizeof *n + e->scratch.len);
    if (!n) return NULL;
    n->len = (uint32_t)e->scratch.len;
    n->type = (uint16_t)type;
    n->sample = proto_droppable(type);
    memcpy(n->bytes, e->scratch.data, e->scratch.len);
    return n;
}

void emit_send(struct emit *e, enum frame_type type, const void *msg)
{
    pthread_mutex_lock(&e->lock);
    if (!e->broken && !e->ending) {
        struct node *n = make_node(e, type, msg);
        e->frames++;
        if (!n) {
            e->drops[type]++;
        } else {
            append_node(e, n);
            while (e->sample_bytes > e->o.sample_limit && e->oldest_sample) drop_oldest(e);
            if (e->control_bytes > e->o.control_limit) set_broken(e);
        }
        pthread_cond_signal(&e->work);
    }
    pthread_mutex_unlock(&e->lock);
}

void emit_log(struct emit *e, int level, const char *fmt, ...)
{
    struct msg_log m = {.level = (uint8_t)level};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(m.text, sizeof m.text, fmt, ap);
    va_end(ap);
    emit_send(e, FRAME_LOG, &m);
}

/* Moves frames, at most EMIT_BATCH bytes but at least one, into `out`, and then the totals of
 * drops that were not told yet. Under the lock. */
static void take_batch(struct emit *e, struct buf *out)
{
    buf_reset(out);
    while (e->first && (out->len == 0 || out->len + e->first->len <= EMIT_BATCH)) {
        struct node *n = e->first;
        buf_put(out, n->bytes, n->len);
        unlink_node(e, n);
        free(n);
    }
    for (unsigned t = 0; t < FRAME_TYPE_END; t++) {
        if (e->drops[t] == e->told[t]) continue;
        struct msg_drops d = {.type = (uint16_t)t, .total = e->drops[t]};
        if (proto_encode(out, FRAME_DROPS, emit_now(e), &d) == OK) e->told[t] = e->drops[t];
    }
}

/* Writes all of it; false when the other end is gone. */
static bool write_all(struct emit *e, const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t w = e->o.write(e->o.fd, p, n);
        if (w > 0) {
            p += w;
            n -= (size_t)w;
        } else if (w < 0 && errno == EAGAIN) {
            struct pollfd pf = {.fd = e->o.fd, .events = POLLOUT};
            poll(&pf, 1, -1);
        } else if (!(w < 0 && errno == EINTR)) {
            return false;
        }
    }
    return true;
}

static bool drops_untold(const struct emit *e)
{
    return memcmp(e->drops, e->told, sizeof e->drops) != 0;
}

static void *writer(void *arg)
{
    struct emit *e = arg;
    struct buf batch = {0};
    pthread_setname_np(pthread_self(), "frames");
    pthread_mutex_lock(&e->lock);
    while (!e->broken) {
        if (!e->first && !drops_untold(e)) {
            pthread_cond_broadcast(&e->idle);
            if (e->ending) break;
            pthread_cond_wait(&e->work, &e->lock);
            continue;
        }
        take_batch(e, &batch);
        e->busy = true;
        pthread_mutex_unlock(&e->lock);
        bool ok = !batch.failed && write_all(e, batch.data, batch.len);
        pthread_mutex_lock(&e->lock);
        e->busy = false;
        if (ok)
            e->written += batch.len;
        else
            set_broken(e);
    }
    pthread_cond_broadcast(&e->idle);
    pthread_mutex_unlock(&e->lock);
    buf_free(&batch);
    return NULL;
}

enum status emit_open(const struct emit_options *o, struct emit **out)
{
    struct emit *e = calloc(1, sizeof *e);
    pthread_condattr_t attr;
    *out = NULL;
    if (!e) return err_set(ERR_NOMEM, "out of memory for the queue of frames");
    e->o = *o;
    if (!e->o.sample_limit) e->o.sample_limit = EMIT_SAMPLE_LIMIT;
    if (!e->o.control_limit) e->o.control_limit = EMIT_CONTROL_LIMIT;
    if (!e->o.write) e->o.write = write;
    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&e->work, &attr);
    pthread_cond_init(&e->idle, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&e->thread, NULL, writer, e) != 0) {
        free(e);
        return err_set(ERR_FAILED, "can't start the writer thread: %s", strerror(errno));
    }
    *out = e;
    return OK;
}

bool emit_broken(struct emit *e)
{
    pthread_mutex_lock(&e->lock);
    bool b = e->broken;
    pthread_mutex_unlock(&e->lock);
    return b;
}

bool emit_flush(struct emit *e, uint64_t timeout_ns)
{
    uint64_t end = clock_mono_ns() + timeout_ns;
    struct timespec ts = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    pthread_mutex_lock(&e->lock);
    pthread_cond_signal(&e->work);
    while (!e->broken && (e->first || e->busy || drops_untold(e)))
        if (pthread_cond_timedwait(&e->idle, &e->lock, &ts) == ETIMEDOUT) break;
    bool done = !e->broken && !e->first && !e->busy;
    pthread_mutex_unlock(&e->lock);
    return done;
}

void emit_stats(struct emit *e, struct emit_stats *out)
{
    pthread_mutex_lock(&e->lock);
    *out = (struct emit_stats){
        .frames = e->frames, .bytes = e->written, .queued = e->sample_bytes + e->control_bytes};
    for (unsigned t = 0; t < FRAME_TYPE_END; t++) out->dropped += e->drops[t];
    pthread_mutex_unlock(&e->lock);
}

void emit_close(struct emit *e)
{
    if (!e) return;
    bool done = emit_flush(e, 2000000000u);
    pthread_mutex_lock(&e->lock);
    e->ending = true;
    if (!done) set_broken(e);
    bool stuck = e->busy; /* in write(2) or poll(2), to a reader that has stopped */
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
    if (stuck) pthread_cancel(e->thread);
    pthread_join(e->thread, NULL);
    clear(e);
    buf_free(&e->scratch);
    pthread_cond_destroy(&e->work);
    pthread_cond_destroy(&e->idle);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
