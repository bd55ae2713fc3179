/*
 * activity: the span of every kernel (CUPTI's CONCURRENT_KERNEL records) of a window, and what
 * CUPTI says that it took itself (OVERHEAD records).
 *
 * CUPTI asks for buffers on the launching thread and hands full ones back on a thread of its own;
 * both push and pop a list under a mutex that is never held across a CUPTI call. Records are read
 * when half of the pool is full, so that a window may hold more than the pool: between launches by
 * the launching thread, or on the thread that hands a buffer back, since the launching one may be
 * waiting for a long graph. Whoever finds the other reading leaves it to him: nobody waits for the
 * reader's lock on a thread of CUPTI's. The rest is read in stop(), with the stream drained, after
 * a forced flush. Then the window's records are sorted by correlation id, which is launch order,
 * and by start inside one (the nodes of a graph launch share theirs), and paired with the launches
 * noted in that order. If the two disagree in number or name nothing is guessed: the window's spans
 * have tag 0. So every launch between start and stop must be announced (kernels that never are, a
 * library's say, do no harm), the nodes of a graph one by one, in the order in which they run.
 *
 * A record without usable times keeps its place in that order but is not delivered: counted, not
 * used. Among others of its graph launch its place is unknown, and nothing is tagged.
 *
 * Buffers come from a pool that grows to its bound: graphs of tiny kernels, launched without pause,
 * had two of three nodes dropped by 16 buffers and none by 256 (H200). When it is empty CUPTI gets
 * none and counts what it drops.
 * One such source a process: CUPTI's callbacks carry no user pointer. In a child after fork() the
 * callbacks hand out nothing: CUPTI can't be used there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cupti/sources.h"

enum { BUFFER_BYTES = 1 << 20, POOL = 256, POOL_FIRST = 16, NAME_MAX_ = 256, NAMES = 1024 };

struct record {
    struct counter_span span;
    uint32_t name; /* index in names */
    bool timeless; /* holds its place only */
};

struct buffer {
    uint8_t *bytes;
    size_t valid;
    enum { FREE, LENT, FULL } state;
};

struct activity;

static struct pool {
    pthread_mutex_t lock;
    pthread_mutex_t reading; /* held while records are read or used; taken before `lock` */
    struct buffer b[POOL];
    _Atomic int full;        /* buffers to be read */
    uint64_t refused;        /* requests that found the pool empty */
    pid_t pid;               /* whose it is */
    struct activity *reader; /* whose window is open; under `reading` */
    bool open;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .reading = PTHREAD_MUTEX_INITIALIZER};

struct activity {
    struct counter_source src;
    struct counter_notes notes;
    struct record *rec;
    size_t n, cap;
    char (*names)[NAME_MAX_];
    size_t name_count;
    uint64_t opened_ns, dropped, invalid, overhead_ns;
    uint32_t overheads;
    bool registered, enabled, keep, overhead_on;
};

/* ---- CUPTI's side ---- */

static void read_if_crowded(void);

static bool allocate(struct buffer *b)
{
    b->bytes = aligned_alloc(8, BUFFER_BYTES);
    if (b->bytes) memset(b->bytes, 0, BUFFER_BYTES);
    return b->bytes != NULL;
}

/* A free one, new ones last; NULL: none is left. The caller holds pool.lock. */
static struct buffer *free_buffer(void)
{
    struct buffer *b = pool.b;
    while (b < pool.b + POOL && b->bytes && b->state != FREE) b++;
    return b < pool.b + POOL && (b->bytes || allocate(b)) ? b : NULL;
}

static void buffer_requested(uint8_t **bytes, size_t *size, size_t *max_records)
{
    *bytes = NULL;
    *size = *max_records = 0;
    if (pool.pid != getpid()) return; /* a forked child: the lock may be held by nobody */
    pthread_mutex_lock(&pool.lock);
    struct buffer *b = free_buffer();
    if (b) {
        b->state = LENT;
        *bytes = b->bytes;
        *size = BUFFER_BYTES;
    } else {
        pool.refused++;
    }
    pthread_mutex_unlock(&pool.lock);
}

