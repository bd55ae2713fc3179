/*
 * Frames on their way out: a bounded queue and the one thread that writes it to the fd.
 *
 * emit_send() encodes a message, stamps it and puts it in the queue; it never waits for the reader
 * at the other end, so the thread that launches kernels never does. When the queued SAMPLE frames
 * pass `sample_limit`, the oldest of them leave and are counted; the writer tells the new totals in
 * DROPS frames. Control frames are never dropped. Should they pass EMIT_CONTROL_LIMIT, nobody has
 * been reading for so long that going on is useless: the stream is broken, as with EPIPE.
 *
 * Any thread may send. open, flush and close belong to one thread. A broken stream swallows what is
 * sent from then on.
 */
#ifndef ENGINE_EMIT_H
#define ENGINE_EMIT_H

#include "session/proto.h"

#include <sys/types.h>

enum {
    EMIT_SAMPLE_LIMIT = 8 << 20,   /* bytes of queued SAMPLE frames, the default */
    EMIT_CONTROL_LIMIT = 64 << 20, /* bytes of queued control frames: cubins are the bulk */
    EMIT_BATCH = 64 << 10,         /* bytes the writer takes at once */
};

struct emit_options {
    int fd;
    uint64_t epoch_ns;                                 /* monotonic time of t = 0 */
    size_t sample_limit;                               /* 0: EMIT_SAMPLE_LIMIT */
    size_t control_limit;                              /* 0: EMIT_CONTROL_LIMIT */
    ssize_t (*write)(int fd, const void *p, size_t n); /* NULL: write(2); tests give short ones */
};

struct emit_stats {
    uint64_t frames, bytes, dropped; /* sent in; written out; SAMPLE frames lost */
    size_t queued;                   /* bytes waiting now */
};

struct emit;

/* Starts the writer thread. ERR_NOMEM, ERR_FAILED (no thread). */
enum status emit_open(const struct emit_options *o, struct emit **out);

/* Queues `msg`, the struct msg_* of `type`. A frame that can't be encoded (too long) is counted as
 * dropped, as is everything when memory is out. */
void emit_send(struct emit *e, enum frame_type type, const void *msg);

/* A LOG frame; level 0 info, 1 warning, 2 error. */
void emit_log(struct emit *e, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

bool emit_broken(struct emit *e); /* the reader has gone: leave */

/* Waits until all that was queued is written, the stream is broken, or `timeout_ns` is over.
 * Whether all was written. */
bool emit_flush(struct emit *e, uint64_t timeout_ns);

void emit_stats(struct emit *e, struct emit_stats *out);
uint64_t emit_now(const struct emit *e); /* ns since the epoch: what t_ns of a frame would be */

/* Flushes for at most 2 s, ends the thread, frees. NULL is fine. The fd stays open. */
void emit_close(struct emit *e);

#endif
