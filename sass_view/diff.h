/*
 * Two kernels side by side: a verdict with its counts, and the two listings aligned by structure.
 *
 * Alignment. Basic blocks whose opcode sequences are equal and stand once on each side are anchors;
 * what lies between is aligned by a longest common subsequence of opcodes. Names of registers don't
 * count: two instructions are partners when their keys and the kind of their guards are equal.
 *
 * Verdicts, from the strictest:
 *   identical bytes      every instruction word is equal, in order (padding left out)
 *   same instructions    the same instructions as a set, whatever their order, registers and
 *                        control fields: opcode, modifiers, immediates, offsets and constants are
 *                        equal. The schedule is what differs
 *   same census          equal counts in all three scopes, other operands
 *   different            all else
 *
 * The caller owns a diff; it points into the two flows, which must outlive it. Work is bounded:
 * past DIFF_WORK_MAX steps the rest stays unaligned and `aligned` is false. Any thread.
 */
#ifndef SASS_VIEW_DIFF_H
#define SASS_VIEW_DIFF_H

#include "sass_view/census.h"
#include "sass_view/expect.h"
#include "sass_view/flow.h"

enum { DIFF_WORK_MAX = 200 * 1000 * 1000 };

enum diff_verdict { DIFF_IDENTICAL, DIFF_SCHEDULE, DIFF_CENSUS, DIFF_DIFFERENT };

enum diff_kind {
    DIFF_SAME,     /* equal words */
    DIFF_CONTROL,  /* only the control fields differ */
    DIFF_OPERANDS, /* the same opcode with other operands */
    DIFF_ONLY_A,
    DIFF_ONLY_B,
    DIFF_KINDS
};

struct diff_line {
    int32_t a, b; /* instructions; -1: none on this side */
    enum diff_kind kind;
};

struct diff {
    enum diff_verdict verdict;
    struct diff_line *lines; /* padding left out */
    uint32_t nlines;
    uint32_t n[DIFF_KINDS];
    bool aligned; /* false: the work limit was met, lines past it are ONLY_A, ONLY_B */
};

/* ERR_NOMEM. The censuses are those of the flows' kernels. */
enum status diff_make(struct diff *out, const struct flow *a, const struct flow *b,
                      const struct census *ca, const struct census *cb);
void diff_free(struct diff *d);

const char *diff_verdict_name(enum diff_verdict v); /* "same instructions, other schedule" */

/* One opcode in both censuses, most changed first. */
struct diff_row {
    char key[INSN_KEY_MAX];
    uint8_t cls;
    uint32_t a[CENSUS_SCOPES], b[CENSUS_SCOPES];
};
/* Rows of every key of either; the caller frees *rows. ERR_NOMEM. */
enum status diff_census(const struct census *a, const struct census *b, struct diff_row **rows,
                        size_t *n);

/* A claim: "LDS.32 in loop 32 -> 16" or "schedule only". */
struct claim {
    bool schedule_only;
    struct expect_side what;
    enum census_scope scope;
    int64_t from, to;
};
enum claim_state {
    CLAIM_MET,
    CLAIM_INCUMBENT, /* A doesn't hold what the claim starts from: NOISE is predicted */
    CLAIM_UNMET,     /* A does, B doesn't hold what is claimed: NOISE is predicted */
    CLAIM_UNKNOWN,   /* a figure isn't known */
};
struct claim_result {
    enum claim_state state;
    int64_t a, b;   /* what is held */
    char text[300]; /* in words */
};
/* ERR_FORMAT with words. */
enum status claim_parse(struct claim *out, const char *text);
/* Held first against A alone, then against B. */
void claim_hold(const struct claim *c, const struct diff *d, const struct census *a,
                const struct census *b, struct claim_result *out);

#endif