static void buffer_completed(void *ctx, uint32_t stream, uint8_t *bytes, size_t size, size_t valid)
{
    (void)ctx, (void)stream;
    if (pool.pid != getpid()) return;
    pthread_mutex_lock(&pool.lock);
    for (int i = 0; i < POOL; i++)
        if (pool.b[i].bytes == bytes && pool.b[i].state == LENT) {
            pool.b[i].valid = valid <= size ? valid : size;
            pool.b[i].state = valid ? FULL : FREE;
            pool.full += valid != 0;
        }
    pthread_mutex_unlock(&pool.lock);
    read_if_crowded();
}

static enum status pool_open(void)
{
    for (int i = 0; i < POOL_FIRST; i++)
        if (!pool.b[i].bytes && !allocate(&pool.b[i]))
            return err_set(ERR_NOMEM, "out of memory: activity buffers");
    pool.pid = getpid();
    return OK;
}

/* ---- records ---- */

static uint32_t intern(struct activity *a, const char *name)
{
    if (!name) name = "";
    for (size_t i = 0; i < a->name_count; i++)
        if (strncmp(a->names[i], name, NAME_MAX_ - 1) == 0) return (uint32_t)i;
    size_t i = a->name_count < NAMES ? a->name_count++ : 0; /* slot 0: "", also "no room" */
    if (i) strncpy(a->names[i], name, NAME_MAX_ - 1);
    return (uint32_t)i;
}

static void take(struct activity *a, const struct cupti_kernel_record *k)
{
    bool timeless = !k->start || !k->end || k->end < k->start;
    if (a->n == a->cap) {
        a->dropped++;
        return;
    }
    a->invalid += timeless;
    a->rec[a->n++] = (struct record){
        .span = {.start_ns = k->start,
                 .end_ns = k->end,
                 .grid = {(uint32_t)k->grid[0], (uint32_t)k->grid[1], (uint32_t)k->grid[2]},
                 .block = {(uint32_t)k->block[0], (uint32_t)k->block[1], (uint32_t)k->block[2]},
                 .regs = k->regs,
                 .smem_static = (uint32_t)k->smem_static,
                 .smem_dynamic = (uint32_t)k->smem_dynamic,
                 .correlation = k->correlation,
                 .stream = k->stream,
                 .graph = k->graph,
                 .graph_node = k->graph_node},
        .name = intern(a, k->name),
        .timeless = timeless};
}

static void take_overhead(struct activity *a, struct cupti_overhead_record *o)
{
    a->overheads++;
    if (o->start && o->end > o->start) a->overhead_ns += o->end - o->start;
    if (o->overhead == CUPTI_OVERHEAD_COMMANDS_FULL) free(o->data); /* set for that kind alone */
}

static void read_buffer(struct activity *a, uint8_t *bytes, size_t valid)
{
    struct cupti_activity *r = NULL;
    while (a->src.env.lib->activity_next(bytes, valid, &r) == CUPTI_R_SUCCESS) {
        if (r->kind == CUPTI_KIND_CONCURRENT_KERNEL || r->kind == CUPTI_KIND_KERNEL)
            take(a, (const struct cupti_kernel_record *)r);
        else if (r->kind == CUPTI_KIND_OVERHEAD)
            take_overhead(a, (struct cupti_overhead_record *)r);
    }
}

/* Reads every full buffer; the caller holds pool.reading. */
static void read_full(struct activity *a)
{
    for (int i = 0; i < POOL; i++) {
        pthread_mutex_lock(&pool.lock);
        bool full = pool.b[i].state == FULL;
        pthread_mutex_unlock(&pool.lock);
        if (!full) continue;
        read_buffer(a, pool.b[i].bytes, pool.b[i].valid);
        memset(pool.b[i].bytes, 0, BUFFER_BYTES); /* CUPTI is told that buffers come zeroed */
        pthread_mutex_lock(&pool.lock);
        pool.b[i].state = FREE;
        pool.full--;
        pthread_mutex_unlock(&pool.lock);
    }
}

/* Keeps CUPTI in buffers while a window is open. On any thread. */
static void read_if_crowded(void)
{
    if (pool.full < POOL / 2 || pthread_mutex_trylock(&pool.reading) != 0) return;
    if (pool.reader) read_full(pool.reader);
    pthread_mutex_unlock(&pool.reading);
}

/* The caller holds pool.reading. */
static void drain(struct activity *a)
{
    size_t lost = 0;
    read_full(a);
    if (a->src.env.lib->activity_dropped(NULL, 0, &lost) == CUPTI_R_SUCCESS) a->dropped += lost;
}

