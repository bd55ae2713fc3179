/*
 * Flow graph of one kernel's section: basic blocks, loops, and where the padding starts.
 *
 * A loop is a natural loop: a branch to a block that dominates it, and every block that reaches the
 * branch without passing that block. So an out-of-line block that jumps back into the main line is
 * no loop, and a loop's body need not be contiguous. Entries are the section's start, its
 * functions, and targets of calls; blocks that nothing known leads to (targets of indirect
 * branches) are entries too. The caller owns a struct flow. Work is bounded: past FLOW_WORK_MAX
 * steps loops are given up
 * (`loops_known` false), the rest stays valid.
 */
#ifndef SASS_VIEW_FLOW_H
#define SASS_VIEW_FLOW_H

#include "base/status.h"
#include "sass_view/cubin.h"
#include "sass_view/decode.h"

enum { FLOW_WORK_MAX = 20 * 1000 * 1000, FLOW_INSNS_MAX = 1 << 20, FLOW_DEPTH_MAX = 255 };

struct flow_block {
    uint32_t first, count; /* instruction indexes */
    int32_t loop;          /* innermost loop, index into loops; -1: none */
};

struct flow_loop {
    uint32_t head, last; /* byte offsets: the header's first instruction, the last instruction */
    uint32_t insns;      /* instructions in the body, inner loops included */
    int32_t parent;      /* enclosing loop, -1: none */
    uint8_t depth;       /* 1 = outermost */
    bool innermost;
};

struct flow {
    struct insn *insns; /* the whole section, decoded, in order */
    uint32_t ninsns;
    uint8_t *padding;          /* one flag an instruction */
    int32_t *insn_loop;        /* innermost loop of each instruction, -1: none */
    struct flow_block *blocks; /* by address */
    uint32_t nblocks;
    struct flow_loop *loops; /* outer before inner */
    uint32_t nloops;
    int32_t hot; /* the hot loop by structure, -1: none (rule in census.h) */
    bool loops_known;
};

/* Decodes and analyses kernel `k` of `c`. ERR_NOMEM, ERR_LIMIT; *out is zeroed then. */
enum status flow_make(struct flow *out, const struct cubin *c, const struct cubin_kernel *k);
void flow_free(struct flow *f);

/* Whether loop `inner` is `outer` or lies inside it. */
bool flow_in_loop(const struct flow *f, int32_t inner, int32_t outer);

#endif
