/*
 * Where frames come from: a running engine or a recording. The screen can't tell the difference
 * beyond what a source says about itself.
 *
 * A source is owned by who opened it and released by its close(). One thread. Frames handed out
 * live until the next call of next(). To add a source: one file with a frame_source_ops.
 */
#ifndef TUI_SOURCE_H
#define TUI_SOURCE_H

#include "session/model.h"
#include "tui/options.h"

struct frame_source;

struct raw_frame {
    struct frame frame;
    const uint8_t *bytes; /* the whole frame as on the wire; NULL from a recording */
    size_t len;
};

struct frame_source_ops {
    const char *name;
    /* Readable when next() may have something; -1 = never. */
    int (*fd)(struct frame_source *src);
    /* ERR_AGAIN: nothing now. ERR_END: nothing ever again. Also does what time asks for (restarts,
     * deadlines), so it is called at least every 100 ms. */
    enum status (*next)(struct frame_source *src, uint64_t now_ns, struct raw_frame *out);
    /* (optional) Sends a request to the engine. */
    enum status (*command)(struct frame_source *src, const struct msg_command *c);
    void (*close)(struct frame_source *src);
};

struct frame_source {
    const struct frame_source_ops *ops;
};

/* ---- engine ---- */

/* Starts the engine. `s` is the session that its frames are folded into: read for restarts and
 * hang limits, never written. `epoch_ns` is the monotonic time of t = 0. The options and the
 * session must outlive the source. */
enum status engine_source_open(const struct run_options *o, const struct session *s,
                               uint64_t epoch_ns, const char *id, struct frame_source **out);
/* How the last engine ended: its exit status, or EXIT_FAILED after a fault; words in text. */
int engine_source_status(const struct frame_source *src, char *text, size_t size);
int engine_source_pid(const struct frame_source *src); /* 0 = none now */

/* ---- replay ---- */

/* Opens a recording, reads it once to find its length, flips and rounds, and stands at `start` of
 * its first generation (without one: of its first experiment) with the clock stopped. */
enum status replay_source_open(const char *path, struct frame_source **out);
/* All times below are ns after the first frame. */
uint64_t replay_position(const struct frame_source *src);
uint64_t replay_duration(const struct frame_source *src);
/* Of a time of the session. */
uint64_t replay_place(const struct frame_source *src, uint64_t t_ns);
/* Moves the position. True when the session has to start over: the caller resets it and goes on
 * pulling frames. */
bool replay_seek(struct frame_source *src, uint64_t position);
/* Lets `ns` of time pass: the position moves by ns x speed when playing. */
void replay_pass(struct frame_source *src, uint64_t ns);
void replay_play(struct frame_source *src, bool on);
bool replay_playing(const struct frame_source *src);
double replay_speed(const struct frame_source *src);
void replay_set_speed(struct frame_source *src, double speed);
/* The nearest flip (or round) before or after the position; the end or 0 when there is none. */
uint64_t replay_flip(const struct frame_source *src, int direction);
/* The generation before or after, at its last round, where it has all its figures. */
uint64_t replay_generation(const struct frame_source *src, int direction);
uint64_t replay_round(const struct frame_source *src, int direction);
/* It holds experiments and no generation: there is nothing to see but in the lab. */
bool replay_is_lab(const struct frame_source *src);
/* Words about a damaged file; NULL when it was whole. */
const char *replay_damage(const struct frame_source *src);

#endif