/* What was read so far is not of the window that begins. */
static void forget(struct activity *a)
{
    a->n = a->notes.n = 0;
    a->dropped = a->invalid = a->notes.lost = 0;
    a->overheads = 0;
    a->overhead_ns = 0;
}

static int by_launch(const void *x, const void *y)
{
    const struct counter_span *a = &((const struct record *)x)->span;
    const struct counter_span *b = &((const struct record *)y)->span;
    if (a->correlation != b->correlation) return a->correlation < b->correlation ? -1 : 1;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Is the kernel one that was noted at all? Others (a library's) are skipped. */
static bool noted(const struct activity *a, const char *name)
{
    for (size_t i = 0; i < a->notes.n; i++)
        if (strcmp(a->notes.v[i].kernel, name) == 0) return true;
    return false;
}

/* Is there a record without times whose place among others of its launch can't be known? */
static bool misplaced(const struct activity *a)
{
    for (size_t i = 1; i < a->n; i++)
        if (a->rec[i].span.correlation == a->rec[i - 1].span.correlation &&
            (a->rec[i].timeless || a->rec[i - 1].timeless))
            return true;
    return false;
}

/* Gives spans their tags: both lists are in launch order. One missing or surplus launch would shift
 * all that follow it, unseen among launches of one kernel: so either everything fits or no span is
 * tagged. Returns the number of spans without a tag. */
static uint64_t pair(struct activity *a)
{
    size_t i = 0, foreign = 0;
    bool fits = a->dropped == 0 && a->notes.lost == 0 && !misplaced(a);
    bool known[NAMES];
    for (size_t k = 0; k < a->name_count; k++) known[k] = noted(a, a->names[k]);
    for (size_t r = 0; r < a->n && fits; r++) {
        if (!known[a->rec[r].name]) {
            foreign++;
            continue;
        }
        fits = i < a->notes.n && strcmp(a->names[a->rec[r].name], a->notes.v[i].kernel) == 0;
        if (fits) a->rec[r].span.tag = a->notes.v[i++].tag;
    }
    if (fits && i == a->notes.n) return foreign;
    for (size_t r = 0; r < a->n; r++) a->rec[r].span.tag = 0;
    return a->n - a->invalid;
}

/* Returns how many it were. */
static uint64_t deliver(struct activity *a)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (a->rec[i].timeless) continue;
        a->rec[i].span.kernel = a->names[a->rec[i].name];
        if (a->src.env.sink.span) a->src.env.sink.span(a->src.env.sink.user, &a->rec[i].span);
        n++;
    }
    return n;
}

/* ---- the source ---- */

static void probe(struct counter_source *src)
{
    if (!counter_has_lib(src, "activity_")) return;
    snprintf(src->state.detail, sizeof src->state.detail, "start and end of every kernel");
    counter_set_state(src, COUNTER_READY, NULL, NULL);
}

static enum status configure(struct counter_source *src, const struct counter_config *cfg)
{
    struct activity *a = (struct activity *)src;
    size_t cap = counter_pick(cfg->spans_max, SPANS_MAX, 256, SPANS_MAX_LIMIT);
    a->keep = cfg->activity_keep;
    if (!a->names && !(a->names = calloc(NAMES, NAME_MAX_))) goto nomem;
    a->name_count = a->name_count ? a->name_count : 1;
    if (a->cap == cap) return OK;
    free(a->rec);
    counter_notes_free(&a->notes);
    a->rec = calloc(cap, sizeof *a->rec);
    a->cap = a->rec ? cap : 0;
    if (!a->rec) goto nomem;
    return counter_notes_init(&a->notes, cap);
nomem:
    return err_set(ERR_NOMEM, "out of memory: activity records");
}

static enum status arm(struct counter_source *src)
{
    struct activity *a = (struct activity *)src;
    const struct cupti_lib *lib = src->env.lib;
    if (a->registered) return OK;
    if (pool.open) return err_set(ERR_USAGE, "activity: one source a process");
    enum status st = pool_open();
    if (st != OK) return st;
    uint8_t yes = 1;
    size_t size = sizeof yes;
    lib->activity_attribute(CUPTI_ATTR_ZEROED_BUFFERS, &size,
                            &yes); /* a hint: its answer is not used */
    st = cupti_check(lib, lib->activity_callbacks(buffer_requested, buffer_completed),
                     "registering activity buffers");
    if (st != OK) return st;
    a->registered = pool.open = true;
    return OK;
}

