/*
 * An experiment as it was frozen and measured: the fold's record of it, and what it says so far.
 *
 * The fold owns experiments and all they hold. lab_evaluate() is pure: the verdict is a function of
 * the frames, so the runner, the screen, a report and a replay can't disagree.
 */
#ifndef SESSION_LAB_EXPERIMENT_H
#define SESSION_LAB_EXPERIMENT_H

#include "session/lab_stats.h"
#include "session/proto.h"

enum { LAB_EXPERIMENTS_MAX = 128, LAB_GATES_MAX = 16, LAB_FIGURES_MAX = 96, LAB_ALL_PAIRS = 1200 };

struct lab_experiment {
    struct msg_experiment def;
    uint64_t t_ns;
    struct msg_gate gates[LAB_GATES_MAX];
    uint32_t ngates;
    struct msg_pair *pairs; /* owned by the fold */
    uint32_t npairs;
    struct msg_mechanism figures[LAB_FIGURES_MAX];
    uint32_t nfigures;
    bool closed;
    struct msg_verdict verdict; /* when closed */
};

/* What pairs are compared by. */
enum lab_series { LAB_WARM, LAB_COLD, LAB_CYCLES, LAB_ALSO };

/* d = ln(a/b) of the pairs of `kind` ("AB", "AA", "CC") that count and have that series; writes at
 * most `max`, returns how many. */
uint32_t lab_ratios(const struct lab_experiment *x, const char *kind, enum lab_series s, double *d,
                    uint32_t max);
uint32_t lab_dropped(const struct lab_experiment *x);
/* The first gate that stands against a verdict, or NULL. */
const struct msg_gate *lab_failed_gate(const struct lab_experiment *x);
const struct msg_gate *lab_gate(const struct lab_experiment *x, const char *name);

/* The result of all pairs so far. ERR_NOMEM. */
enum status lab_evaluate(const struct lab_experiment *x, struct lab_result *out);
/* The interval of another series of the A/B pairs. */
enum status lab_series_interval(const struct lab_experiment *x, enum lab_series s,
                                struct lab_interval *out);
void lab_fill_verdict(const struct lab_experiment *x, const struct lab_result *r,
                      struct msg_verdict *out); /* all but the sentence */

/* Reads ">= +4% prefill", "1.5%", ">= -0.5 % kernel", "<= -3% time". The metric is left as it is
 * when the text names none. ERR_USAGE with what is understood. */
enum status lab_parse_bar(const char *text, char metric[16], double *gain);

/* Whether a figure may stand for a cause: not the time itself, nor how far a loop was unrolled. */
bool lab_figure_explains(const struct msg_mechanism *f);

/* What moved, in one sentence, from the figures alone; "" when there are none. Figures that follow
 * from one another by definition aren't offered as causes. */
void lab_sentence(const struct lab_experiment *x, const struct lab_result *r, char *out,
                  size_t size);

#endif
