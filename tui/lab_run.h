/*
 * Running one experiment: gates, pairs, figures, verdict, each a frame in a recording at the moment
 * it is known, so that a kill at any time leaves all finished pairs. See docs/LAB.md.
 *
 * lab_run() owns its processes and its recording and leaves neither behind. One thread.
 */
#ifndef TUI_LAB_RUN_H
#define TUI_LAB_RUN_H

#include "session/model.h"
#include "session/record.h"
#include "tui/lab_child.h"

struct lab_options {
    struct lab_side a, b, control;
    bool has_control, engine, force_gates, no_counters, quiet;
    char shape[64]; /* "M,N,K", or the bench of an engine */
    const char *hypothesis, *claim, *bar, *retry, *counters;
    char metric[16];
    double gain;
    uint32_t pairs, number;    /* number: of the experiment within its session; 0 = 1 */
    double precision, seconds; /* 0 = not by that */
    uint64_t seed;
    unsigned rounds;
    const char *resume; /* a recording to go on with; NULL = a new experiment */
    const char *record; /* file to make; NULL = named by the time */
    const char *ledger; /* NULL: LEDGER_FILE in this folder */
    int frames_fd;      /* frames go there too; -1 = nowhere */
    struct run_options engine_options;
};

enum lab_place { LAB_A, LAB_A2, LAB_B, LAB_C, LAB_PLACES };

struct lab_run {
    struct lab_options *o;
    struct session session; /* folded from the frames that were written */
    struct recorder *recorder;
    char path[300];
    uint64_t epoch_ns;
    struct lab_child child[LAB_PLACES];
    struct msg_experiment def;
    uint64_t started_ns, rng;
    uint32_t npairs;
    char stop[160]; /* why it ended early; "" = it did not */
};

/* Everything from the first gate to the verdict. ERR_USAGE and ERR_UNAVAILABLE come before a
 * recording is made; after that an experiment ends with a verdict, INVALID at worst, and OK. */
enum status lab_run(struct lab_options *o, struct lab_run *r);
void lab_run_free(struct lab_run *r);
const struct lab_experiment *lab_run_experiment(const struct lab_run *r);

/* lab_resume.c: whether `path` holds the same experiment, unfinished; then its frames. */
enum status lab_resume_check(struct lab_run *r, const char *path);
enum status lab_resume_copy(struct lab_run *r, const char *path);

/* lab_run.c's parts */
enum status lab_emit_bytes(struct lab_run *r, const struct buf *frame);
enum status lab_emit(struct lab_run *r, enum frame_type type, const void *msg);
enum status lab_put_gate(struct lab_run *r, const char *gate, const char *state, const char *fmt,
                         ...) __attribute__((format(printf, 4, 5)));
enum status lab_gates(struct lab_run *r);   /* lab_gates.c; child[LAB_A] and child[LAB_B] are up */
enum status lab_figures(struct lab_run *r); /* lab_figures.c */
enum status lab_start_child(struct lab_run *r, enum lab_place p);
void lab_end_children(struct lab_run *r);

#endif
