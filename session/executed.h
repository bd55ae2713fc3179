/*
 * What executed counts say: the figures of one opcode, one class or a whole kernel, in words, and
 * the attribution of a surplus. Pure functions over a session, which they point into.
 *
 * Surplus attribution: of the instructions that a kernel executes per multiply-add beyond those of
 * a reference, which classes or opcodes make up how many per cent. By executed counts where both
 * sides have them, else by the static counts of the two hot loops over the multiply-adds of one
 * pass, labelled as that; never one of each. Parts can be negative and above 100: what one class
 * saves another one spends; they sum to 100.
 */
#ifndef SESSION_EXECUTED_H
#define SESSION_EXECUTED_H

#include "session/model.h"

/* Figures of a sum, each with its reason when there is none. */
struct value exec_launch(const struct executed *e,
                         const struct exec_sum *x); /* by warps, a launch */
struct value exec_share(const struct executed *e, const struct exec_sum *x); /* % of the kernel's */
struct value exec_per_mac(const struct session *s, const struct executed *e,
                          const struct exec_sum *x);
/* How often a warp runs one of these instructions, on average over those that ran. */
struct value exec_runs(const struct session *s, const struct executed *e, const struct exec_sum *x);
struct value exec_threads(const struct executed *e, const struct exec_sum *x); /* active, of 32 */
struct value exec_pred(const struct executed *e, const struct exec_sum *x);    /* % predicated on */
struct value exec_in_loop(const struct exec_sum *x);                           /* % */

/* Why executed and static counts differ: loops, guards, inactive threads, parts that never ran. */
void exec_gap(const struct session *s, const struct executed *e, const struct exec_sum *x,
              char *out, size_t size);

/* What was counted, how many, and how it compares with the range pass: one line. `own` false: the
 * counts are of another row of the same code, which the line says. */
void exec_words(const struct session *s, const struct executed *e, bool own, char *out,
                size_t size);

enum surplus_basis { SURPLUS_NONE, SURPLUS_EXECUTED, SURPLUS_STATIC };

struct surplus_side {
    const struct executed *e;
    const struct kernel *k;
    double macs;  /* that its counts are of */
    double whole; /* instructions per multiply-add of its launches by a range pass; 0 = not known */
};

struct surplus {
    enum surplus_basis basis;
    bool by_class;
    struct surplus_side a, b;
    double sum_a, sum_b; /* instructions per multiply-add */
    char why[200];       /* why there is none; with SURPLUS_STATIC: why not by executed counts */
};

struct surplus_row {
    const char *name, *cls;
    double a, b, delta; /* instructions per multiply-add */
    double pct;         /* of the surplus; NAN when there is none to divide */
};

/* Row against row, indexes into s->rows; UINT32_MAX = none. */
void surplus_open(const struct session *s, uint32_t row, uint32_t other, bool by_class,
                  struct surplus *out);
/* Indexes below this may be rows: false for one that is none. */
uint32_t surplus_count(const struct surplus *x);
bool surplus_at(const struct surplus *x, uint32_t index, struct surplus_row *out);
void surplus_words(const struct surplus *x, char *out, size_t size);

#endif
