/*
 * Session files (.sasstop): the stream of frames in checked, compressed chunks; append-only.
 *
 * File: 16-byte header "SASSTOP\n", u32 format version (1), u32 zero; then chunks {u32 magic
 * "CHNK", u32 raw_len, u32 comp_len, u32 crc32 of the compressed bytes, one zstd frame of whole
 * frames}. A chunk is closed at 64 KiB of frames or 250 ms after its first, so a killed program
 * loses at most that. A reader stops at the first damaged chunk, keeps what came before and says
 * so. A recorder or reader belongs to one thread.
 */
#ifndef SESSION_RECORD_H
#define SESSION_RECORD_H

#include "session/proto.h"

enum { CHUNK_RAW_MAX = 64 << 10, CHUNK_AGE_NS = 250 * 1000 * 1000 };

struct recorder;

/* Creates the file (ERR_IO when it exists already: nothing is ever overwritten). */
enum status recorder_open(const char *path, struct recorder **out);
/* The same for a copy of what is safe elsewhere: packed as tightly as it goes, chunks of full size.
 */
enum status recorder_open_copy(const char *path, struct recorder **out);
/* Adds the bytes of one whole frame (header to CRC). `now_ns` is a monotonic clock of the caller.
 */
enum status recorder_add(struct recorder *r, const void *frame, size_t len, uint64_t now_ns);
/* Writes a chunk when the open one is old enough; call it in the main loop. */
enum status recorder_tick(struct recorder *r, uint64_t now_ns);
uint64_t recorder_bytes(const struct recorder *r); /* written to the file so far */
enum status recorder_close(struct recorder *r);    /* flushes, syncs, frees; NULL is fine */

struct reader;

/* Reads the whole file's chunk index (headers only). ERR_FORMAT with words for anything else. */
enum status reader_open(const char *path, struct reader **out);
enum status reader_open_memory(const void *p, size_t n, struct reader **out); /* bytes not owned */
void reader_close(struct reader *r);

/* The next frame; f->payload lives until the next call. ERR_END at the end. At a damaged place
 * ERR_END too, and reader_damage() says what and where. */
enum status reader_next(struct reader *r, struct frame *f);
const char *reader_damage(const struct reader *r); /* NULL when whole */
enum status reader_rewind(struct reader *r);
uint64_t reader_frames_read(const struct reader *r);
uint64_t reader_duration_ns(struct reader *r); /* t_ns of the last whole frame */

/* `sasstop cut`: copies frames with from <= t <= to (ns); definitions and other state-bearing
 * control frames before `from` are kept (with their t_ns raised to `from`), so that the cut
 * replays alone. Window frames are kept or left out as whole windows. ERR_USAGE when
 * no frame lies in between. */
enum status record_cut(const char *in, const char *out, uint64_t from_ns, uint64_t to_ns);

#endif
