/*
 * Reading session files; see record.h.
 *
 * Invariants: every length is checked against its limit and against the bytes that are there before
 * it is used; memory is one chunk at a time; after damage nothing further is read, and what came
 * before it has been handed out whole. A file is mapped, so a chunk's bytes cost nothing until
 * read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "session/crc.h"
#include "session/record_file.h"

struct reader {
    const uint8_t *data;
    size_t size;
    void *map; /* what to unmap, NULL for memory of the caller's */
    size_t at; /* offset of the next chunk */
    struct buf raw;
    size_t raw_at;
    uint64_t frames;
    bool done;
    char damage[200];
    ZSTD_DCtx *zstd;
    bool has_duration;
    uint64_t duration;
};

struct chunk {
    uint32_t raw_len, comp_len, crc;
    const uint8_t *bytes;
};

static enum status check_head(const uint8_t *p, size_t n, const char *name)
{
    struct rd r = rd_make(p, n);
    const uint8_t *magic = rd_bytes(&r, 8);
    uint32_t version = rd_u32(&r);

    if (!magic || memcmp(magic, FILE_MAGIC, n < 8 ? n : 8) != 0)
        return err_set(ERR_FORMAT, "%s is not a session file: it does not begin with SASSTOP",
                       name);
    rd_u32(&r);
    if (r.bad) return err_set(ERR_FORMAT, "%s ends after %zu bytes, inside its header", name, n);
    if (version != FILE_VERSION)
        return err_set(ERR_FORMAT, "%s has format %u; this program reads format %d", name, version,
                       FILE_VERSION);
    return OK;
}

static enum status reader_make(const uint8_t *p, size_t n, const char *name, struct reader **out)
{
    enum status st = check_head(p, n, name);
    if (st != OK) return st;
    struct reader *r = calloc(1, sizeof *r);
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    if (!r || !zstd) {
        free(r);
        ZSTD_freeDCtx(zstd);
        return err_set(ERR_NOMEM, "out of memory for %s", name);
    }
    r->data = p;
    r->size = n;
    r->at = FILE_HEAD;
    r->zstd = zstd;
    *out = r;
    return OK;
}

enum status reader_open_memory(const void *p, size_t n, struct reader **out)
{
    *out = NULL;
    return reader_make(p, n, "the recording", out);
}

enum status reader_open(const char *path, struct reader **out)
{
    struct stat info;
    void *map = NULL;
    enum status st;

    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return err_set(ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        st = err_set(ERR_IO, "%s is not a plain file", path);
        goto out;
    }
    if (info.st_size < FILE_HEAD) {
        st = err_set(ERR_FORMAT, "%s has %lld bytes: too short for a session file", path,
                     (long long)info.st_size);
        goto out;
    }
    map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        st = err_set(ERR_IO, "%s: can't map it: %s", path, strerror(errno));
        goto out;
    }
    st = reader_make(map, (size_t)info.st_size, path, out);
    if (st == OK)
        (*out)->map = map;
    else
        munmap(map, (size_t)info.st_size);
out:
    close(fd);
    return st;
}

void reader_close(struct reader *r)
{
    if (!r) return;
    if (r->map) munmap(r->map, r->size);
    ZSTD_freeDCtx(r->zstd);
    buf_free(&r->raw);
    free(r);
}

static enum status damaged(struct reader *r, const char *what)
{
    snprintf(r->damage, sizeof r->damage,
             "at byte %zu of %zu: %s; the %llu frames before it are whole", r->at, r->size, what,
             (unsigned long long)r->frames);
    r->done = true;
    return ERR_END;
}

/* The header of the chunk at r->at; what is wrong with it, or NULL. */
static const char *chunk_head(const struct reader *r, struct chunk *c)
{
    struct rd rd = rd_make(r->data + r->at, r->size - r->at);
    uint32_t magic = rd_u32(&rd);
    c->raw_len = rd_u32(&rd);
    c->comp_len = rd_u32(&rd);
    c->crc = rd_u32(&rd);
    if (rd.bad) return "the file ends inside a chunk's header";
    if (magic != CHUNK_MAGIC) return "no chunk begins here";
    if (c->raw_len == 0 || c->raw_len > CHUNK_RAW_LIMIT || c->comp_len == 0 ||
        c->comp_len > CHUNK_COMP_LIMIT)
        return "a chunk's length is out of bounds";
    c->bytes = rd_bytes(&rd, c->comp_len);
    if (!c->bytes) return "the file ends inside a chunk";
    return NULL;
}

static enum status load_chunk(struct reader *r)
{
    struct chunk c;

    if (r->at == r->size) {
        r->done = true;
        return ERR_END;
    }
    const char *wrong = chunk_head(r, &c);
    if (wrong) return damaged(r, wrong);
    if (crc32_of(c.bytes, c.comp_len) != c.crc) return damaged(r, "a chunk's checksum is wrong");
    buf_reset(&r->raw);
    r->raw_at = 0;
    if (!buf_reserve(&r->raw, c.raw_len))
        return err_set(ERR_NOMEM, "out of memory for a chunk of the recording");
    size_t n = ZSTD_decompressDCtx(r->zstd, r->raw.data, c.raw_len, c.bytes, c.comp_len);
    if (ZSTD_isError(n) || n != c.raw_len) return damaged(r, "a chunk does not unpack");
    r->raw.len = n;
    r->at += CHUNK_HEAD + (size_t)c.comp_len;
    return OK;
}

enum status reader_next(struct reader *r, struct frame *f)
{
    size_t used;

    if (r->done) return ERR_END;
    if (r->raw_at == r->raw.len) {
        enum status st = load_chunk(r);
        if (st != OK) return st;
    }
    if (proto_next(r->raw.data + r->raw_at, r->raw.len - r->raw_at, f, &used) != OK)
        return damaged(r, "a chunk before this place holds bytes that are no whole frame");
    r->raw_at += used;
    r->frames++;
    return OK;
}

const char *reader_damage(const struct reader *r)
{
    return r->damage[0] ? r->damage : NULL;
}

enum status reader_rewind(struct reader *r)
{
    r->at = FILE_HEAD;
    r->raw_at = 0;
    buf_reset(&r->raw);
    r->frames = 0;
    r->done = false;
    r->damage[0] = '\0';
    return OK;
}

uint64_t reader_frames_read(const struct reader *r)
{
    return r->frames;
}

/* A second reader over the same bytes walks to the end, so the caller's place stays as it is. */
uint64_t reader_duration_ns(struct reader *r)
{
    struct reader *walk;
    struct frame f;

    if (r->has_duration) return r->duration;
    if (reader_make(r->data, r->size, "the recording", &walk) != OK) return 0;
    while (reader_next(walk, &f) == OK)
        if (f.t_ns > r->duration) r->duration = f.t_ns;
    reader_close(walk);
    r->has_duration = true;
    return r->duration;
}
