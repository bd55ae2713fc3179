/*
 * The application: what is shown, where it comes from, what the user asked for. No terminal, no
 * clock: the loop and the scripts hand in keys and the time. One thread; owns all it points to
 * except the options.
 */
#ifndef TUI_APP_H
#define TUI_APP_H

#include "session/record.h"
#include "tui/canvas.h"
#include "tui/keys.h"
#include "tui/pane.h"
#include "tui/source.h"

enum view_id {
#define VIEW(ID, ops) VIEW_##ID,
#include "tui/views.def"
#undef VIEW
    VIEWS,
    VIEWS_NUMBERED = VIEW_HELP
};

/* A source with the session folded from it. */
struct feed {
    struct frame_source *src; /* NULL = closed */
    struct session session;
    bool replay, ended;
    char label[128]; /* file name of a recording */
};

/* A flip that was asked for and not answered yet, or refused: what F forces. */
struct flip {
    char family[32], variant[48];
    uint32_t kd;
    enum { FLIP_NONE, FLIP_ASKED, FLIP_REFUSED } state;
    uint32_t blocks; /* asked for last; 0 = as the kernels are */
};

struct app {
    const struct run_options *options;
    struct canvas canvas;
    struct feed live, recorded;
    struct feed *feed; /* the one on the screen; NULL before anything is open */
    uint64_t epoch_ns; /* monotonic time of t = 0 of the live session */
    uint64_t now_ns;   /* as handed in */
    char id[40];

    enum view_id view, back;
    void *view_data[VIEWS];
    uint32_t row;    /* the kernel row that all views are about; TABLE_NONE = none */
    uint32_t pinned; /* number of the newest generation when a row of an older one was picked; 0 */
    struct flip flip;
    unsigned exact_set; /* what x counts beside live: metric_set_name(), 0 = nothing */

    char message[400];
    enum role message_role;
    uint64_t message_until; /* 0 = until the next key */
    bool typing;            /* keys go into the filter of the view's pane */

    struct recorder *recorder;
    char record_path[300];
    struct buf backlog; /* frames that give a recording started later its state */
    bool backlog_full;

    struct lab_job *job; /* an experiment that runs beside the screen (lab_job.h); NULL = none */
    bool quit, redraw, dirty;
};

enum { BACKLOG_MAX = 32 << 20 };

enum status app_init(struct app *a, const struct run_options *o);
void app_free(struct app *a);

enum status app_open_engine(struct app *a, uint64_t now_ns);
/* Shows a recording, one of experiments in the lab; the live session, if any, goes on behind it. */
enum status app_open_recording(struct app *a, const char *path);
void app_close_recording(struct app *a);

/* Takes what the sources have. Sets dirty when something changed. */
enum status app_pull(struct app *a, uint64_t now_ns);
void app_key(struct app *a, int key);
void app_request(struct app *a, enum request r);
void app_draw(struct app *a);
/* Moves a recording to `position` and folds up to there. */
void app_seek(struct app *a, uint64_t position);

/* Exact counters (app_exact.c): of all kernels; of one layer's products at once; the next set. */
void app_exact(struct app *a);
void app_exact_now(struct app *a);
void app_exact_set(struct app *a);

/* The line above the footer. */
void app_say(struct app *a, enum role role, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void app_show_view(struct app *a, enum view_id v);

/* The session on the screen. */
const struct session *app_session(const struct app *a);
/* The selected row, NULL when there is none, and its kernel. */
const struct row *app_row(const struct app *a);
const struct kernel *app_kernel(const struct app *a);
/* The one that did the same work before the last flip; NULL when there is none. */
const struct kernel *app_kernel_before(const struct app *a);
/* Moves the selection into the newest generation; called before each draw. */
void app_follow_row(struct app *a);
/* Selects a row by hand: one of an older generation stays until the next flip. */
void app_pick_row(struct app *a, uint32_t row);

/* flip.c */
void flip_request(struct app *a, enum request r);
/* By name, for scripts: refused as by key where the engine said that it can't run. */
void flip_to(struct app *a, const char *family, const char *variant, uint32_t kd);
void flip_auto(struct app *a);
void flip_blocks(struct app *a); /* the next number of blocks an SM */
void flip_answered(struct app *a, const struct msg_reply *reply);
enum status app_command(struct app *a, const char *verb, const char *family, const char *variant,
                        uint32_t kd, bool force);
/* With a text and nothing else: range "stalls". */
enum status app_command_arg(struct app *a, const char *verb, const char *arg);

/* executed.c: asks for the executed counts of the row under the cursor, or of all rows. */
void executed_ask(struct app *a, bool all);

/* duty.c: the next longer rest of the counters, then the shortest again. */
void duty_request(struct app *a);

/* record.c */
void export_reports(struct app *a);
enum status record_start(struct app *a, const char *path);
void record_stop(struct app *a);
void record_frame(struct app *a, const struct raw_frame *raw);
/* Writes what is old enough. A recording that can't go on stops with words; the session goes on. */
void record_tick(struct app *a);
/* Puts a MARK into the recording and the session. */
void mark(struct app *a, const char *kind, const char *text);

/* chrome.c */
void chrome_draw(struct app *a, struct area *body);
/* "1:04" */
void clock_text(uint64_t ns, char *text, size_t size);

#endif
