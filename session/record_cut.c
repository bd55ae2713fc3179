/*
 * Cutting a session; see record.h.
 *
 * The input is read twice: first to learn which PM windows lie whole inside the cut and
 * whether anything does, then to copy.
 * Invariant: what the frames of the cut refer to is in it, since every frame that defines
 * something, or says what state things are in, is kept from the beginning on.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/record.h"

struct cut {
    uint64_t from_ns, to_ns;
    struct buf windows;         /* one byte a window in order: 1 = whole inside the cut */
    size_t window;              /* how many have begun so far */
    bool in_window;             /* between the begin and end of one that is kept */
    bool marked;                /* the MARK of the cut is written */
    uint64_t inside;            /* frames between its ends */
    uint64_t first_ns, last_ns; /* of the whole recording */
    struct buf frame;
};

/* Frames before the cut that later ones, or the state of the screen, depend on. */
static bool bears_state(unsigned type)
{
    switch (type) {
    case FRAME_HELLO:
    case FRAME_MODEL:
    case FRAME_METRIC_DEF:
    case FRAME_KERNEL_DEF:
    case FRAME_ROW_DEF:
    case FRAME_MODULE:
    case FRAME_CENSUS:
    case FRAME_GENERATION:
    case FRAME_COUNTER:
    case FRAME_STALLS:
    case FRAME_PC_HEAT:
    case FRAME_EXECUTED:
    case FRAME_SOURCE:
    case FRAME_FAULT:
    case FRAME_DROPS:
    case FRAME_PARITY:
    case FRAME_VARIANT_DEF:
    case FRAME_CEILING:
    case FRAME_TALLY:
    case FRAME_DUTY:
    case FRAME_EXPERIMENT:
    case FRAME_GATE:
    case FRAME_PAIR:
    case FRAME_MECHANISM:
    case FRAME_VERDICT:
        return true;
    default:
        return false;
    }
}

static enum status find_windows(struct cut *c, struct reader *r)
{
    struct frame f;
    uint64_t begin_ns = 0;
    bool open = false;
    enum status st;

    while ((st = reader_next(r, &f)) == OK) {
        if (reader_frames_read(r) == 1) c->first_ns = f.t_ns;
        if (f.t_ns > c->last_ns) c->last_ns = f.t_ns;
        c->inside += f.t_ns >= c->from_ns && f.t_ns <= c->to_ns;
        if (f.type == FRAME_WINDOW_BEGIN) {
            buf_u8(&c->windows, 0);
            begin_ns = f.t_ns;
            open = true;
        } else if (f.type == FRAME_WINDOW_END && open && !c->windows.failed) {
            c->windows.data[c->windows.len - 1] = begin_ns >= c->from_ns && f.t_ns <= c->to_ns;
            open = false;
        }
    }
    if (st != ERR_END) return st;
    if (c->windows.failed) return err_set(ERR_NOMEM, "out of memory for the list of windows");
    if (!c->inside)
        return err_set(ERR_USAGE,
                       "a cut from %.3f s to %.3f s holds nothing: the recording runs from %.3f s "
                       "to %.3f s",
                       (double)c->from_ns / 1e9, (double)c->to_ns / 1e9, (double)c->first_ns / 1e9,
                       (double)c->last_ns / 1e9);
    return OK;
}

/* Whether a window's frame is kept; called for each of them in order. */
static bool keep_window_frame(struct cut *c, unsigned type)
{
    if (type == FRAME_WINDOW_BEGIN) {
        c->in_window = c->window < c->windows.len && c->windows.data[c->window];
        c->window++;
    }
    bool keep = c->in_window;
    if (type == FRAME_WINDOW_END) c->in_window = false;
    return keep;
}

static bool keep_frame(struct cut *c, const struct frame *f)
{
    switch (f->type) {
    case FRAME_WINDOW_BEGIN:
    case FRAME_SPANS:
    case FRAME_PM_SAMPLES:
    case FRAME_WINDOW_END:
        return keep_window_frame(c, f->type);
    default:
        if (f->t_ns > c->to_ns) return false;
        return f->t_ns >= c->from_ns || bears_state(f->type);
    }
}

static enum status put_frame(struct cut *c, struct recorder *out, const struct frame *f)
{
    buf_reset(&c->frame);
    enum status st = proto_copy(&c->frame, f);
    return st == OK ? recorder_add(out, c->frame.data, c->frame.len, f->t_ns) : st;
}

/* Says where the cut begins, after what was kept from before it. */
static enum status put_mark(struct cut *c, struct recorder *out)
{
    struct msg_mark m = {.kind = "cut"};
    bool whole = c->from_ns <= c->first_ns && c->to_ns >= c->last_ns;
    uint64_t from_ns = c->from_ns > c->first_ns ? c->from_ns : c->first_ns;
    uint64_t to_ns = c->to_ns < c->last_ns ? c->to_ns : c->last_ns;

    c->marked = true;
    snprintf(m.text, sizeof m.text, "%s: %.3f s to %.3f s",
             whole ? "packed anew" : "cut out of a longer session", (double)from_ns / 1e9,
             (double)to_ns / 1e9);
    buf_reset(&c->frame);
    enum status st = proto_encode(&c->frame, FRAME_MARK, from_ns, &m);
    return st == OK ? recorder_add(out, c->frame.data, c->frame.len, from_ns) : st;
}

static enum status copy_frames(struct cut *c, struct reader *r, struct recorder *out)
{
    struct frame f;
    enum status st;

    while ((st = reader_next(r, &f)) == OK) {
        if (!keep_frame(c, &f)) continue;
        if (f.t_ns >= c->from_ns && !c->marked && reader_frames_read(r) > 1) {
            st = put_mark(c, out);
            if (st != OK) return st;
        }
        if (f.t_ns < c->from_ns) f.t_ns = c->from_ns;
        st = put_frame(c, out, &f);
        if (st != OK) return st;
    }
    return st == ERR_END ? OK : st;
}

enum status record_cut(const char *in, const char *out_path, uint64_t from_ns, uint64_t to_ns)
{
    struct cut c = {.from_ns = from_ns, .to_ns = to_ns};
    struct reader *r = NULL;
    struct recorder *out = NULL;
    enum status st, closed;

    if (from_ns > to_ns)
        return err_set(ERR_USAGE, "a cut from %.3f s to %.3f s holds nothing: --from is after --to",
                       (double)from_ns / 1e9, (double)to_ns / 1e9);
    st = reader_open(in, &r);
    if (st != OK) return st;
    st = find_windows(&c, r);
    if (st == OK) st = reader_rewind(r);
    if (st == OK) st = recorder_open_copy(out_path, &out);
    if (st != OK) goto out;
    st = copy_frames(&c, r, out);
    closed = recorder_close(out);
    if (st == OK) st = closed;
    if (st != OK) unlink(out_path); /* made here a moment ago, and not whole */
out:
    reader_close(r);
    buf_free(&c.windows);
    buf_free(&c.frame);
    return st;
}
