/* The tables behind synth_session.c: what runs, on what shapes, how fast. All of it made up. */
#ifndef TESTS_SYNTH_PRIV_H
#define TESTS_SYNTH_PRIV_H

#include "session/pack.h"

struct synth_variant {
    const char *variant, *note;
    uint32_t kd;
    double us_per_gmac, sm, ipc, tensor, dram;
    uint32_t regs, lds, imma; /* the last two: counts in the census */
};

struct synth_op {
    const char *kernel, *family, *role, *phase; /* kernel NULL: the selected GEMM variant */
    uint32_t m, n, k;
    double us; /* a call; of the GEMM: by us_per_gmac */
    double sm, ipc, tensor, dram;
    uint32_t calls; /* a round */
    int in_window;  /* how often in a layer of the window */
};

enum {
    LIVE_METRICS = 4,
    OP_STEP = 100, /* row numbers: generation * OP_STEP + op + 1 */
};

/* The story so far. */
struct synth {
    struct buf *out;
    enum status st;
    uint64_t t_ns, rng;
    uint32_t round, window, instance, generation;
    const struct synth_variant *v;
};

extern const struct synth_variant synth_variants[];
extern const unsigned synth_nvariants;
extern const struct synth_op synth_ops[];
extern const unsigned synth_nops;
extern const char *const synth_words[];
extern const unsigned synth_nwords;
extern const struct msg_metric_def synth_metrics[]; /* the live ones first */
extern const unsigned synth_nmetrics;

uint64_t synth_draw(struct synth *g);
double synth_uniform(struct synth *g); /* in [0, 1) */
double synth_about(struct synth *g, double part); /* around 1, within 1 +- part */
void synth_emit(struct synth *g, enum frame_type type, const void *msg);
uint32_t synth_op_kernel(const struct synth *g, unsigned op);  /* number of its kernel */
uint32_t synth_row_number(const struct synth *g, unsigned op); /* in this generation */
double synth_op_us(const struct synth *g, unsigned op);

void synth_timed_round(struct synth *g);
void synth_rounds(struct synth *g); /* all rounds of a generation */

#endif
