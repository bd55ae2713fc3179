/*
 * The weights of synthetic models.
 *
 * Job: small models value by value; large ones by mapping. For those a window of each K type lives
 * in shared memory, made of blocks drawn from a pool that was quantised from Gaussian values, and
 * every matrix is mapped to its type's window, over and over, from a start of its own. So a model
 * of 5 GB takes 0.1 GB of memory: on a virtual machine the first touch of 5 GB alone took over ten
 * seconds. Invariants: the bytes depend on the plan alone, never on the number of threads; each
 * stream of random numbers belongs to one tensor, pool or window.
 */
#include "engine/synth.h"
#include "engine/synth_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MAX_THREADS = 64,
    CHUNK = 1 << 18, /* values of one work item, a multiple of both block lengths */
    DRAWS = 1 << 12, /* blocks of one work item of a window, a multiple of 4 */
};

static const float WEIGHT_SD = 0.02f, NORM_SD = 0.002f;
static const enum quant_type window_types[2] = {QUANT_Q4_K, QUANT_Q6_K};

/* Streams: 0 and 1 the pools, 2 + i the values (or the start in the window) of tensor i; draws of
 * windows have a key of their own and the streams 0 and 1 there. */
static uint64_t stream_of(size_t i)
{
    return 2 + i;
}

struct fill {
    const struct synth_plan *plan;
    uint8_t *pool[2], *window[2];
    int fd[2];
};

/* A share of a job: work items id, id + count, id + 2 count... are this thread's. */
struct share {
    const struct fill *f;
    void (*job)(const struct fill *f, unsigned id, unsigned count);
    unsigned id, count;
};

static void *run_share(void *arg)
{
    const struct share *s = arg;
    s->job(s->f, s->id, s->count);
    return NULL;
}

static void run_on_threads(const struct fill *f, unsigned threads,
                           void (*job)(const struct fill *f, unsigned id, unsigned count))
{
    pthread_t tid[MAX_THREADS];
    struct share s[MAX_THREADS];
    bool started[MAX_THREADS] = {false};

    for (unsigned i = 0; i < threads; i++) {
        s[i] = (struct share){f, job, i, threads};
        started[i] = i && pthread_create(&tid[i], NULL, run_share, &s[i]) == 0;
    }
    /* A share whose thread couldn't be started is done here. */
    for (unsigned i = 0; i < threads; i++)
        if (!started[i]) run_share(&s[i]);
    for (unsigned i = 0; i < threads; i++)
        if (started[i]) pthread_join(tid[i], NULL);
}

static void fill_block(enum quant_type type, uint64_t stream, uint64_t at, float sd, float mean,
                       void *out)
{
    float v[QK_K];
    synth_gauss(stream, at, v, QK_K);
    for (size_t i = 0; i < QK_K; i++) v[i] = mean + sd * v[i];
    quant_quantize_row(type, v, out, QK_K);
}

static void fill_values(const struct fill *f, unsigned id, unsigned count)
{
    const struct synth_plan *p = f->plan;
    size_t turn = 0;
    for (size_t i = 0; i < p->n_items; i++) {
        const struct synth_item *it = &p->items[i];
        if (p->windows && !it->norm) continue;
        uint8_t *out = p->image + p->data_start + it->offset;
        uint64_t values = it->row * it->rows;
        for (uint64_t at = 0; at < values; at += CHUNK, turn++) {
            if (turn % count != id) continue;
            uint64_t end = values - at < CHUNK ? values : at + CHUNK;
            for (uint64_t b = at; b < end; b += QK_K)
                fill_block(it->type, stream_of(i), b, it->norm ? NORM_SD : WEIGHT_SD,
                           it->norm ? 1 : 0, out + quant_row_bytes(it->type, b));
        }
    }
}

static void fill_pools(const struct fill *f, unsigned id, unsigned count)
{
    for (unsigned t = 0; t < 2; t++)
        for (size_t i = id; i < SYNTH_POOL; i += count)
            fill_block(window_types[t], t, i * QK_K, WEIGHT_SD, 0,
                       f->pool[t] + i * quant_block_bytes(window_types[t]));
}

/* Four blocks of window t by one Philox call. */
static void draw_four(const struct fill *f, unsigned t, size_t bytes, uint64_t block)
{
    const uint32_t ctr[4] = {(uint32_t)(block / 4), 0, 0, 0}, key[2] = {t, SYNTH_KEY_DRAW};
    uint32_t w[4];
    synth_philox(ctr, key, w);
    for (size_t k = 0; k < 4; k++)
        memcpy(f->window[t] + (block + k) * bytes, f->pool[t] + w[k] % SYNTH_POOL * bytes, bytes);
}

