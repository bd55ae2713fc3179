/* Recording, marks and exports. A recording that starts in the middle of a session first gets the
 * frames that define it (`backlog`), with their time raised to now, so that it replays alone. */
#include "tui/app.h"

#include "base/clock.h"
#include "session/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENDING ".sasstop" /* of a recording's name */

static bool defines(unsigned type)
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
    case FRAME_SOURCE:
    case FRAME_PARITY:
    case FRAME_VARIANT_DEF:
    case FRAME_CEILING:
    case FRAME_DUTY:
    case FRAME_FAULT:
        return true;
    default:
        return false;
    }
}

static void lost_recording(struct app *a)
{
    app_say(a, ROLE_BAD, "recording stopped: %s; what was written so far is whole", err_msg());
    recorder_close(a->recorder);
    a->recorder = NULL;
}

void record_tick(struct app *a)
{
    if (a->recorder && recorder_tick(a->recorder, a->now_ns) != OK) lost_recording(a);
}

void record_frame(struct app *a, const struct raw_frame *raw)
{
    if (a->recorder && recorder_add(a->recorder, raw->bytes, raw->len, a->now_ns) != OK)
        lost_recording(a);
    if (!defines(raw->frame.type)) return;
    if (a->backlog.len + raw->len > BACKLOG_MAX)
        a->backlog_full = true;
    else
        buf_put(&a->backlog, raw->bytes, raw->len);
}

void mark(struct app *a, const char *kind, const char *text)
{
    struct msg_mark m = {.kind = ""};
    struct buf b = {0};
    struct raw_frame raw = {.bytes = NULL};
    size_t used;
    uint64_t t = a->now_ns > a->epoch_ns ? a->now_ns - a->epoch_ns : 0;

    if (t < a->live.session.t_ns) t = a->live.session.t_ns;
    snprintf(m.kind, sizeof m.kind, "%s", kind);
    snprintf(m.text, sizeof m.text, "%s", text);
    if (proto_encode(&b, FRAME_MARK, t, &m) == OK &&
        proto_next(b.data, b.len, &raw.frame, &used) == OK) {
        raw.bytes = b.data;
        raw.len = used;
        record_frame(a, &raw);
        session_apply(&a->live.session, &raw.frame);
    }
    buf_free(&b);
}

/* Writes the frames that define the session, at the present time. */
static enum status write_backlog(struct app *a, uint64_t t)
{
    union {
#define FRAME(UP, low, num, ver, cls, doc) struct msg_##low low;
#include "session/proto.def"
    } msg;
    struct buf one = {0};
    enum status st = OK;
    size_t used = 0;

    for (size_t at = 0; st == OK && at < a->backlog.len; at += used) {
        struct frame f;
        if ((st = proto_next(a->backlog.data + at, a->backlog.len - at, &f, &used)) != OK) break;
        if ((st = proto_decode(&f, &msg, sizeof msg)) != OK) break;
        buf_reset(&one);
        if ((st = proto_encode(&one, f.type, f.type == FRAME_HELLO ? 0 : t, &msg)) != OK) break;
        st = recorder_add(a->recorder, one.data, one.len, a->now_ns);
    }
    buf_free(&one);
    return st;
}

static void free_name(struct app *a, const char *tail)
{
    for (int n = 1; n < 1000; n++) {
        if (n == 1)
            snprintf(a->record_path, sizeof a->record_path, "./sasstop-%s%s", a->id, tail);
        else
            snprintf(a->record_path, sizeof a->record_path, "./sasstop-%s-%d%s", a->id, n, tail);
        if (access(a->record_path, F_OK)) return;
    }
}

enum status record_start(struct app *a, const char *path)
{
    if (a->feed->replay)
        return err_set(ERR_UNAVAILABLE, "a recording is shown; `sasstop cut` copies parts of one");
    if (!a->live.src) return err_set(ERR_UNAVAILABLE, "no engine runs: nothing to record");
    if (path)
        snprintf(a->record_path, sizeof a->record_path, "%s", path);
    else
        free_name(a, ENDING);
    enum status st = recorder_open(a->record_path, &a->recorder);
    if (st != OK) {
        a->record_path[0] = 0; /* nothing is recorded there */
        return st;
    }
    if (a->backlog.len) st = write_backlog(a, a->live.session.t_ns);
    if (st != OK) {
        lost_recording(a);
        return st;
    }
    if (a->backlog.len) mark(a, "record", "recording starts here; earlier rounds are not in it");
    if (a->backlog_full)
        app_say(a, ROLE_WARN, "recording to %s; some early definitions are missing",
                a->record_path);
    else
        app_say(a, ROLE_GOOD, "recording to %s", a->record_path);
    return OK;
}

void record_stop(struct app *a)
{
    if (!a->recorder) return;
    enum status st = recorder_close(a->recorder);
    a->recorder = NULL;
    if (st != OK)
        app_say(a, ROLE_BAD, "%s", err_msg());
    else
        app_say(a, ROLE_GOOD, "recorded: %s", a->record_path);
}

/* A session's id, or a recording's name without its ending, as a part of a file name: neither is
 * trusted. */
static void safe_id(const char *id, char *out, size_t size)
{
    size_t n = 0, len = strlen(id), end = strlen(ENDING);
    if (len > end && !strcmp(id + len - end, ENDING)) len -= end;
    for (const char *stop = id + len; id < stop && n + 1 < size; id++) {
        bool ok = (*id >= '0' && *id <= '9') || (*id >= 'a' && *id <= 'z') ||
                  (*id >= 'A' && *id <= 'Z') || *id == '-' || *id == '_';
        out[n++] = ok ? *id : '_';
    }
    out[n] = 0;
}

void export_reports(struct app *a)
{
    const struct session *s = app_session(a);
    char id[48], stem[120], path[140], text[200];
    int n = 1;

    const char *name = a->feed->replay ? a->feed->label : s->hello.session;
    safe_id(name[0] ? name : a->id, id, sizeof id);
    for (; n < 10000; n++) {
        bool taken = false;
        snprintf(stem, sizeof stem, "./sasstop-%s-%d", id, n);
        for (unsigned i = 0; i < nreports; i++) {
            snprintf(path, sizeof path, "%s.%s", stem, reports[i]->ext);
            taken |= access(path, F_OK) == 0;
        }
        if (!taken) break;
    }
    for (unsigned i = 0; i < nreports; i++) {
        snprintf(path, sizeof path, "%s.%s", stem, reports[i]->ext);
        if (report_save(s, reports[i]->ext, path) != OK) {
            app_say(a, ROLE_BAD, "not exported: %s", err_msg());
            return;
        }
    }
    snprintf(text, sizeof text, "frame %llu: %s", (unsigned long long)s->frames, stem);
    if (!a->feed->replay) mark(a, "export", text);
    size_t used = 0;
    for (unsigned i = 0; i < nreports && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " .%s", reports[i]->ext);
    app_say(a, ROLE_GOOD, "exported %s as%s", stem, text);
}