static enum status start(struct counter_source *src)
{
    struct activity *a = (struct activity *)src;
    const struct cupti_lib *lib = src->env.lib;
    /* Kept on since the last window: what came in between is not ours; and late ones of a source
     * before this one. */
    if (a->enabled) lib->activity_flush(CUPTI_FLUSH_FORCED);
    pthread_mutex_lock(&pool.reading);
    drain(a);
    forget(a);
    pool.reader = a;
    pthread_mutex_unlock(&pool.reading);
    pool.refused = 0;
    if (!a->enabled) {
        enum status st = cupti_check(lib, lib->activity_enable(CUPTI_KIND_CONCURRENT_KERNEL),
                                     "enabling kernel activity");
        if (st != OK) return st;
        a->enabled = true;
        a->overhead_on = lib->activity_enable(CUPTI_KIND_OVERHEAD) == CUPTI_R_SUCCESS;
    }
    a->opened_ns = clock_wall_ns();
    return OK;
}

static void launch_begin(struct counter_source *src, const struct counter_launch *l)
{
    counter_notes_put(&((struct activity *)src)->notes, l);
}

static void launch_end(struct counter_source *src, const struct counter_launch *l)
{
    (void)src, (void)l;
    read_if_crowded();
}

/* Both kinds; the answer is that of the kernels'. */
static cupti_result disable(struct activity *a)
{
    const struct cupti_lib *lib = a->src.env.lib;
    if (a->overhead_on) lib->activity_disable(CUPTI_KIND_OVERHEAD);
    a->overhead_on = a->enabled = false;
    return lib->activity_disable(CUPTI_KIND_CONCURRENT_KERNEL);
}

static enum status stop(struct counter_source *src)
{
    struct activity *a = (struct activity *)src;
    const struct cupti_lib *lib = src->env.lib;
    struct counter_window w = {.role = COUNTER_ACTIVITY,
                               .window = src->windows,
                               .start_ns = a->opened_ns,
                               .end_ns = clock_wall_ns()};
    enum status st = cupti_check(lib, lib->activity_flush(CUPTI_FLUSH_FORCED), "flushing activity");
    if (st != OK) return st;
    pthread_mutex_lock(&pool.reading);
    drain(a);
    pool.reader = NULL; /* what comes from here on is not this window's */
    pthread_mutex_unlock(&pool.reading);
    if (!a->keep) st = cupti_check(lib, disable(a), "disabling kernel activity");
    qsort(a->rec, a->n, sizeof *a->rec, by_launch);
    w.other = pair(a);
    w.items = deliver(a);
    w.overheads = a->overheads;
    w.overhead_ns = a->overhead_ns;
    w.dropped = a->dropped;
    w.invalid = a->invalid;
    w.overflow = a->dropped > 0 || pool.refused > 0;
    w.decode_ns = clock_wall_ns() - w.end_ns;
    if (src->env.sink.window) src->env.sink.window(src->env.sink.user, &w);
    return st;
}

static enum status disarm(struct counter_source *src)
{
    struct activity *a = (struct activity *)src;
    const struct cupti_lib *lib = src->env.lib;
    if (!a->enabled) return OK;
    enum status st = cupti_check(lib, disable(a), "disabling kernel activity");
    lib->activity_flush(CUPTI_FLUSH_FORCED);
    pthread_mutex_lock(&pool.reading);
    drain(a);
    pthread_mutex_unlock(&pool.reading);
    return st;
}

/* The pool's memory stays: CUPTI may still hold a buffer, and it can't be asked to give one back.
 */
static void close_(struct counter_source *src)
{
    struct activity *a = (struct activity *)src;
    pthread_mutex_lock(&pool.reading);
    if (pool.reader == a) pool.reader = NULL; /* a window that was never stopped */
    pthread_mutex_unlock(&pool.reading);
    if (a->registered) pool.open = false;
    counter_notes_free(&a->notes);
    free(a->rec);
    free(a->names);
}

const struct counter_source_ops counter_activity_ops = {
    .name = "activity",
    .role = COUNTER_ACTIVITY,
    .size = sizeof(struct activity),
    .probe = probe,
    .configure = configure,
    .arm = arm,
    .start = start,
    .launch_begin = launch_begin,
    .launch_end = launch_end,
    .stop = stop,
    .disarm = disarm,
    .close = close_,
};
