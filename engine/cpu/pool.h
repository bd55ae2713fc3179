/*
 * A small pool of threads that share out a range of items.
 *
 * pool_run() returns when all items are done; the caller works too. Which thread does which items
 * is not fixed, so an item's result must not depend on it. One thread at a time may call
 * pool_run().
 */
#ifndef ENGINE_CPU_POOL_H
#define ENGINE_CPU_POOL_H

#include "base/status.h"

#include <stdint.h>

enum { POOL_MAX_THREADS = 256 };

struct pool;

/* Items first .. end - 1; `thread` counts from 0 to pool_threads() - 1. */
typedef void pool_fn(void *ctx, uint32_t first, uint32_t end, unsigned thread);

/* `threads` 0: one a CPU. Fewer are used when they can't be started. ERR_NOMEM. */
enum status pool_open(unsigned threads, struct pool **out);
void pool_close(struct pool *p); /* NULL is fine */
unsigned pool_threads(const struct pool *p);

/* `cost`: about how many multiply-adds an item is; little work is done by the caller alone. */
void pool_run(struct pool *p, uint32_t items, double cost, pool_fn *fn, void *ctx);

#endif