static void fill_windows(const struct fill *f, unsigned id, unsigned count)
{
    for (unsigned t = 0; t < 2; t++) {
        size_t bytes = quant_block_bytes(window_types[t]), n = SYNTH_WINDOW / bytes;
        for (size_t at = (size_t)id * DRAWS; at < n; at += (size_t)count * DRAWS)
            for (size_t b = at; b < at + DRAWS && b < n; b += 4) draw_four(f, t, bytes, b);
    }
}
_Static_assert(SYNTH_WINDOW / sizeof(struct q4_k_block) % 4 == 0, "whole draws");
_Static_assert(SYNTH_WINDOW / sizeof(struct q6_k_block) % 4 == 0, "whole draws");

static size_t least_common_multiple(size_t a, size_t b)
{
    size_t x = a, y = b;
    while (y) {
        size_t r = x % y;
        x = y;
        y = r;
    }
    return a / x * b;
}

/* Maps tensor i to its window from a start drawn for it, at a block and a page at once. */
static enum status map_tensor(const struct fill *f, size_t i)
{
    const struct synth_plan *p = f->plan;
    const struct synth_item *it = &p->items[i];
    unsigned t = it->type == QUANT_Q6_K;
    size_t unit = least_common_multiple(quant_block_bytes(it->type), SYNTH_WINDOW_ALIGN);
    const uint32_t ctr[4] = {0, 0, 0, 0}, key[2] = {(uint32_t)stream_of(i), SYNTH_KEY_DRAW};
    uint32_t w[4];
    synth_philox(ctr, key, w);
    size_t start = w[0] % (SYNTH_WINDOW / unit) * unit;

    for (size_t at = 0, n; at < it->bytes; at += n, start = 0) {
        n = SYNTH_WINDOW - start < it->bytes - at ? SYNTH_WINDOW - start : it->bytes - at;
        void *to = p->image + p->data_start + it->offset + at;
        if (mmap(to, n, PROT_READ, MAP_SHARED | MAP_FIXED, f->fd[t], (off_t)start) == MAP_FAILED)
            return err_set(ERR_NOMEM, "synth:%s: its weights can't be mapped: %s", p->shape->name,
                           strerror(errno));
    }
    return OK;
}

static enum status make_window(struct fill *f, unsigned t)
{
    f->pool[t] = malloc(SYNTH_POOL * quant_block_bytes(window_types[t]));
    f->fd[t] = memfd_create("sasstop-weights", MFD_CLOEXEC);
    if (f->pool[t] && f->fd[t] >= 0 && ftruncate(f->fd[t], SYNTH_WINDOW) == 0) {
        void *w = mmap(NULL, SYNTH_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd[t], 0);
        if (w != MAP_FAILED) f->window[t] = w;
    }
    if (f->window[t]) return OK;
    return err_set(ERR_NOMEM,
                   "synth:%s: %d MB of shared memory can't be had; synth:tiny needs 2 MB",
                   f->plan->shape->name, SYNTH_WINDOW / 1000000);
}

static enum status fill_by_windows(struct fill *f, unsigned threads)
{
    enum status st = OK;
    for (unsigned t = 0; t < 2; t++)
        if ((st = make_window(f, t))) return st;
    run_on_threads(f, threads, fill_pools);
    run_on_threads(f, threads, fill_windows);
    for (size_t i = 0; i < f->plan->n_items && !st; i++)
        if (!f->plan->items[i].norm) st = map_tensor(f, i);
    return st;
}

enum status synth_fill(const struct synth_plan *p, unsigned threads)
{
    struct fill f = {.plan = p, .fd = {-1, -1}};
    long cpus = threads ? (long)threads : sysconf(_SC_NPROCESSORS_ONLN);
    enum status st = OK;

    threads = cpus < 1 ? 1 : cpus > MAX_THREADS ? MAX_THREADS : (unsigned)cpus;
    if (p->windows) st = fill_by_windows(&f, threads);
    if (!st) run_on_threads(&f, threads, fill_values);
    for (unsigned t = 0; t < 2; t++) {
        if (f.window[t]) munmap(f.window[t], SYNTH_WINDOW);
        if (f.fd[t] >= 0) close(f.fd[t]);
        free(f.pool[t]);
    }
    return st;
}
