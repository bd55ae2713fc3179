/*
 * Expectations: rules about a kernel's machine code in a small text file beside its source.
 *
 *   # comment
 *   kernel nb_kd8 sm_90a sm_121      which kernels (a glob) and archs (none: all) come next
 *   code ee209bbab7b9d115 CUDA 13.0  what the exact rules were counted on (a line for each arch)
 *   regs <= 128
 *   IMMA == 64 in hot                opcodes and classes: in kernel (default), in loop, in hot
 *   exact LDS.32 == 16 in hot        held with the toolkit of a `code` line only: other compilers
 *                                    choose other instructions
 *   LDS.32 > 16 in hot -> r30 reopens     a retry condition: when it holds, what follows -> is due
 *
 * A side of a comparison (== != <= >= < >) is a sum (+ -) of numbers, opcodes (LDS counts every
 * width), classes (tensor, int...) and figures (regs smem spill stack barriers threads params
 * total padding unknown loops). Opcodes are upper case, all else lower case.
 *
 * A set is read-only after parsing and owned by the caller. Pure but for expect_load(). Bounds:
 * EXPECT_TEXT_MAX bytes, EXPECT_RULES_MAX rules; a file over them or with a broken line is refused
 * with its line number.
 */
#ifndef SASS_VIEW_EXPECT_H
#define SASS_VIEW_EXPECT_H

#include "base/status.h"
#include "sass_view/census.h"

enum { EXPECT_TEXT_MAX = 256 << 10, EXPECT_RULES_MAX = 4096, EXPECT_TERMS_MAX = 8 };

struct expect_term {
    enum { TERM_NUMBER, TERM_OPCODE, TERM_CLASS, TERM_FIGURE } kind;
    bool minus;
    int64_t number; /* value, class or figure */
    char opcode[INSN_KEY_MAX];
};

struct expect_side {
    struct expect_term terms[EXPECT_TERMS_MAX];
    unsigned n;
};

enum expect_op { OP_EQ, OP_NE, OP_LE, OP_GE, OP_LT, OP_GT };

/* The kernels that the rules behind it are about. */
struct expect_section {
    unsigned line;
    char kernel[128]; /* glob */
    char archs[8][16];
    unsigned narchs;
    struct expect_code {
        uint64_t hash;
        char toolkit[16]; /* "13.0" */
    } codes[8];
    unsigned ncodes;
};

struct expect_rule {
    unsigned line, section;
    char text[160]; /* as written, without comment and "exact" */
    bool exact;
    struct expect_side left, right;
    enum expect_op op;
    enum census_scope scope;
    char reopens[96]; /* what is due when it holds; "" = the rule must hold */
};

struct expect_set {
    struct expect_section *sections;
    unsigned nsections;
    struct expect_rule *rules;
    unsigned nrules;
};

enum expect_state {
    EXPECT_HELD,
    EXPECT_OFF,      /* doesn't hold */
    EXPECT_UNKNOWN,  /* a figure that the file doesn't state */
    EXPECT_SKIPPED,  /* exact, and this is another toolkit */
    EXPECT_CLOSED,   /* a retry condition that doesn't hold */
    EXPECT_REOPENED, /* a retry condition that holds */
};

struct expect_result {
    enum expect_state state;
    int64_t left, right; /* unless unknown or skipped */
    char text[400];      /* "LDS.32 == 16 in hot: is 32, 16 more" */
};

/* ERR_FORMAT with the line, ERR_LIMIT, ERR_NOMEM, ERR_IO. *out is zeroed on failure. */
enum status expect_parse(struct expect_set *out, const char *text, size_t size, const char *label);
enum status expect_load(struct expect_set *out, const char *path);
void expect_free(struct expect_set *s); /* also fine on a zeroed set */

/* Whether section `i` is about this kernel. */
bool expect_applies(const struct expect_set *s, unsigned section, const struct census *c);

/* Holds one rule against a kernel that its section applies to; `toolkit` is the cubin's. */
void expect_hold(const struct expect_set *s, const struct expect_rule *r, const struct census *c,
                 const char *toolkit, struct expect_result *out);

/* True when the section names code and this kernel's is none of it: a rebuild changed it. */
bool expect_code_changed(const struct expect_set *s, unsigned section, const struct census *c);

/* "A op B [in scope]" alone, as in a claim. */
enum status expect_parse_rule(struct expect_rule *out, const char *text);

const char *expect_state_name(enum expect_state st); /* "held", "off", "unknown"... */
/* Whether a gate must stop on it. */
bool expect_fails(enum expect_state st);

#endif
