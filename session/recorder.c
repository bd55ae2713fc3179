/*
 * Writing session files; see record.h.
 *
 * Invariants: only whole frames enter a chunk; a chunk goes to the file in one write where the
 * system allows it, so that what is on disk is whole up to a known place; after the first failed
 * write nothing more is written and every later call repeats the error.
 */
#include "session/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "session/crc.h"
#include "session/record_file.h"

/* Level 3: a chunk of 64 KiB takes well under a millisecond, and the screen's loop is the caller.
 * A copy has more time, but as tight as it goes takes 1.5 s for each MB of the recording: a long
 * one is packed so at its beginning alone. */
enum { LEVEL_LIVE = 3, LEVEL_COPY = 19, LEVEL_LONG = 9, COPY_TIGHT = 4 << 20 };

struct recorder {
    int fd;
    char *path;
    struct buf raw, packed;
    uint64_t first_ns; /* when the open chunk got its first frame */
    uint64_t written;
    bool copy;
    int failed; /* errno of the write that failed, or -1; 0 = none did */
    ZSTD_CCtx *zstd;
};

static enum status write_all(struct recorder *r, const void *p, size_t n)
{
    const uint8_t *at = p;
    while (n) {
        ssize_t got = write(r->fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            r->failed = got < 0 ? errno : -1;
            return err_set(ERR_IO,
                           "%s: %s; the recording is whole up to here and has stopped, the session "
                           "goes on; free some space and start another",
                           r->path, got < 0 ? strerror(errno) : "nothing was written");
        }
        at += got;
        n -= (size_t)got;
        r->written += (uint64_t)got;
    }
    return OK;
}

static enum status stopped(const struct recorder *r)
{
    return err_set(ERR_IO, "%s: the recording has stopped: %s", r->path,
                   r->failed > 0 ? strerror(r->failed) : "nothing was written");
}

static int level_of(const struct recorder *r)
{
    return !r->copy ? LEVEL_LIVE : r->written < COPY_TIGHT ? LEVEL_COPY : LEVEL_LONG;
}

static enum status flush_chunk(struct recorder *r)
{
    if (r->raw.len == 0) return OK;
    size_t bound = ZSTD_compressBound(r->raw.len);
    buf_reset(&r->packed);
    if (!buf_reserve(&r->packed, CHUNK_HEAD + bound))
        return err_set(ERR_NOMEM, "out of memory for a chunk of the recording");
    size_t n = ZSTD_compressCCtx(r->zstd, r->packed.data + CHUNK_HEAD, bound, r->raw.data,
                                 r->raw.len, level_of(r));
    if (ZSTD_isError(n)) return err_set(ERR_FAILED, "%s: zstd: %s", r->path, ZSTD_getErrorName(n));
    buf_u32(&r->packed, CHUNK_MAGIC);
    buf_u32(&r->packed, (uint32_t)r->raw.len);
    buf_u32(&r->packed, (uint32_t)n);
    buf_u32(&r->packed, crc32_of(r->packed.data + CHUNK_HEAD, n));
    enum status st = write_all(r, r->packed.data, CHUNK_HEAD + n);
    buf_reset(&r->raw);
    return st;
}

static void recorder_free(struct recorder *r)
{
    if (r->fd >= 0) close(r->fd);
    ZSTD_freeCCtx(r->zstd);
    buf_free(&r->raw);
    buf_free(&r->packed);
    free(r->path);
    free(r);
}

enum status recorder_open(const char *path, struct recorder **out)
{
    struct recorder *r = calloc(1, sizeof *r);
    struct buf head = {0};
    enum status st;

    *out = NULL;
    if (!r) return err_set(ERR_NOMEM, "out of memory for a recording");
    r->fd = -1;
    r->path = strdup(path);
    r->zstd = ZSTD_createCCtx();
    buf_put(&head, FILE_MAGIC, 8);
    buf_u32(&head, FILE_VERSION);
    buf_u32(&head, 0);
    if (!r->path || !r->zstd || head.failed) {
        st = err_set(ERR_NOMEM, "out of memory for a recording");
        goto fail;
    }
    r->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (r->fd < 0) {
        st = errno == EEXIST
                 ? err_set(ERR_IO, "%s exists already and is left alone; choose another name", path)
                 : err_set(ERR_IO, "%s: can't create the recording: %s", path, strerror(errno));
        goto fail;
    }
    st = write_all(r, head.data, head.len);
    if (st != OK) goto fail;
    buf_free(&head);
    *out = r;
    return OK;
fail:
    buf_free(&head);
    recorder_free(r);
    return st;
}

enum status recorder_open_copy(const char *path, struct recorder **out)
{
    enum status st = recorder_open(path, out);
    if (st == OK) (*out)->copy = true;
    return st;
}

enum status recorder_add(struct recorder *r, const void *frame, size_t len, uint64_t now_ns)
{
    if (r->failed) return stopped(r);
    if (len < FRAME_HEAD + FRAME_TAIL || len > FRAME_HEAD + FRAME_MAX + FRAME_TAIL)
        return err_set(ERR_USAGE, "a frame of %zu bytes can't be recorded", len);
    if (r->raw.len == 0) r->first_ns = now_ns;
    buf_put(&r->raw, frame, len);
    if (r->raw.failed) {
        r->raw.failed = false;
        return err_set(ERR_NOMEM, "out of memory for the recording: a frame is not in it");
    }
    if (r->raw.len >= CHUNK_RAW_MAX) return flush_chunk(r);
    return recorder_tick(r, now_ns);
}

enum status recorder_tick(struct recorder *r, uint64_t now_ns)
{
    if (r->failed || r->copy || r->raw.len == 0 || now_ns - r->first_ns < CHUNK_AGE_NS) return OK;
    return flush_chunk(r);
}

uint64_t recorder_bytes(const struct recorder *r)
{
    return r->written;
}

enum status recorder_close(struct recorder *r)
{
    if (!r) return OK;
    enum status st = r->failed ? stopped(r) : flush_chunk(r);
    /* Pipes and some file systems can't sync: that loses nothing that was written. */
    if (fsync(r->fd) != 0 && errno == EIO && st == OK)
        st = err_set(ERR_IO, "%s: %s", r->path, strerror(errno));
    recorder_free(r);
    return st;
}
