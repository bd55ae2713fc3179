/* Shared by flow.c and flow_loops.c only: the graph under construction, owned by flow_make(). */
#ifndef SASS_VIEW_FLOW_PRIV_H
#define SASS_VIEW_FLOW_PRIV_H

#include "sass_view/flow.h"

enum { FLOW_LEADER = 1, FLOW_ENTRY = 2 };

struct flow_graph {
    uint8_t *lead;      /* FLOW_LEADER, FLOW_ENTRY flags of each instruction */
    uint32_t *block_of; /* block of each instruction */
    int32_t (*succ)[2]; /* successors of each block, -1: none */
};

/* Fills loops, hot, insn_loop and the blocks' loop. */
enum status flow_find_loops(struct flow *f, const struct flow_graph *g);

#endif
